"""Measure the engine on labelled examples of other scanners (`python -m tests.redaction.eval_recall DIR`)."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redaction.engine import Clean, Engine, Masked, Redactor, Refused
from tests.redaction.heldout.check import BUDGET_MS, MARKER, strings

COVERED_MIN = 0.8
KEY = b"k" * 32


@dataclass(frozen=True, slots=True)
class Example:
    """A labelled text; `secret` is what must be covered, where that is known."""

    source: str
    rule: str
    text: str
    secret: str | None
    positive: bool


def examples(directory: Path) -> Iterator[Example]:
    """All examples of the directory's files."""
    for path in sorted(directory.glob("*.jsonl")):
        for line in path.read_text().split("\n"):
            if line:
                row: dict[str, Any] = json.loads(line)
                yield Example(row["source"], row["rule"], row["text"], row["secret"], row["label"] == "pos")


def event(text: str) -> bytes:
    """The text as a tool's answer in an event."""
    head = {"type": "tool.execution_complete", "data": {"toolCallId": "call_1", "result": {"content": text}}}
    envelope = {"id": "00000000-0000-4000-8000-000000000001", "timestamp": "2026-11-18T09:58:19.660Z", "parentId": None}
    return json.dumps(head | envelope).encode()


def answer(engine: Redactor, text: str) -> str | None:
    """The text as it may leave; nothing when it is withheld."""
    line = event(text)
    result = engine.redact(line, BUDGET_MS)
    match result:
        case Clean():
            return text
        case Refused():
            return None
        case Masked():
            return "\n".join(strings(json.loads(result.line)["data"]["result"]))


def covered(example: Example, left: str | None) -> bool:
    """Whether the secret is gone: four fifths of it, or anything at all where its place is not known."""
    if left is None:
        return True
    if example.secret is None:
        return MARKER.search(left) is not None
    if MARKER.search(left) is None:
        return False
    return gone_share(example.text, left, example.secret) >= COVERED_MIN


def gone_share(text: str, left: str, secret: str) -> float:
    """The share of the secret's characters that stand in no piece of the text that was left."""
    begin = text.find(secret)
    if begin < 0:
        return 0.0 if secret in left else 1.0
    kept = [False] * len(text)
    at = 0
    for piece in MARKER.split(left.removeprefix("content\n")):
        found = text.find(piece, at)
        if found >= 0:
            kept[found : found + len(piece)] = [True] * len(piece)
            at = found + len(piece)
    return 1 - sum(kept[begin : begin + len(secret)]) / max(1, len(secret))


def share(hits: int, total: int) -> str:
    """A share and what it is made of."""
    return f"{hits / max(1, total):6.1%} {hits:5d}/{total:<5d}"


def print_table(title: str, rows: Counter[tuple[str, bool]]) -> None:
    """Shares by name, the worst first."""
    print(title)
    names = {name for name, _ in rows}
    for name in sorted(names, key=lambda name: (rows[name, True] / (rows[name, True] + rows[name, False]), name)):
        print(f"  {share(rows[name, True], rows[name, True] + rows[name, False])} {name}")


def main(argv: list[str]) -> int:
    """Print recall by source and rule, and what is flagged of the near-misses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rule", help="only examples of this rule")
    parser.add_argument("--misses", action="store_true", help="print every miss")
    given = parser.parse_args(argv)
    engine = Engine(key=KEY)
    sources: Counter[tuple[str, bool]] = Counter()
    rules: Counter[tuple[str, bool]] = Counter()
    flagged: Counter[tuple[str, bool]] = Counter()
    for example in examples(given.directory):
        if given.rule and example.rule != given.rule:
            continue
        left = answer(engine, example.text)
        if not example.positive:
            flagged[example.source, left != example.text] += 1
            continue
        hit = covered(example, left)
        sources[example.source, hit] += 1
        rules[f"{example.source}: {example.rule}", hit] += 1
        if given.misses and not hit:
            print(f"MISS {example.source} {example.rule}: {example.text!r} (secret: {example.secret!r})")
    print_table("Recall by rule", rules)
    print_table("Negatives flagged by source (mostly near-misses in a secret-looking place)", flagged)
    print_table("Recall by source", sources)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
