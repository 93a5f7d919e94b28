"""The page of one session: what it is, its agents, a window of its timeline, and the way from stop to stop in it."""

from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from exporter.core.events.projection import ProjectEvent
from exporter.missioncontrol.http.query_params import bad_cursor
from exporter.missioncontrol.http.responses import ApiError
from exporter.missioncontrol.http.upload_api import checked_id
from exporter.missioncontrol.pages import agents
from exporter.missioncontrol.pages.figures import Figures, figures_of, lags_of
from exporter.missioncontrol.pages.formats import IN_UTC, address, event_address, session_path
from exporter.missioncontrol.pages.found import find
from exporter.missioncontrol.pages.page import is_fragment, page
from exporter.missioncontrol.pages.timeline import windows
from exporter.missioncontrol.pages.timeline.axis import day_of, mark_bars, mark_days
from exporter.missioncontrol.pages.timeline.entry import Entry, Stop
from exporter.missioncontrol.pages.timeline.stops import next_stop
from exporter.missioncontrol.pages.timeline.teller import tell
from exporter.missioncontrol.receiver import Receiver, receiver_of
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.agent_tree import tree as tree_of
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.session_row import BadCursorError

_WINDOW: Final = 400
_CONTEXT: Final = 60
_FOUND_MAX: Final = 50
_STOPS: Final[dict[str, Stop]] = {"error": "error", "note": "note"}
_PLACES: Final = ("at", "from", "before", "after", "edge")


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the request wants to see."""

    session_id: str
    agent: str | None
    is_main: bool
    everything: bool
    model_only: bool
    place: tuple[str, str] | None
    limit: int
    is_part: bool
    is_side: bool

    @property
    def scope(self) -> dict[str, object]:
        """What all links of the timeline keep of the request, but for the choice of events."""
        return {"agent": self.agent, "main": 1 if self.is_main else None}

    @property
    def kept(self) -> dict[str, object]:
        """What the links to other windows keep of the request."""
        return {**self.scope, "all": 1 if self.everything else None, "model": 1 if self.model_only else None}


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the page is made of."""

    session: dict[str, Any]
    figures: Figures
    behind: dict[str, Any] | None
    tree: dict[str, Any]
    window: windows.Window
    rewinds: list[windows.Rewind]
    day_above: str


async def session_page(request: Request) -> Response:
    """Show a session, or for the script a part of it."""
    asked, receiver = _asked(request), receiver_of(request)
    try:
        shown = await receiver.read(lambda database: _read(database, asked))
    except BadCursorError as error:
        if asked.is_part:
            return page(request, "gone.html")
        if asked.place is None:
            raise bad_cursor() from error
        raise ApiError(404, "unknown_event", "Event not found.", hint="It may have been rewound.") from error
    return page(
        request,
        "session.html",
        *(("head", "side") if asked.is_side else ("timeline",)),
        **_values(asked, shown, receiver),
        words=request.query_params.get("q", ""),
        found=None if asked.is_part else await find(request, asked.session_id, _FOUND_MAX),
    )


def _values(asked: _Asked, shown: _Shown, receiver: Receiver) -> dict[str, Any]:
    path, tree = session_path(asked.session_id), shown.tree
    waits = [wait for wait in receiver.waiting.all() if wait.session == asked.session_id]
    entries, is_all = _entries(asked, shown, receiver.project)
    return {
        "path": path,
        "session": shown.session,
        "figures": shown.figures,
        "behind": shown.behind,
        "waits": [wait.text or wait.type.replace("_", " ") for wait in waits],
        "main_events": tree["events"],
        "branches": agents.branches_of(tree, asked.agent),
        "steps": agents.steps_to(path, tree, asked.agent),
        "names": agents.names_of(tree),
        "entries": entries,
        "is_all": is_all,
        "links": _links(asked, shown.window, path),
        "kept": [(name, value) for name, value in asked.kept.items() if value is not None],
        "asked": asked,
        "has_model": receiver.project is not None,
        "in_utc": IN_UTC,
    }


def _asked(request: Request) -> _Asked:
    query = request.query_params
    return _Asked(
        session_id=checked_id(request.path_params["id"]),
        agent=query.get("agent") or None,
        is_main=query.get("main") == "1",
        everything=query.get("all") == "1",
        model_only=query.get("model") == "1",
        place=next(((name, query[name]) for name in _PLACES if query.get(name)), None),
        limit=1 if query.get("few") == "1" else _WINDOW,
        is_part=is_fragment(request),
        is_side=is_fragment(request) and query.get("side") == "1",
    )


def _read(database: Database, asked: _Asked) -> _Shown:
    session = queries.session(database, asked.session_id)
    tree = tree_of(database, asked.session_id)
    scope = agents.scope_of(tree, asked.agent, is_main=asked.is_main)
    return _Shown(
        session=session,
        figures=figures_of(database, [asked.session_id]).get(asked.session_id, {}),
        behind=lags_of(queries.exporters(database)).of(session),
        tree=tree,
        window=windows.with_ends(database, asked.session_id, _window(database, asked, scope)),
        rewinds=windows.rewinds(database, asked.session_id),
        day_above=_day_above(database, asked, scope),
    )


def _day_above(database: Database, asked: _Asked, scope: windows.TimelineScope) -> str:
    """Return the day of the event above a window that the script puts below another one."""
    if not asked.is_part or asked.is_side or asked.place is None or asked.place[0] not in ("from", "after"):
        return ""
    kind, id = asked.place
    place = windows.place_of(database, asked.session_id, id)
    above = windows.window_before(database, place if kind == "from" else place._replace(n=place.n + 1), scope, 1)
    return day_of(above.rows[0].envelope.timestamp) if above.rows else ""


def _window(database: Database, asked: _Asked, scope: windows.TimelineScope) -> windows.Window:
    if asked.is_side:
        return windows.Window([], before=False, behind=False)
    if asked.place is None:
        return windows.last_window(database, asked.session_id, scope, _WINDOW)
    kind, id = asked.place
    if kind == "edge":
        return windows.first_window(database, asked.session_id, scope, _WINDOW)
    place = windows.place_of(database, asked.session_id, id)
    if kind == "before":
        return windows.window_before(database, place, scope, _WINDOW)
    if kind == "after":
        return windows.window_after(database, place, scope, _WINDOW)
    if kind == "from":
        return windows.window_from(database, place, scope, asked.limit)
    earlier = windows.window_before(database, place, scope, _CONTEXT)
    later = windows.window_from(database, place, scope, _WINDOW - _CONTEXT)
    return windows.Window(earlier.rows + later.rows, earlier.before, later.behind, later.until)


def _entries(asked: _Asked, shown: _Shown, project: ProjectEvent | None) -> tuple[list[Entry], bool]:
    """Return what is shown of the window; True when that is every event because the one asked for is for machines."""
    rows, taken_back = shown.window.rows, windows.rewinds_within(shown.rewinds, shown.window)
    model_only = asked.model_only and project is not None
    everything, ends, is_all = asked.everything or model_only, shown.window.ends, False
    entries = tell(rows, ends=ends, everything=everything, taken_back=taken_back, project=project)
    seen = _given_to_model(rows, project)
    for entry in entries:
        if entry.type == "system.notification" and project is not None and entry.id not in seen:
            entry.facts.append("not visible to the model")
    if model_only:
        entries = [entry for entry in entries if not entry.ids or not seen.isdisjoint(entry.ids)]
    if asked.place is not None and asked.place[0] == "at" and not any(asked.place[1] in entry.ids for entry in entries):
        entries, is_all = tell(rows, ends=ends, everything=True, taken_back=taken_back), True
    mark_days(entries, shown.day_above)
    mark_bars(entries)
    return entries, is_all


def _given_to_model(rows: list[windows.TimelineRow], project: ProjectEvent | None) -> set[str]:
    if project is None:
        return set()
    told = ((row.envelope, project(row.envelope.type, bytes(row.envelope.data), False)) for row in rows)
    return {envelope.id for envelope, meant in told if meant.model_visible}


def _links(asked: _Asked, window: windows.Window, path: str) -> dict[str, str]:
    """Return the links with which the reader moves on; without the script these alone lead from stop to stop."""
    here = asked.place[1] if asked.place is not None and asked.place[0] == "at" else None
    links = {
        "error": address(path + "/next", kind="error", after=here),
        "note": address(path + "/next", kind="note", after=here),
        "everything": address(path, **asked.scope, all=None if asked.everything else 1),
        "model_only": address(path, **asked.scope, model=None if asked.model_only else 1),
    }
    if window.before and window.rows:
        links["earlier"] = address(path, **asked.kept, before=window.rows[0].envelope.id)
        links["beginning"] = address(path, **asked.kept, edge="first")
    if window.behind and window.rows:
        links["later"] = address(path, **asked.kept, after=window.rows[-1].envelope.id)
        links["newest"] = address(path, **asked.kept) + "#newest"
    return links


async def next_event(request: Request) -> Response:
    """Send the reader to the next event of a kind, going round at the end."""
    session_id, asked = checked_id(request.path_params["id"]), request.query_params
    kind, after, is_back = _STOPS.get(asked.get("kind", "")), asked.get("after"), asked.get("back") == "1"
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
