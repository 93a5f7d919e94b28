"""One session's events as the records of all three signals, ready to be put into requests."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

from otel.answer import Signal
from otel.event import Event, read
from otel.logs import bare, record
from otel.metrics import Metering
from otel.model import LogRecord, Span
from otel.name import Content, Semconv
from otel.names import ORPHANED
from otel.projection import TABLE
from otel.traces import Taken, Traces
from otel.wire import writer

Records: TypeAlias = "dict[str, list[tuple[int, str, Any]]]"
P = ParamSpec("P")
T = TypeVar("T")
_Tell: TypeAlias = "Callable[[Event, Taken, bytes, str], LogRecord]"
_NOTHING: Final = Taken([], None, None)
SIGNALS: Final[tuple[Signal, ...]] = ("traces", "metrics", "logs")


@dataclass(frozen=True, slots=True)
class Telling:
    """What an endpoint is told: which signals, how much of the content, in which spelling."""

    signals: Collection[str] = SIGNALS
    content: Content = Content.METADATA
    semconv: Semconv = "latest"
    traceparent: str | None = None


@dataclass(slots=True)
class Tally:
    """What bridges came across, for the exporter's own figures.

    `defects` counts what an error of ours kept from being told: of an event, a span or what it adds to the metrics
    may be missing, and its log record may say less. One such event must not stop all those behind it.
    """

    orphans: int = 0
    defects: int = 0
    unknown: dict[str, int] = field(default_factory=dict)

    def add(self, event: Event, spans: Sequence[Span]) -> None:
        """Count an event that was taken, and the spans that it ended."""
        if event.type not in TABLE:
            self.unknown[event.type] = self.unknown.get(event.type, 0) + 1
        if spans:
            self.add_orphans(spans)

    def add_orphans(self, spans: Sequence[Span]) -> None:
        """Count the spans that a crash ended."""
        self.orphans += sum(ORPHANED in span.attributes for span in spans)


class Bridge:
    """Takes redacted events in file order. The same events always lead to the same records with the same ids.

    An event counts once, by its id: further lines with it lead to no records. Ids of the latest thousands are known.

    Records come by signal: the number of the event, the record's id in its session, and its bytes; those of `metrics`
    have measurements in place of bytes, for `otel.measured` to pack and `otel.aggregate` to add up.
    """

    def __init__(self, session: str, telling: Telling, tally: Tally | None = None) -> None:
        self._telling = telling
        self._tally = tally or Tally()
        self._traces = Traces(
            session,
            semconv=telling.semconv,
            content=telling.content is Content.REDACTED,
            traceparent=telling.traceparent,
        )
        self._metering = Metering(session, telling.semconv)
        self._writer = writer(telling.content, telling.semconv)
        self._session = session

    @property
    def open(self) -> bool:
        """Whether a span has begun that no event has ended yet."""
        return self._traces.open

    def take(self, lines: Sequence[bytes], observed_ns: int, first: int = 0) -> Records:
        """Take events, the first of which has this number; lines that hold no event lead to no records."""
        records: Records = {signal: [] for signal in self._telling.signals}
        traces, metrics, logs = map(records.get, SIGNALS)
        write_span, guarded = self._writer.span, self._guarded
        for index, line in enumerate(lines, first):
            event = read(line)
            if event is None:
                continue
            taken = guarded(_NOTHING, self._traces.take, event)
            self._tally.add(event, taken.spans)
            if traces is not None:
                for span in taken.spans:
                    if written := guarded(b"", write_span, span):
                        traces.append((index, span.context.span_id.hex(), written))
            if metrics is not None and (measured := guarded([], self._metering.measure, event, taken)):
                metrics.append((index, event.id, measured))
            if logs is not None and not taken.again:
                logged = guarded(b"", self._logged, record, event, taken, line, observed_ns)
                logged = logged or self._logged(bare, event, taken, line, observed_ns)
                logs.append((index, event.id, logged))
        return records

    def pass_over(self, lines: Sequence[bytes]) -> None:
        """Take events whose records nobody needs any more."""
        for line in lines:
            event = read(line)
            if event is not None:
                taken = self._guarded(_NOTHING, self._traces.take, event)
                self._guarded([], self._metering.measure, event, taken)

    def _logged(self, tell: "_Tell", event: Event, taken: Taken, line: bytes, observed_ns: int) -> bytes:
        return self._writer.log(tell(event, taken, line, self._session), observed_ns)

    def _guarded(self, otherwise: T, step: "Callable[P, T]", *args: P.args, **more: P.kwargs) -> T:
        """Do one step for one event. An error of ours in it costs what the step would have given, and no more."""
        try:
            return step(*args, **more)
        except Exception:
            self._tally.defects += 1
            return otherwise

    def process_died(self, observed_ns: int) -> Records:
        """Return the records of what was open when the process ended that wrote the session."""
        guarded, write = self._guarded, self._writer.span
        spans = guarded([], self._traces.process_died)
        self._tally.add_orphans(spans)
        measured = guarded([], self._metering.ended, spans)
        written = [(0, span.context.span_id.hex(), guarded(b"", write, span)) for span in spans]
        records: Records = {
            "traces": [one for one in written if one[2]],
            "metrics": [(0, f"{spans[0].opened_by}/ended", measured)] if measured else [],
            "logs": [],
        }
        return {signal: records[signal] for signal in self._telling.signals}
