"""One signal of an OTLP endpoint as a sink: its records are sent as they are, and the answer is read to its end."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol

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

RECORDS_MAX: Final = 512
BODY_BYTES_MAX: Final = 3_000_000
_REFUSED_BODY_BYTES_MIN: Final = 8_192


@dataclass(frozen=True, slots=True)
class OtlpAnswer:
    """An answer in the terms of HTTP; `rejected` is how many records a receiver says it did not take.

    `fault` is why a 2xx is no acceptance.
    """

    status: int
    retry_after: str | None = None
    rejected: int = 0
    message: str = ""
    fault: str | None = None


class Post(Protocol):
    """Sends one body and waits for the answer; raises `NoAnswerError`. Called on threads."""

    def __call__(self, body: bytes, /) -> OtlpAnswer: ...


class Streams:
    """Which service.instance.id a session's records carry: this exporter's own, or that of the run that sends history.

    A backend that wants the records of one stream in the order of time gets a stream of its own per run, and, where
    `per_session` says so, per session.
    """

    def __init__(self, exporter_id: str) -> None:
        self._exporter_id = exporter_id
        self._run_of: dict[str, str] = {}

    def begin_run(self, sessions: Iterable[str], run: str) -> None:
        """Let these sessions go out under the name of a run, unless they have a name already."""
        self._run_of.update(dict.fromkeys(sessions, run))

    def of(self, session: str, *, per_session: bool) -> str:
        """Return the stream of a session that has none yet."""
        run = self._run_of.get(session)
        if run is None:
            return self._exporter_id
        return f"{run}/{session}" if per_session else run


@dataclass(eq=False, kw_only=True)
class Otlp(Sink):
    """One signal. `assemble` makes a body of records and the stream they belong to; `weight` says how many they are.

    `rejected` counts what the endpoint did not take of requests that it accepted otherwise: spans, log records, and
    of metrics their points. `repeated` counts records that were sent again because no answer came to the first time.
    """

    unproved = "an OTLP endpoint cannot be asked what it holds"
    name: str
    url: str
    post: Post
    assemble: Callable[[str, Sequence[bytes]], bytes]
    streams: Streams
    weight: Callable[[bytes], int]
    token: Callable[[], str | None]
    connections: int
    records_max: int = RECORDS_MAX
    stream_per_session: bool = False
    on_close: Callable[[], None] = lambda: None
    rejected: int = 0
    repeated: int = 0

    def __post_init__(self) -> None:
        self._unanswered: set[tuple[str, str]] = set()
        self._body_bytes_max = BODY_BYTES_MAX
        self._threads = CallThreads(self.connections, "otlp")

    def limits(self) -> BatchLimits:
        """Return what one request may hold."""
        return BatchLimits(self.records_max, self._body_bytes_max, BODY_BYTES_MAX)

    def body_refused(self, size: int) -> None:
        """Remember that a body of this size was too large."""
        self._body_bytes_max = max(_REFUSED_BODY_BYTES_MIN, min(size // 2, self._body_bytes_max))

    async def register(self, session: str, remote_id: str | None, *, restore: bool = False) -> Registration:
        """Give the session its stream, which it keeps; nobody is asked."""
        stream = remote_id or self.streams.of(session, per_session=self.stream_per_session)
        return Registered(stream, None, asked=False)

    async def send(
        self, remote_id: str, ids: Sequence[str], lines: Sequence[bytes], rewound: Sequence[str] = ()
    ) -> Sent:
        """Send records of one stream; what a receiver does not take of a request that it accepts is not sent again."""
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
        """Read what an accepted request was told besides. Nobody says which records were rejected, unless all were."""
        sent = sum(map(self.weight, lines)) if answer.rejected else 0
        rejected = min(answer.rejected, sent)
        self.rejected += rejected
        if rejected and rejected == sent:
            return Sent(Accepted(), tuple(ids), refusal="rejected", told=answer.message)
        return Sent(Accepted(), unnamed=rejected, told=answer.message)

    async def close(self) -> None:
        """Let go of connections."""
        self._threads.close()
        self.on_close()


def _judge(answer: OtlpAnswer) -> Verdict:
    """Judge an answer; what means something about a session elsewhere is a wrong address or a wrong program here."""
    judged = verdict(answer.status, answer.retry_after, datetime.now(UTC), fault=answer.fault)
    if isinstance(judged, Missing | Deleted | Conflict | LessCompression):
        return Later(
            f"answered {answer.status}: is this an OTLP endpoint for this signal?", ALARM_WAIT_SECONDS, alarm=True
        )
    return judged
