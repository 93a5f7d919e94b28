"""The page of all sessions: which run, which need somebody, what they cost; and a search through everything."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from exporter.missioncontrol.http.read_api import read_sessions
from exporter.missioncontrol.pages.markup import STATES, address, badge, escape, figure, moment, session_path
from exporter.missioncontrol.pages.page import fragment, is_fragment, more, page
from exporter.missioncontrol.pages.search_results import found_events, nothing_to_look_for
from exporter.missioncontrol.pages.session_facts import COST, cost, lag_of, tokens
from exporter.missioncontrol.pages.timeline import windows
from exporter.missioncontrol.receiver import receiver_of
from exporter.missioncontrol.search import search_query
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.port import Database

_SEARCH: Final = "Search sessions and everything in them"
_SHOWN: Final = 60
_FOUND_MAX: Final = 20
_FOUND_LENGTH_MIN: Final = 3
_COLUMNS: Final = ("Session", "State", "Model", "Last activity", "Tokens", COST, "Masked", "Upload lag", "Host")


async def sessions_page(request: Request) -> Response:
    """Show the sessions, newest activity first; for the script only the list."""
    found, following = await read_sessions(request, _SHOWN)
    ids = [session["id"] for session in found]
    asked = request.query_params
    state, words = asked.get("state") or None, asked.get("q") or None

    def beside(database: Database) -> tuple[Any, ...]:
        return (
            windows.figures(database, ids),
            windows.lags(queries.exporters(database)),
            queries.totals(database, words),
        )

    figures, lags, totals = await receiver_of(request).read(beside)
    rows = "".join(_row(session, figures.get(session["id"], {}), lags) for session in found)
    following_link = more(address("/", state=state, q=words, cursor=following), "More sessions") if following else ""
    listed = (
        f'<div data-part="list">{_filters(state, words, totals.sessions)}'
        f"{_table(rows) if rows else _empty(state, words)}{following_link}{await _found(request)}</div>"
    )
    if is_fragment(request):
        return fragment(request, listed)
    search = (
        f'<form class="search" role="search" action="/"><label><span class="hidden">{_SEARCH}</span>'
        f'<input type="search" name="q" value="{escape(words or "")}" placeholder="{_SEARCH}"></label>'
        f'{_kept(state)}<button class="button">Search</button></form>'
    )
    return page(request, "Sessions", f"<h1>Sessions</h1>{search}{listed}", here="/", body=' data-live="list"')


def _kept(state: str | None) -> str:
    return f'<input type="hidden" name="state" value="{escape(state)}">' if state else ""


def _filters(state: str | None, words: str | None, counts: dict[str, int]) -> str:
    links = [_filter("All", None, sum(counts.values()), state, words)]
    links += [_filter(shown, name, counts.get(name, 0), state, words) for name, shown in STATES.items()]
    return f'<nav class="filters" aria-label="States">{"".join(links)}</nav>'


def _filter(shown: str, name: str | None, count: int, state: str | None, words: str | None) -> str:
    here = " aria-current=true" if name == state else ""
    return f'<a class="{name or "all"}" href="{address("/", state=name, q=words)}"{here}>{shown} <b>{count:,}</b></a>'


def _table(rows: str) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in _COLUMNS)
    return f'<table class="sessions"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _empty(state: str | None, words: str | None) -> str:
    if state or words:
        return '<p class="quiet empty" role="status">No session fits.</p>'
    return (
        '<p class="quiet empty" role="status">No session here yet. As soon as Copilot CLI writes one, it appears here;'
        " <code>exporter up --demo</code> plays one.</p>"
    )


def _row(session: dict[str, Any], figures: windows.Figures, lags: windows.Lags) -> str:
    title = escape(str(session["title"] or session["id"]))
    place = " · ".join(escape(str(session[name])) for name in ("repository", "branch") if session[name])
    cells = (
        ("State", badge(str(session["state"]))),
        ("Model", escape(str(session["model"] or ""))),
        ("Last activity", moment(session["last_activity"])),
        ("Tokens", tokens(figures)),
        (COST, cost(figures)),
        ("Masked", figure(session["masked"]) if session["masked"] else ""),
        ("Upload lag", lag_of(lags.of(session))),
        ("Host", escape(str(session["host"] or ""))),
    )
    rest = "".join(f'<td data-name="{name}">{value}</td>' for name, value in cells)
    return (
        f'<tr data-key="{escape(session["id"])}"><th scope="row">'
        f'<a href="{escape(session_path(session["id"]))}">{title}</a>'
        f'<span class="quiet">{place}</span></th>{rest}</tr>'
    )


async def _found(request: Request) -> str:
    """Return what the words are found in, beside the sessions whose facts have them."""
    words = request.query_params.get("q", "")
    query = search_query.understand(words)
    if request.query_params.get("cursor") or (query is not None and len(words) < _FOUND_LENGTH_MIN):
        return ""
    if query is None:
        return nothing_to_look_for(words)
    results, following = await receiver_of(request).find(query, None, None, _FOUND_MAX)
    return found_events(results, words, with_session=True, has_more=following is not None)
