"""What a full-text search found for a page."""

from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from exporter.missioncontrol.receiver import receiver_of
from exporter.missioncontrol.search import search_query


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
