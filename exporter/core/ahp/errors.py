"""What the errors of a host mean for the operator, and the remedy."""

from typing import Final

SESSION_NOT_FOUND: Final = -32001
UNSUPPORTED_VERSION: Final = -32005
AUTH_REQUIRED: Final = -32007
NOT_FOUND: Final = -32008
PERMISSION_DENIED: Final = -32009

_MEANING: Final = {
    -32600: "the host could not read a message of ours: update the exporter",
    -32601: "the host does not know a request of ours: it speaks an older dialect, and less of it can be read",
    -32602: "the host refused what was asked for: it is read again from the beginning",
    SESSION_NOT_FOUND: "the session is not on this host any more",
    -32002: "the host has no such provider",
    AUTH_REQUIRED: (
        "the host shows no session before a sign-in, which an observer does not have. VS Code's host gets it from its "
        "owner, and is asked again; the Copilot CLI's own host shows none: read its sessions from their files, or by "
        "`rpc://` from `copilot --headless --port N`"
    ),
    NOT_FOUND: "the host does not know us, or what was asked for, any more: it was restarted; history is read again",
    PERMISSION_DENIED: (
        "the host denies access to this: nothing was read. Name the session in the source's settings only if you may "
        "see it, or ask whoever runs the host"
    ),
}


def explain(code: int, versions: tuple[str, ...] = ()) -> str:
    """Return what an error means and the remedy. Of the host's own words only versions are used."""
    if code == UNSUPPORTED_VERSION:
        spoken = ", ".join(versions) or "none that it names"
        return (
            f"the host speaks {spoken}, this exporter 1.x, 0.1 to 0.9 and the older 1: "
            "update the exporter, or the host if it is the older one"
        )
    if code == 0:
        return "the host does not answer: it is asked again"
    return _MEANING.get(code, "the host refused a request") + f" (error {code})"


def explain_handshake(status: int) -> str:
    """Return what an HTTP status means that was received instead of a WebSocket."""
    if status in (401, 403):
        return f"the host refused the token (HTTP {status}): put the one it was started with into the token file"
    if status == 404:
        return "nothing speaks the Agent Host Protocol at this address (HTTP 404): check host, port and path"
    return f"the host did not open a WebSocket (HTTP {status}): check that the port is an agent host's"
