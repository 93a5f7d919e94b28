"""Formats whose shape says little: a value is theirs only when it is assigned to one of their names.

There are hundreds of them, with several names each. The gate looks for one telling word per name; whether that word is
part of a name that is assigned something at all is asked once per word, for all formats together.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from redaction.extent_of import Extent
from redaction.raw import ASSIGN
from redaction.rule import Family, Rule, RuleSpan

# Words that are in every other line of a program: a name is not known by them.
_COMMON_WORDS: Final = """
access account active addr admin agent alpha amazon analysis apikey application auth authorization azure base bearer
bootstrap bucket build call central chan channel chat cloud code coder company compare config connection consumer
content convert cookie credential credentials current dark data database default deep deploy detect developer device
disk document drive easy encryption environment event expo external face form full gateway generic github gitlab
global google graph group hash help here host hosted http https image info insert integration iterable join keys
language last legacy license line link listen lite live login machine magic mail management market master medium
message messaging meta meter microsoft monitoring name nasa node only open openai organization over overflow package
page parse pass passphrase password payload personal phrase platform play pool position post prep previous primary
private production project public publish push query quest rate read record refresh registration registry remove
repo reporter rest ring root runner salt sandbox schema search secondary secret segment semaphore send server
service session setup shared shop sign signal signature signing site smtp source space spaces specific split sport
stack staging static stats status storage stream subscribe subscription system team tele test text time times token
topic total tracker tran translate trip update upload user username value vision walk webhook wire wise work
workspace write zero
"""
_COMMON: Final = frozenset(_COMMON_WORDS.split())
_WORD_MIN: Final = 4
_WHOLE_MIN: Final = 6
_BEFORE: Final = 48
_ASSIGNED: Final = re.compile(rb"[0-9A-Za-z_. -]{0,40}" + ASSIGN.encode())
_REST: Final = rb"[0-9A-Za-z_. -]{0,20}" + ASSIGN.encode() + rb"\Z"


class Member:
    """One format of a family: its rule, its names, and what its values look like."""

    __slots__ = ("_compiled", "_names", "extent", "rule")

    def __init__(self, rule: Rule, names: Sequence[str], extent: Extent) -> None:
        self.rule = rule
        self.extent = extent
        self._names = b"(?i:" + b"|".join(_spelt(name).encode() for name in names) + b")" + _REST
        self._compiled: re.Pattern[bytes] | None = None

    def is_named(self, name: bytes) -> bool:
        """Whether this text, with the assignment at its end, ends with one of the names."""
        if self._compiled is None:
            self._compiled = re.compile(self._names)
        return self._compiled.search(name) is not None


def _spelt(name: str) -> str:
    return "[_. -]?".join(map(re.escape, name.split()))


def gate_of(name: str) -> str | None:
    """The expression that finds a name, if it can be found without what follows it."""
    words = name.split()
    word = max((word for word in words if word not in _COMMON), key=len, default="")
    if len(word) >= _WORD_MIN:
        return f"(?i:{re.escape(word)})"
    return f"(?i:{_spelt(name)})" if len(words) > 1 and len("".join(words)) >= _WHOLE_MIN and word else None


def families(members: Iterable[tuple[Member, Sequence[str]]]) -> Iterator[Family]:
    """One family for each telling word."""
    by_gate: dict[str, dict[Member, None]] = {}
    for member, names in members:
        for name in names:
            gate = gate_of(name) or f"(?i:{_spelt(name)})[0-9A-Za-z_. -]{{0,20}}{ASSIGN}"
            by_gate.setdefault(gate, {})[member] = None
    for gate, found in by_gate.items():
        yield _family(gate, tuple(found))


def _family(gate: str, members: Sequence[Member]) -> Family:
    is_whole = gate.endswith(ASSIGN)

    def look(line: bytes, to: int) -> tuple[Sequence[RuleSpan], int]:
        if is_whole:
            start = to
        else:
            assigned = _ASSIGNED.match(line, to)
            if assigned is None:
                return (), to
            start = assigned.end()
        name = b""
        for member in members:
            found = member.extent.pattern().match(line, start)
            if found is None:
                continue
            spans, _ = member.extent.of(line, found)
            name = name or line[max(0, to - _BEFORE) : start]
            if spans and member.is_named(name):
                return tuple((*span, member.rule) for span in spans), spans[-1][1]
        return (), to

    return Family(tuple(member.rule for member in members), (gate,), look)
