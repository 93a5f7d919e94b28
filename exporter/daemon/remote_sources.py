"""Sessions that have no file here: the events that servers send are written to journals, which are then followed.

Of every session one source has the durable events: its file if there is one here, else the first CLI server that has
it, else an agent host. A journal that an agent host began stays the host's, because a host's events have other ids.
Other sources of the session add only its ephemeral events. When the file of a session with a journal appears and holds
what the journal holds, it takes the journal's place: what was delivered is known by its ids and not sent again.

`JournalWriter` redacts events and makes them durable before they are acknowledged to their source.
"""

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from exporter.core.agents.registry import AgentRegistry
from exporter.core.ahp.drafts import is_made
from exporter.core.delivery.segment import Unsendable
from exporter.core.events.envelope import Envelope, decode
from exporter.core.events.redaction import Masked, Redacted, Refused, line_of
from exporter.core.events.tool_calls import ArrivingCalls, ToolCalls, nothing_before
from exporter.core.events.usage import usage_line
from exporter.core.notice import Level, Notice, NoticeName
from exporter.daemon.live_relay import LiveRelay, Tell
from exporter.errors import StateError
from exporter.pipeline.lane import Lane
from exporter.sources.files.cli_process import Liveness
from exporter.sources.files.session_file import OpenFiles, SessionFile, durable_events
from exporter.sources.files.source import FileSource
from exporter.sources.journals import Journals
from exporter.sources.remote import Callbacks, ServerSource, SourceEvent, Want
from exporter.sources.tap.source import TapSource
from exporter.state.marks import StoreDamagedError, StoreUnwritableError
from exporter.state.quarantine import QuarantineFullError

if TYPE_CHECKING:
    from exporter.daemon.daemon import Daemon
    from exporter.pipeline.redactors import Redactors

HOUSEKEEPING_SECONDS: Final = 2.0
QUIET_SECONDS: Final = 5.0
FIRST_SECONDS: Final = 10.0
DEFECT_SECONDS: Final = 5.0
LOST_SECONDS: Final = 10.0
_DAY_SECONDS: Final = 86_400.0
_SLICE_SECONDS: Final = 0.005


@dataclass(frozen=True, slots=True)
class Server:
    """A CLI server or agent host to observe: its name in the status, and what makes the source of it.

    `ask` makes a source that remembers nothing, for one question: with a directory of its own, and the sessions that
    are read however long they have been idle. `is_untold` tells which types of events a history may or may not have.
    """

    name: str
    make: Callable[[Callbacks, Callable[[str, bytes], None]], ServerSource]
    ask: Callable[[Callbacks, Path, frozenset[str]], ServerSource]
    is_untold: Callable[[str], bool] = lambda type: False
    is_host: bool = False


class RemoteSources:
    """The journals of one state directory, the sources that fill them, and the tap, on the daemon's event loop."""

    def __init__(
        self,
        daemon: "Daemon",
        *,
        journals: Journals,
        make_files: Callable[[Callable[[SessionFile], None], Callable[[SessionFile], None]], FileSource],
        files: OpenFiles,
        redaction: "Redactors",
        servers: Sequence[Server],
        tap: Path | None,
        line_bytes_max: int,
        tell: Tell | None = None,
    ) -> None:
        self.journals = journals
        self.journaling = JournalWriter(daemon, journals, redaction)
        self.servers: dict[str, ServerSource] = {}
        self.tap: TapSource | None = None
        self.tap_problem: str | None = None
        self._daemon = daemon
        self._open_files = files
        self._line_bytes_max = line_bytes_max
        self.files = make_files(self._on_change, daemon.on_workspace)
        self._calls = ArrivingCalls(self._calls_shown, self._size_of)
        calls = self._calls if redaction.commands is not None else None
        self.showing = LiveRelay(daemon.runs, redaction, tell, calls)
        self._owners: dict[str, str] = {}
        self._deleted: set[str] = set()
        self._left: dict[str, Liveness] = {}
        self._connected_at = dict.fromkeys((server.name for server in servers), time.monotonic())
        self.asked = {server.name: server for server in servers}
        self._hosts = frozenset(server.name for server in servers if server.is_host)
        self._tasks: list[asyncio.Task[None]] = []
        for server in servers:
            self.servers[server.name] = server.make(self._callbacks(server.name), self.showing.shell)
        if tap is not None:
            take, want = self._take_live, self._want_live
            missed = self.showing.missed
            live = Callbacks(take, lambda _: None, lambda *_: True, want, lambda _: None, missed=missed)
            self.tap = TapSource(tap, live)

    def _callbacks(self, name: str) -> Callbacks:
        return Callbacks(
            self._take,
            self.journals.mark,
            self.journaling.known,
            lambda session, changed: self._want(name, session, changed),
            self._gone,
            lambda session: self.is_elsewhere(name, session),
            self.showing.missed,
            self._rewind,
        )

    def _calls_shown(self, session: str) -> tuple[ToolCalls, int]:
        """Return the tool calls of a session whose events are shown from now on: earlier ones are in its file."""
        offset = self._size_of(session)
        return self._daemon.reader.calls_before(self._daemon.files.get(session), offset), offset

    def _size_of(self, session: str) -> int:
        file = self._daemon.files.get(session)
        return 0 if file is None else _size_now(file)

    # ---- life -----------------------------------------------------------------------------------------------

    def start(self, *, connect: bool) -> None:
        """Follow the journals, and with `connect` observe the sources that fill them."""
        self.files.start()
        self._tasks = [asyncio.create_task(self._keep_house())]
        if connect:
            self._tasks += [asyncio.create_task(self._observe(name, one)) for name, one in self.servers.items()]
            self._tasks.append(asyncio.create_task(self.showing.run()))
            if self.tap is not None:
                self._tasks.append(asyncio.create_task(self._listen(self.tap)))

    async def stop(self) -> None:
        """Stop observing the sources, and close the journals."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.tap is not None and self.tap_problem is None:
            await self.tap.close()
        self.files.close()
        self.journals.close()

    async def _observe(self, name: str, source: ServerSource) -> None:
        end = time.monotonic() + FIRST_SECONDS
        while name in self._hosts and self._is_too_early() and time.monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        while True:
            try:
                await source.run()
            except Exception as error:  # a task's edge: a defect of ours stops this source for a while
                kind = type(error).__name__
                text = "a source stopped; it is tried again"
                self._daemon.say(NoticeName.SOURCE_STOPPED, Level.ERROR, text, source=name, error=kind)
                await asyncio.sleep(DEFECT_SECONDS)

    async def _listen(self, tap: TapSource) -> None:
        try:
            await tap.start()
        except StateError as error:
            self.tap_problem = str(error)
            self._daemon.say(NoticeName.TAP_CANNOT_LISTEN, Level.ERROR, "the tap cannot listen", why=str(error))

    def events_read(self) -> dict[str, int]:
        """Return how many events every source without files has read, by its name."""
        counted = {name: one.observed().counts for name, one in self.servers.items()}
        found = {name: counts.durable + counts.ephemeral for name, counts in counted.items()}
        return found if self.tap is None else {**found, "tap": self.tap.status.counts.ephemeral}

    @property
    def calls_unknown(self) -> int:
        """Return how many answers of tools came whose command is not known."""
        return self.journaling.calls.unknown + self._calls.unknown

    def catching_up(self) -> bool:
        """Tell whether a source is still reading earlier events."""
        return any(one.observed().is_catching_up for one in self.servers.values())

    def _is_too_early(self) -> bool:
        """Tell whether a CLI server has not listed its sessions yet; they are not taken from an agent host."""
        servers = (one.observed() for name, one in self.servers.items() if name not in self._hosts)
        return any(one.state in ("not started", "connecting") for one in servers)

    # ---- the owner of a session -----------------------------------------------------------------------------

    def has_journal(self, session: str) -> bool:
        """Tell whether a session is followed by its journal."""
        file = self.files.sessions.get(session)
        return file is not None and file.identity is not None and not self._is_file_alone(session)

    def _note_left(self) -> None:
        """Note which sessions were left by a server that has not been there for a while, and which go on.

        It is proof of the server's end only that nothing listens at its address.
        """
        now = time.monotonic()
        self._connected_at.update((name, now) for name, one in self.servers.items() if one.observed().is_connected)
        gone = {name for name, then in self._connected_at.items() if now - then >= LOST_SECONDS} - self._hosts
        silent = {name for name in gone if not self.servers[name].is_refused}
        before = dict(self._left)
        for session in self.files.sessions if gone else ():
            may_run_it = {self._owners[session]} if session in self._owners else self.servers.keys() - self._hosts
            if may_run_it <= gone and self.has_journal(session) and not self._is_hosts(session):
                self._left[session] = Liveness.UNKNOWN if may_run_it & silent else Liveness.GONE
        for session in list(self._left):
            if any(server.is_live(session) for server in self.servers.values()):
                del self._left[session]
        for session in before.keys() | self._left:
            if before.get(session) is not self._left.get(session):
                self._daemon.changed.add(session)
                if session in self.files.sessions:
                    self.files.sessions[session].left = self._left.get(session)

    def _is_file_alone(self, session: str) -> bool:
        file = self._daemon.source.sessions.get(session)
        is_there = file is not None and file.identity is not None
        return is_there and not self._is_followed(session) and not self._is_hosts(session)

    def _is_hosts(self, session: str) -> bool:
        """Tell whether the journal of a session is an agent host's, one of which is observed."""
        return bool(self._hosts) and is_made(self.journals.mark(session) or "")

    def is_of(self, server: Server, session: str) -> bool:
        """Tell whether a server, or a host, can be the source of a session: one without a journal may be of both."""
        return not self.has_journal(session) or is_made(self.journals.mark(session) or "") == server.is_host

    def is_elsewhere(self, name: str, session: str) -> bool:
        """Tell whether the durable events of a session come from the CLI's own file or from another server."""
        if self._is_hosts(session):
            return self._owners.get(session, name) != name
        self._daemon.source.notice(session)
        file = self._daemon.source.sessions.get(session)
        if file is not None and not file.gone:  # the CLI makes the directory before it writes the first event
            return True
        return self._owners.get(session, name) != name or self.has_journal(session)

    def _is_followed(self, session: str) -> bool:
        """Tell whether some lane reads the journal of a session."""
        lanes = (run.lanes.get(session) for run in self._daemon.runs)
        return any(lane is not None and lane.file.is_journal for lane in lanes)

    def give_way(self, file: SessionFile) -> SessionFile | None:
        """Return the file to follow now that the session's own is there, None while the journal holds more."""
        session = file.session
        if self._is_hosts(session):
            return None
        if not self._is_followed(session):
            return file
        if file.identity is None or not self._holds(file):
            return None
        theirs = self.files.sessions.pop(session)
        theirs.become(file, self._open_files)
        self._daemon.source.sessions[session] = theirs
        self.journals.remove(session)
        self._owners.pop(session, None)
        return theirs

    def _holds(self, file: SessionFile) -> bool:
        """Tell whether a session's file has the last event of its journal, or the journal has stopped growing."""
        last, journal = self.journals.mark(file.session), self.files.sessions[file.session]
        if last is None or time.time() - journal.modified >= QUIET_SECONDS:
            return True
        return any(envelope.id == last for envelope, _ in durable_events(file.path, self._line_bytes_max))

    def _on_change(self, file: SessionFile) -> None:
        if self._is_file_alone(file.session):
            if not file.gone:
                self.journals.remove(file.session)  # left from when there was no file
            return
        if not file.begins and file.identity is not None:
            file.begins = self.journals.begins(file.session)
        self._daemon.on_change(file)

    # ---- what sources ask and give --------------------------------------------------------------------------

    def _want(self, name: str, session: str, changed: str) -> Want:
        scope = self._daemon.scope
        if scope.sessions and session not in scope.sessions:
            return Want.NOTHING
        if self._is_file_alone(session):
            self.journaling.agents.add(session)
            return Want.LIVE if self.showing.is_wanted else Want.NOTHING
        owner = self._owners.get(session, name)
        if owner != name and self.servers[owner].observed().is_connected:
            return Want.NOTHING
        if self._is_hosts(session) and name not in self._hosts:
            return Want.NOTHING
        if not (scope.sessions or self.has_journal(session)) and _is_older(changed, scope.history_days):
            return Want.NOTHING
        self._owners[session] = name
        self.journaling.agents.add(session)
        return Want.ALL

    def _want_live(self, session: str, _: str) -> Want:
        sessions = self._daemon.scope.sessions
        return Want.LIVE if not sessions or session in sessions else Want.NOTHING

    async def _take(self, session: str, events: Sequence[SourceEvent]) -> bool:
        """Write durable events to the journal, unless a file has them, then show the ephemeral ones."""
        kept = await self.journaling.take(session, events, lambda: not self._is_file_alone(session))
        if kept is None:
            return False
        if kept:
            self.files.notice(session)
        self.showing.add(session, [event.line for event in events])
        return True

    async def _take_live(self, session: str, events: Sequence[SourceEvent]) -> bool:
        self.showing.add(session, [event.line for event in events])
        return True

    def _rewind(self, session: str, history: Set[str]) -> None:
        """Take out of a journal what a session's history no longer has; lanes then tell the sinks."""
        if not self.has_journal(session):
            return
        delivered = self.journaling.delivered(session) if self.journals.begins(session) else ()
        if self.journals.rewind(session, history, delivered):
            file = self.files.sessions[session]
            file.rewritten(self._open_files)
            file.refresh(self._open_files)
            self._on_change(file)

    def _gone(self, session: str) -> None:
        self.journaling.agents.forget(session)
        self._owners.pop(session, None)
        if self.has_journal(session):
            self._deleted.add(session)

    # ---- disk space -----------------------------------------------------------------------------------------

    async def _keep_house(self) -> None:
        while True:
            await asyncio.sleep(HOUSEKEEPING_SECONDS)
            for session, file in list(self._daemon.source.sessions.items()):
                if not file.is_journal and self._is_followed(session):
                    self._daemon.on_change(file)
            self._note_left()
            with suppress(OSError):
                self._clean_up_journals()

    def _clean_up_journals(self) -> None:
        """Remove journals of deleted sessions that every sink has; cut others behind every mark if space is wanted."""
        for session in list(self._deleted):
            if self.has_journal(session):
                file = self.files.sessions[session]
                if self._needed_from(file) < file.size:
                    continue
                self.journals.remove(session)
            self._deleted.discard(session)
        if not self.journals.needs_cleanup:
            return
        for session, file in list(self.files.sessions.items()):
            needed_from = 0 if file.gone else self._needed_from(file)
            if needed_from and self.journals.cut(session, needed_from):
                file.begins = self.journals.begins(session)

    def _needed_from(self, file: SessionFile) -> int:
        """Return the offset before which no sink needs anything of a journal any more, but for signals that are off."""
        lanes = [run.lanes.get(file.session) for run in self._daemon.runs if run.sink_state.off is None]
        return min((0 if lane is None else _needs_from(lane, file) for lane in lanes), default=0)


def _size_now(file: SessionFile) -> int:
    """Return the size of a file; what follows it has not read that far perhaps."""
    try:
        return file.path.stat().st_size
    except OSError:
        return file.size


def _needs_from(lane: Lane, file: SessionFile) -> int:
    if lane.stopped:
        return file.size
    return lane.mark.position.offset if lane.mark.identity == file.identity is not None else 0


def _is_older(changed: str, days: float) -> bool:
    try:
        moment = datetime.fromisoformat(changed)
    except ValueError:
        return False  # without a time a session counts as active
    return moment.timestamp() < time.time() - days * _DAY_SECONDS


@dataclass(slots=True)
class _Page:
    """The durable events of a batch, redacted or refused."""

    durable: list[tuple[str, bytes]] = field(default_factory=list)
    refused: list[Unsendable] = field(default_factory=list)
    masked: Counter[tuple[str, str]] = field(default_factory=Counter)


class JournalWriter:
    """Writes to the journals. `problem` is why nothing is accepted at the moment, None when events are accepted."""

    def __init__(self, daemon: "Daemon", journals: Journals, redaction: "Redactors") -> None:
        self.agents = AgentRegistry()
        self.unattributed = 0
        self.problem: str | None = None
        self._daemon = daemon
        self._journals = journals
        self._redact = redaction.event
        self._commands = redaction.commands
        self.calls = ArrivingCalls(self._calls_of)
        self._delivered: dict[str, tuple[int, set[str]]] = {}

    async def take(self, session: str, events: Sequence[SourceEvent], is_ours: Callable[[], bool]) -> bool | None:
        """Redact, quarantine what is refused, and write the rest; return whether anything was written, None to retry.

        Nothing is written for a session that has no journal (`is_ours`) by then. On a retry the events that were
        written already are known.
        """
        was_kept = False
        for portion in _portions(events, self._journals.batch_bytes):
            size = sum(map(_size, portion))
            if size and not self._journals.has_space(size):
                return self._trouble(self._journals.problem)
            page = _Page()
            slice_end = time.perf_counter() + _SLICE_SECONDS
            for event in portion:
                if time.perf_counter() > slice_end:
                    await asyncio.sleep(0)
                    slice_end = time.perf_counter() + _SLICE_SECONDS
                self._read(session, event, page)
            kept = is_ours() and self._keep(session, page)
            if kept is None:
                return None
            was_kept |= kept
        return was_kept

    def _read(self, session: str, event: SourceEvent, page: _Page) -> None:
        line, is_ephemeral = event
        envelope = decode(line)
        if isinstance(envelope, Envelope):
            self.unattributed += self.agents.attribute(session, envelope).error is not None
        if is_ephemeral:
            kept = usage_line(envelope, partial(self.known, session)) if isinstance(envelope, Envelope) else None
            shown = self._redact(kept) if kept is not None else None
            if shown is not None and not isinstance(shown, Refused):
                page.durable.append(("", shown.line if isinstance(shown, Masked) else shown))
            return
        if not isinstance(envelope, Envelope):
            page.refused.append(Unsendable(0, line, len(line), envelope.reason, envelope.id))
            return
        shown = self._redact(line)
        if self._commands is not None and not self._journals.known(session, envelope.id):
            shown = self._of_call(session, line, shown)
        if isinstance(shown, Refused):
            page.refused.append(Unsendable(0, line, len(line), shown.reason, envelope.id))
            return
        if isinstance(shown, Masked):
            if not self._journals.known(session, envelope.id):
                page.masked.update((envelope.timestamp[:10], rule) for rule in shown.rules)
            shown = shown.line
        page.durable.append((envelope.id, shown))

    def _of_call(self, session: str, line: bytes, shown: Redacted) -> Redacted:
        """Judge a new event as it stands in the journal, where the calls before it are looked up.

        A start that is refused is not there, but its answer comes.
        """
        envelope = decode(line_of(shown) or line)
        rule = self.calls.rule_at(session, envelope) if isinstance(envelope, Envelope) else None
        return shown if rule is None or self._commands is None else self._commands.mask(line, shown, rule)

    def _calls_of(self, session: str) -> tuple[ToolCalls, int]:
        file = self._daemon.files.get(session)
        if file is None or not file.is_journal:
            assert self._commands is not None
            return ToolCalls(self._commands, 0, nothing_before), 0
        offset = _size_now(file)
        return self._daemon.reader.calls_before(file, offset), offset

    def _keep(self, session: str, page: _Page) -> bool | None:
        """Make everything durable; return whether there was something to write, None when it failed."""
        try:
            if page.refused and self._daemon.quarantine.add(session, None, page.refused):
                counted = {"events": len(page.refused)}
                self._daemon.notice(
                    Notice(NoticeName.QUARANTINED, Level.WARNING, "put in quarantine", session, fields=counted)
                )
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
            self._daemon.say(NoticeName.SOURCE_PAUSED, Level.ERROR, "a source is not read on", why=problem)
        self.problem = problem
        return None

    def known(self, session: str, id: str) -> bool:
        """Tell whether an event was accepted; one that was cut off the journal is known by its delivery."""
        if self._journals.known(session, id):
            return True
        begins = self._journals.begins(session)
        if not begins:
            return False
        known = self._delivered.get(session)
        if known is None or known[0] != begins:
            known = self._delivered[session] = (begins, self.delivered(session))
        return id in known[1]

    def delivered(self, session: str) -> set[str]:
        """Return the ids of the events that a sink has of a session."""
        ids: set[str] = set()
        for run in self._daemon.runs:
            if run.sink_state.feed.holds_events:
                ids |= run.sink_state.store.delivered(session, run.sink_state.sink_id).keys()
        return ids


def _portions(events: Sequence[SourceEvent], size_max: int) -> Iterator[Sequence[SourceEvent]]:
    """Yield the events in order in portions of about so many bytes; a larger event is a portion of its own."""
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
