"""The address that leads from one error, or one notification, to the next one of the session."""

from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from exporter.missioncontrol.http.query_params import bad_cursor
from exporter.missioncontrol.http.responses import ApiError
from exporter.missioncontrol.http.upload_api import checked_id
from exporter.missioncontrol.pages.markup import address, anchor, session_path
from exporter.missioncontrol.pages.timeline import windows
from exporter.missioncontrol.pages.timeline.calls import beginning_of
from exporter.missioncontrol.pages.timeline.entry import Stop, data_of, text_of
from exporter.missioncontrol.pages.timeline.stops import TOOL_END, TYPES, stops_of
from exporter.missioncontrol.receiver import receiver_of
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.session_row import BadCursorError

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


def _next(database: Database, session_id: str, kind: Stop, after: str | None, is_back: bool) -> str | None:
    stops = [stop for stop in _stops(database, session_id, kind) if stop[1] != after]
    if after is None or not stops:
        return stops[-1 if is_back else 0][1] if stops else None
    at = windows.place_of(database, session_id, after)
    here = (at.place, at.n)
    if is_back:
        return next((id for place, id in reversed(stops) if place < here), stops[-1][1])
    return next((id for place, id in stops if place > here), stops[0][1])


def _stops(database: Database, session_id: str, kind: Stop) -> list[tuple[tuple[int, int], str]]:
    """Return where the entries of a kind are and their events, in the order of the timeline.

    A call and its end are one entry, which stands where the call began.
    """
    stops: list[tuple[tuple[int, int], str]] = []
    for row in windows.all_of_types(database, session_id, TYPES[kind]):
        data = data_of(row.envelope)
        if kind in stops_of(row.envelope.type, data):
            is_end = row.envelope.type == TOOL_END
            begun = beginning_of(database, session_id, text_of(data, "toolCallId"), row) if is_end else None
            entry = begun or row
            stops.append((entry.place, entry.envelope.id))
    return sorted(stops)
