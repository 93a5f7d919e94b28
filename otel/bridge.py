"""One session's events as the records of all three signals, ready to be put into requests."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from otel.answer import Signal
from otel.event import read
from otel.logs import record
from otel.measured import pack
from otel.metrics import Metering
from otel.model import Measurement, Span
from otel.name import Content, Semconv
from otel.traces import Taken, Traces
from otel.wire import log_bytes, span_bytes

Records: TypeAlias = "dict[str, list[tuple[int, str, bytes]]]"
SIGNALS: Final[tuple[Signal, ...]] = ("traces", "metrics", "logs")


@dataclass(frozen=True, slots=True)
class Telling:
    """What an endpoint is told: which signals, how much of the content, in which spelling."""

    signals: Collection[str] = SIGNALS
    content: Content = Content.METADATA
    semconv: Semconv = "latest"
    traceparent: str | None = None


class Bridge:
    """Takes redacted events in file order. The same events always lead to the same records with the same ids.

    Records come by signal: the number of the event among those given, the record's id in its session, and its bytes.
    Those of `metrics` are packed measurements, which `otel.aggregate` adds up.
    """

    def __init__(self, session: str, telling: Telling) -> None:
        self._telling = telling
        self._traces = Traces(
            session,
            semconv=telling.semconv,
            content=telling.content is Content.REDACTED,
            traceparent=telling.traceparent,
        )
        self._metering = Metering(session)

    @property
    def open(self) -> bool:
        """Whether a span has begun that no event has ended yet."""
        return self._traces.open

    def take(self, lines: Sequence[bytes], observed_ns: int) -> Records:
        """Take events and return their records; lines that hold no event lead to none."""
        records: Records = {signal: [] for signal in self._telling.signals}
        traces, logs, metrics = (records.get(signal) for signal in SIGNALS[:1] + SIGNALS[2:] + SIGNALS[1:2])
        content, semconv = self._telling.content, self._telling.semconv
        for index, line in enumerate(lines):
            event = read(line)
            if event is None:
                continue
            taken = self._traces.take(event)
            if traces is not None:
                for span in taken.spans:
                    traces.append((index, span.context.span_id.hex(), span_bytes(span, content, semconv)))
            if logs is not None:
                logs.append((index, event.id, log_bytes(record(event, taken, line), content, semconv, observed_ns)))
            measured = self._metering.measure(event, taken)
            if metrics is not None and measured:
                metrics.append((index, event.id, pack(measured)))
        return records

    def pass_over(self, lines: Sequence[bytes]) -> None:
        """Take events whose records nobody needs any more."""
        for line in lines:
            event = read(line)
            if event is not None:
                self._metering.measure(event, self._traces.take(event))

    def process_died(self, observed_ns: int) -> Records:
        """Return the records of what was open when the process ended that wrote the session."""
        spans = self._traces.process_died()
        content, semconv = self._telling.content, self._telling.semconv
        measured = self._metering.ended(spans)
        records: Records = {
            "traces": [(0, span.context.span_id.hex(), span_bytes(span, content, semconv)) for span in spans],
            "metrics": [(0, f"{spans[0].opened_by}/ended", pack(measured))] if measured else [],
            "logs": [],
        }
        return {signal: records[signal] for signal in self._telling.signals}
