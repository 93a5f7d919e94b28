"""Which rules are to look where: the gates of all of them, in two readings of a line.

The first reading is cheap, and for nearly every line the only one. Rules whose gates are costly say what else is in
every line that concerns them; only around such places a line is read a second time.
"""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from redaction.prefilter.ended import is_ended
from redaction.prefilter.gate import EngineName, Hit, PatternGate, best_engine, make_gate
from redaction.rules.rule import AROUND, OPENED_REACH, Family, Reach, Rule

Owner: TypeAlias = Rule | Family
_NOBODY: Final[tuple[Owner, ...]] = ()


@dataclass(frozen=True, slots=True)
class _Reading:
    """A second reading: of what, around which hits of the first, and from which number on its own hits count."""

    gate: PatternGate
    triggers: frozenset[int]
    reach: Reach
    offset: int

    def hits(self, data: bytes, first: Sequence[Hit]) -> Iterator[Hit]:
        """The numbers and ends of all matches around those hits of the first reading that ask for it."""
        triggers = self.triggers
        ends = [to for number, to in first if number in triggers]
        if ends and self.reach == AROUND:
            ends = [to for to in ends if not is_ended(data, to)]
        if not ends:
            return
        ends.sort()
        for start, end in _windows(ends, self.reach):
            for number, to in self.gate.hits(data[start:end]):
                yield number + self.offset, start + to


class Prefilter:
    """The gates of all rules, compiled; one per thread."""

    __slots__ = ("_first", "_readings", "_triggers", "owners")

    def __init__(
        self,
        own: Sequence[str],
        rules: Iterable[Owner],
        *,
        cache_dir: Path | None = None,
        engine: EngineName | None = None,
    ) -> None:
        """`own` are expressions that are nobody's; their hits have the numbers from 0 on."""
        engine = engine or best_engine()
        first: dict[str, list[Owner]] = {gate: [] for gate in own}
        second: dict[Reach, list[Owner]] = {}
        for rule in rules:
            # Only Hyperscan is fast with open counts.
            if rule.when and (engine == "hyperscan" or rule.reach != OPENED_REACH):
                second.setdefault(rule.reach, []).append(rule)
            else:
                _own(first, rule)
        numbers = {gate: number for number, gate in enumerate(first)}
        self._triggers = len(numbers)
        for gate in (gate for rules_of_one in second.values() for rule in rules_of_one for gate in rule.when):
            numbers.setdefault(gate, len(numbers))
        self.owners = [tuple(owners) for owners in first.values()] + [_NOBODY] * (len(numbers) - len(first))
        """Who is to look at a hit, by its number."""
        self._first = make_gate([gate.encode() for gate in numbers], cache_dir=cache_dir, engine=engine)
        readings: list[_Reading] = []
        for reach, again in second.items():
            gates: dict[str, list[Owner]] = {}
            for rule in again:
                _own(gates, rule)
            compiled = make_gate([gate.encode() for gate in gates], cache_dir=cache_dir, engine=engine)
            triggers = frozenset(numbers[trigger] for rule in again for trigger in rule.when)
            readings.append(_Reading(compiled, triggers, reach, len(self.owners)))
            self.owners += map(tuple, gates.values())
        self._readings = tuple(readings)

    def another(self) -> "Prefilter":
        """The same for any one other thread; nothing is compiled."""
        other = copy(self)
        other._first = self._first.another()
        other._readings = tuple(replace(reading, gate=reading.gate.another()) for reading in self._readings)
        return other

    def hits(self, data: bytes) -> Sequence[Hit]:
        """The numbers and ends of all matches."""
        hits = self._first.hits(data)
        if not hits:
            return hits
        triggers = self._triggers
        found = [hit for hit in hits if hit[0] < triggers]
        if len(found) < len(hits):
            for reading in self._readings:
                found += reading.hits(data, hits)
        return found


def _own(gates: dict[str, list[Owner]], rule: Owner) -> None:
    for gate in rule.gates:
        gates.setdefault(gate, []).append(rule)


def _windows(ends: Sequence[int], reach: Reach) -> Iterator[tuple[int, int]]:
    """What lies around these places, without overlaps; they are in order."""
    before, after = reach
    start, end = max(0, ends[0] - before), ends[0] + after
    for to in ends:
        if to - before > end:
            yield start, end
            start = to - before
        end = to + after
    yield start, end
