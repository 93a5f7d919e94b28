"""The API for people and programs, below `/api/v1`, and the endpoints for monitoring."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from exporter.core.events.envelope import Envelope, decode
from exporter.core.events.projection import Projected, ProjectEvent
from exporter.missioncontrol.http.query_params import limit_of, since_of, state_of
from exporter.missioncontrol.http.request_intake import Counters
from exporter.missioncontrol.http.responses import ApiError, json_answer, tagged_answer
from exporter.missioncontrol.http.upload_api import checked_id
from exporter.missioncontrol.ingest.agent_attribution import AgentTree, kin
from exporter.missioncontrol.live.subscriptions import TooManySubscribersError
from exporter.missioncontrol.receiver import receiver_of
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.agent_tree import tree
from exporter.missioncontrol.store.port import Database

_SESSIONS_DEFAULT, _SESSIONS_MAX = 100, 1000
_EVENTS_DEFAULT, _EVENTS_MAX = 500, 5000
_MODEL, _SCREEN = "model", "screen"
_VISIBLE: Final = (_MODEL, _SCREEN)
"""Values of the parameter `visible`: events that the model is given, or that a person is shown."""


async def sessions(request: Request) -> Response:
    """List sessions, newest activity first."""
    page, following = await read_sessions(request, limit_of(request, _SESSIONS_DEFAULT, _SESSIONS_MAX))
    return tagged_answer(request, msgspec.json.encode({"sessions": page, "next": following}))


async def read_sessions(request: Request, limit: int) -> tuple[list[dict[str, Any]], str | None]:
    """Return the requested page of sessions, and the cursor of the next one."""
    params, state, since = request.query_params, state_of(request), since_of(request)
    words, cursor = params.get("q"), params.get("cursor")
    return await receiver_of(request).read(
        lambda database: queries.sessions(database, state=state, words=words, since=since, limit=limit, cursor=cursor)
    )


def _give(read: Callable[[Database, str], object]) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that gives what is read of a session as JSON."""

    async def give(request: Request) -> Response:
        session_id = checked_id(request.path_params["id"])
        found = await receiver_of(request).read(lambda database: read(database, session_id))
        return tagged_answer(request, msgspec.json.encode(found))

    return give


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
    params, receiver = request.query_params, receiver_of(request)
    project = receiver.project
    session_id, visible = checked_id(request.path_params["id"]), params.get("visible")
    if visible and (visible not in _VISIBLE or project is None):
        raise ApiError(400, "bad_visible", f"`visible` is none of {', '.join(_VISIBLE)}.", hint="Leave it out.")

    def read(database: Database) -> tuple[queries.EventPage, list[dict[str, Any]] | None]:
        page = queries.events(
            database,
            session_id,
            after=params.get("after"),
            type=params.get("type"),
            agent=params.get("agent"),
            limit=limit,
            large=params.get("large") != "omit",
            wanted=_sees(visible, project) if visible and project else None,
        )
        if params.get("about") != "1":
            return page, None
        family = kin(database, session_id)
        return page, [about(body, agent, family, project) for body, agent in zip(page.bodies, page.agents, strict=True)]

    return await receiver.read(read)


def about(body: bytes, agent: str | None, family: AgentTree, project: ProjectEvent | None) -> dict[str, Any]:
    """Return the agents from the outermost to the event's own, and where the event is visible if that is known."""
    annotations: dict[str, Any] = {"agent_path": family.path(agent)}
    if project is not None and (meant := _meant(body, project)) is not None:
        annotations |= {
            "model_visible": meant.model_visible,
            "ui_visible": meant.ui_visible,
            "durable": meant.durable,
        }
    return annotations


def _sees(visible: str, project: ProjectEvent) -> Callable[[bytes], bool]:
    """Return a test of whether the model, or a person, sees an event."""

    def test(body: bytes) -> bool:
        meant = _meant(body, project)
        return meant is not None and (meant.model_visible if visible == _MODEL else meant.ui_visible)

    return test


def _meant(body: bytes, project: ProjectEvent) -> Projected | None:
    envelope = decode(body)
    if not isinstance(envelope, Envelope):
        return None
    return project(envelope.type, bytes(envelope.data), envelope.ephemeral)


async def event(request: Request) -> Response:
    """Give one event as delivered, whole."""
    session_id, event_id = checked_id(request.path_params["id"]), request.path_params["event"]
    found = await receiver_of(request).read(lambda database: queries.event(database, session_id, event_id))
    if found is None:
        raise ApiError(404, "unknown_event", "The session has no such event.", hint="It may have been rewound.")
    return tagged_answer(request, found)


def _digest(database: Database, session_id: str) -> object:
    """Return count, digest and last id of the events stored."""
    return queries.upload_state(database, session_id).ack


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


async def metrics(request: Request) -> Response:
    """Give the figures in Prometheus text form; names and labels are ours alone, so nothing of a session is in it."""
    receiver = receiver_of(request)
    totals = await receiver.read(queries.totals)
    families = _families(receiver.counters, totals, streams=len(receiver.live), size=receiver.store.size_bytes())
    lines: list[str] = []
    for name, kind, meaning, samples in families:
        full = f"exporter_receiver_{name}"
        lines += (f"# HELP {full} {meaning}", f"# TYPE {full} {kind}")
        lines += [f"{full}{labels} {value}" for labels, value in samples.items()]
    content = "\n".join(lines) + "\n"
    return PlainTextResponse(content, media_type="text/plain; version=0.0.4; charset=utf-8")


def _families(
    counters: Counters, totals: queries.StoreTotals, *, streams: int, size: int
) -> list[tuple[str, str, str, dict[str, int]]]:
    """Return name, kind and meaning of each metric, with its values by their labels."""
    answered = {f'{{status="{code}"}}': count for code, count in sorted(counters.requests.items())}
    sessions = {f'{{state="{state}"}}': count for state, count in sorted(totals.sessions.items())}
    return [
        ("requests_total", "counter", "Requests answered.", answered),
        ("events_stored_total", "counter", "Events stored.", {"": counters.stored}),
        ("event_bytes_stored_total", "counter", "Bytes of events stored.", {"": counters.bytes_stored}),
        ("events_duplicate_total", "counter", "Events that were here already.", {"": counters.duplicates}),
        ("events_rejected_total", "counter", "Events not acceptable.", {"": counters.rejected}),
        ("events_ephemeral_total", "counter", "Ephemeral events passed on, not stored.", {"": counters.ephemeral}),
        ("events_masked_total", "counter", "Events masked here before storing.", {"": counters.masked}),
        ("events_refused_total", "counter", "Events the redactor refused.", {"": counters.refused}),
        ("events", "gauge", "Events held and shown.", {"": totals.events}),
        ("sessions", "gauge", "Sessions held.", sessions),
        ("streams", "gauge", "Live streams open.", {"": streams}),
        ("store_bytes", "gauge", "Size of the database file.", {"": size}),
    ]


ROUTES: Final = (
    Route("/api/v1/sessions", sessions, methods=["GET"]),
    Route("/api/v1/sessions/{id}", _give(queries.session), methods=["GET"]),
    Route("/api/v1/sessions/{id}", forget_session, methods=["DELETE"]),
    Route("/api/v1/sessions/{id}/events", events, methods=["GET"]),
    Route("/api/v1/sessions/{id}/events/{event:path}", event, methods=["GET"]),
    Route("/api/v1/sessions/{id}/digest", _give(_digest), methods=["GET"]),
    Route("/api/v1/sessions/{id}/tree", _give(tree), methods=["GET"]),
    Route("/api/v1/sessions/{id}/trace", trace, methods=["GET"]),
    Route("/api/v1/stream", stream, methods=["GET"]),
    Route("/healthz", alive, methods=["GET"]),
    Route("/readyz", ready, methods=["GET"]),
    Route("/metrics", metrics, methods=["GET"]),
)
