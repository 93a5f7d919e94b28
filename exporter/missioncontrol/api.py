"""The side for people and programs, below `/api/v1`, and what a monitor asks."""

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from exporter.missioncontrol import finding, metrics, queries
from exporter.missioncontrol.answers import ApiError, json_answer, tagged_answer
from exporter.missioncontrol.live import TooManyWatchersError
from exporter.missioncontrol.receiver import receiver_of
from exporter.missioncontrol.wire import checked_id

_SESSIONS_DEFAULT, _SESSIONS_MAX = 100, 1000
_EVENTS_DEFAULT, _EVENTS_MAX = 500, 5000
_RESULTS_DEFAULT, _RESULTS_MAX = 50, 200


async def sessions(request: Request) -> Response:
    """List sessions, newest activity first."""
    page, following = await read_sessions(request, _limit(request, _SESSIONS_DEFAULT, _SESSIONS_MAX))
    return tagged_answer(request, msgspec.json.encode({"sessions": page, "next": following}))


async def read_sessions(request: Request, limit: int) -> tuple[list[dict[str, Any]], str | None]:
    """Return the page of sessions that the request's query asks for, and the cursor of the next one."""
    asked = request.query_params
    try:
        return await receiver_of(request).read(
            lambda database: queries.sessions(
                database,
                state=asked.get("state"),
                words=asked.get("q"),
                since=asked.get("since"),
                limit=limit,
                cursor=asked.get("cursor"),
            )
        )
    except queries.BadCursorError as error:
        raise _bad_cursor() from error


async def session(request: Request) -> Response:
    """Show one session."""
    session_id = checked_id(request.path_params["id"])
    found = await receiver_of(request).read(lambda database: queries.session(database, session_id))
    return tagged_answer(request, msgspec.json.encode(found))


async def forget_session(request: Request) -> Response:
    """Delete a session for good."""
    await receiver_of(request).forget([checked_id(request.path_params["id"])])
    return Response(status_code=204)


async def events(request: Request) -> Response:
    """Give events as delivered, byte for byte, in file order."""
    page = await read_events(request, _limit(request, _EVENTS_DEFAULT, _EVENTS_MAX))
    content = b'{"events":[' + b",".join(page.bodies) + b'],"next":' + msgspec.json.encode(page.next) + b"}"
    return tagged_answer(request, content)


async def read_events(request: Request, limit: int) -> queries.EventPage:
    """Return the page of events that the request's path and query ask for."""
    asked = request.query_params
    session_id = checked_id(request.path_params["id"])
    try:
        return await receiver_of(request).read(
            lambda database: queries.events(
                database,
                session_id,
                after=asked.get("after"),
                type=asked.get("type"),
                agent=asked.get("agent"),
                limit=limit,
            )
        )
    except queries.BadCursorError as error:
        raise _bad_cursor() from error


async def digest(request: Request) -> Response:
    """Say what is held, in three figures."""
    session_id = checked_id(request.path_params["id"])
    held = await receiver_of(request).read(lambda database: queries.held(database, session_id))
    return tagged_answer(request, msgspec.json.encode(held.ack))


async def search(request: Request) -> Response:
    """Find events by their words, newest first; see `finding.understand` for what a query means."""
    receiver, asked = receiver_of(request), request.query_params
    limit = _limit(request, _RESULTS_DEFAULT, _RESULTS_MAX)
    query = finding.understand(asked.get("q", ""))
    if query is None:
        raise ApiError(400, "no_words", "There is nothing to look for in `q`.", hint="Send at least one word.")
    below, session_id = asked.get("cursor"), asked.get("session")
    if below is not None and not (below.isascii() and below.isdigit() and len(below) < 19):
        raise _bad_cursor()
    if session_id is not None:
        checked_id(session_id)
    start = None if below is None else int(below)
    found, following = await receiver.find(query, start, session_id, limit)
    return json_answer({"results": found, "next": None if following is None else str(following)})


async def exporters(request: Request) -> Response:
    """List who uploads and how they are doing."""
    found = await receiver_of(request).read(queries.exporters)
    return tagged_answer(request, msgspec.json.encode({"exporters": found, "next": None}))


async def stream(request: Request) -> Response:
    """Send what happens from now on as server-sent events."""
    live = receiver_of(request).live
    wanted = request.query_params.get("session")
    messages = live.messages(checked_id(wanted) if wanted else None)
    try:
        first = await anext(messages)
    except TooManyWatchersError as error:
        raise ApiError(503, "too_many_streams", "Too many streams are open.", hint="Close one first.") from error

    async def content() -> Any:
        yield first
        async for message in messages:
            yield message

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(content(), media_type="text/event-stream", headers=headers)


async def alive(_: Request) -> Response:
    """Say that the process answers."""
    return json_answer({"status": "ok"})


async def ready(request: Request) -> Response:
    """Say that the store answers too."""
    await receiver_of(request).read(queries.totals)
    return json_answer({"status": "ok"})


async def figures(request: Request) -> Response:
    """Give the figures in Prometheus text form."""
    receiver = receiver_of(request)
    held = await receiver.read(queries.totals)
    content = metrics.render(receiver.counters, held, watchers=len(receiver.live), size=receiver.store.size_bytes)
    return PlainTextResponse(content, media_type="text/plain; version=0.0.4; charset=utf-8")


def _limit(request: Request, default: int, maximum: int) -> int:
    text = request.query_params.get("limit", str(default))
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 9 and int(text) > 0):
        raise ApiError(400, "bad_limit", "`limit` is not a number from 1 up.", hint=f"At most {maximum} are given.")
    return min(int(text), maximum)


def _bad_cursor() -> ApiError:
    return ApiError(400, "bad_cursor", "There is no such place to go on from.", hint="Begin at the first page again.")


ROUTES: Final = (
    Route("/api/v1/sessions", sessions, methods=["GET"]),
    Route("/api/v1/sessions/{id}", session, methods=["GET"]),
    Route("/api/v1/sessions/{id}", forget_session, methods=["DELETE"]),
    Route("/api/v1/sessions/{id}/events", events, methods=["GET"]),
    Route("/api/v1/sessions/{id}/digest", digest, methods=["GET"]),
    Route("/api/v1/search", search, methods=["GET"]),
    Route("/api/v1/exporters", exporters, methods=["GET"]),
    Route("/api/v1/stream", stream, methods=["GET"]),
    Route("/healthz", alive, methods=["GET"]),
    Route("/readyz", ready, methods=["GET"]),
    Route("/metrics", figures, methods=["GET"]),
)
