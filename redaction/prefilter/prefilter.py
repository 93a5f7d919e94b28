"""Which rules run where: the gates of all rules, in two readings of a line.

The first reading is cheap, and for nearly every line the only one. A rule with costly gates names triggers, one of
which is in every line that concerns it; only around triggers a line is read a second time.

Prose and programs speak of passwords and keys far more often than they hold one, so a trigger that is a name without a
value is dismissed: at the end of its line, unless a word such as `value` follows below or it is the last head of
several columns, and as a quoted subscript.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Final, TypeAlias

from redaction.prefilter.gate import EngineName, Hit, PatternGate, best_engine, make_gate
from redaction.rules.rule import AROUND, OPENED_REACH, VALUES_REACH, Family, Reach, Rule

Owner: TypeAlias = Rule | Family
_NOBODY: Final[tuple[Owner, ...]] = ()
# No gate matches a word that introduces a value farther away than this.
_BELOW_LENGTH: Final = 200
# Each of the `value_names` of `context/pairs.toml` contains one of these.
VALUE_WORDS: Final = (b"val", b"default", b"content", b"string")
_SUBSCRIPT: Final = re.compile(rb"\[\\{0,15}[\"'][\w.\-]{1,60}\\{0,15}[\"']\]")
_SUBSCRIPT_LENGTH: Final = 80
# A name behind the mark between two columns.
_LAST_HEAD: Final = re.compile(rb"(?:[,;|\t]|\\t|\xe2\x94\x82)[ \"`*\\]{0,9}[\w.\-]{2,60}[ \"`*]{0,9}\\{1,15}[nr]\Z")
_HEAD_LENGTH: Final = 96
_BACKSLASH: Final = 0x5C
_NEWLINES: Final = frozenset(b"nr")
_END: Final = itemgetter(1)
_QUOTES: Final = frozenset(b"\"'")


@dataclass(frozen=True, slots=True)
class _SecondReading:
    """A second reading around some hits of the first one; its own hits are numbered from `offset` on."""

    gate: PatternGate
    triggers: frozenset[int]
    reach: Reach
    offset: int

    def hits(self, data: bytes, first: Sequence[Hit]) -> Iterator[Hit]:
        """The numbers and ends of all matches around the triggers among the hits of the first reading."""
        triggers = self.triggers
        ends = [to for number, to in first if number in triggers]
        if ends and self.reach == AROUND:
            ends = [to for to in ends if not has_no_value(data, to)]
        if not ends:
            return
        ends.sort()
        for start, end in _windows(ends, self.reach):
            for number, to in self.gate.hits(data[start:end]):
                yield number + self.offset, start + to


@dataclass(frozen=True, slots=True)
class _Values:
    """Reads what is behind names that are words of every text, and keeps the names that a value may follow."""

    gate: PatternGate

    def followed(self, data: bytes, names: list[Hit]) -> Iterator[Hit]:
        """The names among these hits behind which there is a value."""
        names.sort(key=_END)
        at, count = 0, len(names)
        while at < count:
            start = names[at][1]
            end, last = start + VALUES_REACH, at + 1
            while last < count and names[last][1] <= end:
                end = names[last][1] + VALUES_REACH
                last += 1
            ends = sorted([start + to for _, to in self.gate.hits(data[start:end])])
            if ends:
                for name in names[at:last]:
                    value = bisect_right(ends, name[1])
                    if value < len(ends) and ends[value] <= name[1] + VALUES_REACH:
                        yield name
            at = last


class Prefilter:
    """The gates of all rules, compiled; one per thread."""

    __slots__ = ("_first", "_first_name", "_first_trigger", "_second_readings", "_values", "owners")

    def __init__(
        self,
        own: Sequence[str],
        rules: Iterable[Owner],
        *,
        cache_dir: Path | None = None,
        engine: EngineName | None = None,
    ) -> None:
        """`own` are expressions without an owner; their hits have the numbers from 0 on."""
        engine = engine or best_engine()
        first: dict[str, list[Owner]] = {gate: [] for gate in own}
        names: dict[str, list[Owner]] = {}
        values: dict[str, None] = {}
        second: dict[Reach, list[Owner]] = {}
        for rule in rules:
            # Only Hyperscan is fast with open counts.
            if rule.when and (engine == "hyperscan" or rule.reach != OPENED_REACH):
                second.setdefault(rule.reach, []).append(rule)
            elif isinstance(rule, Family) and rule.values:
                _own(names, rule)
                values |= dict.fromkeys(rule.values)
            else:
                _own(first, rule)
        for gate in names.keys() & first.keys():
            first[gate] += names.pop(gate)
        self._first_name = len(first)
        first |= names
        compiled = make_gate([gate.encode() for gate in values], cache_dir=cache_dir, engine=engine) if values else None
        self._values = _Values(compiled) if compiled is not None else None
        numbers = {gate: number for number, gate in enumerate(first)}
        self._first_trigger = len(numbers)
        for gate in (gate for rules_of_one in second.values() for rule in rules_of_one for gate in rule.when):
            numbers.setdefault(gate, len(numbers))
        self.owners = [tuple(owners) for owners in first.values()] + [_NOBODY] * (len(numbers) - len(first))
        """The rules that a hit belongs to, by its number."""
        gates = [gate.encode() for gate in numbers]
        with ThreadPoolExecutor(1) as beside:  # Hyperscan compiles without the interpreter's lock: half as long
            largest = beside.submit(make_gate, gates, cache_dir=cache_dir, engine=engine)
            self._second_readings = tuple(self._again(*one, numbers, cache_dir, engine) for one in second.items())
            self._first = largest.result()

    def _again(
        self,
        reach: Reach,
        rules: Sequence[Owner],
        numbers: Mapping[str, int],
        cache_dir: Path | None,
        engine: EngineName,
    ) -> _SecondReading:
        """The second reading for rules with this reach, whose gates get the next numbers."""
        gates: dict[str, list[Owner]] = {}
        for rule in rules:
            _own(gates, rule)
        compiled = make_gate([gate.encode() for gate in gates], cache_dir=cache_dir, engine=engine)
        triggers = frozenset(numbers[trigger] for rule in rules for trigger in rule.when)
        reading = _SecondReading(compiled, triggers, reach, len(self.owners))
        self.owners += map(tuple, gates.values())
        return reading

    def for_thread(self) -> "Prefilter":
        """The same for any one other thread; nothing is compiled again."""
        other = copy(self)
        other._first = self._first.for_thread()
        if self._values is not None:
            other._values = _Values(self._values.gate.for_thread())
        other._second_readings = tuple(
            replace(reading, gate=reading.gate.for_thread()) for reading in self._second_readings
        )
        return other

    def hits(self, data: bytes) -> Sequence[Hit]:
        """The numbers and ends of all matches."""
        hits = self._first.hits(data)
        if not hits:
            return hits
        first_name = self._first_name
        found = [hit for hit in hits if hit[0] < first_name]
        if len(found) < len(hits):
            for reading in self._second_readings:
                found += reading.hits(data, hits)
            if self._values is not None:
                first_trigger = self._first_trigger
                names = [hit for hit in hits if first_name <= hit[0] < first_trigger]
                if names:
                    found += self._values.followed(data, names)
        return found


def _own(gates: dict[str, list[Owner]], rule: Owner) -> None:
    for gate in rule.gates:
        gates.setdefault(gate, []).append(rule)


def _windows(ends: Sequence[int], reach: Reach) -> Iterator[tuple[int, int]]:
    """The windows around these places, which are in order; they do not overlap."""
    before, after = reach
    start, end = max(0, ends[0] - before), ends[0] + after
    for to in ends:
        if to - before > end:
            yield start, end
            start = to - before
        end = to + after
    yield start, end


def has_no_value(data: bytes, to: int) -> bool:
    """Whether the name whose continuation begins right before `to` cannot be followed by a value."""
    last = data[to - 1]
    if last == _BACKSLASH:
        after = data[to : to + 1]
        if after in (b"n", b"r"):
            return _has_nothing_below(data, to + 1)
        return after in (b'"', b"'", b"\\") and _is_subscript(data, to)
    if last in _NEWLINES:
        return data[to - 2] == _BACKSLASH and data[to - 3] != _BACKSLASH and _has_nothing_below(data, to)
    return last in _QUOTES and _is_subscript(data, to)


def _has_nothing_below(data: bytes, start: int) -> bool:
    """Whether none of the words that introduce a value is near below, nor a column of which this name is the head."""
    below = data[start : start + _BELOW_LENGTH].lower()
    if any(word in below for word in VALUE_WORDS):
        return False
    first = below.lstrip(b"\\")[1:2] if data[start - 1 : start] == b"r" and below[:1] == b"\\" else below[:1]
    return first in (b'"', b"\\", b"") or _LAST_HEAD.search(data, max(0, start - _HEAD_LENGTH), start) is None


def _is_subscript(data: bytes, to: int) -> bool:
    opened = data.rfind(b"[", max(0, to - _SUBSCRIPT_LENGTH), to)
    found = _SUBSCRIPT.match(data, opened) if opened >= 0 else None
    return found is not None and found.end() >= to
