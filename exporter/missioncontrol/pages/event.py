"""One event as it was delivered, as JSON that a person can read."""

import asyncio
import json
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from exporter.core.events.envelope import Envelope, decode
from exporter.core.events.projection import ProjectEvent
from exporter.missioncontrol.http.event_annotations import about
from exporter.missioncontrol.http.responses import ApiError
from exporter.missioncontrol.http.upload_api import checked_id
from exporter.missioncontrol.ingest.agent_attribution import AgentTree, kin
from exporter.missioncontrol.pages.markup import address, anchor, escape, marked, moment, session_path, size
from exporter.missioncontrol.pages.page import HEADERS, fragment, is_fragment, page
from exporter.missioncontrol.receiver import receiver_of
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.port import Database

_SHOWN_MAX: Final = 1 << 20
_PARTS_MAX: Final = 200_000


async def event_page(request: Request) -> Response:
    """Show one event: laid out, for the script as a part, or with `raw=1` the bytes themselves."""
    session_id = checked_id(request.path_params["id"])
    event_id = request.query_params.get("id", "")
    receiver = receiver_of(request)
    found = await receiver.read(lambda database: _found(database, session_id, event_id))
    if found is None:
        raise ApiError(404, "unknown_event", "This event is not here.", hint="It may have been taken back.")
    body, agent, family = found
    if request.query_params.get("raw") == "1":
        return Response(body, media_type="application/json", headers=HEADERS)
    path = session_path(session_id)
    # What takes long to read must not stop everybody else meanwhile.
    envelope = await asyncio.to_thread(decode, body)
    told = escape(envelope.type) if isinstance(envelope, Envelope) else "event"
    when = moment(envelope.timestamp) if isinstance(envelope, Envelope) else ""
    laid_out = await asyncio.to_thread(_laid_out, body)
    whose = await asyncio.to_thread(_about, body, agent, family, receiver.project)
    cut = " · the beginning" if len(laid_out) > _SHOWN_MAX else ""
    content = (
        f'<article class="json"><h1>{told}</h1><p class="quiet">{when} · {size(len(body))} as delivered{cut} · '
        f'<a href="{address(path, at=event_id)}#{anchor(event_id)}">in its session</a> · '
        f'<a href="{address(path + "/event", id=event_id, raw=1)}">the bytes</a></p>'
        f'<p class="quiet">{whose}</p>'
        f'<pre tabindex="0">{marked(laid_out[:_SHOWN_MAX])}</pre></article>'
    )
    if is_fragment(request):
        return fragment(request, content)
    return page(request, told, content, here="/")


def _found(database: Database, session_id: str, event_id: str) -> tuple[bytes, str | None, AgentTree] | None:
    found = queries.event_of_agent(database, session_id, event_id)
    return None if found is None else (*found, kin(database, session_id))


def _about(body: bytes, agent: str | None, family: AgentTree, project: ProjectEvent | None) -> str:
    """Return whose the event is, and who sees it."""
    told = about(body, agent, family, project)
    names = [_name(family, id) for id in told["agent_path"]]
    said = [" → ".join(["Main agent", *names])]
    if "model_visible" in told:
        said.append("given to the model" if told["model_visible"] else "not given to the model")
        said.append("shown on screens" if told["ui_visible"] else "not shown on screens")
    return escape(" · ".join(said))


def _name(family: AgentTree, id: str) -> str:
    known = family.agents.get(id)
    return (known and (known.display_name or known.name)) or id[:12]


def _laid_out(body: bytes) -> str:
    """Return the event with a line for each part; as it is when it has very many, or is too deep."""
    if sum(body.count(part) for part in b"[{,") > _PARTS_MAX:
        return body.decode("utf-8", "replace")
    try:
        return json.dumps(json.loads(body), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")
