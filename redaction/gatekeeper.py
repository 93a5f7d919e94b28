"""Which rules are to look where: the gates of all of them, in two readings of a line.

The first reading is cheap, and for nearly every line the only one. Rules whose gates are costly say what else is in
every line that concerns them; only around such places a line is read a second time.
"""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Final, TypeAlias

from redaction.gate import EngineName, Hit, make_gate
from redaction.rule import Family, Rule

Owner: TypeAlias = Rule | Family
# How far from such a place a costly gate may begin and end.
_BEFORE: Final = 160
_AFTER: Final = 400
_NOBODY: Final[tuple[Owner, ...]] = ()


class Gatekeeper:
    """The gates of all rules, compiled; one per thread."""

    __slots__ = ("_first", "_first_count", "_second", "_triggers", "owners")

    def __init__(
        self,
        own: Sequence[str],
        rules: Iterable[Owner],
        *,
        cache_dir: Path | None = None,
        engine: EngineName | None = None,
    ) -> None:
        """`own` are expressions that are nobody's; their hits have the numbers from 0 on."""
        first: dict[str, list[Owner]] = {gate: [] for gate in own}
        second: dict[str, list[Owner]] = {}
        every = list(rules)
        first.update((gate, []) for rule in every if isinstance(rule, Rule) for gate in rule.when)
        self._triggers = range(len(own), len(first))
        for rule in every:
            owners = second if isinstance(rule, Rule) and rule.when else first
            for gate in rule.gates:
                owners.setdefault(gate, []).append(rule)
        self.owners = [tuple(owners) or _NOBODY for owners in (*first.values(), *second.values())]
        """Who is to look at a hit, by its number."""
        self._first_count = len(first)
        self._first = make_gate([gate.encode() for gate in first], cache_dir=cache_dir, engine=engine)
        expressions = [gate.encode() for gate in second]
        self._second = make_gate(expressions, cache_dir=cache_dir, engine=engine) if second else None

    def another(self) -> "Gatekeeper":
        """The same for any one other thread; nothing is compiled."""
        other = copy(self)
        other._first = self._first.another()
        other._second = self._second.another() if self._second is not None else None
        return other

    def hits(self, data: bytes) -> Sequence[Hit]:
        """The numbers and ends of all matches."""
        hits = self._first.hits(data)
        if not hits or self._second is None:
            return hits
        triggers = self._triggers
        ends = sorted(to for number, to in hits if number in triggers)
        if not ends:
            return hits
        again = [hit for hit in hits if hit[0] not in triggers]
        offset = self._first_count
        for start, end in _windows(ends):
            again += ((number + offset, start + to) for number, to in self._second.hits(data[start:end]))
        return again


def _windows(ends: Sequence[int]) -> Iterator[tuple[int, int]]:
    """What lies around these places, without overlaps; they are in order."""
    start, end = max(0, ends[0] - _BEFORE), ends[0] + _AFTER
    for to in ends:
        if to - _BEFORE > end:
            yield start, end
            start = to - _BEFORE
        end = to + _AFTER
    yield start, end
