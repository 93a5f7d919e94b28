"""One signal of an OTLP endpoint as a sink: sends encoded records, and reads partial rejections in the answers."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, TypeAlias

from exporter.core.delivery.batches import BatchLimits
from exporter.core.delivery.history_needs import needs, store_at
from exporter.core.delivery.log_streams import hour_of
from exporter.core.delivery.verdict import (
    ALARM_WAIT_SECONDS,
    Accepted,
    Conflict,
    Deleted,
    Later,
    Smaller,
    Suspect,
    Unsupported,
    Verdict,
    verdict,
)
from exporter.sinks.sink import Registered, Registration, Sent, Sink
from exporter.sinks.threads import CallThreads
from exporter.sinks.transport import NoAnswerError

LANES: Final = 4
"""How many sessions are sent at a time, per signal."""
LOG_LANES: Final = 32
"""How many there are of logs, of which many may share a request; more than `LANES` while they have little to send."""
JOIN_SECONDS: Final = 0.1
"""How long records of history wait for those of other sessions."""
RECORDS_MAX: Final = 512
BODY_BYTES_MAX: Final = 3_000_000
UNSUPPORTED: Final = frozenset((404, 405, 415, 501))
"""Statuses that say that an address takes nothing of a signal; gRPC's UNIMPLEMENTED is 404 here."""


@dataclass(frozen=True, slots=True)
class OtlpAnswer:
    """An answer in the terms of HTTP; `rejected` is how many records a receiver says it did not take."""

    status: int
    retry_after: str | None = None
    rejected: int = 0
    message: str = ""
    fault: str | None = None


Post: TypeAlias = Callable[[bytes], OtlpAnswer]
"""Sends one body and waits for the answer; raises `NoAnswerError`. Called on threads."""


class Streams:
    """The service.instance.id of a session's records: this exporter's id, or that of the run that sends history.

    A backend needs the records of one stream in the order of time, so each run has a stream of its own, and log
    records of history have one of a few of them, by their hour (`core/delivery/log_streams.py`).
    """

    def __init__(self, exporter_id: str) -> None:
        self._exporter_id = exporter_id
        self._run_of: dict[str, str] = {}
        self._hours: dict[str, Mapping[int, int]] = {}

    @property
    def past(self) -> str:
        """The run of the history that is sent in the name of no command."""
        return f"{self._exporter_id}-history"

    def begin_run(self, sessions: Iterable[str], run: str) -> None:
        """Send these sessions under the name of a run."""
        self._run_of.update(dict.fromkeys(sessions, run))

    def end_run(self, sessions: Iterable[str]) -> None:
        """Send what these sessions do from now on as what happens now."""
        for session in sessions:
            self._run_of.pop(session, None)
            self._hours.pop(session, None)

    def counted(self, session: str, began_as: str | None, *, is_live: bool) -> str | None:
        """Return the stream of the metrics of a session now; `began_as` is the one that it began with."""
        return self._run_of.get(session) or (self._exporter_id if is_live else began_as)

    def is_live(self, stream: str) -> bool:
        """Tell whether a stream is that of what happens now; those of runs are history, after a restart as well."""
        return stream == self._exporter_id

    def place(self, session: str, hours: Mapping[int, int]) -> None:
        """Send the log records of a session to these streams of its run, by their hour."""
        self._hours[session] = hours

    def of(self, session: str, *, by_hour: bool) -> str:
        """Return the stream of a session that has none yet; where that depends on the hour, what `at` wants."""
        run = self._run_of.get(session, self._exporter_id)
        return f"{run}/{session}" if by_hour else run

    def is_history(self, stream: str) -> bool:
        """Tell whether a stream of `of` is that of a session that is delivered by a run now."""
        return stream.partition("/")[2] in self._hours

    def at(self, stream: str, time_ns: int) -> str:
        """Return the stream of a record: that of the nearest hour that the session has, else that of its run."""
        run, _, session = stream.partition("/")
        hours = self._hours.get(session)
        if not hours:
            return run
        hour = hour_of(time_ns / 1e9)
        index = hours.get(hour)
        return (
            f"{self._run_of[session]}/{hours[min(hours, key=lambda one: abs(one - hour))] if index is None else index}"
        )


@dataclass(slots=True, eq=False)
class _Part:
    """What one session sends, for a request that it may share with others."""

    stream: str
    ids: Sequence[str]
    lines: Sequence[bytes]
    sent: "asyncio.Future[Sent]"


@dataclass(eq=False, kw_only=True)
class Otlp(Sink):
    """One signal. `assemble` makes a body of a stream's records; `weight` says how many one of these counts as.

    `ask` returns what a path of the endpoint's host answers, None if nothing; called on threads.
    `place` is the address that the signal is sent to, without secrets. `time_ns` returns the time of a record where
    streams go by the hour.

    `rejected` counts the spans, log records and points that the endpoint rejected in requests that it accepted.
    `repeated` counts records that were sent again because a request with them was sent and not answered.
    """

    unproved = "an OTLP endpoint cannot be asked what it holds"
    lanes_always = LANES
    name: str
    url: str
    place: str
    post: Post
    assemble: Callable[[str, Sequence[bytes]], bytes]
    streams: Streams
    weight: Callable[[bytes], int]
    token: Callable[[], str | None]
    records_max: int = RECORDS_MAX
    time_ns: Callable[[bytes], int] | None = None
    on_close: Callable[[], None] = lambda: None
    ask: Callable[[str], str | None] = lambda _: None
    history_seconds: float | None = None
    rejected: int = 0
    repeated: int = 0

    def __post_init__(self) -> None:
        self._unanswered: set[tuple[str, str]] = set()
        self._threads = CallThreads(LANES, "otlp")
        self._parts: deque[_Part] = deque()
        self._joining: asyncio.Task[None] | None = None

    async def needs(self, days: float, *, asks: bool) -> str:
        """Return what so many days of history need of the store; without `asks` nobody is asked."""
        signal = self.name.rpartition(":")[2]
        found = store_at(self.place, signal)
        if found is None:
            return needs(self.place, signal, days, None, None)
        store, path = found
        answer = await self._threads.call(lambda: self.ask(path)) if asks else None
        return needs(self.place, signal, days, store, answer)

    def limits(self) -> BatchLimits:
        """Return what one request may hold."""
        return BatchLimits(self.records_max, min(self.body_bytes_max, BODY_BYTES_MAX), BODY_BYTES_MAX)

    def stream_of_sums(self, session: str, remote_id: str | None, *, is_live: bool) -> str | None:
        """See `Sink`."""
        return self.streams.counted(session, remote_id, is_live=is_live)

    async def register(self, session: str, remote_id: str | None, *, restore: bool = False) -> Registration:
        """Choose the session's stream, which it keeps; sends no request."""
        stream = remote_id or self.streams.of(session, by_hour=self.time_ns is not None)
        return Registered(stream, None, asked=False)

    async def send(
        self, remote_id: str, ids: Sequence[str], lines: Sequence[bytes], rewound: Sequence[str] = ()
    ) -> Sent:
        """Send records of one stream; records rejected in an accepted request are not sent again.

        Log records of several sessions share a request.
        """
        part = _Part(remote_id, ids, lines, asyncio.get_running_loop().create_future())
        if self.time_ns is None:
            return (await self._send([part]))[0]
        self._parts.append(part)
        if self._joining is None:
            self._joining = asyncio.create_task(self._join())
        return await part.sent

    async def _join(self) -> None:
        """Send what waits, as many sessions in a request as it holds."""
        limits, requests = self.limits(), set[asyncio.Task[None]]()
        while self._parts:
            await self._gather()
            joined, records, size = list[_Part](), 0, 0
            while self._parts:
                records += len(self._parts[0].lines)
                size += sum(map(len, self._parts[0].lines))
                if joined and (records > limits.events_max or size > limits.bytes_max):
                    break
                joined.append(self._parts.popleft())
            requests.add(task := asyncio.create_task(self._answer(joined)))
            task.add_done_callback(requests.discard)
        self._joining = None

    async def _gather(self) -> None:
        """Wait for more sessions where history is sent; live records are sent at once."""
        loop = asyncio.get_running_loop()
        end = loop.time() + JOIN_SECONDS
        while (  # noqa: ASYNC110  a few looks, and not an event for each part
            loop.time() < end
            and sum(len(part.lines) for part in self._parts) < self.records_max
            and all(self.streams.is_history(part.stream) for part in self._parts)
        ):
            await asyncio.sleep(JOIN_SECONDS / 10)

    async def _answer(self, parts: Sequence[_Part]) -> None:
        wanted = [part for part in parts if not part.sent.done()]
        try:
            for part, sent in zip(wanted, await self._send(wanted) if wanted else (), strict=True):
                if not part.sent.done():
                    part.sent.set_result(sent)
        except BaseException as error:
            for part in wanted:
                if not part.sent.done():
                    part.sent.set_exception(error)
            if not isinstance(error, Exception):
                raise

    async def _send(self, parts: Sequence[_Part]) -> list[Sent]:
        """Send a request and return what each part is answered; what is refused may be of one part alone."""
        token = self.token()
        body = self._body(parts)
        try:
            answer = await self._threads.call(lambda: self.post(body))
        except NoAnswerError as error:
            if not error.unsent:
                self._count_repeats(parts)
                self._unanswered.update((part.stream, one) for part in parts for one in part.ids)
            return _for_each(Later(str(error)), parts)
        self._count_repeats(parts)
        judged = self._judge(answer)
        if len(parts) > 1 and isinstance(judged, Smaller | Suspect):
            return [sent for part in parts for sent in await self._send([part])]
        if answer.status in (401, 403):
            if token != self.token():
                return _for_each(Later("the headers have changed meanwhile", 0.0), parts)
            self.token_refused = token
        return self._accepted(answer, parts) if isinstance(judged, Accepted) else _for_each(judged, parts)

    def _count_repeats(self, parts: Sequence[_Part]) -> None:
        """Count the records of a request that was sent whose last sending was not answered."""
        if self._unanswered:
            records = {(part.stream, one) for part in parts for one in part.ids}
            self.repeated += len(self._unanswered & records)
            self._unanswered -= records

    def _body(self, parts: Sequence[_Part]) -> bytes:
        """Return one request, with the records of each stream together."""
        by_stream: dict[str, list[bytes]] = {}
        for part in parts:
            if self.time_ns is None:
                by_stream.setdefault(part.stream, []).extend(part.lines)
                continue
            for line in part.lines:
                by_stream.setdefault(self.streams.at(part.stream, self.time_ns(line)), []).append(line)
        return b"".join([self.assemble(stream, lines) for stream, lines in by_stream.items()])

    def _accepted(self, answer: OtlpAnswer, parts: Sequence[_Part]) -> list[Sent]:
        """Read the rejections in an accepted request. It names no records, so they are known only if all are."""
        weights = [sum(map(self.weight, part.lines)) if answer.rejected else 0 for part in parts]
        rejected = min(answer.rejected, sum(weights))
        self.rejected += rejected
        if rejected and rejected == sum(weights):
            return [Sent(Accepted(), tuple(part.ids), refusal="rejected", told=answer.message) for part in parts]
        shared = b"".join([line for part in parts for line in part.lines]) if rejected and len(parts) > 1 else b""
        first = Sent(Accepted(), unnamed=rejected, told=answer.message, shared=shared)
        others = Sent(Accepted()) if rejected else first
        return [first, *(others for _ in parts[1:])]

    async def takes_empty(self) -> bool:
        """See `Sink`. Every receiver of OTLP takes a request without records."""
        try:
            answer = await self._threads.call(lambda: self.post(b""))
        except NoAnswerError:
            return False
        return isinstance(self._judge(answer), Accepted)

    def _judge(self, answer: OtlpAnswer) -> Verdict:
        """Judge an answer; statuses about a session mean a wrong address or a wrong program here."""
        if answer.status in UNSUPPORTED:
            return Unsupported(answer.status, self.place)
        judged = verdict(answer.status, answer.retry_after, datetime.now(UTC), fault=answer.fault)
        if isinstance(judged, Deleted | Conflict):
            why = f"{self.place} answered {answer.status}: is this an OTLP endpoint for this signal?"
            return Later(why, ALARM_WAIT_SECONDS, alarm=True)
        return judged

    async def close(self) -> None:
        """Close the connections."""
        self._threads.close()
        self.on_close()


def _for_each(judged: Verdict, parts: Sequence[_Part]) -> list[Sent]:
    """Return the answer to a request for each session in it; a failure counts once."""
    others = replace(judged, is_shared=True) if isinstance(judged, Later) else judged
    return [Sent(judged), *(Sent(others) for _ in parts[1:])]
