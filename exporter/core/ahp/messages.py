"""Parses one frame into a message, and explains the errors of a host.

Parsing never raises; an invalid message becomes an `InvalidFrame`.
"""

from dataclasses import dataclass, field
from typing import Final, TypeAlias

import msgspec

from exporter.core.ahp.values import Json, mapping, number
from exporter.core.events.envelope import REFUSALS

ID_LENGTH_MAX: Final = 128

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


@dataclass(frozen=True, slots=True)
class Response:
    """The result of one of our requests."""

    id: int
    result: Json = field(repr=False)


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """The error of one of our requests. The host's message is dropped: it may contain a token."""

    id: int
    code: int
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostNotification:
    """A notification, such as an action; `raw` is the whole frame."""

    method: str
    params: Json = field(repr=False)
    raw: bytes = field(repr=False, default=b"")


@dataclass(frozen=True, slots=True)
class HostRequest:
    """A request of the host."""

    id: int | str
    method: str


@dataclass(frozen=True, slots=True)
class InvalidFrame:
    """A frame that is no valid message. `reason` never quotes the frame."""

    reason: str


Message: TypeAlias = Response | ErrorResponse | HostNotification | HostRequest | InvalidFrame


def parse_frame(frame: str | bytes) -> Message:
    """Return the message of a frame."""
    if not isinstance(frame, str):
        return InvalidFrame("a binary frame")
    try:
        raw = frame.encode()
        message = msgspec.json.decode(raw)
    except REFUSALS:
        return InvalidFrame("no JSON, or too deep")
    except UnicodeEncodeError:
        return InvalidFrame("no Unicode")
    if not isinstance(message, dict):
        return InvalidFrame("no object")
    method, id = message.get("method"), message.get("id")
    if not isinstance(id, str) or len(id) > ID_LENGTH_MAX:
        id = number(message, "id")
    if isinstance(method, str):
        if "id" not in message:
            return HostNotification(method, mapping(message, "params"), raw)
        return InvalidFrame("a request with no usable id") if id is None else HostRequest(id, method)
    if not isinstance(id, int):
        return InvalidFrame("neither a request nor an answer")
    if "error" in message:
        return _failure(id, mapping(message, "error"))
    if "result" in message:
        return Response(id, mapping(message, "result"))
    return InvalidFrame("an answer with nothing in it")


def _failure(id: int, error: Json) -> ErrorResponse:
    offered = mapping(error, "data").get("supportedVersions")
    versions = offered[:16] if isinstance(offered, list) else []
    usable = tuple(str(each) for each in versions if isinstance(each, str | int) and _is_version(str(each)))
    return ErrorResponse(id, number(error, "code") or 0, usable)


def _is_version(version: str) -> bool:
    return len(version) <= 32 and all(each.isascii() and (each.isalnum() or each in ".^~+-") for each in version)


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
