"""Secrets of the shape of a rule's own example: the same alphabet at every place, checksums that are right."""

import base64
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from typing import Final

from redaction.engine import Engine
from redaction.heuristics.placeholders import is_placeholder
from redaction.rules.examples import expanded
from redaction.rules.formats import built_in_pack

SEED: Final = "planted 2026-11-19"
_PART: Final = re.compile(r"<([A-Za-z0-9]+)(?::(\d+))?>")
_ENCODED: Final = {
    "docker-auth": ("c29tZW9uZTpodW50ZXIy", "someone:<base62:15>"),
    "basic-auth": ("c29tZW9uZTpodW50ZXIy", "someone:<base62:15>"),
    "kubernetes-secret": ("a29ycmVrdC03LXBmZXJk", "<base62:15>"),
}
"""Rules whose example is base64 of something: what is replaced, and by the base64 of what."""
_PUBLIC: Final = {
    ("azure-app-configuration-secret", 0),
    ("calendar-address.published", 0),
    ("power-automate-webhook", 0),
    ("sentry-dsn-secret", 0),
    ("tines-webhook", 0),
    ("zerotier-identity", 1),
}
"""Parts of examples, by number, that are no secret: ids and public keys."""
_LONG, _HALF, _SHORT = 16, 12, 8
_RUN: Final = re.compile(r"[^\s\"'`,;()<>|=]*")
_SAID: Final = 3
_DISTINCT_MIN: Final = 5
_DIGITS: Final = re.compile("[0-9]+")
_RUNS_MIN: Final = 3
_NO_WORD: Final = re.compile(".{0,5}[0-9A-Z]")
"""A sentence continues with words, and words are in lower case."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A text with a secret in it, and the parts of the secret, of which none may be found anywhere."""

    kind: str
    text: str
    needles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """A rule and its example.

    `is_token`: it needs no name beside it, wherever it stands. `is_judged`: its value is secret only if it looks like
    it; what reads like a name or holds a placeholder is none, and a random value may happen to. With three runs of
    digits none is a name (`redaction/heuristics/secrecy.py`): such values are drawn; of others, those with a digit.
    """

    id: str
    template: str
    is_token: bool
    is_judged: bool

    def secret(self, number: int) -> Secret:
        """Return the secret with this number, always the same one."""
        for attempt in count():
            text, parts = _drawn(self, f"{SEED}/{self.id}/{number}/{attempt}")
            value = max((part for _, part in parts), key=len)
            if self._looks_secret(value):
                return Secret(self.id, text, tuple(_needles(self.id, text, parts)))
        raise AssertionError

    def _looks_secret(self, value: str) -> bool:
        if len(value) < _SHORT:
            return True
        runs = len(_DIGITS.findall(value))
        wanted = _RUNS_MIN if self.is_judged and len(value) < 2 * _LONG else 1
        has_digits = re.search("<(?!lower|upper|letters|bip39)", self.template) is not None
        if self.is_judged and is_placeholder(value):
            return False
        if self.id == "said-secret" and not _NO_WORD.match(value):
            return False
        return len(set(value)) >= _DISTINCT_MIN and (runs >= wanted or not has_digits)


def kinds(cache_dir: Path) -> tuple[Kind, ...]:
    """Return every rule that has an example; those of detect-secrets have none."""
    tokens = {row.id: not row.near for row, _ in built_in_pack(cache_dir).rows}
    rules = (rule for rule in Engine(bytes(32), cache_dir=cache_dir).rules() if rule.example and rule.gates)
    found = [Kind(rule.id, rule.example, tokens.get(rule.id, False), rule.id not in tokens) for rule in rules]
    Random(SEED).shuffle(found)  # so that every session has some of every table
    return tuple(found)


def secrets(found: Sequence[Kind], first: int, number: int) -> Iterator[Secret]:
    """Yield so many secrets from the first on: one of every kind, then the next one of every kind."""
    for at in range(first, first + number):
        yield found[at % len(found)].secret(at // len(found))


def _drawn(kind: Kind, seed: str) -> tuple[str, list[tuple[int, str]]]:
    """Return a text of the example's shape, and its random parts with where they begin."""
    if kind.id in _ENCODED:
        old, plain = _ENCODED[kind.id]
        new = base64.b64encode(expanded(plain, seed).encode()).decode()
        return kind.template.replace(old, new), [(kind.template.index(old), new)]
    text = expanded(kind.template, seed)
    match = _shape(kind.template).fullmatch(text)
    assert match is not None, kind
    return text, [(match.start(number + 1), part) for number, part in enumerate(match.groups())]


@cache
def _shape(template: str) -> re.Pattern[str]:
    """Return an expression with a group for each random part."""
    lengths = {"jwt": r"([\w.-]+)", "uuid": "(.{36})", "wif": "(.{52})", "bip39": "([a-z ]+)", "crc32": "(.{6})",
               "bytes": r"([\d,]+)"}  # fmt: skip
    fixed = [re.escape(text) for text in _PART.sub("\0", template).split("\0")]
    parts = [lengths.get(part[1], f"(.{{{part[2] or 1}}})") for part in _PART.finditer(template)]
    return re.compile("".join(one for pair in zip(fixed, [*parts, ""], strict=True) for one in pair), re.DOTALL)


def _needles(kind: str, text: str, parts: Sequence[tuple[int, str]]) -> Iterator[str]:
    """Yield the longest part and every long one, in halves where a half is long enough to be found by itself."""
    secret = [one for number, one in enumerate(parts) if (kind, number) not in _PUBLIC]
    longest = max(len(part) for _, part in secret)
    for start, part in secret:
        half = len(part) // 2
        if len(part) < longest and len(part) < _LONG:
            continue
        if half >= _HALF:
            yield part[:half]
            yield part[half:]
        elif len(part) >= _SHORT:
            yield part
        else:  # too short to tell: with all that is joined to it
            before = _RUN.match(text[:start][::-1])
            after = _RUN.match(text, start)
            assert before is not None and after is not None
            joined = before[0][::-1] + after[0]
            # So few digits are in many ids and times by chance; what a sentence says before them is not.
            yield text[start - _SAID : start] + joined if joined.isdigit() else joined
