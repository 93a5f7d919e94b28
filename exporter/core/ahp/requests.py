"""Every message that is sent to a host. No function here writes a message that changes anything."""

from typing import Any, Final

import msgspec

from exporter.core.ahp.dialect import CLASSIC_VERSION, ROOT, VERSIONS, Dialect
from exporter.core.ahp.values import Json

REQUESTS: Final = ("initialize", "reconnect", "ping", "listSessions", "subscribe", "fetchTurns", "resourceRead")
NOTIFICATIONS: Final = ("unsubscribe",)
METHOD_NOT_FOUND: Final = -32601
PERMISSION_DENIED: Final = -32009
TURNS_PER_PAGE: Final = 50


def initialize(id: int, client: str) -> str:
    """Offer every version, in both forms, without subscriptions."""
    params = {
        "channel": ROOT,
        "protocolVersion": CLASSIC_VERSION,
        "protocolVersions": list(VERSIONS),
        "clientId": client,
        "initialSubscriptions": [],
    }
    return _request(id, "initialize", params)


def reconnect(id: int, dialect: Dialect, client: str, last_seq: int, subscriptions: list[str]) -> str:
    """Request the messages after the last one received."""
    params = {"clientId": client, "lastSeenServerSeq": last_seq, "subscriptions": subscriptions}
    return _request(id, "reconnect", {**dialect.to_host(), **params})


def ping(id: int, dialect: Dialect) -> str:
    """Check that the host is alive."""
    return _request(id, "ping", dialect.to_host())


def list_sessions(id: int, dialect: Dialect) -> str:
    """Request the list of sessions."""
    return _request(id, "listSessions", dialect.to_host())


def subscribe(id: int, dialect: Dialect, uri: str) -> str:
    """Subscribe to a resource; the response holds its state."""
    return _request(id, "subscribe", dialect.about(uri))


def unsubscribe(dialect: Dialect, uri: str) -> str:
    """Unsubscribe from a resource."""
    return _write({"jsonrpc": "2.0", "method": "unsubscribe", "params": dialect.about(uri)})


def fetch_turns(id: int, dialect: Dialect, chat: str, *, before: str = "", cursor: Any = None) -> str:
    """Request the turns before a turn or, where the dialect has cursors, the page of a cursor."""
    if dialect.has_cursors:
        return _request(id, "fetchTurns", {"channel": chat, "cursor": cursor})
    params: Json = {"channel": chat} if dialect.has_channels else {"session": chat}
    if before:
        params["before"] = before
    return _request(id, "fetchTurns", {**params, "limit": TURNS_PER_PAGE})


def read_resource(id: int, dialect: Dialect, session: str, uri: str) -> str:
    """Request the content of a reference that `Resources` has found."""
    where = {"channel": session} if dialect.has_channels else {}
    return _request(id, "resourceRead", {**where, "uri": uri})


def refuse(id: int | str, method: str) -> str:
    """Refuse a request of the host."""
    denied = method == "resourceRequest"
    error = {
        "code": PERMISSION_DENIED if denied else METHOD_NOT_FOUND,
        "message": "an observer gives access to nothing" if denied else "an observer answers no requests",
    }
    return _write({"jsonrpc": "2.0", "id": id, "error": error})


def _request(id: int, method: str, params: Json) -> str:
    assert method in REQUESTS
    return _write({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def _write(message: Json) -> str:
    return msgspec.json.encode(message).decode()
