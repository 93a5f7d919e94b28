"""The API for people and programs, below `/api/v1`, and the endpoints for monitoring."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from exporter.core.events.envelope import Envelope, decode
from exporter.core.events.projection import ProjectEvent
from exporter.missioncontrol.http.audited import who_asks
from exporter.missioncontrol.http.permissions import holder_of
from exporter.missioncontrol.http.responses import ApiError, api_errors, bad_cursor, json_answer, tagged_answer
from exporter.missioncontrol.http.upload_api import STATES, checked_id
from exporter.missioncontrol.ingest.agent_attribution import AgentTree, kin
from exporter.missioncontrol.ingest.write_jobs import heard_since
from exporter.missioncontrol.live import feed
from exporter.missioncontrol.live.subscriptions import TooManySubscribersError
from exporter.missioncontrol.live.waiting import OpenWait
from exporter.missioncontrol.receiver import Receiver, receiver_of
from exporter.missioncontrol.receivers import Receivers
from exporter.missioncontrol.search import search_query
from exporter.missioncontrol.store import audit, queries
from exporter.missioncontrol.store.agent_tree import tree
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.queries import decode_cursor, encode_cursor
from exporter.missioncontrol.store.redactions import grouping, redactions
from exporter.missioncontrol.store.session_row import BadCursorError
from exporter.missioncontrol.store.tokens import Scope

_SESSIONS_DEFAULT, _SESSIONS_MAX = 100, 1000
_EVENTS_DEFAULT, _EVENTS_MAX = 500, 5000
_RESULTS_DEFAULT, _RESULTS_MAX = 50, 200
_LIST_DEFAULT, _LIST_MAX = 100, 1000
_WaitCursor = tuple[Literal["wait"], str, int]
_VISIBLE: Final = {"model": "model_visible", "screen": "ui_visible"}
"""Values of the parameter `visible`, for events that the model is given or that a person is shown."""


async def sessions(request: Request) -> Response:
    """List sessions, newest activity first."""
    page, following = await read_sessions(request, limit_of(request, _SESSIONS_DEFAULT, _SESSIONS_MAX))
    return tagged_answer(request, msgspec.json.encode({"sessions": page, "next": following}))


async def read_sessions(request: Request, limit: int) -> tuple[list[dict[str, Any]], str | None]:
    """Return the requested page of sessions, and the cursor of the next one."""
    params, state, since = request.query_params, _state_of(request), _since_of(request)
    words, cursor = params.get("q"), params.get("cursor")
    if words and sees_figures_only(request):
        raise ApiError(403, "figures_only", "This token shows figures, and searches nothing.", hint="Leave `q` out.")
    page, following = await receiver_of(request).read(
        lambda database: queries.sessions(database, state=state, words=words, since=since, limit=limit, cursor=cursor)
    )
    return [figures_only(one) for one in page] if sees_figures_only(request) else page, following


_FIGURES: Final = frozenset(
    ("id", "state", "model", "started", "last_activity", "events", "tokens", "cost", "masked", "owner", "liveness")
)


def scope_of(request: Request) -> Scope:
    """Return what the token that asks permits."""
    return holder_of(request).scope


def sees_figures_only(request: Request) -> bool:
    """Tell whether the token that asks is an auditor's."""
    return scope_of(request) == "auditor"


def figures_only(session: dict[str, Any]) -> dict[str, Any]:
    """Return a session as an auditor sees it: what it cost and whose it is, without a word of it."""
    return {name: value if name in _FIGURES else None for name, value in session.items()}


async def _session(request: Request) -> Response:
    session_id = checked_id(request.path_params["id"])
    found = await receiver_of(request).read(lambda database: queries.session(database, session_id))
    return tagged_answer(request, msgspec.json.encode(figures_only(found) if sees_figures_only(request) else found))


def _give(read: Callable[[Database, str], object]) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that gives what is read of a session as JSON."""

    async def give(request: Request) -> Response:
        session_id = checked_id(request.path_params["id"])
        found = await receiver_of(request).read(lambda database: read(database, session_id))
        return tagged_answer(request, msgspec.json.encode(found))

    return give


async def forget_session(request: Request) -> Response:
    """Delete a session for good."""
    await receiver_of(request).forget([checked_id(request.path_params["id"])], who=who_asks(request))
    return Response(status_code=204)


async def events(request: Request) -> Response:
    """Give events as delivered, byte for byte, in file order; with `large=omit` without their large strings.

    With `about=1` there is also `about`, the annotations of each event in the same order; `root` is the session.
    """
    limit = limit_of(request, _EVENTS_DEFAULT, _EVENTS_MAX)
    params, receiver = request.query_params, receiver_of(request)
    session_id, project = checked_id(request.path_params["id"]), receiver.project
    visible = _VISIBLE.get(params.get("visible", ""), "")
    if params.get("visible") and (not visible or project is None):
        raise ApiError(400, "bad_visible", f"`visible` is none of {', '.join(_VISIBLE)}.", hint="Leave it out.")

    def read(database: Database) -> tuple[queries.EventPage, dict[str, Any]]:
        page = queries.events(
            database,
            session_id,
            after=params.get("after"),
            type=params.get("type"),
            agent=params.get("agent"),
            limit=limit,
            large=params.get("large") != "omit",
            wanted=(lambda body: _visibility(body, project).get(visible, False)) if visible else None,
        )
        if params.get("about") != "1":
            return page, {}
        family, rows = kin(database, session_id), zip(page.bodies, page.agents, strict=True)
        return page, {"root": session_id, "about": [about(body, agent, family, project) for body, agent in rows]}

    page, annotations = await receiver.read(read)
    rest = msgspec.json.encode({**annotations, "next": page.next})
    return tagged_answer(request, b'{"events":[' + b",".join(page.bodies) + b"]," + rest[1:])


def about(body: bytes, agent: str | None, family: AgentTree, project: ProjectEvent | None) -> dict[str, Any]:
    """Return the agents from the outermost to the event's own, and where the event is visible if that is known."""
    return {"agent_path": family.path(agent), **_visibility(body, project)}


def _visibility(body: bytes, project: ProjectEvent | None) -> dict[str, bool]:
    envelope = decode(body) if project is not None else None
    if project is None or not isinstance(envelope, Envelope):
        return {}
    meant = project(envelope.type, bytes(envelope.data), envelope.ephemeral)
    return {"model_visible": meant.model_visible, "ui_visible": meant.ui_visible, "durable": meant.durable}


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
    """Give the tenant's figures in Prometheus text form, and to an operator those of all tenants by their name.

    Names and labels are ours alone, so nothing of a session is in it.
    """
    receivers: Receivers = request.app.state.receivers
    families: dict[str, list[str]] = {}
    is_operator = scope_of(request) == "operator"
    asked = await receivers.names() if is_operator else [receiver_of(request).tenant]
    for tenant in asked:
        if (receiver := await receivers.find(tenant)) is not None:
            for name, kind, meaning, samples in await _measured(receiver):
                full = f"exporter_receiver_{name}"
                lines = families.setdefault(name, [f"# HELP {full} {meaning}", f"# TYPE {full} {kind}"])
                lines += [
                    f"{full}{_labels(labels, tenant if is_operator else '')} {n}" for labels, n in samples.items()
                ]
    content = "\n".join(line for lines in families.values() for line in lines) + "\n"
    return PlainTextResponse(content, media_type="text/plain; version=0.0.4; charset=utf-8")


def _labels(labels: str, tenant: str) -> str:
    if not tenant:
        return labels
    return f'{{tenant="{tenant}"' + (f",{labels[1:]}" if labels else "}")


async def _measured(receiver: Receiver) -> list[tuple[str, str, str, dict[str, int]]]:
    since = heard_since(receiver.now())
    totals, copied = await receiver.read(lambda database: (queries.totals(database), queries.copied(database, since)))
    with api_errors():
        size = await asyncio.to_thread(receiver.store.size_bytes)
    return _families(receiver, totals, size=size, copied=copied)


def _families(
    receiver: Receiver, totals: queries.StoreTotals, *, size: int, copied: int
) -> list[tuple[str, str, str, dict[str, int]]]:
    """Return name, kind and meaning of each metric, with its values by their labels."""
    counters = receiver.counters
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
        ("calls_unknown_total", "counter", "Answers masked without their command.", {"": counters.calls_unknown}),
        ("events", "gauge", "Events held and shown.", {"": totals.events}),
        ("sessions", "gauge", "Sessions held.", sessions),
        ("streams", "gauge", "Live streams open.", {"": len(receiver.live)}),
        ("exporters_copied", "gauge", "Exporters of which several installations report.", {"": copied}),
        ("store_bytes", "gauge", "Size of the database file.", {"": size}),
        ("uploads_over_quota_total", "counter", "Uploads refused by a quota.", {"": receiver.quota.refused}),
    ]


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


async def audited(request: Request) -> Response:
    """List the audit log, newest first."""
    page, following = await read_audit(request, limit_of(request, _LIST_DEFAULT, _LIST_MAX))
    return tagged_answer(request, msgspec.json.encode({"entries": page, "next": following}))


async def read_audit(request: Request, limit: int) -> tuple[list[dict[str, Any]], str | None]:
    """Return the requested page of the audit log, and the cursor of the next one."""
    below, session_id = number_cursor(request), request.query_params.get("session") or None
    page, following = await receiver_of(request).read(
        lambda database: audit.entries(database, limit=limit, below=below, session=session_id)
    )
    return page, None if following is None else str(following)


async def exporters(request: Request) -> Response:
    """List the exporters with their last reports."""
    since = heard_since(receiver_of(request).now())
    found = await receiver_of(request).read(lambda database: queries.exporters(database, since))
    return tagged_answer(request, msgspec.json.encode({"exporters": found, "next": None}))


def limit_of(request: Request, default: int, maximum: int) -> int:
    """Return `limit`, at most `maximum`; raise `ApiError` 400 when it is no number."""
    text = request.query_params.get("limit", str(default))
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 9 and int(text) > 0):
        raise ApiError(400, "bad_limit", "`limit` is not a number from 1 up.", hint=f"At most {maximum} are given.")
    return min(int(text), maximum)


def _state_of(request: Request) -> str | None:
    """Return `state`, None for all; raise `ApiError` 400 when it is none of `STATES`."""
    state = request.query_params.get("state") or None
    if state is not None and state not in STATES:
        raise ApiError(400, "bad_state", "`state` is not one.", hint=f"States are {', '.join(STATES)}.")
    return state


def _since_of(request: Request) -> str | None:
    """Return `since` in the form of event timestamps; raise `ApiError` 400 when it is no time."""
    text = request.query_params.get("since")
    if not text:
        return None
    try:
        asked = datetime.fromisoformat(text)
        since = (asked if asked.tzinfo else asked.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        hint = "Write 2026-01-31, or 2026-01-31T12:00:00Z."
        raise ApiError(400, "bad_since", "`since` is not a date or time.", hint=hint) from None
    return since.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def number_cursor(request: Request) -> int | None:
    """Return a cursor that is a number, None at the beginning; raise `ApiError` 400 when it is none."""
    text = request.query_params.get("cursor")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise bad_cursor()
    return int(text)


ROUTES: Final = (
    Route("/api/v1/sessions", sessions, methods=["GET"]),
    Route("/api/v1/sessions/{id}", _session, methods=["GET"]),
    Route("/api/v1/sessions/{id}", forget_session, methods=["DELETE"]),
    Route("/api/v1/sessions/{id}/events", events, methods=["GET"]),
    Route("/api/v1/sessions/{id}/events/{event:path}", event, methods=["GET"]),
    Route("/api/v1/sessions/{id}/digest", _give(_digest), methods=["GET"]),
    Route("/api/v1/sessions/{id}/tree", _give(tree), methods=["GET"]),
    Route("/api/v1/sessions/{id}/trace", trace, methods=["GET"]),
    Route("/api/v1/stream", stream, methods=["GET"]),
    Route("/api/v1/search", search, methods=["GET"]),
    Route("/api/v1/notifications", notifications, methods=["GET"]),
    Route("/api/v1/redactions", masked, methods=["GET"]),
    Route("/api/v1/exporters", exporters, methods=["GET"]),
    Route("/api/v1/audit", audited, methods=["GET"]),
    Route("/healthz", alive, methods=["GET"]),
    Route("/readyz", ready, methods=["GET"]),
    Route("/metrics", metrics, methods=["GET"]),
)
