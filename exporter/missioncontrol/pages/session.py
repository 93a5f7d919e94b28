"""The page of one session: what it is, its agents, and a window of its timeline."""

from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from exporter.core.events.projection import ProjectEvent
from exporter.missioncontrol.http.query_params import bad_cursor
from exporter.missioncontrol.http.responses import ApiError
from exporter.missioncontrol.http.upload_api import checked_id
from exporter.missioncontrol.pages import agents
from exporter.missioncontrol.pages.entries import entry_items
from exporter.missioncontrol.pages.markup import IN_UTC, address, escape, marked, session_path
from exporter.missioncontrol.pages.page import fragment, is_fragment, page
from exporter.missioncontrol.pages.search_results import found_events, nothing_to_look_for
from exporter.missioncontrol.pages.session_facts import session_head
from exporter.missioncontrol.pages.timeline import windows
from exporter.missioncontrol.pages.timeline.calls import with_ends
from exporter.missioncontrol.pages.timeline.days import day_of, mark_days
from exporter.missioncontrol.pages.timeline.entry import Entry
from exporter.missioncontrol.pages.timeline.teller import tell
from exporter.missioncontrol.receiver import receiver_of
from exporter.missioncontrol.search import search_query
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.agent_tree import tree as tree_of
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.session_row import BadCursorError

_WINDOW: Final = 400
_CONTEXT: Final = 60
_FOUND_MAX: Final = 50
_MODEL: Final = "What the model was given"


@dataclass(frozen=True, slots=True)
class _Shown:
    """All that the page is made of."""

    session: dict[str, Any]
    figures: windows.Figures
    lag: dict[str, Any] | None
    tree: dict[str, Any]
    window: windows.Window
    rewinds: list[windows.Rewind]
    day_above: str


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


async def session_page(request: Request) -> Response:
    """Show a session, or for the script a part of it."""
    asked = _asked(request)
    try:
        shown = await receiver_of(request).read(lambda database: _read(database, asked))
    except BadCursorError as error:
        if asked.is_part:
            return fragment(request, '<p data-part="gone"></p>')
        if asked.place is None:
            raise bad_cursor() from error
        raise ApiError(404, "unknown_event", "This event is not here.", hint="It may have been taken back.") from error
    path = session_path(asked.session_id)
    tree = agents.agent_tree(path, shown.tree, asked.agent, is_main=asked.is_main)
    facts = session_head(shown.session, shown.figures, shown.lag) + _waits(request, asked)
    head = f'<div class="head" data-part="head">{facts}</div>'
    side = f'<aside data-part="side">{tree}</aside>'
    if asked.is_side:
        return fragment(request, head + side)
    timeline = _timeline(asked, shown, receiver_of(request).project)
    if asked.is_part:
        return fragment(request, timeline)
    found = await _found(request, asked.session_id)
    where = agents.agent_place(path, shown.tree, asked.agent)
    zone = f'<noscript><p class="quiet">{IN_UTC}</p></noscript>'
    run = f'<div class="run">{found}{where}{zone}{timeline}</div>'
    content = f'{head}{_bar(request, asked, path)}<div class="columns">{side}{run}</div>'
    title = str(shown.session["title"] or asked.session_id)
    return page(request, title, content, here="/", body=f' data-session="{escape(asked.session_id)}"')


def _waits(request: Request, asked: _Asked) -> str:
    """Return what only live events say that the session waits for."""
    waits = [wait for wait in receiver_of(request).waiting.all() if wait.session == asked.session_id]
    return "".join(
        f"<p><strong>Waits for you:</strong> {marked(wait.text or wait.type.replace('_', ' '))}</p>" for wait in waits
    )


def _asked(request: Request) -> _Asked:
    query = request.query_params
    place = next(((name, query[name]) for name in ("at", "from", "before", "after", "edge") if query.get(name)), None)
    return _Asked(
        session_id=checked_id(request.path_params["id"]),
        agent=query.get("agent") or None,
        is_main=query.get("main") == "1",
        everything=query.get("all") == "1",
        model_only=query.get("model") == "1",
        place=place,
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
        figures=windows.figures(database, [asked.session_id]).get(asked.session_id, {}),
        lag=windows.lags(queries.exporters(database)).of(session),
        tree=tree,
        window=with_ends(database, asked.session_id, _window(database, asked, scope)),
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


def _timeline(asked: _Asked, shown: _Shown, project: ProjectEvent | None) -> str:
    window = shown.window
    entries, is_all = _entries(asked, shown, project)
    items = entry_items(asked.session_id, entries, agents.names_of(shown.tree))
    if not items:
        items = '<li class="quiet empty">Nothing to show here.</li>'
    path = session_path(asked.session_id)
    scope = _scope(asked)
    before = after = ""
    if window.before and window.rows:
        first = window.rows[0].envelope.id
        start = address(path, **scope, edge="first")
        before = (
            f'<p class="more earlier"><a class="button" href="{address(path, **scope, before=first)}">Earlier</a>'
            f'<a class="button" href="{start}">From the beginning</a></p>'
        )
    if window.behind and window.rows:
        last = window.rows[-1].envelope.id
        after = (
            f'<p class="more later"><a class="button" href="{address(path, **scope, after=last)}">Later</a>'
            f'<a class="button" href="{address(path, **scope)}#newest">Newest</a></p>'
        )
    else:
        after = '<p id="newest"></p>'
    every = ' data-all="1"' if is_all else ""
    return f'{before}<ol class="timeline"{every} aria-label="Timeline">{items}</ol>{after}'


def _scope(asked: _Asked) -> dict[str, object]:
    """Return what of the request all links of its timeline keep."""
    return {
        "agent": asked.agent,
        "main": 1 if asked.is_main else None,
        "all": 1 if asked.everything else None,
        "model": 1 if asked.model_only else None,
    }


def _entries(asked: _Asked, shown: _Shown, project: ProjectEvent | None) -> tuple[list[Entry], bool]:
    """Return what is shown of the window; True when that is every event because the one asked for is for machines."""
    rows, taken_back = shown.window.rows, windows.rewinds_within(shown.rewinds, shown.window)
    model_only = asked.model_only and project is not None
    everything, ends, is_all = asked.everything or model_only, shown.window.ends, False
    entries = tell(rows, ends=ends, everything=everything, taken_back=taken_back, project=project)
    seen = _given_to_model(rows, project)
    for entry in entries:
        if entry.type == "system.notification" and project is not None and entry.id not in seen:
            entry.facts.append("not given to the model")
    if model_only:
        entries = [entry for entry in entries if not entry.ids or not seen.isdisjoint(entry.ids)]
    if asked.place is not None and asked.place[0] == "at" and not any(asked.place[1] in entry.ids for entry in entries):
        entries, is_all = tell(rows, ends=ends, everything=True, taken_back=taken_back), True
    mark_days(entries, shown.day_above)
    return entries, is_all


def _given_to_model(rows: list[windows.TimelineRow], project: ProjectEvent | None) -> set[str]:
    if project is None:
        return set()
    told = ((row.envelope, project(row.envelope.type, bytes(row.envelope.data), False)) for row in rows)
    return {envelope.id for envelope, meant in told if meant.model_visible}


def _bar(request: Request, asked: _Asked, path: str) -> str:
    """Return what can be done with the timeline: look for words, jump, show everything, take it away."""
    words = escape(request.query_params.get("q", ""))
    scope = {name: value for name, value in _scope(asked).items() if name not in ("all", "model")}
    kept = "".join(
        f'<input type="hidden" name="{name}" value="{escape(str(value))}">'
        for name, value in _scope(asked).items()
        if value is not None
    )
    everything = _choice(address(path, **scope, all=None if asked.everything else 1), "Every event", asked.everything)
    model_only = _choice(address(path, **scope, model=None if asked.model_only else 1), _MODEL, asked.model_only)
    # Without the script these links alone lead on from one to the next.
    here = asked.place[1] if asked.place is not None and asked.place[0] == "at" else None
    error, note = (address(path + "/next", kind=kind, after=here) for kind in ("error", "note"))
    return (
        f'<div class="bar-of-actions"><form role="search" action="{escape(path)}"><label>'
        '<span class="hidden">Search in this session</span>'
        f'<input type="search" name="q" value="{words}" placeholder="Search in this session"></label>{kept}</form>'
        f'<a class="button jump" data-kind="error" href="{error}">Next error <kbd>e</kbd></a>'
        f'<a class="button jump" data-kind="note" href="{note}">Next notification <kbd>n</kbd></a>'
        f"{everything}{model_only if receiver_of(request).project is not None else ''}"
        f'<span class="exports">Save as <a href="{escape(path)}/export.md" download>Markdown</a>'
        f' <a href="{escape(path)}/export.html" download>HTML</a>'
        f' <a href="{escape(path)}/export.jsonl" download>JSON lines</a>'
        f'<a class="button forget" href="{escape(path)}/forget">Forget…</a></span></div>'
    )


def _choice(link: str, words: str, here: bool) -> str:
    return f'<a class="button" href="{link}"{" aria-current=true" if here else ""}>{words}</a>'


async def _found(request: Request, session_id: str) -> str:
    words = request.query_params.get("q", "")
    query = search_query.understand(words)
    if query is None:
        return nothing_to_look_for(words)
    results, following = await receiver_of(request).find(query, None, session_id, _FOUND_MAX)
    return found_events(results, words, with_session=False, has_more=following is not None)
