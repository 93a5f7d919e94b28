"""One event as it was delivered, as JSON that a person can read."""

import asyncio
import json
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from exporter.core.events.envelope import Envelope, decode
from exporter.core.events.projection import ProjectEvent
from exporter.missioncontrol.http.read_api import about
from exporter.missioncontrol.http.responses import ApiError
from exporter.missioncontrol.http.upload_api import checked_id
from exporter.missioncontrol.ingest.agent_attribution import AgentTree, kin
from exporter.missioncontrol.pages.formats import session_path
from exporter.missioncontrol.pages.rendering import HEADERS, page
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
        raise ApiError(404, "unknown_event", "Event not found.", hint="It may have been rewound.")
    if request.query_params.get("raw") == "1":
        return Response(found[0], media_type="application/json", headers=HEADERS)
    # What takes long to read must not stop everybody else meanwhile.
    values = await asyncio.to_thread(_values, *found, receiver.project)
    return page(request, "event.html", "content", **values, path=session_path(session_id), id=event_id)


def _found(database: Database, session_id: str, event_id: str) -> tuple[bytes, str | None, AgentTree] | None:
    found = queries.event_of_agent(database, session_id, event_id)
    return None if found is None else (*found, kin(database, session_id))


def _values(body: bytes, agent: str | None, family: AgentTree, project: ProjectEvent | None) -> dict[str, Any]:
    """Return what the event is, whose it is, and who sees it."""
    envelope = decode(body)
    known = envelope if isinstance(envelope, Envelope) else None
    told = about(body, agent, family, project)
    text = _laid_out(body)
    return {
        "envelope": known,
        "bytes": len(body),
        "text": text[:_SHOWN_MAX],
        "is_cut": len(text) > _SHOWN_MAX,
        "agents": ["Main agent", *(_name(family, id) for id in told["agent_path"])],
        "about": told,
    }


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
