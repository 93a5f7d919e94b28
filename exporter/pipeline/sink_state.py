"""The state that all sessions of one sink share, and the progress of each (`LaneProgress`)."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from exporter.core.delivery.gate import Gate
from exporter.core.delivery.segment import Segment, Unsendable
from exporter.core.delivery.verdict import Later, Unauthorized, Verdict
from exporter.core.names import last_error_name
from exporter.core.notice import Level, Notice
from exporter.pipeline.feed import Feed
from exporter.pipeline.segment_reader import SegmentReader
from exporter.sinks.retry import retry_delay_seconds
from exporter.sinks.sink import Sent, Sink
from exporter.state.marks import MarkStore
from exporter.state.quarantine import Quarantine, QuarantineFullError

UNWRITABLE: Final = "store_unwritable"
"""The problem of a lane whose mark cannot be written."""


@dataclass(slots=True)
class LaneProgress:
    """What one lane has delivered since the daemon started, and what blocks it."""

    events: int = 0
    bytes: int = 0
    masked: int = 0
    bytes_gone: int = 0
    problem: str | None = None
    why: str | None = None
    troubled_since: float | None = None
    rules: Counter[str] = field(default_factory=Counter)

    def add(self, segment: Segment, events: int) -> None:
        """Count a segment of which the sink took so many events."""
        self.events += events
        self.bytes += segment.size
        for (_, rule), count in segment.masked.items():
            self.masked += count
            self.rules[rule] += count


@dataclass(slots=True)
class SinkState:
    """One sink with its gate and its feed, and the stores and the segment reader that it shares with the others."""

    sink: Sink
    sink_id: int
    gate: Gate
    store: MarkStore
    quarantine: Quarantine
    reader: SegmentReader
    notice: Callable[[Notice], None]
    feed: Feed
    last_success: float | None = None
    last_success_monotonic: float | None = None
    last_error: str | None = None
    retries: int = 0
    busy: int = 0
    new_store: str | None = None
    """The receiver's store, while not every session was looked for in it."""
    on_new_store: Callable[[], None] = lambda: None
    released: set[str] = field(default_factory=set)
    """The ids of events that leave quarantine now."""
    _remark: str = ""

    def note(self, verdict: Verdict, session: str) -> None:
        """Note what an answer about a session shows of the sink: it fails, it refuses the token, or else it is well."""
        match verdict:
            case Later(reason=why, alarm=alarm):
                self.retries += 1
                self.last_error = why
                delay = retry_delay_seconds(self.gate.failures + 1, verdict)
                self.gate.failed(time.monotonic(), delay, alarm=alarm)
                if alarm:
                    self.say(Level.ERROR, "the sink needs a person", session, why=why)
                elif self.gate.failures == 1:
                    self.say(Level.WARNING, "the sink does not take events now; trying again", session, why=why)
            case Unauthorized(status):
                self.last_error = f"answered {status}"
                self.gate.unauthorized(self.sink.token_refused)
                text = "the sink refuses the token; nothing is sent until it changes"
                self.say(Level.ERROR, text, session, status=status)
            case _:
                self.succeeded()

    def succeeded(self) -> None:
        """Note an answer that shows that the sink is well."""
        if self.gate.failures:
            self.notice(Notice(Level.INFO, "the sink answers again", None, self.sink.name))
        self.gate.succeeded()
        self.last_success = time.time()
        self.last_success_monotonic = time.monotonic()
        self.last_error = None

    def remember(self) -> None:
        """Keep how it ended, for `status` when nothing runs; what tried nothing leaves it as it was."""
        if self.last_error or self.last_success:
            self.store.remember(last_error_name(self.sink_id), self.last_error or "")

    def put_in_quarantine(self, session: str, what: list[Unsendable], *, for_all_sinks: bool, detail: str = "") -> None:
        """Put events in quarantine, durably, before anything moves past them."""
        if self.quarantine.add(session, None if for_all_sinks else self.sink.name, what, detail=detail):
            for reason, count in Counter(one.reason for one in what).items():
                self.say(Level.WARNING, "put in quarantine", session, reason=reason, events=count)

    def quarantined_ids(self, session: str) -> set[str]:
        """Return the ids of a session's events that this sink is not to be sent, because they are in quarantine."""
        return self.quarantine.ids(session, self.sink.name) - self.released

    def refuse(self, session: str, event: str | None, offset: int, line: bytes, reason: str, detail: str = "") -> None:
        """Keep one event, or what was made of events, that the sink refuses."""
        what = Unsendable(offset, line, len(line), reason, event)
        self.put_in_quarantine(session, [what], for_all_sinks=False, detail=detail)

    def note_remarks(self, session: str, offset: int, lines: Sequence[bytes], sent: Sent) -> None:
        """Handle the remarks of a sink about a batch that it accepted.

        If it rejected some events and does not say which, the whole batch is quarantined, to be sent again by hand:
        a retry would duplicate what the sink has of it.
        """
        if sent.unnamed:
            detail = f"{sent.unnamed} of these were not taken{': ' if sent.told else ''}{sent.told}"
            try:
                self.refuse(session, None, offset, b"".join(lines), "partly_rejected", detail)
            except QuarantineFullError:  # to wait for room would be to send again, and again, what the sink has
                self.say(Level.ERROR, "the quarantine is full; what was rejected is not kept", session, why=detail)
        elif sent.told and sent.told != self._remark and not sent.rejected:
            self.say(Level.WARNING, "the sink accepts, and warns", session, why=sent.told)
        self._remark = sent.told or self._remark

    def known_store(self) -> str | None:
        """Return which store the receiver had when every session was known to be in it."""
        return self.store.fact(self._store_fact)

    def check_store(self) -> bool:
        """Look which store answered; return whether it is one in which not every session was looked for."""
        store = self.sink.store
        if store is not None and store != self.new_store and store != (known := self.known_store()):
            self.new_store = store
            if known is not None:
                text = "the receiver has another store than before; every session is looked for in it"
                self.notice(Notice(Level.WARNING, text, None, self.sink.name))
            self.on_new_store()
        return self.new_store is not None

    def store_checked(self, *, everywhere: bool) -> None:
        """Note that the sessions at hand, or all that the sink has, were looked for in the receiver's new store."""
        if self.new_store is not None and (everywhere or self.known_store() is None):
            self.store.remember(self._store_fact, self.new_store)
            self.new_store = None

    @property
    def _store_fact(self) -> str:
        return f"store of sink {self.sink_id}"

    def say(self, level: Level, message: str, session: str, **fields: object) -> None:
        """Report something about a session and this sink."""
        self.notice(Notice(level, message, session, self.sink.name, fields))
