"""Finds where in a line a secret may end, for all rules in one pass over the raw bytes.

Hyperscan does it at some hundred megabytes a second. Where it has no wheel, the same expressions run on Python's `re`,
hundreds of times slower and with the same results.
"""

import importlib.util
import re
from collections.abc import Iterator, Sequence
from copy import copy
from operator import itemgetter
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

from redaction.errors import TooManyHitsError
from redaction.prefilter.cache import cached_database, compiled

EngineName: TypeAlias = Literal["hyperscan", "re"]
# The number of the expression, and where its match ends.
Hit: TypeAlias = tuple[int, int]
# No line of a session has as many; a line with more is refused.
HITS_MAX: Final = 1_000_000
_ENDS_AROUND: Final = 32


class PatternGate(Protocol):
    """Compiled expressions; one per thread."""

    def hits(self, line: bytes) -> Sequence[Hit]:
        """The ends of all matches, in order for each expression."""
        ...

    def for_thread(self) -> "PatternGate":
        """The same gate for one other thread; nothing is compiled again."""
        ...


def best_engine() -> EngineName:
    """The fastest engine that is installed."""
    return "hyperscan" if importlib.util.find_spec("hyperscan") is not None else "re"


def make_gate(
    expressions: Sequence[bytes],
    *,
    cache_dir: Path | None = None,
    engine: EngineName | None = None,
    literal: bool = False,
) -> PatternGate:
    """Compile the expressions; `literal` ones are plain texts. `cache_dir` keeps what Hyperscan compiled."""
    name = engine or best_engine()
    if name == "hyperscan":
        return HyperscanGate(expressions, cache_dir, literal=literal)
    if literal:
        expressions = [re.escape(expression) for expression in expressions]
    return SlowGate(expressions)


def _note(number: int, _start: int, to: int, _flags: int, hits: list[Hit]) -> bool:
    hits.append((number, to))
    return len(hits) > HITS_MAX


class HyperscanGate:
    """All expressions in one Hyperscan database."""

    __slots__ = ("_database", "_scan", "_scratch", "_terminated")

    def __init__(self, expressions: Sequence[bytes], cache_dir: Path | None, *, literal: bool) -> None:
        import hyperscan

        if cache_dir is None:
            self._database = compiled(expressions, literal=literal)
        else:
            self._database = cached_database(expressions, cache_dir, literal=literal)
        self._scan = self._database.scan
        self._scratch = hyperscan.Scratch(self._database)
        self._terminated = hyperscan.ScanTerminated

    def hits(self, line: bytes) -> Sequence[Hit]:
        """The ends of all matches."""
        hits: list[Hit] = []
        try:
            # Positional arguments: for a short line keyword arguments would take longer than the rest of the call.
            self._scan(line, _note, 0, hits, self._scratch)
        except self._terminated as error:
            raise TooManyHitsError from error
        return hits

    def for_thread(self) -> "HyperscanGate":
        """The same database with working memory of its own."""
        other = copy(self)
        other._scratch = type(self._scratch)(self._database)
        return other


def _ends(pattern: re.Pattern[bytes], line: bytes, found: re.Match[bytes]) -> Iterator[int]:
    """All ends near the end of this match; `re` itself reports only one end for each beginning."""
    start, end = found.span()
    for to in range(max(start + 1, end - _ENDS_AROUND), min(len(line), end + _ENDS_AROUND) + 1):
        if to == end or pattern.fullmatch(line, start, to) is not None:
            yield to


class SlowGate:
    """The expressions one by one, with Python's `re`."""

    __slots__ = ("_compiled", "_expressions")

    def __init__(self, expressions: Sequence[bytes]) -> None:
        self._expressions = tuple(expressions)
        self._compiled: dict[int, re.Pattern[bytes]] = {}

    def hits(self, line: bytes) -> Sequence[Hit]:
        """The ends of all matches; of those that begin at the same place only the ends that lie close together."""
        hits: list[Hit] = []
        for number, expression in enumerate(self._expressions):
            pattern = self._compiled.get(number)
            if pattern is None:
                pattern = self._compiled[number] = re.compile(expression)
            found = pattern.search(line)
            while found is not None:
                for to in _ends(pattern, line, found):
                    if _note(number, 0, to, 0, hits):
                        raise TooManyHitsError
                found = pattern.search(line, found.start() + 1)
        return sorted(hits, key=itemgetter(1))

    def for_thread(self) -> "SlowGate":
        """This gate itself, which holds no state of a line."""
        return self
