"""What the endpoints share: the store, subscribers, the redactor, the clock, the limits and the counters."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Protocol, TypedDict, Unpack, assert_never

from starlette.requests import Request

from exporter.core.events.envelope import Envelope, decode
from exporter.core.events.projection import ProjectEvent
from exporter.core.events.redaction import RedactEvent
from exporter.core.events.tool_calls import Commands
from exporter.missioncontrol.http.quota import Quota, QuotaGate
from exporter.missioncontrol.http.request_intake import Counters, Floor, FloorOf, RequestIntake, RequestLimits
from exporter.missioncontrol.http.responses import ApiError, api_errors
from exporter.missioncontrol.ingest import write_jobs
from exporter.missioncontrol.ingest.batch import Batch
from exporter.missioncontrol.live.notes import NoNotes, Note, Notes
from exporter.missioncontrol.live.subscriptions import LiveSubscriptions
from exporter.missioncontrol.live.waiting import OpenWaits
from exporter.missioncontrol.search.index import Matches
from exporter.missioncontrol.search.remote import IndexWorkers, RemoteIndex, WorkersAwayError
from exporter.missioncontrol.search.search import SearchIndex
from exporter.missioncontrol.search.search_query import SECONDS, Query, results
from exporter.missioncontrol.store import audit, tokens
from exporter.missioncontrol.store.eraser import Eraser
from exporter.missioncontrol.store.ownership import uploading
from exporter.missioncontrol.store.port import DEFAULT_TENANT, Database, Job, Result, Store
from exporter.missioncontrol.store.queries import events_numbered, identity, newest_event
from exporter.missioncontrol.store.retention import Retention, due
from exporter.missioncontrol.store.session_row import EXPIRED, number_of
from exporter.missioncontrol.store.tokens import OWNER, Holder

_log: Final = logging.getLogger(__name__)
_FRESH_SECONDS: Final = 0.15
_TOLD_MAX: Final = 10_000
_NOTES_MAX: Final = 10_000
_SCAN_SECONDS: Final = 2.0
"""How long a page is searched for where there is no index, and each event that may match is read."""


class MakeTrace(Protocol):
    """Makes OTLP JSON of a session: its id, and its events as delivered, in file order. Called in a thread.

    With `begun_by` of the interaction that this event began only.
    """

    def __call__(self, session: str, lines: Iterable[bytes], begun_by: str | None = None, /) -> bytes: ...


def utc_now() -> datetime:
    """Return the time of day with its zone."""
    return datetime.now(UTC)


class ReceiverOptions(TypedDict, total=False):
    """What a receiver can be given; nothing of it is needed."""

    clock: Callable[[], datetime]
    limits: RequestLimits | None
    make_trace: MakeTrace | None
    """Answers `/trace`, else 501."""
    project: ProjectEvent | None
    """Says what an event is to model and screen, else nothing does."""
    retention: Retention | None
    commands: Commands | None
    """The commands that print secrets, whose answers are masked where the redactor is asked, else none are."""
    floor_of: FloorOf | None
    """Makes the redactor of a tenant with its key, instead of one redactor for all."""
    quota: Quota | None
    workers: IndexWorkers | None
    """Say which events may match a search, where no index is kept beside the store."""
    audits: bool
    """Keeps an audit log of who reads."""


class Receiver:
    """The Mission Control of one tenant, as its endpoints see it."""

    def __init__(self, store: Store, redact: RedactEvent | None = None, **options: Unpack[ReceiverOptions]) -> None:
        self.tenant = DEFAULT_TENANT
        self.store, self.retention = store, options.get("retention") or Retention()
        self.make_trace, self.project = options.get("make_trace"), options.get("project")
        self.audits = options.get("audits", False)
        self.quota = QuotaGate(options.get("quota") or Quota())
        self._options = options
        self._workers = options.get("workers")
        self.search = SearchIndex(store) if store.index_of is None else None
        self.eraser = Eraser(store, partial(self._forget_words, []))
        self.live = LiveSubscriptions()
        self.waiting = OpenWaits()
        self.counters = Counters()
        self.intake = RequestIntake(
            options.get("limits") or RequestLimits(), self.counters, redact, options.get("commands"), self._floor()
        )
        self.notes: Notes = NoNotes()
        self._clock = options.get("clock", utc_now)
        self._noted: dict[str, str] = {}
        self._told: dict[tuple[str, ...], str] = {}
        self._identity: str | None = None

    def beside(self, store: Store, tenant: str) -> "Receiver":
        """Return the receiver of another tenant, with the same options; the two share the limits of requests."""
        other = Receiver(store, **self._options)
        other.tenant = tenant
        other.intake.close()
        other.intake = self.intake.beside(other.counters, other._floor())
        return other

    def _floor(self) -> Callable[[], Awaitable[Floor]] | None:
        """Return what gives the redactor with the tenant's key of that moment, the same at every receiver."""
        floor_of = self._options.get("floor_of")
        if floor_of is None:
            return None

        async def floor() -> Floor:
            return floor_of(await self.read(tokens.redaction_key))

        return floor

    def close(self) -> None:
        """End the streams and the threads; the store stays open, it belongs to the caller."""
        self.live.close()
        self.intake.close()
        self.eraser.close()

    def now(self) -> str:
        """Return the time as the wire writes it."""
        return self._clock().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    async def write(self, job: Job[Result]) -> Result:
        """Run a write and return when it is durable; raise what the store refuses as an `ApiError`."""
        with api_errors():
            return await self.store.write(job)

    async def read(self, job: Job[Result]) -> Result:
        """Run a read; raise what the store refuses as an `ApiError`."""
        with api_errors():
            return await self.store.read(job)

    async def floor(self) -> Floor:
        """Return what redacts here; raise `ApiError` when nothing does."""
        return await self.intake.floor()

    async def redact_again(self) -> Callable[[bytes], bytes | None]:
        """Return what redacts stored lines once more, for the threads of the store."""
        return partial(self.intake.redact_again, await self.floor())

    async def admit(self) -> None:
        """Raise `ApiError` when the tenant has used its quota."""
        with api_errors():
            await self.quota.admit(self.store)

    async def identity(self) -> str:
        """Return by what an uploader knows the tenant's store from another one."""
        if self._identity is None:
            self._identity = f"{await self.store.read(identity, quick=True):x}"
        return self._identity

    async def tell(self, who: str, action: str, session: str | None) -> None:
        """Note in the audit log who did what, durably, and the same thing once in ten minutes."""
        key, now = (who, action, session or ""), self.now()
        if self.audits and self._told.get(key) != now[:15]:
            await self.write(partial(audit.add, now=now, who=who, action=action, session=session))
            if len(self._told) >= _TOLD_MAX:
                self._told.clear()
            self._told[key] = now[:15]

    async def find_holder(self, token: str) -> Holder | None:
        """Return whose token of the tenant this is, or None; records once a minute that it is in use."""
        found = await self.store.read(lambda database: tokens.holder(database, token), quick=True)
        if found is not None:
            now = self.now()
            minute = now[:16]
            if self._noted.get(found.name) != minute:
                self._noted[found.name] = minute
                self.store.submit(lambda database: tokens.used(database, found.name, now))
        return found

    async def find(
        self, query: Query, below: int | None, session_id: str | None, limit: int
    ) -> tuple[list[dict[str, Any]], int | None]:
        """Return events that contain the words, and where to continue; waits shortly for events stored just now."""

        def search_in(
            database: Database, index: Matches, seconds: float = SECONDS
        ) -> tuple[list[dict[str, Any]], int | None]:
            return results(database, index, query, below, session_id=session_id, limit=limit, seconds=seconds)

        search, index_of = self.search, self.store.index_of
        if search is None:
            assert index_of is not None
            if self._workers is not None:
                remote = RemoteIndex(self._workers, self.store.number)
                try:
                    return await self.read(lambda database: search_in(database, remote, _SCAN_SECONDS))
                except WorkersAwayError as error:
                    _log.warning("no index worker answers; the events are searched", extra={"reason": str(error)})
            return await self.read(lambda database: search_in(database, index_of(database), _SCAN_SECONDS))
        newest = await self.read(newest_event)
        await asyncio.to_thread(search.catch_up, newest, _FRESH_SECONDS)
        return await self.read(lambda database: search.read(partial(search_in, database)))

    async def expire(self) -> int:
        """Forget every session that the retention does not allow; return how many they were."""
        gone = 0
        if (oldest := self.retention.oldest(self._clock())) is not None:
            await asyncio.to_thread(self.store.clean, oldest)
        while True:
            now, index_bytes = self._clock(), self.search.size_bytes if self.search is not None else 0
            ids = await self.read(lambda database: due(database, self.retention, now, index_bytes))  # noqa: B023
            if not ids:
                return gone
            try:
                await self.forget(ids, reason=EXPIRED)
            except ApiError as error:
                if error.status != 410:  # of a session that another receiver of the store forgot meanwhile
                    raise
            else:
                gone += len(ids)

    async def forget(self, session_ids: list[str], *, reason: str = "deleted", who: str = "") -> None:
        """Delete sessions for good: when this returns, no file of ours contains a word of them."""
        if await self.eraser.is_pending(session_ids):
            return await self._finish_erasing()
        numbers = await self.read(lambda database: [number_of(database, id) for id in session_ids])
        await asyncio.wrap_future(self._forget_words(numbers))
        now = self.now()

        def forget(database: Database) -> None:
            for session_id in session_ids:
                write_jobs.forget_session(database, session_id, now, reason=reason)
                if self.audits and reason != EXPIRED:
                    audit.add(database, now, who, "delete", session_id)

        await self.write(forget)
        for session_id in session_ids:
            self.waiting.end(session_id)
            self.publish_session(session_id, deleted=True)
        return await self._finish_erasing()

    def _forget_words(self, sessions: Sequence[int]) -> "Future[bool]":
        """Remove sessions from the index, if there is one; `SearchIndex.forget` says what the answer means."""
        if self.search is not None:
            return self.search.forget(sessions)
        answer: Future[bool] = Future()
        answer.set_result(True)
        return answer

    async def _finish_erasing(self) -> None:
        with api_errors():
            await self.eraser.finish()

    async def take(
        self, session_id: str, lines: Sequence[bytes], rewound: Sequence[str]
    ) -> tuple[write_jobs.Stored, list[str]]:
        """Store redacted events of an exporter in this process, without a request; also return what is rejected."""
        stored = await self.store_batch(session_id, await self.intake.sort_out(lines, rewound))
        return stored, stored.batch.rejected

    async def store_batch(self, session_id: str, batch: Batch, holder: Holder = OWNER) -> write_jobs.Stored:
        """Store a batch of this uploader; return once it is durable and subscribers have it."""
        job = partial(write_jobs.store_batch, session_id=session_id, batch=batch, now=self.now())
        stored = await self.write(uploading(session_id, holder, job))
        batch = stored.batch
        self.counters.stored += len(stored.new)
        self.counters.calls_unknown += batch.calls_unknown
        self.counters.duplicates += stored.duplicates
        self.counters.bytes_stored += sum(len(event.body) for event in stored.new)
        self.live.publish_events(session_id, [event.body for event in stored.new], ephemeral=False)
        if self.waiting.add_durable(session_id, (event.envelope for event in stored.new)):
            await self._report_waiting(session_id)
        await self.show_live(session_id, batch.ephemeral)
        if stored.new:
            self.notes.tell(Note("stored", session_id, stored.first, len(stored.new)))
        if stored.new or batch.rewound:
            self.publish_session(session_id)
        return stored

    async def show_live(self, session_id: str, events: list[bytes]) -> None:
        """Pass ephemeral events on to subscribers; nothing of them is stored but perhaps the session's state."""
        self.live.publish_events(session_id, events, ephemeral=True)
        if events:
            self.notes.tell(Note("live", session_id, events=tuple(events)))
        if self.waiting.add_live(session_id, events):
            await self._report_waiting(session_id)

    def publish_session(self, session_id: str, *, deleted: bool = False) -> None:
        """Publish that a session changed, here and at the other receivers of the store."""
        self.live.publish_session(session_id, deleted=deleted)
        self.notes.tell(Note("deleted" if deleted else "session", session_id))

    def publish_exporter(self, exporter_id: str) -> None:
        """Publish that an exporter reported on itself, here and at the other receivers of the store."""
        self.live.publish_exporter(exporter_id)
        self.notes.tell(Note("exporter", exporter_id))

    async def hear(self) -> None:
        """Publish what other receivers of the store tell, until cancelled."""
        heard: asyncio.Queue[Note] = asyncio.Queue(_NOTES_MAX)
        loop = asyncio.get_running_loop()

        def put(note: Note) -> None:
            with suppress(asyncio.QueueFull):  # a page that lacks it has it when it is loaded again
                heard.put_nowait(note)

        def put_from_a_thread(note: Note) -> None:
            loop.call_soon_threadsafe(put, note)

        self.notes = self.store.open_notes(put_from_a_thread)
        try:
            while True:
                with suppress(ApiError):  # the session was deleted, or the store is away
                    await self._heard(await heard.get())
        finally:
            await asyncio.to_thread(self.notes.close)

    async def _heard(self, note: Note) -> None:
        """Publish one note; states and waits that it changes were reported where it comes from."""
        match note.kind:
            case "stored":
                await self._heard_stored(note)
            case "live":
                self.live.publish_events(note.id, list(note.events), ephemeral=True)
                self.waiting.add_live(note.id, note.events)
            case "session":
                self.live.publish_session(note.id)
            case "deleted":
                self.waiting.end(note.id)
                self.live.publish_session(note.id, deleted=True)
            case "exporter":
                self.live.publish_exporter(note.id)
            case _:
                assert_never(note.kind)

    async def _heard_stored(self, note: Note) -> None:
        if not self.live.has(note.id) and not self.waiting.is_waiting(note.id):
            return
        bodies = await self.read(partial(events_numbered, session_id=note.id, first=note.first, count=note.count))
        self.live.publish_events(note.id, bodies, ephemeral=False)
        envelopes = [envelope for body in bodies if isinstance(envelope := decode(body), Envelope)]
        self.waiting.add_durable(note.id, envelopes)

    async def _report_waiting(self, session_id: str) -> None:
        state = "needs_attention" if self.waiting.is_waiting(session_id) else None
        now = self.now()
        try:
            await self.write(lambda database: write_jobs.report_session(database, session_id, {"state": state}, now))
        except ApiError:  # the session is unknown, or was deleted
            self.waiting.end(session_id)
            return
        self.publish_session(session_id)


def receiver_of(request: Request) -> Receiver:
    """Return the receiver of the tenant that this request is of; it fails for a request that nobody let in."""
    receiver = request.state.receiver
    assert isinstance(receiver, Receiver)
    return receiver
