"""Patterns that need no compiler: literals and counted classes in a row, as most formats are.

A thousand formats end with a few dozen classes. To compile an expression for each format that is met costs a hundred
times what it takes to try it; a run of a class is compiled once for all of them.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, TypeAlias

from redaction.rules.shape import UNBOUNDED

# A text that stands there or, where that is empty, a run of characters: what reads it, how many at least and at most.
Step: TypeAlias = tuple[bytes, Callable[[bytes, int, int], re.Match[bytes] | None] | None, int, int]
_ITEM: Final = re.compile(r"(?:(\[[^\[\]\\]*\])|\\([^A-Za-z0-9])|([^\\\[\](){}|*+?.^$]))(?:\{(\d+)(?:(,)(\d*))?\})?")
_NOTHING: Final = -1


@cache
def run_of(characters: str) -> re.Pattern[bytes]:
    """What reads as many characters of a class as there are."""
    return re.compile(f"{characters}*+".encode())


def steps_of(pattern: str) -> tuple[Step, ...] | None:
    """The steps of a pattern of the language of `shape`; None if it is more than literals and counted classes, of which
    only the last has a varying count."""
    steps: list[Step] = []
    literal = ""
    at = 0
    while at < len(pattern):
        item = _ITEM.match(pattern, at)
        if item is None or (steps and steps[-1][2] != steps[-1][3]):
            return None
        at = item.end()
        characters, escaped, plain, least, is_range, most = item.groups()
        if characters is None and least is None:
            literal += escaped or plain
            continue
        if literal:
            steps.append((literal.encode(), None, 0, 0))
            literal = ""
        fewest = int(least or 1)
        run = run_of(characters or f"[{re.escape(escaped or plain)}]")
        steps.append((b"", run.match, fewest, (int(most) if most else UNBOUNDED) if is_range else fewest))
    if literal:
        if steps and steps[-1][2] != steps[-1][3]:
            return None
        steps.append((literal.encode(), None, 0, 0))
    return tuple(steps)


def length_of(steps: Sequence[Step]) -> int | None:
    """How long all that the steps match is; None if that varies."""
    if any(least != most for _, _, least, most in steps):
        return None
    return sum(len(literal) or least for literal, _, least, _ in steps)


def end_of(steps: Sequence[Step], line: bytes, at: int) -> int:
    """Where the match ends that begins there; -1 if none does. The same as of the pattern, compiled."""
    for literal, run, least, most in steps:
        if run is None:
            if not line.startswith(literal, at):
                return _NOTHING
            at += len(literal)
        else:
            found = run(line, at, at + most)
            if found is None or found.end() < at + least:
                return _NOTHING
            at = found.end()
    return at
