"""The API for uploaders, below `/agents`: that of the CLI's own uploader, with capabilities of ours."""

import re
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final, Literal
from uuid import uuid4

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from exporter.core.events.envelope import REFUSALS
from exporter.core.names import INSTALLATION_HEADER
from exporter.missioncontrol.http.audited import who_asks
from exporter.missioncontrol.http.permissions import holder_of
from exporter.missioncontrol.http.request_intake import DECLARATION, ENCODINGS
from exporter.missioncontrol.http.responses import ApiError, json_answer
from exporter.missioncontrol.ingest import write_jobs
from exporter.missioncontrol.ingest.answers import mask_answers
from exporter.missioncontrol.ingest.batch import Batch
from exporter.missioncontrol.receiver import Receiver, receiver_of
from exporter.missioncontrol.store import audit, queries, tokens
from exporter.missioncontrol.store.amounts import AMOUNT_MAX
from exporter.missioncontrol.store.ownership import reading, refuse_foreign, uploading
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.session_row import (
    DeletedSessionError,
    RestoreNeedsAdminError,
    SessionAck,
    UnknownSessionError,
    is_deleted,
    number_of,
    refuse_deleted,
)
from exporter.missioncontrol.store.tokens import Holder

STATES: Final = ("working", "idle", "needs_attention", "ended", "crashed")
"""What a session can be."""

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+-]{0,199}")
_REPORT_BYTES_MAX: Final = 1 << 20
_REPORT_LEVELS_MAX: Final = 8
_Count = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]
_Rule = Annotated[str, Meta(min_length=1, max_length=200)]
_Day = Annotated[str, Meta(pattern=r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")]
_Rules = Annotated[dict[_Rule, _Count], Meta(max_length=5000)]


class _Registration(msgspec.Struct):
    """What either generation of the CLI's uploader, or ours, sends; the rest of the body is passed over."""

    id: str | None = None
    agent_task_id: str | None = None
    task_id: str | None = None
    restore: bool = False


class _SessionReport(msgspec.Struct, omit_defaults=True):
    title: str | None = None
    repository: str | None = None
    branch: str | None = None
    host: str | None = None
    owner: str | None = None
    state: str | msgspec.UnsetType | None = msgspec.UNSET  # null: what its events say
    liveness: Literal["unknown"] | msgspec.UnsetType | None = msgspec.UNSET  # null: it is known again
    redactions: Annotated[dict[_Day, _Rules], Meta(max_length=4000)] | None = None


def checked_id(text: str) -> str:
    """Return an id that may stand in a path, or raise `ApiError` 400."""
    if _ID.fullmatch(text) is None:
        raise ApiError(400, "bad_id", "The id is not one.", hint="Ids are letters, digits and . _ : @ + - only.")
    return text


async def register(request: Request) -> Response:
    """Make a session known; the same registration again gives the same answer."""
    receiver = receiver_of(request)
    wanted = await _decoded(request, _Registration)
    session_id = checked_id(wanted.id or wanted.agent_task_id or wanted.task_id or str(uuid4()))
    task_id = checked_id(wanted.agent_task_id or wanted.task_id or session_id)
    now = receiver.now()
    holder = holder_of(request)

    def job(database: Database) -> tuple[SessionAck, int]:
        restore = wanted.restore and holder.scope == "all"
        if restore and receiver.audits and is_deleted(database, session_id):
            audit.add(database, now, who_asks(request), "restore", session_id)
        try:
            return write_jobs.register(database, session_id, task_id, now, restore=restore), database.changes()
        except DeletedSessionError as error:
            raise RestoreNeedsAdminError(session_id) if wanted.restore else error from None

    ack, changes = await receiver.write(uploading(session_id, holder, job))
    receiver.publish_session(session_id)
    answer = {"id": session_id, "task_id": task_id, **_capabilities(receiver)}
    return json_answer({**answer, "ack": _as_of(receiver, changes, ack)})


async def session(request: Request) -> Response:
    """Return what the store has of a session; with `?ids=1` also the id and hash of every event shown."""
    receiver = receiver_of(request)
    session_id = checked_id(request.path_params["id"])
    with_items = request.query_params.get("ids", "") not in ("", "0")
    job = partial(queries.upload_state, session_id=session_id, with_items=with_items, asker=_installation(request))
    state = await receiver.read(reading(session_id, holder_of(request), job))
    answer: dict[str, Any] = {"id": session_id, "task_id": state.task_id, **_capabilities(receiver)}
    answer["ack"] = _as_of(receiver, state.changes, state.ack)
    if state.items is not None:
        answer |= {"items": state.items, **({"others": state.others} if state.others else {})}
    return json_answer(answer)


async def store_events(request: Request) -> Response:
    """Store a batch; answer with what the store has now, once that is durable."""
    receiver = receiver_of(request)
    session_id = checked_id(request.path_params["id"])
    await receiver.admit()
    async with receiver.intake.read_batch(request) as batch:
        batch.sender = _installation(request)
        receiver.quota.spend(len(batch.durable), sum(len(event.body) for event in batch.durable))
        stored = await receiver.store_batch(session_id, batch, holder_of(request))
    outcome = {"accepted": len(stored.new), "duplicates": stored.duplicates, "rejected": stored.batch.rejected}
    ack = _as_of(receiver, stored.changes, stored.ack)
    return json_answer({**outcome, "last_event_id": stored.ack.last_event_id, "ack": {**ack, **outcome}})


async def report_session(request: Request) -> Response:
    """Store what an exporter knows about a session and its events do not say."""
    receiver = receiver_of(request)
    _needs_declaration(request)
    session_id = checked_id(request.path_params["id"])
    report = await _decoded(request, _SessionReport)
    if isinstance(report.state, str) and report.state not in STATES:
        raise ApiError(400, "bad_state", "The state is not one.", hint=f"States are {', '.join(STATES)}.")
    fields = msgspec.to_builtins(report)
    now = receiver.now()
    job = partial(write_jobs.report_session, session_id=session_id, report=fields, now=now)
    await receiver.write(uploading(session_id, holder_of(request), job))
    receiver.publish_session(session_id)
    return json_answer({})


async def report_exporter(request: Request) -> Response:
    """Store the state of an exporter."""
    receiver = receiver_of(request)
    _needs_declaration(request)
    exporter_id = checked_id(request.path_params["id"])
    report = await _decoded(request, dict[str, Any])
    if not _is_bounded(report, _REPORT_LEVELS_MAX):
        hint = f"Numbers are at most {AMOUNT_MAX}, and at most {_REPORT_LEVELS_MAX} values stand in each other."
        raise ApiError(400, "bad_report", "The report holds what cannot be shown.", hint=hint)
    job = partial(
        write_jobs.report_exporter,
        exporter_id=exporter_id,
        report=report,
        now=receiver.now(),
        holder=holder_of(request),
    )
    (copies, wanted), changes, salt = await receiver.write(
        lambda database: (job(database), database.changes(), tokens.settings_salt(database))
    )
    receiver.publish_exporter(exporter_id)
    return json_answer({**_as_of(receiver, changes), "copies": copies, "settings": {"salt": salt, "wanted": wanted}})


async def live_events(request: Request) -> Response:
    """Pass ephemeral events on to subscribers; nothing is stored, and durable events are ignored."""
    receiver = receiver_of(request)
    session_id = checked_id(request.path_params["id"])
    async with receiver.intake.read_batch(request) as batch:
        shown = await receiver.read(partial(_check_live, session_id=session_id, holder=holder_of(request), batch=batch))
        await receiver.show_live(session_id, shown)
    return json_answer({"accepted": len(shown)})


async def commands(request: Request) -> Response:
    """Return no commands: this receiver does not control agents."""
    session_id = checked_id(request.path_params["id"])
    return json_answer(await receiver_of(request).read(reading(session_id, holder_of(request), _no_commands)))


def _no_commands(_: Database) -> dict[str, Any]:
    return {"commands": []}


def _check_live(database: Database, session_id: str, holder: Holder, batch: Batch) -> list[bytes]:
    """Return the events that may be shown; the batch stays as it is, for a job that runs again."""
    batch = replace(batch)
    refuse_foreign(database, session_id, holder)
    refuse_deleted(database, session_id)
    with suppress(UnknownSessionError):
        mask_answers(database, number_of(database, session_id), batch, [], [])
    return batch.ephemeral


def _capabilities(receiver: Receiver) -> dict[str, Any]:
    return {
        "capabilities": {
            "encodings": ENCODINGS,
            "max_body": receiver.intake.limits.body_bytes,
            "max_events": receiver.intake.limits.events,
            "max_event_bytes": receiver.intake.limits.event_bytes,
            "ack": True,
            "digest": True,
            "rewound": True,
            "reports": True,
            "live": True,
            "deletes": True,
            "installations": True,
        }
    }


def _as_of(receiver: Receiver, changes: int, ack: SessionAck | None = None) -> dict[str, Any]:
    """Return an acknowledgement with what tells an uploader that the store may have gone back."""
    return {**(msgspec.to_builtins(ack) if ack else {}), "epoch": receiver.store.epoch, "changes": changes}


def _installation(request: Request) -> int | None:
    """Return the number of the installation that asks, None when it does not say which."""
    try:
        return int.from_bytes(bytes.fromhex(request.headers[INSTALLATION_HEADER]).rjust(8)[-8:], "big", signed=True)
    except (KeyError, ValueError):
        return None


def _needs_declaration(request: Request) -> None:
    if DECLARATION not in request.headers:
        raise ApiError(
            403, "not_declared", "Reports are taken from clients that redact only.", hint="Send Session-Exporter."
        )


def _is_bounded(value: object, levels: int) -> bool:
    """Tell whether a report can be stored and shown, whatever it says."""
    if isinstance(value, int | float):
        return abs(value) <= AMOUNT_MAX
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_bounded(one, levels - 1) for one in inside)


async def _decoded(request: Request, type: Any) -> Any:
    body = await receiver_of(request).intake.read_body(request, _REPORT_BYTES_MAX)
    try:
        return msgspec.json.decode(body, type=type)
    except REFUSALS as error:
        message = f"The body cannot be read: {error}."
        raise ApiError(400, "bad_body", message, hint="Send one JSON object as the wire describes it.") from error


ROUTES: Final = (
    Route("/agents/sessions", register, methods=["POST"]),
    Route("/agents/sessions/{id}", session, methods=["GET"]),
    Route("/agents/sessions/{id}", report_session, methods=["PUT"]),
    Route("/agents/sessions/{id}/events", store_events, methods=["POST"]),
    Route("/agents/sessions/{id}/live", live_events, methods=["POST"]),
    Route("/agents/sessions/{id}/commands", commands, methods=["GET"]),
    Route("/agents/exporters/{id}", report_exporter, methods=["POST"]),
)
