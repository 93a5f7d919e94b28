"""The page of all sessions: which run, which need somebody, what they cost; and a search through everything."""

from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from exporter.missioncontrol.http.read_api import read_sessions, sees_figures_only
from exporter.missioncontrol.pages.figures import figures_of, lags_of
from exporter.missioncontrol.pages.formats import STATES, FilterLink, address, local
from exporter.missioncontrol.pages.rendering import page
from exporter.missioncontrol.receiver import receiver_of
from exporter.missioncontrol.search import search_query
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.port import Database

_SHOWN: Final = 60
_FOUND_MAX: Final = 20
_FOUND_LENGTH_MIN: Final = 3


async def sessions_page(request: Request) -> Response:
    """Show the sessions, newest activity first; for the script only the list."""
    sessions, cursor = await read_sessions(request, _SHOWN)
    asked = request.query_params
    state, words = asked.get("state") or None, asked.get("q") or None

    def beside(database: Database) -> tuple[Any, ...]:
        return (
            figures_of(database, [session["id"] for session in sessions]),
            lags_of(queries.exporters(database)),
            queries.totals(database, words).sessions,
        )

    figures, lags, counts = await receiver_of(request).read(beside)
    links = [FilterLink("All", sum(counts.values()), state is None, "all", address(local("/"), q=words))]
    for name, shown in STATES.items():
        links.append(
            FilterLink(shown, counts.get(name, 0), name == state, name, address(local("/"), state=name, q=words))
        )
    return page(
        request,
        "sessions.html",
        "list",
        rows=[(session, figures.get(session["id"], {}), lags.of(session)) for session in sessions],
        owners=len({session.get("owner") for session in sessions} - {None}),
        links=links,
        state=state,
        words=words,
        following=address(local("/"), state=state, q=words, cursor=cursor) if cursor else None,
        found=None
        if asked.get("cursor") or sees_figures_only(request)
        else await find(request, None, _FOUND_MAX, _FOUND_LENGTH_MIN),
    )


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The newest events that say the words; None where the words are none that an event can be found by."""

    words: str
    events: list[dict[str, Any]] | None = None
    has_more: bool = False


async def find(request: Request, session_id: str | None, limit: int, length_min: int = 0) -> SearchResults | None:
    """Return what the words of the request are found in; None when there are none, or too few letters."""
    words = request.query_params.get("q", "")
    query = search_query.understand(words)
    if query is None:
        return SearchResults(words) if words.strip() else None
    if len(words) < length_min:
        return None
    events, following = await receiver_of(request).find(query, None, session_id, limit)
    return SearchResults(words, events, following is not None)
