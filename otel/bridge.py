"""One session's events as the records of all three signals, ready to be put into requests."""

import sys
import traceback
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from otel.encode.records import writer
from otel.event import Event, read
from otel.machines.logs import bare, record
from otel.machines.metrics.machine import Metering
from otel.machines.traces.machine import Taken, Traces
from otel.model import Measurement, Span
from otel.name_types import Content, Semconv
from otel.names import ORPHANED
from otel.projection import TABLE
from otel.send.answer import Signal

Record: TypeAlias = tuple[int, str, Any]
Records: TypeAlias = dict[str, list[Record]]
_KNOWN: Final = frozenset(TABLE)
SIGNALS: Final[tuple[Signal, ...]] = ("traces", "metrics", "logs")


@dataclass(frozen=True, slots=True)
class SignalOptions:
    """What an endpoint is told: which signals, how much of the content, in which spelling."""

    signals: Collection[str] = SIGNALS
    content: Content = Content.METADATA
    semconv: Semconv = "latest"
    traceparent: str | None = None


@dataclass(slots=True)
class Tally:
    """What bridges came across, for the exporter's own figures.

    `defects` counts what an error of ours kept from being told, by the place in our code: of an event, a span or what
    it adds to the metrics may be missing, and its log record may say less. One such event must not stop all those
    behind it.
    """

    orphans: int = 0
    unknown: dict[str, int] = field(default_factory=dict)
    defects: dict[str, int] = field(default_factory=dict)

    def another(self) -> "Tally":
        """Return one for another endpoint: it counts defects together with this one, and the same events apart."""
        return Tally(defects=self.defects)

    def defect(self) -> None:
        """Count the error that is being handled."""
        *_, (frame, line) = traceback.walk_tb(sys.exc_info()[2])
        place = f"{Path(frame.f_code.co_filename).name}:{line}"
        self.defects[place] = self.defects.get(place, 0) + 1

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
    have measurements in place of bytes, for `measurements` to pack and `aggregate` to add up (both
    below `otel.machines.metrics`).
    """

    def __init__(self, session: str, telling: SignalOptions, tally: Tally | None = None) -> None:
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
        told = self._told(lines, first)
        for _, _, event, taken in told:
            if taken.spans or event.type not in _KNOWN:
                self._tally.add(event, taken.spans)
        records: Records = {}
        for signal in self._telling.signals:
            if signal == "traces":
                records[signal] = [
                    one for number, _, _, taken in told if taken.spans for one in self._written(number, taken.spans)
                ]
            elif signal == "metrics":
                records[signal] = [
                    (number, event.id, measured)
                    for number, _, event, taken in told
                    if (measured := self._measured(event, taken))
                ]
            else:
                records[signal] = [
                    (number, event.id, self._logged(event, taken, line, observed_ns))
                    for number, line, event, taken in told
                    if not taken.again
                ]
        return records

    def pass_over(self, lines: Sequence[bytes]) -> None:
        """Take events whose records nobody needs any more."""
        for _, _, event, taken in self._told(lines, 0):
            self._measured(event, taken)

    def _told(self, lines: Sequence[bytes], first: int) -> list[tuple[int, bytes, Event, Taken]]:
        """Return what lines led to, each with its number; a span that has ended is changed no more.

        Step by step, here and for every signal, and not event by event: a step that is done again and again finds what
        it needs in the caches of the processor, which saves a fifth of the time.
        """
        read_ = [(number, line, read(line)) for number, line in enumerate(lines, first)]
        return [(number, line, event, self._taken(event)) for number, line, event in read_ if event is not None]

    # An error of ours in one of these steps costs what the step would have given for the event, and no more.

    def _taken(self, event: Event) -> Taken:
        try:
            return self._traces.take(event)
        except Exception:
            self._tally.defect()
            return Taken([], None)

    def _measured(self, event: Event, taken: Taken) -> list[Measurement]:
        try:
            return self._metering.measure(event, taken)
        except Exception:
            self._tally.defect()
            return []

    def _written(self, number: int, spans: Sequence[Span]) -> list[Record]:
        """Return the records of spans that an event ended."""
        records = []
        for span in spans:
            try:
                records.append((number, span.context.span_id.hex(), self._writer.span(span)))
            except Exception:
                self._tally.defect()
        return records

    def _logged(self, event: Event, taken: Taken, line: bytes, observed_ns: int) -> bytes:
        try:
            return self._writer.log(record(event, taken, line, self._session), observed_ns)
        except Exception:
            self._tally.defect()
            return self._writer.log(bare(event, taken, line, self._session), observed_ns)

    def process_died(self, observed_ns: int) -> Records:
        """Return the records of what was open when the process ended that wrote the session."""
        spans: list[Span] = []
        try:
            spans = self._traces.process_died()
        except Exception:
            self._tally.defect()
        self._tally.add_orphans(spans)
        try:
            measured = self._metering.ended(spans)
        except Exception:
            self._tally.defect()
            measured = []
        records: Records = {
            "traces": self._written(0, spans),
            "metrics": [(0, f"{spans[0].opened_by}/ended", measured)] if measured else [],
            "logs": [],
        }
        return {signal: records[signal] for signal in self._telling.signals}
