"""One event as it was delivered, as JSON that a person can read."""

import json
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from exporter.core.envelope import Envelope, decode
from exporter.missioncontrol import queries
from exporter.missioncontrol.answers import ApiError
from exporter.missioncontrol.receiver import receiver_of
from exporter.missioncontrol.web.markup import address, anchor, escape, marked, moment, session_path, size
from exporter.missioncontrol.web.page import HEADERS, fragment, is_fragment, page
from exporter.missioncontrol.wire import checked_id

_SHOWN_MAX: Final = 1 << 20


async def event_page(request: Request) -> Response:
    """Show one event: laid out, for the script as a part, or with `raw=1` the bytes themselves."""
    session_id = checked_id(request.path_params["id"])
    event_id = request.query_params.get("id", "")
    body = await receiver_of(request).read(lambda database: queries.event(database, session_id, event_id))
    if body is None:
        raise ApiError(404, "unknown_event", "This event is not here.", hint="It may have been taken back.")
    if request.query_params.get("raw") == "1":
        return Response(body, media_type="application/json", headers=HEADERS)
    path = session_path(session_id)
    envelope = decode(body)
    told = escape(envelope.type) if isinstance(envelope, Envelope) else "event"
    when = moment(envelope.timestamp) if isinstance(envelope, Envelope) else ""
    laid_out = _laid_out(body)
    cut = " · the beginning" if len(laid_out) > _SHOWN_MAX else ""
    content = (
        f'<article class="json"><h1>{told}</h1><p class="quiet">{when} · {size(len(body))} as delivered{cut} · '
        f'<a href="{address(path, at=event_id)}#{anchor(event_id)}">in its session</a> · '
        f'<a href="{address(path + "/event", id=event_id, raw=1)}">the bytes</a></p>'
        f'<pre tabindex="0">{marked(laid_out[:_SHOWN_MAX])}</pre></article>'
    )
    if is_fragment(request):
        return fragment(request, content)
    return page(request, told, content, here="/")


def _laid_out(body: bytes) -> str:
    try:
        return json.dumps(json.loads(body), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")
