"""The part of `/api/v1` across sessions: search, the feed, redactions, exporters."""

from collections import Counter
from typing import Any, Final, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from exporter.missioncontrol.http.query_params import limit_of, number_cursor
from exporter.missioncontrol.http.responses import ApiError, json_answer, tagged_answer
from exporter.missioncontrol.http.upload_api import checked_id
from exporter.missioncontrol.live import feed
from exporter.missioncontrol.live.waiting import OpenWait
from exporter.missioncontrol.receiver import receiver_of
from exporter.missioncontrol.search import search_query
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.queries import decode_cursor, encode_cursor
from exporter.missioncontrol.store.redactions import grouping, redactions
from exporter.missioncontrol.store.session_row import BadCursorError

_RESULTS_DEFAULT, _RESULTS_MAX = 50, 200
_LIST_DEFAULT, _LIST_MAX = 100, 1000
_WaitCursor = tuple[Literal["wait"], str, int]


async def search(request: Request) -> Response:
    """Find events by their words, newest first; see `search_query.understand` for what a query means."""
    limit = limit_of(request, _RESULTS_DEFAULT, _RESULTS_MAX)
    query = search_query.understand(request.query_params.get("q", ""))
    if query is None:
        raise ApiError(400, "no_words", "There is nothing to look for in `q`.", hint="Send at least one word.")
    session_id = request.query_params.get("session")
    if session_id is not None:
        checked_id(session_id)
    found, following = await receiver_of(request).find(query, number_cursor(request), session_id, limit)
    return json_answer({"results": found, "next": None if following is None else str(following)})


async def notifications(request: Request) -> Response:
    """List notifications of agents and waits for a person, newest first."""
    page, following = await read_notifications(request, limit_of(request, _LIST_DEFAULT, _LIST_MAX))
    content = {"notifications": page, "counts": await read_counts(request), "next": following}
    return tagged_answer(request, msgspec.json.encode(content))


async def read_notifications(request: Request, limit: int) -> tuple[list[dict[str, Any]], str | None]:
    """Return the requested page of the feed, and the cursor of the next one.

    Waits that only live events have come first, on as many pages as they need.
    """
    params, cursor = request.query_params, request.query_params.get("cursor") or None
    last = _place_in_waits(cursor) if cursor else None
    cursor = None if last is not None else cursor
    waits = [] if cursor else [wait for wait in receiver_of(request).waiting.all() if _matches(request, wait)]
    if last is not None:
        waits = [wait for wait in waits if wait.place < last]

    def read(database: Database) -> tuple[list[dict[str, Any]], str | None]:
        live = [wait.entry(queries.title(database, wait.session)) for wait in waits[:limit]]
        room = limit - len(live)
        page, following = feed.notifications(
            database,
            type=params.get("type"),
            status=params.get("status"),
            session_id=params.get("session"),
            limit=max(1, room),
            cursor=cursor,
        )
        if room > 0:
            return [*live, *page], following
        return live, encode_cursor("wait", *waits[limit - 1].place) if page or len(waits) > limit else None

    return await receiver_of(request).read(read)


def _place_in_waits(cursor: str) -> tuple[str, int] | None:
    """Return the place of a wait that a cursor names; None when it names none, but perhaps an entry of the feed."""
    try:
        _, timestamp, number = decode_cursor(cursor, _WaitCursor)
    except BadCursorError:
        return None
    return timestamp, number


def _matches(request: Request, wait: OpenWait) -> bool:
    params = request.query_params
    return (
        (params.get("type") or wait.type) in (wait.type, "wait")
        and (params.get("status") or "waiting") == "waiting"
        and (params.get("session") or wait.session) == wait.session
    )


async def read_counts(request: Request) -> list[dict[str, Any]]:
    """Return how many entries of each category, type and status the whole feed has."""
    receiver = receiver_of(request)
    live = Counter(wait.type for wait in receiver.waiting.all())
    counted = await receiver.read(feed.counts)
    for row in counted:
        if (row["category"], row["status"]) == ("wait", "waiting"):
            row["count"] += live.pop(row["type"], 0)
    return counted + [{"category": "wait", "type": type, "status": "waiting", "count": live[type]} for type in live]


async def masked(request: Request) -> Response:
    """Count redactions by rule, session or day, or by several of them."""
    names = grouping(request.query_params.get("by", "rule"))
    if names is None:
        raise ApiError(400, "bad_grouping", "`by` is none of rule, session, day.", hint="Join several with commas.")
    limit, offset = limit_of(request, _LIST_DEFAULT, _LIST_MAX), number_cursor(request) or 0
    page, following = await receiver_of(request).read(
        lambda database: redactions(database, names, limit=limit, offset=offset)
    )
    content = {"redactions": page, "next": None if following is None else str(following)}
    return tagged_answer(request, msgspec.json.encode(content))


async def exporters(request: Request) -> Response:
    """List the exporters with their last reports."""
    found = await receiver_of(request).read(queries.exporters)
    return tagged_answer(request, msgspec.json.encode({"exporters": found, "next": None}))


ROUTES: Final = (
    Route("/api/v1/search", search, methods=["GET"]),
    Route("/api/v1/notifications", notifications, methods=["GET"]),
    Route("/api/v1/redactions", masked, methods=["GET"]),
    Route("/api/v1/exporters", exporters, methods=["GET"]),
)
