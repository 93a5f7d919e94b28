"""One signal of an OTLP endpoint as a sink: sends encoded records, and reads partial rejections in the answers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeAlias

from exporter.core.delivery.batches import BatchLimits
from exporter.core.delivery.verdict import (
    ALARM_WAIT_SECONDS,
    Accepted,
    Conflict,
    Deleted,
    Later,
    LessCompression,
    Missing,
    Verdict,
    verdict,
)
from exporter.sinks.sink import Registered, Registration, Sent, Sink
from exporter.sinks.threads import CallThreads
from exporter.sinks.transport import NoAnswerError

LANES: Final = 4
"""How many sessions are sent at a time, per signal."""
RECORDS_MAX: Final = 512
BODY_BYTES_MAX: Final = 3_000_000


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

    A backend needs the records of one stream in the order of time, so each run has a stream of its own and, with
    `per_session`, each session of it.
    """

    def __init__(self, exporter_id: str) -> None:
        self._exporter_id = exporter_id
        self._run_of: dict[str, str] = {}

    def begin_run(self, sessions: Iterable[str], run: str) -> None:
        """Send these sessions under the name of a run, unless they have a stream already."""
        self._run_of.update(dict.fromkeys(sessions, run))

    def of(self, session: str, *, per_session: bool) -> str:
        """Return the stream of a session that has none yet."""
        run = self._run_of.get(session)
        if run is None:
            return self._exporter_id
        return f"{run}/{session}" if per_session else run


@dataclass(eq=False, kw_only=True)
class Otlp(Sink):
    """One signal. `assemble` makes a body of a stream's records; `weight` says how many one of these counts as.

    `rejected` counts the spans, log records and points that the endpoint rejected in requests that it accepted.
    `repeated` counts records that were sent again because there was no answer the first time.
    """

    unproved = "an OTLP endpoint cannot be asked what it holds"
    name: str
    url: str
    post: Post
    assemble: Callable[[str, Sequence[bytes]], bytes]
    streams: Streams
    weight: Callable[[bytes], int]
    token: Callable[[], str | None]
    records_max: int = RECORDS_MAX
    stream_per_session: bool = False
    on_close: Callable[[], None] = lambda: None
    rejected: int = 0
    repeated: int = 0

    def __post_init__(self) -> None:
        self._unanswered: set[tuple[str, str]] = set()
        self._threads = CallThreads(LANES, "otlp")

    def limits(self) -> BatchLimits:
        """Return what one request may hold."""
        return BatchLimits(self.records_max, min(self.body_bytes_max, BODY_BYTES_MAX), BODY_BYTES_MAX)

    async def register(self, session: str, remote_id: str | None, *, restore: bool = False) -> Registration:
        """Choose the session's stream, which it keeps; sends no request."""
        stream = remote_id or self.streams.of(session, per_session=self.stream_per_session)
        return Registered(stream, None, asked=False)

    async def send(
        self, remote_id: str, ids: Sequence[str], lines: Sequence[bytes], rewound: Sequence[str] = ()
    ) -> Sent:
        """Send records of one stream; records rejected in an accepted request are not sent again."""
        token = self.token()
        body = self.assemble(remote_id, lines)
        if self._unanswered:
            records = {(remote_id, one) for one in ids}
            self.repeated += len(self._unanswered & records)
            self._unanswered -= records
        try:
            answer = await self._threads.call(lambda: self.post(body))
        except NoAnswerError as error:
            self._unanswered.update((remote_id, one) for one in ids)
            return Sent(Later(str(error)))
        judged = _judge(answer)
        if answer.status in (401, 403):
            if token != self.token():
                return Sent(Later("the headers have changed meanwhile", 0.0))
            self.token_refused = token
        return self._accepted(answer, ids, lines) if isinstance(judged, Accepted) else Sent(judged)

    def _accepted(self, answer: OtlpAnswer, ids: Sequence[str], lines: Sequence[bytes]) -> Sent:
        """Read the rejections in an accepted request. It names no records, so they are known only if all are."""
        sent = sum(map(self.weight, lines)) if answer.rejected else 0
        rejected = min(answer.rejected, sent)
        self.rejected += rejected
        if rejected and rejected == sent:
            return Sent(Accepted(), tuple(ids), refusal="rejected", told=answer.message)
        return Sent(Accepted(), unnamed=rejected, told=answer.message)

    async def close(self) -> None:
        """Close the connections."""
        self._threads.close()
        self.on_close()


def _judge(answer: OtlpAnswer) -> Verdict:
    """Judge an answer; statuses about a session mean a wrong address or a wrong program here."""
    judged = verdict(answer.status, answer.retry_after, datetime.now(UTC), fault=answer.fault)
    if isinstance(judged, Missing | Deleted | Conflict | LessCompression):
        return Later(
            f"answered {answer.status}: is this an OTLP endpoint for this signal?", ALARM_WAIT_SECONDS, alarm=True
        )
    return judged
