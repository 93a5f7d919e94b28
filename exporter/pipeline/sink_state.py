"""The state that all sessions of one sink share, and the progress of each (`LaneProgress`)."""

import asyncio
import contextlib
import math
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from exporter.core.delivery.gate import Gate
from exporter.core.delivery.segment import Segment, Unsendable
from exporter.core.delivery.verdict import Later, Unauthorized, Unsupported, Verdict, supported
from exporter.core.names import BACKFILL_RUN, last_error_name, met_name, off_name, shown_url
from exporter.core.notice import Level, Notice, NoticeName
from exporter.pipeline.feed import Feed
from exporter.pipeline.segment_reader import SegmentReader
from exporter.sinks.retry import retry_delay_seconds
from exporter.sinks.sink import Capabilities, Sent, Sink
from exporter.state.marks import MarkStore, StoreDamagedError, StoreUnwritableError
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


_NO: Final = "no"
_OFF_SECONDS: Final = 86_400.0
"""After this time a signal that is off is asked for again."""


@dataclass(slots=True)
class SinkState:
    """One sink with its gate and its feed, and the stores and the segment reader that it shares with the others.

    `siblings` are the other signals of its OTLP endpoint. `off` is the answer of an endpoint that does not take this
    signal and takes others: nothing is sent, and nothing is amiss.
    """

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
    off: Unsupported | None = None
    siblings: "list[SinkState]" = field(default_factory=list)
    _deciding: asyncio.Lock = field(default_factory=asyncio.Lock)
    new_store: str | None = None
    """The receiver's store, while not every session was looked for in it."""
    on_doubt: Callable[[], None] = lambda: None
    """Called when nothing is confirmed any more."""
    released: set[str] = field(default_factory=set)
    """The ids of events that leave quarantine now."""
    remark: str = ""
    """What the sink said last of something that it accepted."""
    _trouble: tuple[float, int] | None = None
    """Since when the sink takes nothing, and how many failures there were before."""
    since: float = 0.0
    """From when the sink is sent what sessions hold, in seconds since 1970; see `meet`."""
    whole: set[str] = field(default_factory=set)
    """The sessions that a backfill sends whole, also what they held before that."""
    _epoch: str = ""
    _kept: str = ""

    def __post_init__(self) -> None:
        self._kept = self.store.fact(self._epoch_fact) or ""
        self._epoch, _, changes = self._kept.rpartition(" ")  # the epoch is any text of the receiver
        self.sink.epoch, self.sink.changes = self._epoch, int(changes) if changes.isdecimal() else 0
        self._begin()
        # What the receiver offered before the start is expected of it: its first answer may be empty and say nothing.
        if self.sink.capabilities == Capabilities():  # a sink of another kind knows what it can
            with contextlib.suppress(msgspec.MsgspecError):
                offered = self.store.fact(self._capabilities_fact) or ""
                self.sink.capabilities = msgspec.json.decode(offered, type=Capabilities)

    def _begin(self) -> None:
        """Believe no confirmation after a kill: the sink may have what was sent last, without our knowing."""
        with contextlib.suppress(sqlite3.Error, StoreUnwritableError, StoreDamagedError):  # lanes report a full disk
            if self.store.fact(self._answered_fact) == _NO:
                self.store.void_confirmations(self.sink_id)
            self.store.remember(self._answered_fact, _NO)

    def meet(self, now: float) -> None:
        """Begin to follow for a sink: if it is new, it is sent what happens from now on, or from some days before.

        A sink that an older version sent sessions to was met long ago.
        """
        history = self.sink.history_seconds
        if history is None:
            return
        with contextlib.suppress(sqlite3.Error, StoreUnwritableError, StoreDamagedError):  # lanes report a full disk
            met = self.store.fact(met_name(self.sink_id))
            if met is None:
                names = [mark.remote_id or "" for mark in self.store.marks(self.sink_id).values()]
                met = "0" if any(name and not name.startswith(BACKFILL_RUN) for name in names) else str(now)
                self.store.remember(met_name(self.sink_id), met)
            self.since = max(0.0, float(met) - history) if float(met) else 0.0
        self.feed.begin_at(self._since_of, self._passed)

    def _since_of(self, session: str) -> float:
        """Return from when the sink is sent what a session holds; it keeps what it has of one that was sent whole."""
        if session in self.whole or not self.since:
            return 0.0
        begun = self.store.mark(session, self.sink_id) is not None
        return 0.0 if begun and not self.lacks_front(session) else self.since

    def lacks_front(self, session: str) -> bool:
        """Tell whether the sink was not sent what a session held before the sink was met."""
        return self.store.lacks_front(session, self.sink_id)

    def _passed(self, session: str) -> None:
        self.store.note_front(session, self.sink_id, lacks=True)

    def has_front(self, session: str) -> None:
        """Note that the sink was sent a session whole."""
        self.whole.discard(session)
        self.store.note_front(session, self.sink_id, lacks=False)

    async def send(self, remote_id: str, ids: Sequence[str], lines: Sequence[bytes]) -> Sent:
        """Send a batch. An answer that the signal is not taken is returned only if that turns it off."""
        sent = await self.sink.send(remote_id, ids, lines)
        if not isinstance(sent.verdict, Unsupported):
            return sent
        async with self._deciding:
            accepted, others_accept = self.has_accepted, self.off is not None
            if not (accepted or others_accept):
                others_accept = any(one.has_accepted for one in self.siblings)
            if not (accepted or others_accept):  # they may have had nothing to send yet
                asked = await asyncio.gather(*(one.sink.takes_empty() for one in self.siblings))
                others_accept = any(asked)
            return replace(sent, verdict=supported(sent.verdict, accepted=accepted, others_accept=others_accept))

    @property
    def has_accepted(self) -> bool:
        """Whether this signal of an endpoint was ever accepted there; older versions kept only what was delivered."""
        with contextlib.suppress(sqlite3.Error, StoreUnwritableError, StoreDamagedError):
            if self.store.fact(self._accepted_fact) is not None:
                return True
            if self.feed.sums.counts:  # what is counted is in the marks before it is sent
                states = [one.state for one in self.store.pending_metrics(self.sink_id, 1)]
                return any(self.feed.sums.was_accepted(state) for state in states if state is not None)
            return any(mark.delivered for mark in self.store.marks(self.sink_id).values())
        return False

    @property
    def off_text(self) -> str:
        """What people are told of a signal that is off."""
        signal = self.sink.name.partition(":")[2]
        return f"the endpoint takes no {signal}, which are off; the setting `signals` says what is sent there"

    def _turn_off(self, refused: Unsupported) -> None:
        """Send nothing until the next start, but for one attempt each day; say so once."""
        if self.off is None:
            told = {"status": refused.status}
            self._say_of(refused.url, NoticeName.SIGNAL_OFF, Level.WARNING, self.off_text, None, told)
        self.off = refused
        self.last_error = None
        self._remember(off_name(self.sink_id), str(refused.status))
        self.gate.failed(time.monotonic(), _OFF_SECONDS)

    def _remember(self, name: str, value: str) -> None:
        """Keep a fact that delivery does not depend on; lanes report a full disk."""
        with contextlib.suppress(sqlite3.Error, StoreUnwritableError, StoreDamagedError):
            self.store.remember(name, value)

    def note(self, verdict: Verdict, session: str) -> None:
        """Note what an answer about a session shows of the sink: it fails, it refuses the token, or else it is well."""
        match verdict:
            case Later(is_shared=True):
                return
            case Later(reason=why, alarm=alarm):
                self.retries += 1
                self._begin_trouble()
                self.last_error = why
                delay = retry_delay_seconds(self.gate.failures + 1, verdict)
                self.gate.failed(time.monotonic(), delay, alarm=alarm)
                if alarm:
                    self.say(NoticeName.SINK_ACTION_REQUIRED, Level.ERROR, "the sink needs a person", why=why)
                else:
                    text = "the sink does not take events now; trying again"
                    self.say(NoticeName.SINK_WAITING, Level.WARNING, text, why=why)
            case Unsupported():
                self._turn_off(verdict)
            case Unauthorized(status, again):
                self.last_error = f"answered {status}" + (": its quota is exceeded" if again else "")
                text = "the sink refuses the token; nothing is sent until it changes"
                text = text if again is None else "the sink keeps no more of us; it is asked again in an hour"
                if not self.gate.closed:
                    self.say(NoticeName.SINK_REFUSED, Level.ERROR, text, status=status)
                self._begin_trouble()
                until = math.inf if again is None else time.monotonic() + again
                self.gate.unauthorized(self.sink.token_refused, until)
            case _:
                self.succeeded()

    def _begin_trouble(self) -> None:
        self._trouble = self._trouble or (time.monotonic(), self.retries - 1)

    def succeeded(self) -> None:
        """Note an answer that shows that the sink is well."""
        if not self.feed.holds_events and (self.last_success is None or self.off is not None):
            self._remember(self._accepted_fact, "")
            self._remember(off_name(self.sink_id), "")
        if self._trouble is not None:
            (since, before), self._trouble = self._trouble, None
            seconds = round(time.monotonic() - since, 1)
            failures = self.retries - before
            self.say(NoticeName.SINK_RECOVERED, Level.INFO, "delivering again", failures=failures, seconds=seconds)
        self.off = None
        self.gate.succeeded()
        self.last_success = time.time()
        self.last_success_monotonic = time.monotonic()
        self.last_error = None

    def remember(self, *, answered: bool) -> None:
        """Keep how it ended, for `status` when nothing runs; what tried nothing leaves it as it was.

        `answered` says that everything that was sent has its answer.
        """
        self.keep_epoch()
        if answered:
            self.store.remember(self._answered_fact, "")
        if self.last_error or self.last_success:
            self.store.remember(last_error_name(self.sink_id), self.last_error or "")

    def put_in_quarantine(self, session: str, what: list[Unsendable], *, for_all_sinks: bool, detail: str = "") -> None:
        """Put events in quarantine, durably, before anything moves past them."""
        if self.quarantine.add(session, None if for_all_sinks else self.sink.name, what, detail=detail):
            for reason, count in Counter(one.reason for one in what).items():
                fields = {"reason": reason, "events": count}
                self.say(NoticeName.QUARANTINED, Level.WARNING, "put in quarantine", session, **fields)

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
                self.refuse(session, None, offset, sent.shared or b"".join(lines), "partly_rejected", detail)
            except QuarantineFullError:  # to wait for room would be to send again, and again, what the sink has
                text = "the quarantine is full; what was rejected is not kept"
                self.say(NoticeName.QUARANTINE_FULL, Level.ERROR, text, session, events=sent.unnamed)
        elif sent.told and sent.told != self.remark and not sent.rejected:
            # Its words may repeat an event, so they are not in the log.
            text = "the sink accepts, and warns; `exporter status --json` has its words"
            self.say(NoticeName.SINK_WARNS, Level.WARNING, text)
        self.remark = sent.told or self.remark

    def known_store(self) -> str | None:
        """Return which store the receiver had when every session was known to be in it."""
        return self.store.fact(self._store_fact)

    @property
    def is_news(self) -> bool:
        """Whether the store that answered last, or its age, is not the one that was known."""
        return self.new_store is not None or self.sink.epoch != self._epoch or self.sink.went_back

    def check_store(self) -> bool:
        """Look which store answered; return whether it is one in which not every session was looked for.

        Where it is another one, or may be older than what it has answered, nothing counts as confirmed any more.
        """
        store = self.sink.store
        if self.sink.epoch != self._epoch or self.sink.went_back:
            self._doubt()
        if store is not None and store != self.new_store and store != (known := self.known_store()):
            self.store.void_confirmations(self.sink_id)  # may fail, and is then repeated
            self.new_store = store
            if known is not None:
                text = "the receiver has another store than before; every session is looked for in it"
                self.say(NoticeName.RECEIVER_STORE_CHANGED, Level.WARNING, text)
            self.on_doubt()
        return self.new_store is not None

    def _doubt(self) -> None:
        """Have every session compared once more: the store was opened again, or is older than it was."""
        if self._epoch:
            self.store.void_confirmations(self.sink_id)
            begins = Level.DEBUG if self.sink.in_process else Level.INFO
            level = Level.WARNING if self.sink.went_back else begins
            text = "the receiver's store may have gone back; every session is compared with it once more"
            self.say(NoticeName.RECEIVER_STORE_OLDER, level, text)
            self.on_doubt()
        self._epoch, self.sink.went_back = self.sink.epoch, False
        self.keep_epoch()

    def keep_epoch(self) -> None:
        """Remember what the receiver said last of the age of its store."""
        told = f"{self._epoch} {self.sink.changes}" if self._epoch else ""
        if told != self._kept and self.sink.epoch == self._epoch:
            self.store.remember(self._epoch_fact, told)
            self._kept = told

    def store_checked(self, *, everywhere: bool) -> None:
        """Note that the sessions at hand, or all that the sink has, were looked for in the receiver's new store."""
        if self.new_store is not None and (everywhere or self.known_store() is None):
            self.store.remember(self._store_fact, self.new_store)
            self.new_store = None

    def remember_capabilities(self) -> None:
        """Keep what the receiver offers, if that has changed."""
        offered = msgspec.json.encode(self.sink.capabilities).decode()
        if offered != self.store.fact(self._capabilities_fact):
            self.store.remember(self._capabilities_fact, offered)

    @property
    def _accepted_fact(self) -> str:
        return f"accepted at sink {self.sink_id}"

    @property
    def _capabilities_fact(self) -> str:
        return f"capabilities of sink {self.sink_id}"

    @property
    def _answered_fact(self) -> str:
        return f"all answered at sink {self.sink_id}"

    @property
    def _epoch_fact(self) -> str:
        return f"epoch of sink {self.sink_id}"

    @property
    def _store_fact(self) -> str:
        return f"store of sink {self.sink_id}"

    def say(self, name: NoticeName, level: Level, message: str, session: str | None = None, **fields: object) -> None:
        """Report something about this sink, or about a session at it."""
        self._say_of(self.sink.url, name, level, message, session, fields)

    def _say_of(
        self, url: str, name: NoticeName, level: Level, text: str, session: str | None, fields: Mapping[str, object]
    ) -> None:
        shown = shown_url(url) if "://" in url else None  # the embedded one has none
        self.notice(Notice(name, level, text, session, self.sink.name, shown, fields))
