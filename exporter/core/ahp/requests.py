"""Everything that is ever written to a host. There is no function here for a message that changes anything."""

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
    """Offer every version, in both forms, and subscribe to nothing yet."""
    params = {
        "channel": ROOT,
        "protocolVersion": CLASSIC_VERSION,
        "protocolVersions": list(VERSIONS),
        "clientId": client,
        "initialSubscriptions": [],
    }
    return _request(id, "initialize", params)


def reconnect(id: int, dialect: Dialect, client: str, seen: int, subscriptions: list[str]) -> str:
    """Ask for what was missed since the last message that was seen."""
    params = {"clientId": client, "lastSeenServerSeq": seen, "subscriptions": subscriptions}
    return _request(id, "reconnect", {**dialect.to_host(), **params})


def ping(id: int, dialect: Dialect) -> str:
    """Ask whether the host is still there."""
    return _request(id, "ping", dialect.to_host())


def list_sessions(id: int, dialect: Dialect) -> str:
    """Ask which sessions there are."""
    return _request(id, "listSessions", dialect.to_host())


def subscribe(id: int, dialect: Dialect, uri: str) -> str:
    """Ask for a resource's state, and to be told of what changes it."""
    return _request(id, "subscribe", dialect.about(uri))


def unsubscribe(dialect: Dialect, uri: str) -> str:
    """Ask not to be told any more."""
    return _write({"jsonrpc": "2.0", "method": "unsubscribe", "params": dialect.about(uri)})


def fetch_turns(id: int, dialect: Dialect, chat: str, *, before: str = "", cursor: Any = None) -> str:
    """Ask for turns before one, or, where the dialect has cursors, for those that a cursor stands for."""
    if dialect.has_cursors:
        return _request(id, "fetchTurns", {"channel": chat, "cursor": cursor})
    params: Json = {"channel": chat} if dialect.has_channels else {"session": chat}
    if before:
        params["before"] = before
    return _request(id, "fetchTurns", {**params, "limit": TURNS_PER_PAGE})


def read_resource(id: int, dialect: Dialect, session: str, uri: str) -> str:
    """Ask for the content of a reference; only `resources.Resources` says which."""
    where = {"channel": session} if dialect.has_channels else {}
    return _request(id, "resourceRead", {**where, "uri": uri})


def refuse(id: int | str, method: str) -> str:
    """Answer a request of the host: nothing of ours may be touched, and nothing else is done for it."""
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
