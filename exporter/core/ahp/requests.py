"""Every message that is sent to a host, without its number. No function here makes one that changes anything."""

from typing import Any, Final

from exporter.core.ahp.dialect import CLASSIC_VERSION, ROOT, VERSIONS, Dialect
from exporter.core.ahp.messages import PERMISSION_DENIED
from exporter.core.ahp.values import Json

REQUESTS: Final = ("initialize", "reconnect", "ping", "listSessions", "subscribe", "fetchTurns", "resourceRead")
NOTIFICATIONS: Final = ("unsubscribe",)
METHOD_NOT_FOUND: Final = -32601
TURNS_PER_PAGE: Final = 50


def initialize(client: str) -> Json:
    """Offer every version, in both forms, without subscriptions."""
    params = {
        "channel": ROOT,
        "protocolVersion": CLASSIC_VERSION,
        "protocolVersions": list(VERSIONS),
        "clientId": client,
        "initialSubscriptions": [],
    }
    return _request("initialize", params)


def reconnect(dialect: Dialect, client: str, last_seq: int, subscriptions: list[str]) -> Json:
    """Request the messages after the last one received."""
    params = {"clientId": client, "lastSeenServerSeq": last_seq, "subscriptions": subscriptions}
    return _request("reconnect", {**dialect.to_host(), **params})


def ping(dialect: Dialect) -> Json:
    """Check that the host is alive."""
    return _request("ping", dialect.to_host())


def list_sessions(dialect: Dialect) -> Json:
    """Request the list of sessions."""
    return _request("listSessions", dialect.to_host())


def subscribe(dialect: Dialect, uri: str) -> Json:
    """Subscribe to a resource; the response holds its state."""
    return _request("subscribe", dialect.about(uri))


def unsubscribe(dialect: Dialect, uri: str) -> Json:
    """Unsubscribe from a resource."""
    return _request("unsubscribe", dialect.about(uri))


def fetch_turns(dialect: Dialect, chat: str, position: Any) -> Json:
    """Request the page at a cursor or, where the dialect has no cursors, the turns before a turn."""
    if dialect.has_cursors:
        return _request("fetchTurns", {"channel": chat, "cursor": position})
    params: Json = {"channel": chat} if dialect.has_channels else {"session": chat}
    if position:
        params["before"] = position
    return _request("fetchTurns", {**params, "limit": TURNS_PER_PAGE})


def read_resource(dialect: Dialect, session: str, uri: str) -> Json:
    """Request the content of a reference that a state of the session holds."""
    where = {"channel": session} if dialect.has_channels else {}
    return _request("resourceRead", {**where, "uri": uri})


def refuse(id: int | str, method: str) -> Json:
    """Refuse a request of the host."""
    if method == "resourceRequest":
        return {"id": id, "error": {"code": PERMISSION_DENIED, "message": "an observer gives access to nothing"}}
    return {"id": id, "error": {"code": METHOD_NOT_FOUND, "message": "an observer answers no requests"}}


def _request(method: str, params: Json) -> Json:
    assert method in REQUESTS or method in NOTIFICATIONS
    return {"method": method, "params": params}
