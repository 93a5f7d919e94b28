"""The API for people and programs, below `/api/v1`, and the endpoints for monitoring."""

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from exporter.missioncontrol.http import metrics
from exporter.missioncontrol.http.event_annotations import VISIBLE, about, sees
from exporter.missioncontrol.http.query_params import limit_of, read_page, since_of, state_of
from exporter.missioncontrol.http.responses import ApiError, json_answer, tagged_answer
from exporter.missioncontrol.http.upload_api import checked_id
from exporter.missioncontrol.ingest.agent_attribution import kin
from exporter.missioncontrol.live.subscriptions import TooManySubscribersError
from exporter.missioncontrol.receiver import receiver_of
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.agent_tree import tree as tree_of
from exporter.missioncontrol.store.port import Database

_SESSIONS_DEFAULT, _SESSIONS_MAX = 100, 1000
_EVENTS_DEFAULT, _EVENTS_MAX = 500, 5000


async def sessions(request: Request) -> Response:
    """List sessions, newest activity first."""
    page, following = await read_sessions(request, limit_of(request, _SESSIONS_DEFAULT, _SESSIONS_MAX))
    return tagged_answer(request, msgspec.json.encode({"sessions": page, "next": following}))


async def read_sessions(request: Request, limit: int) -> tuple[list[dict[str, Any]], str | None]:
    """Return the requested page of sessions, and the cursor of the next one."""
    params, state, since = request.query_params, state_of(request), since_of(request)
    return await read_page(
        request,
        lambda database: queries.sessions(
            database,
            state=state,
            words=params.get("q"),
            since=since,
            limit=limit,
            cursor=params.get("cursor"),
        ),
    )


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
    """Give events as delivered, byte for byte, in file order; with `large=omit` without their large strings.

    With `about=1` there is also `about`, the annotations of each event in the same order; `root` is the session.
    """
    page, annotations = await _read_events(request, limit_of(request, _EVENTS_DEFAULT, _EVENTS_MAX))
    extra = {} if annotations is None else {"root": request.path_params["id"], "about": annotations}
    rest = msgspec.json.encode({**extra, "next": page.next})
    return tagged_answer(request, b'{"events":[' + b",".join(page.bodies) + b"]," + rest[1:])


async def _read_events(request: Request, limit: int) -> tuple[queries.EventPage, list[dict[str, Any]] | None]:
    params, project = request.query_params, receiver_of(request).project
    session_id, visible = checked_id(request.path_params["id"]), params.get("visible")
    if visible and (visible not in VISIBLE or project is None):
        raise ApiError(400, "bad_visible", f"`visible` is none of {', '.join(VISIBLE)}.", hint="Leave it out.")

    def read(database: Database) -> tuple[queries.EventPage, list[dict[str, Any]] | None]:
        page = queries.events(
            database,
            session_id,
            after=params.get("after"),
            type=params.get("type"),
            agent=params.get("agent"),
            limit=limit,
            large=params.get("large") != "omit",
            wanted=sees(visible, project) if visible and project else None,
        )
        if params.get("about") != "1":
            return page, None
        family = kin(database, session_id)
        return page, [about(body, agent, family, project) for body, agent in zip(page.bodies, page.agents, strict=True)]

    return await read_page(request, read)


async def event(request: Request) -> Response:
    """Give one event as delivered, whole."""
    session_id, event_id = checked_id(request.path_params["id"]), request.path_params["event"]
    found = await receiver_of(request).read(lambda database: queries.event(database, session_id, event_id))
    if found is None:
        raise ApiError(404, "unknown_event", "The session has no such event.", hint="It may have been rewound.")
    return tagged_answer(request, found)


async def digest(request: Request) -> Response:
    """Return count, digest and last id of the events stored."""
    session_id = checked_id(request.path_params["id"])
    state = await receiver_of(request).read(lambda database: queries.upload_state(database, session_id))
    return tagged_answer(request, msgspec.json.encode(state.ack))


async def tree(request: Request) -> Response:
    """Show the sub-agents of a session as a tree."""
    session_id = checked_id(request.path_params["id"])
    found = await receiver_of(request).read(lambda database: tree_of(database, session_id))
    return tagged_answer(request, msgspec.json.encode(found))


async def trace(request: Request) -> Response:
    """Give the session's spans as OTLP JSON, made by the bridge that the receiver was given."""
    receiver = receiver_of(request)
    session_id = checked_id(request.path_params["id"])
    make = receiver.make_trace
    if make is None:
        raise ApiError(501, "no_bridge", "This receiver makes no traces.", hint="Run it with `exporter up`.")
    content = await receiver.read(lambda database: make(session_id, queries.lines(database, session_id)))
    return tagged_answer(request, content)


async def stream(request: Request) -> Response:
    """Send live messages as server-sent events."""
    live = receiver_of(request).live
    wanted = request.query_params.get("session")
    messages = live.messages(checked_id(wanted) if wanted else None)
    try:
        first = await anext(messages)
    except TooManySubscribersError as error:
        raise ApiError(503, "too_many_streams", "Too many streams are open.", hint="Close one first.") from error

    async def content() -> Any:
        yield first
        async for message in messages:
            yield message

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(content(), media_type="text/event-stream", headers=headers)


async def alive(_: Request) -> Response:
    """Answer as long as the process does."""
    return json_answer({"status": "ok"})


async def ready(request: Request) -> Response:
    """Answer as long as the store does."""
    await receiver_of(request).read(queries.totals)
    return json_answer({"status": "ok"})


async def figures(request: Request) -> Response:
    """Give the figures in Prometheus text form."""
    receiver = receiver_of(request)
    totals = await receiver.read(queries.totals)
    content = metrics.render(receiver.counters, totals, streams=len(receiver.live), size=receiver.store.size_bytes())
    return PlainTextResponse(content, media_type="text/plain; version=0.0.4; charset=utf-8")


ROUTES: Final = (
    Route("/api/v1/sessions", sessions, methods=["GET"]),
    Route("/api/v1/sessions/{id}", session, methods=["GET"]),
    Route("/api/v1/sessions/{id}", forget_session, methods=["DELETE"]),
    Route("/api/v1/sessions/{id}/events", events, methods=["GET"]),
    Route("/api/v1/sessions/{id}/events/{event:path}", event, methods=["GET"]),
    Route("/api/v1/sessions/{id}/digest", digest, methods=["GET"]),
    Route("/api/v1/sessions/{id}/tree", tree, methods=["GET"]),
    Route("/api/v1/sessions/{id}/trace", trace, methods=["GET"]),
    Route("/api/v1/stream", stream, methods=["GET"]),
    Route("/healthz", alive, methods=["GET"]),
    Route("/readyz", ready, methods=["GET"]),
    Route("/metrics", figures, methods=["GET"]),
)
