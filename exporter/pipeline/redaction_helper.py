"""A process that redacts beside this one, so that a long backlog takes the time of two cores.

It gets the lines of a part of a session file, redacts them from the last one backwards, and tells what it finds, some
lines at a time. The segment reader takes the same lines from the first one on, and redacts those without a verdict
itself, until the two meet. Nothing is ever waited for: a helper that is slow, stopped or killed costs time and nothing
else. It has no file, no connection and no state but the rules and the known values, which are told with the lines.

It is forked, so that it shares the compiled rules, and gets the lines through shared memory that has no name.
"""

import errno
import gc
import mmap
import os
import signal
import socket
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from exporter.core.events.lines import Oversized
from exporter.core.events.redaction import CLEAN, FOUND, Masked, RedactEvent, Refused, Verdicts

Lines: TypeAlias = Sequence[bytes | Oversized]
Values: TypeAlias = Collection[str]

PARTS_MAX: Final = 3
"""How many parts the helper has at most: enough that it is busy while a request is made."""
_PART_BYTES_MIN: Final = 64 << 10
_PART_BYTES_MAX: Final = 640 << 10
_TOLD_BYTES: Final = 24 << 10
"""It tells of so many bytes of lines at a time; what it did of them is in vain when the reader was faster."""
_MESSAGE_BYTES_MAX: Final = 128 << 10
_EPHEMERAL_END: Final = b'"ephemeral":true}'
_WHITESPACE: Final = b" \t\r"
_PLACE_BYTES: Final = 8
_END_SECONDS: Final = 2.0


class _Told(msgspec.Struct, array_like=True, tag=0):
    """The known values from here on."""

    values: list[str]


class _Part(msgspec.Struct, array_like=True, tag=1):
    """A part to redact: its number, where its bytes are, and how many lines they are."""

    number: int
    slot: int
    size: int
    count: int


class _Answer(msgspec.Struct, array_like=True):
    """The states of some lines from `first` on; what was found is a reason of refusal, or a line and its rules."""

    number: int
    first: int
    states: bytes
    found: dict[int, str | tuple[bytes, tuple[str, ...]]]
    is_last: bool


_encode: Final = msgspec.msgpack.Encoder().encode
_decode_order: Final = msgspec.msgpack.Decoder(_Told | _Part).decode
_decode_answer: Final = msgspec.msgpack.Decoder(_Answer).decode


@dataclass(slots=True)
class Offer(Verdicts):
    """The verdicts of one part, as far as they have come. `values` are those that they were made with."""

    slot: int = 0
    values: Values = ()
    is_done: bool = False


@dataclass(slots=True)
class _Memory:
    """What both processes see: the bytes of the parts, and for each the line that the reader has come to."""

    shared: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, PARTS_MAX * (_PART_BYTES_MAX + _PLACE_BYTES)))
    places: "memoryview[int]" = field(init=False)

    def __post_init__(self) -> None:
        self.places = memoryview(self.shared)[PARTS_MAX * _PART_BYTES_MAX :].cast("Q")

    def put(self, slot: int, data: bytes) -> None:
        start = slot * _PART_BYTES_MAX
        self.shared[start : start + len(data)] = data
        self.places[slot] = 0

    def lines(self, slot: int, size: int) -> list[bytes]:
        start = slot * _PART_BYTES_MAX
        return self.shared[start : start + size].split(b"\n")


def helper_possible() -> bool:
    """Tell whether this machine has a second core, and a system on which a fork is safe."""
    return sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1


def start_helper(
    make: Callable[[Values], RedactEvent], known: Callable[[Lines], Values | None]
) -> "RedactionHelper | None":
    """Start a helper where there can be one."""
    return RedactionHelper(make, known) if helper_possible() else None


class RedactionHelper:
    """The helper as its starter sees it. Start it before there are threads or an open database.

    `make` makes the redactor for some known values. `known` gives those that some lines are redacted with here, the
    same object as long as they are the same; None if that cannot be said.
    """

    def __init__(self, make: Callable[[Values], RedactEvent], known: Callable[[Lines], Values | None]) -> None:
        self._known = known
        self._told: Values | None = None
        self._memory = _Memory()
        self._offers: dict[int, Offer] = {}
        self._number = 0
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        gc.freeze()  # what is shared is not looked at again by either process, which would make it two copies
        self.pid = os.fork()
        if self.pid == 0:
            _be_helper(theirs, self._memory, make)
        theirs.close()
        self._connection: socket.socket | None = ours

    def has_room(self) -> bool:
        """Tell whether it takes one more part now."""
        self._take_in()
        return self._connection is not None and len(self._offers) < PARTS_MAX

    def offer(self, lines: Lines) -> Offer | None:
        """Let the helper redact these lines; None if it has no room, or they are few or many."""
        if not self.has_room():
            return None
        data = b"\n".join([line if isinstance(line, bytes) else b"" for line in lines])
        if not _PART_BYTES_MIN <= len(data) <= _PART_BYTES_MAX:
            return None
        values = self._known(lines)
        if values is None:
            return None
        slot = min({*range(PARTS_MAX)} - {one.slot for one in self._offers.values()})
        self._memory.put(slot, data)
        self._number += 1
        part = _Part(self._number, slot, len(data), len(lines))
        if not (values is self._told or self._send(_Told(list(values)))) or not self._send(part):
            return None
        self._told = values
        offer = self._offers[self._number] = Offer(bytearray(len(lines)), {}, slot, values)
        return offer

    def look(self, offer: Offer) -> Offer | None:
        """Take in what the helper has told by now.

        None if the verdicts are not to be used: other values are known than those that they were made with.
        """
        if not offer.is_done:
            self._take_in()
        return offer if offer.values is self._known(()) else None

    def taken(self, offer: Offer, index: int) -> None:
        """Tell the helper which line the reader has come to: it need not look at those before."""
        if not offer.is_done:
            self._memory.places[offer.slot] = index

    def _take_in(self) -> None:
        while self._connection is not None:
            try:
                message = self._connection.recv(2 * _MESSAGE_BYTES_MAX)
                answer = _decode_answer(message) if message else None
            except BlockingIOError:
                return
            except (OSError, msgspec.MsgspecError):
                answer = None
            if answer is None:
                self.close()
                return
            offer = self._offers[answer.number]
            for index, what in answer.found.items():
                offer.found[index] = Refused(what) if isinstance(what, str) else Masked(*what)
            offer.states[answer.first : answer.first + len(answer.states)] = answer.states
            if answer.is_last:
                offer.is_done = True
                del self._offers[answer.number]

    def _send(self, order: _Told | _Part) -> bool:
        try:
            assert self._connection is not None
            self._connection.send(_encode(order))
        except (OSError, UnicodeEncodeError):  # it does not read, it is gone, or there are too many known values
            self.close()
            return False
        return True

    def close(self) -> None:
        """End the helper; from here on it takes nothing."""
        if self._connection is None:
            return
        self._connection.close()
        self._connection = None
        self._offers.clear()
        with suppress(ProcessLookupError, ChildProcessError):  # it has nothing that it could lose
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def _be_helper(connection: socket.socket, memory: _Memory, make: Callable[[Values], RedactEvent]) -> None:
    """Serve until the other end is closed; never returns."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # meant for the process that was started; this one ends with it
        _leave_all_files(connection.fileno())
        connection.setblocking(True)
        _serve(connection, memory, make)
    finally:
        os._exit(0)


def _leave_all_files(but: int) -> None:
    """Close what was inherited: neither a lock nor a pipe is to be held any longer than its owner lives."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    for entry in list(Path("/proc/self/fd").iterdir()):
        if (descriptor := int(entry.name)) > 2 and descriptor != but:
            with suppress(OSError):
                os.close(descriptor)


def _serve(connection: socket.socket, memory: _Memory, make: Callable[[Values], RedactEvent]) -> None:
    redact: RedactEvent = _refuse
    while message := connection.recv(2 * _MESSAGE_BYTES_MAX):
        order = _decode_order(message)
        if isinstance(order, _Told):
            redact = make(order.values)
        else:
            _redact_part(connection, memory, order, redact)


def _refuse(_line: bytes, /) -> Refused:
    return Refused("redactor_failed")


def _redact_part(connection: socket.socket, memory: _Memory, part: _Part, redact: RedactEvent) -> None:
    """Redact backwards until the reader is met; what is told of a line is never told before it is known."""
    lines = memory.lines(part.slot, part.size)
    places, slot = memory.places, part.slot
    end = index = part.count if len(lines) == part.count else 0
    answer, size = _Answer(part.number, end, b"", {}, False), 0
    states = bytearray()
    while index > places[slot]:
        index -= 1
        line = lines[index]
        state, what = _verdict(line.strip(_WHITESPACE), redact)
        states.append(state)
        size += len(line)
        if what is not None:
            answer.found[index] = what
            size += len(what) if isinstance(what, str) else 4 * len(what[0])
        if size >= _TOLD_BYTES:
            _tell(connection, answer, index, states)
            answer, states, size = _Answer(part.number, index, b"", {}, False), bytearray(), 0
    answer.is_last = True
    _tell(connection, answer, index, states)


def _verdict(line: bytes, redact: RedactEvent) -> tuple[int, Any]:
    """Return the state of a line; 0 for what the reader is to see to itself: what is not sent, or does not fit."""
    if not line or line.endswith(_EPHEMERAL_END):
        return 0, None
    redacted = redact(line)
    if redacted is line:
        return CLEAN, None
    if isinstance(redacted, Masked):
        what = (redacted.line, redacted.rules)
        return (FOUND, what) if len(redacted.line) + 64 * len(redacted.rules) < _MESSAGE_BYTES_MAX // 2 else (0, None)
    return (FOUND, redacted.reason) if isinstance(redacted, Refused) else (0, None)


def _tell(connection: socket.socket, answer: _Answer, first: int, states: bytearray) -> None:
    answer.first, answer.states = first, bytes(reversed(states))
    try:
        connection.send(_encode(answer))
    except OSError as error:
        if error.errno != errno.EMSGSIZE:
            raise
        connection.send(_encode(_Answer(answer.number, first, b"", {}, answer.is_last)))
