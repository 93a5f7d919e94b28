"""The page of one session: what it is, its agents, a window of its timeline, and the way from stop to stop in it.

Also how a session is forgotten for good: a page that says what is deleted, and the button on it.
"""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from exporter.core.events.projection import ProjectEvent
from exporter.missioncontrol.http.audited import who_asks
from exporter.missioncontrol.http.responses import ApiError
from exporter.missioncontrol.http.upload_api import checked_id
from exporter.missioncontrol.pages import agents
from exporter.missioncontrol.pages.figures import figures_of, lags_of
from exporter.missioncontrol.pages.formats import address, event_address, local, session_path
from exporter.missioncontrol.pages.rendering import is_fragment, page
from exporter.missioncontrol.pages.sessions import find
from exporter.missioncontrol.pages.timeline import windows
from exporter.missioncontrol.pages.timeline.entry import Entry, day_of, mark_bars, mark_days
from exporter.missioncontrol.pages.timeline.teller import Teller, next_stop
from exporter.missioncontrol.pages.timeline.wording import table
from exporter.missioncontrol.receiver import receiver_of
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.agent_tree import tree as tree_of
from exporter.missioncontrol.store.port import Database

_WINDOW: Final = 400
_CONTEXT: Final = 60
_FOUND_MAX: Final = 50
_PLACES: Final = ("at", "from", "before", "after", "edge")


class _Asked:
    """What the request wants to see."""

    def __init__(self, request: Request) -> None:
        query = request.query_params
        self.session_id = checked_id(request.path_params["id"])
        self.agent = query.get("agent") or None
        self.is_main = query.get("main") == "1"
        self.everything = query.get("all") == "1"
        self.model_only = query.get("model") == "1"
        self.place = next(((name, query[name]) for name in _PLACES if query.get(name)), None)
        self.limit = 1 if query.get("few") == "1" else _WINDOW
        self.is_part = is_fragment(request)
        self.is_side = self.is_part and query.get("side") == "1"

    @property
    def event(self) -> str | None:
        """The event that is asked for."""
        return self.place[1] if self.place is not None and self.place[0] == "at" else None

    @property
    def kept(self) -> dict[str, object]:
        """What the links of the timeline keep of the request."""
        return {
            "agent": self.agent,
            "main": 1 if self.is_main else None,
            "all": 1 if self.everything else None,
            "model": 1 if self.model_only else None,
        }

    def link(self, **changed: object) -> str:
        """Return the address of the timeline with what is kept of the request, but for some changes."""
        return address(session_path(self.session_id), **{**self.kept, **changed})


async def session_page(request: Request) -> Response:
    """Show a session, or for the script a part of it."""
    asked, receiver = _Asked(request), receiver_of(request)
    waits = [wait for wait in receiver.waiting.all() if wait.session == asked.session_id]
    try:
        values = await receiver.read(lambda database: _values(database, asked, receiver.project))
    except ApiError as error:
        if error.kind != "bad_cursor":
            raise
        if asked.is_part:
            return page(request, "gone.html")
        raise ApiError(404, "unknown_event", "Event not found.", hint="It may have been rewound.") from error
    return page(
        request,
        "session.html",
        *(("head", "side") if asked.is_side else ("timeline",)),
        **values,
        asked=asked,
        waits=waits,
        words=request.query_params.get("q", ""),
        found=None if asked.is_part else await find(request, asked.session_id, _FOUND_MAX),
    )


def _values(database: Database, asked: _Asked, project: ProjectEvent | None) -> dict[str, Any]:
    id = asked.session_id
    session, tree = queries.session(database, id), tree_of(database, id)
    scope = agents.scope_of(tree, asked.agent, is_main=asked.is_main)
    window = _window(database, asked, scope)
    entries, is_all = _entries(database, asked, window, project)
    mark_days(entries, _day_above(database, asked, scope))
    mark_bars(entries)
    return {
        "path": session_path(id),
        "session": session,
        "figures": figures_of(database, [id]).get(id, {}),
        "behind": lags_of(queries.exporters(database)).of(session),
        "main_events": tree["events"],
        "branches": agents.branches_of(tree["agents"]),
        "steps": agents.steps_to(tree, asked.agent),
        "names": agents.names_of(tree),
        "window": window,
        "entries": entries,
        "is_all": is_all,
        "has_model": project is not None,
    }


def _day_above(database: Database, asked: _Asked, scope: windows.TimelineScope) -> str:
    """Return the day of the event above a window that the script puts below another one."""
    if not asked.is_part or asked.is_side or asked.place is None or asked.place[0] not in ("from", "after"):
        return ""
    kind, id = asked.place
    place = windows.place_of(database, asked.session_id, id).moved(0 if kind == "from" else 1)
    above = windows.read_window(database, place, scope, 1, is_back=True)
    return day_of(above.rows[0].envelope.timestamp) if above.rows else ""


def _window(database: Database, asked: _Asked, scope: windows.TimelineScope) -> windows.Window:
    if asked.is_side:
        return windows.Window([], before=False, behind=False)
    kind, id = asked.place or ("newest", "")
    if kind in ("newest", "edge"):
        is_end = kind == "newest"
        edge = windows.edge_of(database, asked.session_id, is_end=is_end)
        return windows.read_window(database, edge, scope, _WINDOW, is_back=is_end)
    place = windows.place_of(database, asked.session_id, id)
    if kind == "from":
        return windows.read_window(database, place.moved(-1), scope, asked.limit)
    if kind in ("before", "after"):
        return windows.read_window(database, place, scope, _WINDOW, is_back=kind == "before")
    earlier = windows.read_window(database, place, scope, _CONTEXT, is_back=True)
    later = windows.read_window(database, place.moved(-1), scope, _WINDOW - _CONTEXT)
    return windows.Window(earlier.rows + later.rows, earlier.before, later.behind, later.until)


def _entries(
    database: Database, asked: _Asked, window: windows.Window, project: ProjectEvent | None
) -> tuple[list[Entry], bool]:
    """Return what is shown of the window; True when that is every event because the one asked for is for machines."""
    rows, id = window.rows, asked.session_id
    taken_back = windows.rewinds_within(windows.rewinds(database, id), window)
    model_only = asked.model_only and project is not None
    everything = asked.everything or model_only
    entries = Teller(everything, project).tell(rows, taken_back, windows.ends_behind(database, id, window))
    seen = _given_to_model(rows, project)
    for entry in entries:
        if entry.type == "system.notification" and project is not None and entry.id not in seen:
            entry.facts.append("not visible to the model")
    if model_only:
        entries = [entry for entry in entries if not entry.ids or not seen.isdisjoint(entry.ids)]
    if asked.event is None or any(asked.event in entry.ids for entry in entries):
        return entries, False
    return Teller(everything=True).tell(rows, taken_back, windows.ends_behind(database, id, window)), True


def _given_to_model(rows: list[windows.TimelineRow], project: ProjectEvent | None) -> set[str]:
    if project is None:
        return set()
    meant = ((row.envelope, project(row.envelope.type, bytes(row.envelope.data), False)) for row in rows)
    return {envelope.id for envelope, projected in meant if projected.model_visible}


async def next_event(request: Request) -> Response:
    """Send the reader to the next event of a kind, going round at the end."""
    session_id, asked = checked_id(request.path_params["id"]), request.query_params
    kind, after, is_back = asked.get("kind", ""), asked.get("after"), asked.get("back") == "1"
    if kind not in table().stops:
        raise ApiError(400, "bad_kind", "`kind` is neither error nor note.")
    id = await receiver_of(request).read(lambda database: next_stop(database, session_id, kind, after, is_back=is_back))
    path = session_path(session_id)
    return RedirectResponse(f"{path}#none" if id is None else event_address(id, path), status_code=303)


async def forget_page(request: Request) -> Response:
    """Ask whether a session shall be forgotten; the script shows the same over the session's page."""
    session_id = checked_id(request.path_params["id"])
    session = await receiver_of(request).read(lambda database: queries.session(database, session_id))
    return page(request, "forget.html", "content", session=session)


async def forget(request: Request) -> Response:
    """Forget it, and show the sessions that are left."""
    await receiver_of(request).forget([checked_id(request.path_params["id"])], who=who_asks(request))
    return RedirectResponse(local("/"), status_code=303)
