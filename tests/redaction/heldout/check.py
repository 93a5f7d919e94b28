"""What redaction did to a line: what survived of the secret, and what else it changed."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from redaction.engine import Clean, Finding, Masked, Redactor, Refused
from tests.redaction.heldout.dice import RUN_MIN
from tests.redaction.heldout.judged import digest
from tests.redaction.heldout.slots import links

MARKER = re.compile(r"\[REDACTED:[^\]\s]*\]")
BUDGET_MS = 20_000.0
KEY_BYTES = 64
"""The numbers of a list that one marker replaces: a key pair of Solana."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A line after redaction: the line, the findings, and what is wrong with it (empty when nothing is)."""

    line: bytes
    findings: tuple[Finding, ...]
    wrongs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Survival:
    """How much is left: `gone`, `whole`, `some` of several runs whole, or runs in `part`; and its share."""

    state: str
    share: float


def redacted(engine: Redactor, line: bytes, call: str | None = None) -> Outcome:
    """The line as the engine passes it on, and every promise that it broke on the way."""
    result = engine.redact(line, BUDGET_MS, call)
    match result:
        case Clean():
            return Outcome(line, (), ())
        case Refused():
            return Outcome(b"", (), (f"refused-{result.reason}",))
        case Masked():
            return Outcome(result.line, result.findings, tuple(wrongs(engine, line, result.line, call)))


def wrongs(engine: Redactor, before: bytes, after: bytes, call: str | None = None) -> Iterator[str]:
    """The promises that this change of a line breaks; of an answer that is masked as a whole, no JSON stays."""
    try:
        old, new = json.loads(before), json.loads(after)
    except ValueError:
        yield "broken-json"
        return
    if links(old) != links(new):
        yield "changed-link"
    if numbers(before) != numbers(after):
        yield "changed-number"
    if call is None and not inner_valid(old, new):
        yield "broken-inner-json"
    again = engine.redact(after, BUDGET_MS, call)
    if not isinstance(again, Clean) and not (isinstance(again, Masked) and again.line == after):
        yield "not-idempotent"


def numbers(line: bytes) -> list[str]:
    """Every number, boolean and null of the document as it is spelt."""
    found: list[str] = []

    def keep(text: str) -> str:
        found.append(text)
        return text

    json.loads(line, parse_int=keep, parse_float=keep, parse_constant=keep)
    return found


def inner_valid(old: Any, new: Any) -> bool:
    """Whether every string that held a document of JSON still does, at every depth."""
    if isinstance(old, str) and isinstance(new, str):
        inner_old, inner_new = document(old), document(new)
        return inner_old is None or (inner_new is not None and inner_valid(inner_old, inner_new))
    if isinstance(old, dict) and isinstance(new, dict):
        return len(old) == len(new) and all(map(inner_valid, old.values(), new.values()))
    if isinstance(old, list) and isinstance(new, list):
        if len(new) == 1 and isinstance(new[0], str) and MARKER.fullmatch(new[0]) and len(old) == KEY_BYTES:
            return all(isinstance(one, int) for one in old)
        return len(old) == len(new) and all(map(inner_valid, old, new))
    return type(old) is type(new)


def document(text: str) -> Any:
    """The object or list that the string holds as JSON, or nothing."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def strings(value: Any) -> Iterator[str]:
    """Every string of a document, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, member in value.items():
            yield key
            yield from strings(member)
    elif isinstance(value, list):
        for member in value:
            yield from strings(member)


def text_of(line: bytes) -> str:
    """All strings of the line, decoded, with what stands in strings as JSON once more decoded; markers taken out."""
    try:
        found = list(strings(json.loads(line)))
    except ValueError:
        return MARKER.sub("\0", line.decode(errors="replace"))
    return MARKER.sub("\0", "\n".join(found))


def survival(before: bytes, after: bytes, parts: Sequence[str]) -> Survival:
    """What is left of the random parts; runs that the text has elsewhere too do not count."""
    old, new = text_of(before), text_of(after)
    rest = old
    for part in sorted(parts, key=len, reverse=True):
        rest = rest.replace(part, "\0")
    left = total = whole = 0
    parted = False
    for part in parts:
        if part not in old:
            continue
        total += len(part)
        kept = surviving(part, new, rest)
        left, whole = left + kept, whole + (part in new)
        parted = parted or (kept > 0 and part not in new)
    if left == 0:
        return Survival("gone", 0.0)
    state = "part" if parted else "whole" if left >= total * 0.99 else "some"
    return Survival(state, left / max(1, total))


def surviving(part: str, new: str, rest: str) -> int:
    """How many characters of the part stand in runs of more than four that survived."""
    kept = [False] * len(part)
    for at in range(len(part) - RUN_MIN + 1):
        run = part[at : at + RUN_MIN]
        if run in new and run not in rest:
            kept[at : at + RUN_MIN] = [True] * RUN_MIN
    return sum(kept)


def excerpt(line: bytes, finding: Finding) -> tuple[str, str]:
    """The digest of what was flagged, and it with its end shown only by classes of characters and what is around."""
    text = at_path(json.loads(line), finding.path)
    if text is None:
        return "", f"(at {finding.path})"
    flagged = text[finding.start : finding.end]
    shown = flagged[:14] + re.sub(r"[A-Za-z]", "a", re.sub(r"\d", "9", flagged[14:60]))
    around = (text[max(0, finding.start - 50) : finding.start], text[finding.end : finding.end + 25])
    return digest(flagged), repr(f"{around[0]}⟦{shown}⟧{around[1]} ({len(flagged)} characters)")


def at_path(value: Any, pointer: str) -> str | None:
    """The string at a JSON pointer; nothing where the pointer leads nowhere."""
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, str):
            value = document(value)
        if isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, dict) and name in value:
            value = value[name]
        else:
            return None
    return value if isinstance(value, str) else None
