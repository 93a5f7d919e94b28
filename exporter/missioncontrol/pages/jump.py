"""The address that leads from one error, or one notification, to the next one of the session."""

from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from exporter.missioncontrol.http.query_params import bad_cursor
from exporter.missioncontrol.http.responses import ApiError
from exporter.missioncontrol.http.upload_api import checked_id
from exporter.missioncontrol.pages.formats import event_address, session_path
from exporter.missioncontrol.pages.timeline.entry import Stop
from exporter.missioncontrol.pages.timeline.stops import next_stop
from exporter.missioncontrol.receiver import receiver_of
from exporter.missioncontrol.store.session_row import BadCursorError

_KINDS: Final[dict[str, Stop]] = {"error": "error", "note": "note"}


async def next_event(request: Request) -> Response:
    """Send the reader to the next event of a kind, going round at the end."""
    session_id, asked = checked_id(request.path_params["id"]), request.query_params
    kind, after, is_back = _KINDS.get(asked.get("kind", "")), asked.get("after"), asked.get("back") == "1"
    if kind is None:
        raise ApiError(400, "bad_kind", "`kind` is neither error nor note.")
    try:
        id = await receiver_of(request).read(
            lambda database: next_stop(database, session_id, kind, after, is_back=is_back)
        )
    except BadCursorError as error:
        raise bad_cursor() from error
    path = session_path(session_id)
    return RedirectResponse(f"{path}#none" if id is None else event_address(id, path), status_code=303)
