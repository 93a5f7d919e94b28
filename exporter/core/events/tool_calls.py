"""Which tool calls run a command that prints a secret, and so which answers are masked as a whole.

An answer belongs to the latest start of its call before it, in the order of the source. Of a start its rule and its
place are remembered, by agent and call, never the command. What is not remembered is looked up in the source, so the
same source gives the same verdicts whatever was in memory.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec

from exporter.core.events.envelope import REFUSALS, Envelope, decode, pieces, read_object
from exporter.core.events.redaction import Redacted

CALL_STARTS: Final = "tool.execution_start"
ANSWERS: Final = frozenset(("tool.execution_complete", "tool.execution_partial_result", "tool.shell_output"))
HOOK: Final = "hook.start"
"""Of a hook after a tool: it holds the command and the whole answer itself."""
CALL_TYPES: Final = ANSWERS | {CALL_STARTS, HOOK}
REACH_BYTES: Final = 16 << 20
"""How far before an answer its call may start."""
MEMORY_MAX: Final = 1024
_SESSIONS_MAX: Final = 256
_START: Final = CALL_STARTS.encode()

# Agent, and call.
Key: TypeAlias = tuple[str | None, str]


class Commands(Protocol):
    """The commands that print secrets; any thread may ask, and nothing raises."""

    def rule_of(self, data: bytes, /) -> str | None:
        """Return the rule of a call that prints a secret, told by the data of the event that starts it."""

    def mask(self, line: bytes, redacted: Redacted, rule: str, /) -> Redacted:
        """Return what the redactor made of a line, with every string of the answer masked."""


class Start(NamedTuple):
    """An event that starts a call, and its place in the source."""

    offset: int
    envelope: Envelope


class CallTold(NamedTuple):
    """What a start tells of its answer: the rule of a command that prints a secret, or the shell that it reads."""

    rule: str | None
    shell: Key | None = None


class _Known(NamedTuple):
    """Where a call starts last, and what that tells."""

    offset: int
    told: CallTold


class _Call(msgspec.Struct):
    toolCallId: str = ""  # noqa: N815  the wire's own name


_read_call: Final = msgspec.json.Decoder(_Call).decode
_SHELL: Final = b'"shellId"'
# Before the id of a shell, which then is the id of no call.
_SHELL_KEY: Final = "\0"


def key_of(envelope: Envelope) -> Key:
    """Return the agent and the call of an event."""
    try:
        call = _read_call(envelope.data).toolCallId
    except REFUSALS:
        call = str(read_object(envelope.data).get("toolCallId") or "")
    return envelope.agentId, call


def told_by(commands: Commands, envelope: Envelope) -> list[tuple[Key, CallTold]]:
    """Return what the start of a call tells of its answers.

    A command that runs in a shell with an id tells it of the answers of later calls as well, which read what that shell
    has printed by then (`read_bash`) and hold no command.
    """
    key, data = key_of(envelope), bytes(envelope.data)
    told = CallTold(commands.rule_of(data))
    if _SHELL not in data:
        return [(key, told)]
    arguments = read_object(envelope.data).get("arguments")
    if not isinstance(arguments, dict) or not isinstance(shell := arguments.get("shellId"), str):
        return [(key, told)]
    of_shell = envelope.agentId, _SHELL_KEY + shell
    return [(key, told), (of_shell, told)] if "command" in arguments else [(key, CallTold(told.rule, of_shell))]


def rule_of_hook(commands: Commands, envelope: Envelope) -> str | None:
    """Return the rule of the command that a hook's event holds."""
    given = read_object(envelope.data).get("input")
    if not isinstance(given, dict) or "toolResult" not in given:
        return None
    try:
        return commands.rule_of(json.dumps({"arguments": given.get("toolArgs")}).encode())
    except RecursionError:
        return None


def starts_in(lines: bytes, offset: int, line_bytes_max: int) -> list[Start]:
    """Return the durable events in whole lines that start a tool call; `offset` is where the lines begin."""
    found, position = list[Start](), 0
    while (at := lines.find(_START, position)) >= 0:
        begin = lines.rfind(b"\n", 0, at) + 1
        end = lines.find(b"\n", at)
        position = len(lines) if end < 0 else end
        line = lines[begin:position]
        if len(line) <= line_bytes_max:
            found += (Start(offset + begin + start, envelope) for start, envelope in _starts_of(line))
    return found


def _starts_of(line: bytes) -> Iterator[tuple[int, Envelope]]:
    whole = decode(line)
    for start, envelope in (
        [(0, whole)] if isinstance(whole, Envelope) else ((p.start, p.envelope) for p in pieces(line))
    ):
        if isinstance(envelope, Envelope) and envelope.type == CALL_STARTS and not envelope.ephemeral:
            yield start, envelope


# Gives the starts before an offset, part by part backwards, down to another offset: where a part begins, and its starts
# in order. None if the source cannot be read. Offsets are those of events.
LookUp: TypeAlias = Callable[[int, int], Iterable[tuple[int, list[Start]] | None]]


class ToolCalls:
    """The calls of one session, read in order from `begins` on; `look_up` finds what started before.

    `unknown` counts answers whose call is found nowhere: they are judged as if it had no command.
    """

    __slots__ = ("_begins", "_commands", "_end", "_known", "_look_up", "_memory_max", "unknown")

    def __init__(self, commands: Commands, begins: int, look_up: LookUp, *, memory_max: int = MEMORY_MAX) -> None:
        self.unknown = 0
        self._commands = commands
        self._begins = self._end = begins
        self._look_up = look_up
        self._memory_max = memory_max
        # The latest start of every call that starts at `_begins` or behind it, in the order of the source.
        self._known: OrderedDict[Key, _Known] = OrderedDict()

    def note(self, envelope: Envelope, offset: int) -> None:
        """Note an event if it starts a call."""
        if envelope.type != CALL_STARTS or envelope.ephemeral:
            return
        for key, told in told_by(self._commands, envelope):
            self._known.pop(key, None)
            self._known[key] = _Known(offset, told)
        while self._oldest() < offset - REACH_BYTES:
            self._known.popitem(last=False)  # no answer from here on can be of that call
        while len(self._known) > self._memory_max and self._oldest() != offset:
            self._forget(self._oldest())

    def _oldest(self) -> int:
        return next(iter(self._known.values())).offset

    def _forget(self, offset: int) -> None:
        """Forget all that the oldest start tells, which is not the only one."""
        while self._oldest() == offset:
            self._known.popitem(last=False)
        self._begins = max(self._begins, self._oldest())

    def rule_at(self, envelope: Envelope, offset: int) -> str | None:
        """Return the rule of an answer's call; note an event that starts a call. Other events have no call."""
        if envelope.type in ANSWERS:
            return self._rule_of(key_of(envelope), offset)
        if envelope.type == HOOK:
            return rule_of_hook(self._commands, envelope)
        self.note(envelope, offset)
        return None

    def answered(self, envelope: Envelope, offset: int, line: bytes, redacted: Redacted) -> Redacted:
        """Return what may be shown of an event that the redactor has seen; note one that starts a call."""
        rule = self.rule_at(envelope, offset)
        return redacted if rule is None else self._commands.mask(line, redacted, rule)

    def catch_up(self, envelope: Envelope, end: int) -> None:
        """Note the starts that the source has got by now, up to an offset, if the call of this answer is not known."""
        if end <= self._end or key_of(envelope) in self._known:
            return
        parts = list(self._look_up(end, max(0, self._end - 1)))  # from a newline on: where a line is cut is not known
        for part in reversed(parts):
            for offset, start in part[1] if part is not None else ():
                if key_of(start) not in self._known:
                    self.note(start, offset)
        self._end = end

    def _rule_of(self, key: Key, offset: int) -> str | None:
        told = self._told_of(key, offset)
        if told is not None and told.rule is None and told.shell is not None:
            told = self._told_of(told.shell, offset)
        if told is None:
            self.unknown += 1
            return None
        return told.rule

    def _told_of(self, key: Key, offset: int) -> CallTold | None:
        lowest = max(0, offset - REACH_BYTES)
        known = self._known.get(key)
        if known is None and self._begins > lowest:
            known = self._looked_up(key, lowest)
        return None if known is None or known.offset < lowest else known.told

    def _looked_up(self, key: Key, lowest: int) -> _Known | None:
        may_keep = True
        for part in self._look_up(self._begins, lowest):
            if part is None:
                return None
            begins, starts = part
            found = None
            for offset, envelope in reversed(starts):
                may_keep = may_keep and len(self._known) < self._memory_max
                for other, told in told_by(self._commands, envelope):
                    if other == key and found is None:
                        found = _Known(offset, told)
                    if may_keep and other not in self._known:
                        self._known[other] = _Known(offset, told)
                        self._known.move_to_end(other, last=False)
            if may_keep:
                self._begins = begins
            if found is not None:
                return found
        return None


def nothing_before(_end: int, _lowest: int) -> tuple[()]:
    """Look up in a source that has nothing before what was read."""
    return ()


def unreadable(_end: int, _lowest: int) -> tuple[None]:
    """Look up in a source that cannot be read."""
    return (None,)


class ArrivingCalls:
    """The calls of sessions whose events arrive one by one, each in the order of its source.

    `begin` gives the calls of a session of which nothing has arrived yet, and the offset that the next event has.
    Where starts may come to the source and not here, `size_of` is the size that the source has now.
    """

    def __init__(
        self, begin: Callable[[str], tuple[ToolCalls, int]], size_of: Callable[[str], int] | None = None
    ) -> None:
        self._begin = begin
        self._size_of = size_of
        self._sessions: OrderedDict[str, tuple[ToolCalls, Iterator[int]]] = OrderedDict()
        self._unknown = 0

    @property
    def unknown(self) -> int:
        """Return how many answers there were whose call was found nowhere."""
        return self._unknown + sum(calls.unknown for calls, _ in self._sessions.values())

    def rule_at(self, session: str, envelope: Envelope) -> str | None:
        """Return the rule of an answer's call; note an event that starts a call."""
        if envelope.type not in CALL_TYPES:
            return None
        if session not in self._sessions:
            calls, offset = self._begin(session)
            self._sessions[session] = calls, count(offset)
        self._sessions.move_to_end(session)
        while len(self._sessions) > _SESSIONS_MAX:
            self.missed(next(iter(self._sessions)))
        calls, offsets = self._sessions[session]
        if self._size_of is not None and envelope.type in ANSWERS:
            calls.catch_up(envelope, self._size_of(session))
        return calls.rule_at(envelope, next(offsets))

    def missed(self, session: str) -> None:
        """Note that events of a session may have been missed: the next ones are looked up."""
        if session in self._sessions:
            self._unknown += self._sessions.pop(session)[0].unknown
