"""Maps the events of one session to the records of all three signals."""

import sys
import traceback
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, TypeAlias

from otel.encode.records import of_origin, writer
from otel.event import Event, read
from otel.machines.logs import details, record, told
from otel.machines.metrics.machine import Metering
from otel.machines.traces.machine import PROCESS_CRASH, TraceResult, Traces
from otel.model import Measurement, Span
from otel.names import CHAT, GENAI, ORPHANED, Content, Semconv
from otel.projection import TABLE
from otel.send.answer import Signal

Record: TypeAlias = tuple[int, str, Any]
Records: TypeAlias = dict[str, list[Record]]
_Traced: TypeAlias = tuple[int, bytes, Event, TraceResult]
_BESIDE_MAX: Final = 4_096
_NEVER: Final = object()
_KNOWN: Final = frozenset(TABLE)
SIGNALS: Final[tuple[Signal, ...]] = ("traces", "metrics", "logs")


@dataclass(frozen=True, slots=True)
class SignalOptions:
    """What an endpoint receives: which signals, at which content level, with which attribute names.

    `inference_details` adds a log record to each call of a model, for the GenAI conventions.
    """

    signals: Collection[str] = SIGNALS
    content: Content = Content.METADATA
    semconv: Semconv = "cli"
    traceparent: str | None = None
    inference_details: bool = False


@dataclass(slots=True)
class Tally:
    """Counts over all bridges of an endpoint, for the exporter's health metrics.

    `defects` counts internal errors by their place in the code. Such an error may lose a span or a measurement of one
    event, or attributes of its log record; it does not affect later events.
    """

    orphans: int = 0
    unknown: dict[str, int] = field(default_factory=dict)
    defects: dict[str, int] = field(default_factory=dict)
    in_use: bool = False

    def for_endpoint(self) -> "Tally":
        """Return this tally for the first endpoint; for each other endpoint a new one, which shares `defects`."""
        if self.in_use:
            return Tally(defects=self.defects)
        self.in_use = True
        return self

    def defect(self) -> None:
        """Count the error that is being handled."""
        *_, (frame, line) = traceback.walk_tb(sys.exc_info()[2])
        place = f"{Path(frame.f_code.co_filename).name}:{line}"
        self.defects[place] = self.defects.get(place, 0) + 1

    def add(self, event: Event, spans: Sequence[Span]) -> None:
        """Count a processed event and the spans that it ended."""
        if event.type not in TABLE:
            self.unknown[event.type] = self.unknown.get(event.type, 0) + 1
        if spans:
            self.add_orphans(spans)

    def add_orphans(self, spans: Sequence[Span]) -> None:
        """Count the spans that a crash ended."""
        self.orphans += sum(ORPHANED in span.attributes for span in spans)


class Bridge:
    """Processes redacted events in file order. The same events always give the same records with the same ids.

    A duplicate event, by id, gives no records; only the latest thousands of ids are remembered.

    A record is the number of the event, the record's id in its session, and its bytes. Records of `metrics` have
    measurements instead of bytes; `otel.machines.metrics` packs and aggregates them. `user` is whose session it is.
    """

    def __init__(
        self, session: str, options: SignalOptions, tally: Tally | None = None, user: str | None = None
    ) -> None:
        self._options = options
        self._tally = tally or Tally()
        self._traces = Traces(
            session,
            semconv=options.semconv,
            content=options.content is Content.REDACTED,
            traceparent=options.traceparent,
        )
        self._metering = Metering(session, options.semconv, user)
        self._writer = writer(options.content, options.semconv)
        self._session = session
        self._user = user
        self._beside: dict[str, None] = {}

    @property
    def open(self) -> bool:
        """Whether any span is open."""
        return self._traces.open

    @property
    def under_way(self) -> str | None:
        """The event that opened the latest interaction, while any span is open."""
        return self._traces.interactions.previous if self._traces.open else None

    def is_since(self, line: bytes, since: float) -> bool:
        """Tell whether an event happened at a time, in seconds since 1970, or after it."""
        event = read(line)
        return event is not None and event.time_ns >= since * 1e9

    def begins_anew(self, line: bytes) -> bool:
        """Tell whether an event says that another process goes on with the session."""
        event = read(line)
        return event is not None and event.type == "session.resume"

    def take(self, lines: Sequence[bytes], observed_ns: int, first: int = 0) -> Records:
        """Return the records of events; the first event has number `first`. Lines without an event give none."""
        traced = self._trace(lines, first)
        for _, _, event, result in traced:
            if result.spans or event.type not in _KNOWN:
                self._tally.add(event, result.spans)
        records: Records = {}
        for signal in self._options.signals:
            if signal == "traces":
                records[signal] = [
                    one
                    for number, _, _, result in traced
                    if result.spans
                    for one in self._encode_spans(number, result.spans, result.spans_version)
                ]
            elif signal == "metrics":
                records[signal] = [
                    (number, event.id, measured)
                    for number, _, event, result in traced
                    if (measured := self._measure(event, result))
                ]
            else:
                records[signal] = [
                    (number, event.id, self._encode_log(event, result, line, observed_ns))
                    for number, line, event, result in traced
                    if not self._is_logged_already(event, result)
                ]
                if self._options.semconv in GENAI:
                    added = [one for traced_ in traced for one in self._added_logs(traced_, observed_ns)]
                    records[signal] = sorted(records[signal] + added, key=itemgetter(0))
        return records

    def _added_logs(self, traced: _Traced, observed_ns: int) -> list[Record]:
        """Return the log records that an event has besides its own: what failed, and the calls of a model."""
        number, _, event, result = traced
        made = [told(event, context, said, self._session) for context, said in result.told]
        if self._options.inference_details:
            made += [details(event, span, self._session) for span in result.spans if span.operation == CHAT]
        records: list[Record] = []
        for place, one in enumerate(made):
            try:
                written = self._writer.log(one, observed_ns)
            except Exception:
                self._tally.defect()
            else:
                records.append((number, f"{event.id}/{place}", of_origin(written, result.version, self._user)))
        return records

    def _is_logged_already(self, event: Event, result: TraceResult) -> bool:
        """Tell whether an event is to have no log record: a duplicate, or figures kept for an event that may follow."""
        if event.ephemeral:
            self._beside[event.id] = None
            if len(self._beside) > _BESIDE_MAX:
                del self._beside[next(iter(self._beside))]
            return True
        return result.is_duplicate and self._beside.pop(event.id, _NEVER) is _NEVER

    def skip(self, lines: Sequence[bytes]) -> None:
        """Process events whose records are not needed."""
        for _, _, event, result in self._trace(lines, 0):
            self._measure(event, result)

    def _trace(self, lines: Sequence[bytes], first: int) -> list[_Traced]:
        """Return the trace result of each line, with its number and event.

        Each step runs over all events before the next step starts: this uses the processor's caches better and saves a
        fifth of the time.
        """
        read_ = [(number, line, read(line)) for number, line in enumerate(lines, first)]
        return [(number, line, event, self._trace_event(event)) for number, line, event in read_ if event is not None]

    # An internal error in one of these steps loses only the result of that step for that event.

    def _trace_event(self, event: Event) -> TraceResult:
        interactions = self._traces.interactions
        before = interactions.version
        try:
            result = self._traces.take(event)
        except Exception:
            self._tally.defect()
            result = TraceResult([], None)
        result.version = interactions.version
        result.spans_version = before or interactions.version
        return result

    def _measure(self, event: Event, result: TraceResult) -> list[Measurement]:
        try:
            return self._metering.measure(event, result)
        except Exception:
            self._tally.defect()
            return []

    def _encode_spans(self, number: int, spans: Sequence[Span], version: str | None) -> list[Record]:
        """Return the records of the spans that an event ended, which this version of the CLI began."""
        records = []
        for span in spans:
            try:
                written = of_origin(self._writer.span(span), version, self._user)
                records.append((number, span.context.span_id.hex(), written))
            except Exception:
                self._tally.defect()
        return records

    def _encode_log(self, event: Event, result: TraceResult, line: bytes, observed_ns: int) -> bytes:
        try:
            written = self._writer.log(record(event, result, line, self._session), observed_ns)
        except Exception:
            self._tally.defect()
            minimal = record(event, result, line, self._session, minimal=True)
            written = self._writer.log(minimal, observed_ns)
        return of_origin(written, result.version, self._user)

    def process_died(self, observed_ns: int, error: str = PROCESS_CRASH) -> Records:
        """Return the records of the spans that are open and that nothing else will end, with this error type."""
        spans: list[Span] = []
        try:
            spans = self._traces.process_died(error)
        except Exception:
            self._tally.defect()
        self._tally.add_orphans(spans)
        try:
            measured = self._metering.ended(spans)
        except Exception:
            self._tally.defect()
            measured = []
        records: Records = {
            "traces": self._encode_spans(0, spans, self._traces.interactions.version),
            "metrics": [(0, f"{spans[0].opened_by}/ended", measured)] if measured else [],
            "logs": [],
        }
        return {signal: records[signal] for signal in self._options.signals}
