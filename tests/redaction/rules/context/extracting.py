"""Run rules over one raw line without an engine: gates with `re`, all ends, then what the rules extract."""

import json
import re
from collections.abc import Iterator, Sequence

from redaction.rules.rule import Family, Rule

DEPTHS = (0, 1, 2, 3)


def spans(rules: Sequence[Rule | Family], line: bytes) -> list[tuple[int, int]]:
    """Where the rules see secrets in the line."""
    found: list[tuple[int, int]] = []
    for rule in rules:
        seen = -1
        for to in sorted({end for gate in rule.gates for end in _ends(gate, line)}):
            if to > seen:
                secrets, seen = rule.extract(line, to)
                assert seen >= to
                found.extend(secret[:2] for secret in secrets)
    return sorted(set(found))


def _ends(gate: str, line: bytes) -> Iterator[int]:
    """Ends of matches: of one from every start, the longest and the shortest."""
    position = 0
    expression = re.compile(gate.encode())
    while (match := expression.search(line, position)) is not None:
        yield match.end()
        for end in range(match.start() + 1, match.end()):
            if expression.fullmatch(line, match.start(), end):
                yield end
        position = match.start() + 1


def masked(rules: Sequence[Rule], text: str, depth: int = 1) -> str:
    """The text with `*` for every secret, found in it at the depth of JSON in JSON, decoded again."""
    raw = text
    for _ in range(depth):
        raw = json.dumps(raw)
    line = raw.encode()
    for start, end in reversed(_joined(spans(rules, line))):
        line = line[:start] + b"*" + line[end:]
    result = line.decode()
    for _ in range(depth):
        result = json.loads(result)
    return result


def _joined(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in found:
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
