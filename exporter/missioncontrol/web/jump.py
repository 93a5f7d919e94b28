"""The address that leads from one error, or one notification, to the next one of the session."""

import sqlite3
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from exporter.core.envelope import Envelope, decode
from exporter.missioncontrol import queries
from exporter.missioncontrol.answers import ApiError
from exporter.missioncontrol.asked import bad_cursor
from exporter.missioncontrol.receiver import receiver_of
from exporter.missioncontrol.session_row import BadCursorError
from exporter.missioncontrol.web import reading
from exporter.missioncontrol.web.entry import Stop, data_of, text_of
from exporter.missioncontrol.web.markup import address, anchor, session_path
from exporter.missioncontrol.web.stops import TYPES, stops_of
from exporter.missioncontrol.wire import checked_id

_KINDS: Final[dict[str, Stop]] = {"error": "error", "note": "note"}


async def next_event(request: Request) -> Response:
    """Send the reader to the next event of a kind, going round at the end."""
    session_id = checked_id(request.path_params["id"])
    kind, after = _KINDS.get(request.query_params.get("kind", "")), request.query_params.get("after")
    is_back = request.query_params.get("back") == "1"
    if kind is None:
        raise ApiError(400, "bad_kind", "`kind` is neither error nor note.")
    try:
        id = await receiver_of(request).read(lambda database: _next(database, session_id, kind, after, is_back))
    except BadCursorError as error:
        raise bad_cursor() from error
    path = session_path(session_id)
    target = f"{path}#none" if id is None else f"{address(path, at=id)}#{anchor(id)}".replace("&amp;", "&")
    return RedirectResponse(target, status_code=303)


def _next(database: sqlite3.Connection, session_id: str, kind: Stop, after: str | None, is_back: bool) -> str | None:
    place = reading.place_of(database, session_id, after) if after else None
    call = _call_of(database, session_id, after) if after else ""
    for envelope in reading.events_of_types(database, session_id, TYPES[kind], place, is_back=is_back):
        data = data_of(envelope)
        # A call and its end are one entry, so who is at the call is at its end.
        is_here = envelope.id == after or (call and text_of(data, "toolCallId") == call)
        if not is_here and kind in stops_of(envelope.type, data):
            return envelope.id
    return None


def _call_of(database: sqlite3.Connection, session_id: str, event_id: str) -> str:
    found = queries.event_of_agent(database, session_id, event_id)
    envelope = decode(found[0]) if found is not None else None
    return text_of(data_of(envelope), "toolCallId") if isinstance(envelope, Envelope) else ""
