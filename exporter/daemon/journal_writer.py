"""Events of sources without a file on their way into journals: redacted, and safe on the disk before they are taken."""

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from exporter.core.agents.registry import AgentRegistry
from exporter.core.delivery.segment import Unsendable
from exporter.core.events.envelope import Envelope, decode
from exporter.core.events.redaction import Masked, RedactEvent, Refused
from exporter.core.notice import Level
from exporter.sources.journals import Journals
from exporter.sources.remote import SourceEvent
from exporter.state.marks import StoreDamagedError, StoreUnwritableError
from exporter.state.quarantine import QuarantineFullError

if TYPE_CHECKING:
    from exporter.daemon.daemon import Daemon

_SLICE_SECONDS: Final = 0.005


@dataclass(slots=True)
class _Page:
    """What becomes of the durable events of a page."""

    durable: list[tuple[str, bytes]] = field(default_factory=list)
    refused: list[Unsendable] = field(default_factory=list)
    masked: Counter[tuple[str, str]] = field(default_factory=Counter)


class JournalWriter:
    """Fills the journals. `problem` says why nothing is taken at the moment, None when it is."""

    def __init__(self, daemon: "Daemon", journals: Journals, redact: RedactEvent) -> None:
        self.agents = AgentRegistry()
        self.unattributed = 0
        self.problem: str | None = None
        self._daemon = daemon
        self._journals = journals
        self._redact = redact
        self._delivered: dict[str, tuple[int, set[str]]] = {}

    async def take(self, session: str, events: Sequence[SourceEvent], is_ours: Callable[[], bool]) -> bool | None:
        """Redact, put aside what is refused, and write the rest; return whether anything was, None to be asked again.

        Nothing is kept of a session that is not for a journal (`is_ours`) when that comes to be. What was kept of
        events that are asked for again is known.
        """
        was_kept = False
        for portion in _portions(events, self._journals.batch_bytes):
            kept = await self._take(session, portion, is_ours)
            if kept is None:
                return None
            was_kept |= kept
        return was_kept

    async def _take(self, session: str, events: Sequence[SourceEvent], is_ours: Callable[[], bool]) -> bool | None:
        size = sum(_size(event) for event in events)
        if size and not self._journals.has_space(size):
            return self._trouble(self._journals.problem)
        page = _Page()
        slice_end = time.perf_counter() + _SLICE_SECONDS
        for event in events:
            if time.perf_counter() > slice_end:
                await asyncio.sleep(0)
                slice_end = time.perf_counter() + _SLICE_SECONDS
            self._read(session, event, page)
        return is_ours() and self._keep(session, page)

    def _read(self, session: str, event: SourceEvent, page: _Page) -> None:
        line, is_ephemeral = event
        envelope = decode(line)
        if isinstance(envelope, Envelope):
            self.unattributed += self.agents.attribute(session, envelope).error is not None
        if is_ephemeral:
            return
        if not isinstance(envelope, Envelope):
            page.refused.append(Unsendable(0, line, len(line), envelope.reason, envelope.id))
            return
        shown = self._redact(line)
        if isinstance(shown, Refused):
            page.refused.append(Unsendable(0, line, len(line), shown.reason, envelope.id))
            return
        if isinstance(shown, Masked):
            if not self._journals.known(session, envelope.id):
                page.masked.update((envelope.timestamp[:10], rule) for rule in shown.rules)
            shown = shown.line
        page.durable.append((envelope.id, shown))

    def _keep(self, session: str, page: _Page) -> bool | None:
        """Put everything where it is safe; return whether there was something, None when it is not safe."""
        try:
            if page.refused and self._daemon.quarantine.add(session, None, page.refused):
                self._daemon.say(Level.WARNING, "put in quarantine", session=session, events=len(page.refused))
            if page.durable and not self._journals.append(session, page.durable):
                return self._trouble(self._journals.problem)
        except QuarantineFullError:
            return self._trouble("the quarantine is full")
        except sqlite3.Error:
            return self._trouble("the state directory cannot be written")
        except OSError as error:
            return self._trouble(f"a journal cannot be written: {error.strerror}")
        self.problem = None
        if page.masked:
            with suppress(StoreUnwritableError, StoreDamagedError):  # a count; the events themselves are safe
                for run in self._daemon.runs:
                    run.sink_state.store.count_masked(session, run.sink_state.sink_id, page.masked)
        return bool(page.durable)

    def _trouble(self, problem: str | None) -> bool | None:
        if problem != self.problem and problem is not None:
            self._daemon.say(Level.ERROR, "a source is not read on", why=problem)
        self.problem = problem
        return None

    def known(self, session: str, id: str) -> bool:
        """Tell whether an event was taken; one that was cut off the journal is known by its delivery."""
        if self._journals.known(session, id):
            return True
        begins = self._journals.begins(session)
        if not begins:
            return False
        known = self._delivered.get(session)
        if known is None or known[0] != begins:
            ids: set[str] = set()
            for run in self._daemon.runs:
                if run.sink_state.feed.holds_events:
                    ids |= run.sink_state.store.delivered(session, run.sink_state.sink_id).keys()
            known = self._delivered[session] = (begins, ids)
        return id in known[1]


def _portions(events: Sequence[SourceEvent], size_max: int) -> Iterator[Sequence[SourceEvent]]:
    """Yield events as they came in portions of about so many bytes, an event of more alone."""
    start = size = 0
    for number, event in enumerate(events):
        if size and size + _size(event) > size_max:
            yield events[start:number]
            start, size = number, 0
        size += _size(event)
    yield events[start:]


def _size(event: SourceEvent) -> int:
    """Return how much of a journal an event takes."""
    return 0 if event.is_ephemeral else len(event.line) + 1
