"""Tries a rule of a user before it is used: on its own examples, and on hostile text."""

import re
import time
from collections.abc import Iterator
from typing import Final

from redaction.errors import RuleError
from redaction.prefilter.gate import make_gate
from redaction.rules.examples import expanded
from redaction.rules.formats import Format, rules_of
from redaction.rules.shape import Shape, sample

_SIZES: Final = (1_000, 4_000, 16_000, 64_000)
_BYTES_PER_SECOND_MIN: Final = 2_000_000
_SECONDS_GRANTED: Final = 0.02  # for a busy machine


class _Shortest:
    """Chooses the smallest number and the last character of a class."""

    def choice(self, of: str, /) -> str:
        """The last one."""
        return of[-1]

    def randint(self, least: int, most: int, /) -> int:
        """The least."""
        return least


def check_rule(row: Format, shape: Shape, file: str) -> None:
    """Raise `RuleError` for a row that fails its own examples or takes too long."""
    rules = list(rules_of([(row, shape)]))
    try:
        gates = [make_gate([one.encode() for one in rule.gates]) for rule in rules]
    except Exception as error:
        raise RuleError(file, row.id, f"it does not compile: {error}") from error

    def found(data: bytes) -> bool:
        seen = 0
        any_found = False
        for rule, gate in zip(rules, gates, strict=True):
            for _, to in gate.hits(data):
                if to > seen:
                    spans, seen = rule.extract(data, to)
                    any_found = any_found or bool(spans)
            seen = 0
        return any_found

    for text, wanted in ((row.example, True), (row.counter, False)):
        try:
            # Not at the end of the text: a token that may have been cut off there is taken for one.
            data = expanded(text).encode() + b"\n"
        except KeyError as error:
            raise RuleError(file, row.id, f"no alphabet is called {error.args[0]}") from error
        if found(data) is not wanted:
            raise RuleError(
                file, row.id, f"it {'does not find its example' if wanted else 'finds its counter example'}"
            )
    for flood in _floods(row):
        for size in _SIZES:
            data = (flood * (size // len(flood) + 1))[:size]
            started = time.process_time()
            found(data)
            taken = time.process_time() - started
            if taken > _SECONDS_GRANTED + size / _BYTES_PER_SECOND_MIN:
                raise RuleError(file, row.id, f"it is too slow: {taken:.2f} s for {size} bytes of hostile text")


def _floods(row: Format) -> Iterator[bytes]:
    """Hostile texts, which nearly match again and again."""
    secret = sample(row.pattern, _Shortest())
    name = f"{row.near[0]}=" if row.near else ""
    prefix = re.match(r"[^\[({?]+", row.pattern)
    yield f"{name}{secret}".encode()
    yield f"{name}{secret} ".encode()
    yield f"{name}{secret[:-1]} ".encode()
    yield secret[-1].encode()
    yield secret[0].encode()
    if prefix is not None:
        yield f"{name}{prefix[0]}".replace("\\", "").encode()
