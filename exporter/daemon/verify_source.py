"""Compares what each sink was given of a session without a file with the history of its server or host, asked anew.

The history is read by a source of its own, which remembers nothing: what it makes of the history is what a sink should
have. So a fault of what is remembered, of the journal too, shows as a difference.
"""

import asyncio
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import msgspec

from exporter.core.delivery.position import Mark
from exporter.core.events.envelope import REFUSALS, Envelope, decode
from exporter.core.events.redaction import line_of
from exporter.core.events.tool_calls import ToolCalls, nothing_before
from exporter.errors import Exit, worst
from exporter.pipeline.sink_workers import SinkWorkers
from exporter.sources.files.session_file import durable_events
from exporter.sources.remote import Callbacks, SourceEvent, Want
from exporter.status import DIFFERENT, EQUAL, NOT_ASKED, UNREACHABLE, SourceRow

if TYPE_CHECKING:
    from exporter.daemon.remote_sources import RemoteSources, Server
    from exporter.daemon.running import RunningExporter

_QUIET_SECONDS: Final = 1.0
_SILENT_SECONDS: Final = 15.0
_LOOK_SECONDS: Final = 0.1
_UNDECIDED: Final = ("not started", "connecting")
_FILE: Final = "this session is read from its file, with which `exporter verify` compares"
_ASLEEP: Final = "it has not it loaded, or does not list it; --wake asks all the same"
_UNTOLD: Final = "it does not give the history of this session"
_NOBODY: Final = "no server or host is named by a [[source]]"
_GAP: Final = "exporter.gap"
_ENDS: Final = {DIFFERENT: Exit.FINDINGS, UNREACHABLE: Exit.PARTIAL}
_TOLD: Final = ("content", "toolCallId", "toolName", "success", "message", "errorType", "error", "agentName")
"""The fields of an event that must be the same; others are richer in one answer of a server than in another."""


@dataclass(frozen=True, slots=True)
class _Event:
    """An event of a history: its turn, what it says, and the prompt that began the turn."""

    turn: int
    type: str
    facts: tuple[object, ...]
    prompt: object


@dataclass(slots=True)
class _Asked:
    """What one server or host told: by session the lines by id, and why something was not told."""

    observing: "RemoteSources"
    server: "Server"
    wanted: frozenset[str]
    lines: dict[str, dict[str, bytes]] = field(default_factory=dict)
    troubles: Mapping[str, str] = field(default_factory=dict)
    trouble: str | None = None
    _changed_at: float = field(default_factory=time.monotonic)

    async def ask(self, *, wake: bool) -> "_Asked":
        """Read the history of the wanted sessions with a source that remembers nothing."""
        mark, has = self._last, lambda session, id: id in self.lines.get(session, ())
        callbacks = Callbacks(self._take, mark, has, self._want, lambda _: None, self._is_elsewhere)
        with TemporaryDirectory() as state:
            source = self.server.ask(callbacks, Path(state), self.wanted if wake else frozenset())
            reading = asyncio.create_task(source.run())
            try:
                while (quiet := time.monotonic() - self._changed_at) < _SILENT_SECONDS:
                    await asyncio.sleep(_LOOK_SECONDS)
                    seen = source.observed()
                    if seen.is_connected and not seen.is_catching_up and quiet >= _QUIET_SECONDS:
                        self.troubles, self.trouble = seen.troubles, None
                        return self
                    if seen.state not in _UNDECIDED:
                        self.trouble = seen.state
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
        self.trouble = self.trouble or "no answer"
        self.lines.clear()
        return self

    async def _take(self, session: str, events: Sequence[SourceEvent]) -> bool:
        self._changed_at = time.monotonic()
        for line, is_ephemeral in events:
            if not is_ephemeral and isinstance(envelope := decode(line), Envelope):
                self.lines.setdefault(session, {})[envelope.id] = line
        return True

    def _last(self, session: str) -> str | None:
        return next(reversed(self.lines.get(session, {})), None)

    def _want(self, session: str, _: str) -> Want:
        if session not in self.wanted or not self.observing.is_of(self.server, session):
            return Want.NOTHING
        self.lines.setdefault(session, {})
        return Want.ALL

    def _is_elsewhere(self, session: str) -> bool:
        return self.observing.is_elsewhere(self.server.name, session)


async def verify_source(
    running: "RunningExporter", observing: "RemoteSources | None", named: Collection[str] | None, *, wake: bool
) -> tuple[list[SourceRow], Exit]:
    """Compare the named sessions, or all of which a server or host has the durable events.

    A host that has not loaded a session would load it to answer: only with `wake` it is asked then.
    """
    files = running.daemon.files
    if observing is None or not observing.asked:
        rows = [_unasked(session, "", NOT_ASKED, _FILE if session in files else _NOBODY) for session in named or ()]
        return rows, Exit.PARTIAL
    journals = {session for session, file in files.items() if file.is_journal}
    wanted = set(named) if named is not None else journals
    # What was delivered before the question can be compared in both directions.
    given = {(run.name, session): _given(run, session) for run in running.daemon.runs for session in wanted}
    ours = frozenset(wanted - (files.keys() - journals))
    asked = [await _Asked(observing, server, ours).ask(wake=wake) for server in observing.asked.values()]
    lanes = [(run, run.lanes[session]) for run in running.daemon.runs for session in ours if session in run.lanes]
    if lanes:  # what came meanwhile is still on its way
        await running.daemon.until_idle(lambda: lanes)
    rows = []
    for session in sorted(wanted):
        if session not in ours:
            rows.append(_unasked(session, "files", NOT_ASKED, _FILE))
            continue
        answer = next((one for one in asked if session in one.lines), None)
        if answer is None:
            down = next((one for one in asked if one.trouble), None)
            name = down.server.name if down else ", ".join(one.server.name for one in asked)
            why = down.trouble if down else None
            rows.append(_unasked(session, name, UNREACHABLE if down else NOT_ASKED, why or _ASLEEP))
        elif session in answer.troubles or (session in journals and not answer.lines[session]):
            rows.append(_unasked(session, answer.server.name, UNREACHABLE, answer.troubles.get(session, _UNTOLD)))
        else:
            kept = _Compared(running, session, answer)
            rows += [kept.row(run, given[run.name, session]) for run in running.daemon.runs]
    skipped = Exit.PARTIAL if named is not None and any(row.verdict == NOT_ASKED for row in rows) else Exit.DONE
    return rows, worst(skipped, *(_ENDS.get(row.verdict, Exit.DONE) for row in rows))


def _given(run: SinkWorkers, session: str) -> set[str]:
    """Return the ids of the events that a sink has, empty for one that takes records."""
    state = run.sink_state
    return set(state.store.delivered(session, state.sink_id)) if state.feed.holds_events else set()


def _unasked(session: str, source: str, verdict: str, why: str) -> SourceRow:
    return SourceRow(session, "", source, verdict, 0, 0, [], [], [], [], why)


def _redacted(running: "RunningExporter", history: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what a journal would hold of a history."""
    redaction = running.redaction
    calls = ToolCalls(redaction.commands, 0, nothing_before) if redaction.commands is not None else None
    for number, line in enumerate(history):
        shown = redaction.event(line)
        first = line_of(shown)
        if calls is not None and first is not None and isinstance(envelope := decode(first), Envelope):
            shown = calls.answered(envelope, number, line, shown)
        if (last := line_of(shown)) is not None:
            yield last


class _Compared:
    """A session's history, and its journal, which says what an event that the history lacks was."""

    def __init__(self, running: "RunningExporter", session: str, answer: _Asked) -> None:
        self._session, self._source = session, answer.server.name
        self._is_untold = answer.server.is_untold
        self._history = _events(_redacted(running, answer.lines[session].values()))
        file = running.daemon.files.get(session)
        journal = durable_events(file.path, running.line_bytes_max, file.begins) if file is not None else ()
        self._journal = _events(line for _, line in journal)
        self._prompts = {one.prompt for one in self._history.values() if one.type == "user.message"}

    def row(self, run: SinkWorkers, before: Set[str]) -> SourceRow:
        """Compare with what a sink was given; `before` is what it had before the history was asked for."""
        state, session = run.sink_state, self._session
        refused = state.quarantine.ids(session, run.name)
        if state.feed.holds_events:
            given: Set[str] = _given(run, session)
        else:
            given = before = self._up_to(state.store.mark(session, state.sink_id))
        untold = {id for id, one in self._history.items() if self._is_untold(one.type)}
        missing = [id for id in self._history if id not in given and id not in refused | untold]
        extra = [id for id in given if id in before and id not in self._history and not self._is_aside(id)]
        different = [id for id in self._history if id in given and self._differs(id)]
        turns = list(dict.fromkeys(self._turns(missing, extra, different)))
        verdict = DIFFERENT if turns else EQUAL
        gaps = sum(one.type == _GAP for id, one in self._journal.items() if id in given)
        details = [f"{gaps} {'gap was' if gaps == 1 else 'gaps were'} told"] if gaps else []
        details += [f"{len(refused)} in quarantine"] if refused else []
        if not state.feed.holds_events:
            details.append("compared by the mark: this sink has records of the events")
        count = len(self._history)
        return SourceRow(
            session, run.name, self._source, verdict, count, len(given), missing, extra, different, turns,
            "; ".join(details) or None,
        )  # fmt: skip

    def _up_to(self, mark: Mark | None) -> Set[str]:
        """Return what a sink of records was given: its mark says how far, in the order of the journal."""
        last, ids = mark.last_id if mark is not None else None, list(self._journal)
        if last is None:
            return set()
        cut_off = self._history.keys() - self._journal.keys() if self._is_cut() else set()
        return {*cut_off, *ids[: ids.index(last) + 1 if last in self._journal else 0]}

    def _is_cut(self) -> bool:
        """Tell whether the front of the journal was cut off: it does not begin with the history's first event."""
        first = next(iter(self._history), None)
        return first is not None and first not in self._journal and bool(self._journal.keys() & self._history.keys())

    def _is_aside(self, id: str) -> bool:
        """Tell whether an event says something about the reading, or is of a type that is not always told."""
        one = self._journal.get(id)
        return one is not None and (one.type == _GAP or self._is_untold(one.type))

    def _differs(self, id: str) -> bool:
        mine = self._journal.get(id)
        return mine is not None and mine.facts != self._history[id].facts

    def _turns(self, missing: Sequence[str], extra: Sequence[str], different: Sequence[str]) -> Iterator[str]:
        for id in missing:
            yield f"turn {self._history[id].turn}: missing"
        for id in extra:
            one = self._journal.get(id)
            if one is None:
                yield "an event that the history does not have"
            elif one.prompt is not None and one.prompt in self._prompts:
                yield f"turn {one.turn} of the journal: double"
            else:
                yield f"turn {one.turn} of the journal: not in the history"
        for id in different:
            yield f"turn {self._history[id].turn}: different"


def _events(lines: Iterable[bytes]) -> dict[str, _Event]:
    """Return the events of a history by their ids, each with its turn; a turn begins with a prompt of the user."""
    found: dict[str, _Event] = {}
    turn, prompt = 0, None
    for line in lines:
        envelope = decode(line)
        if not isinstance(envelope, Envelope):
            continue
        try:
            data = msgspec.json.decode(envelope.data, type=dict[str, Any])
        except REFUSALS:
            data = {}
        if envelope.type == "user.message" and envelope.agentId is None:
            turn, prompt = turn + 1, str(data.get("content"))
        facts = (envelope.type, envelope.agentId, *(str(data.get(name)) for name in _TOLD))
        found[envelope.id] = _Event(turn, envelope.type, facts, prompt)
    return found
