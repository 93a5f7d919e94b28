"""Finds the spans of secrets in one text: every rule on every view of it, repeated until the masked text holds
nothing more."""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from redaction.old_gate import revealed
from redaction.keywords import KEYWORD_RULE
from redaction.known import KnownValues
from redaction.old_rules import Rule
from redaction.views import ANSI, View, layers, plain, snap

MARKER = re.compile(r"\[REDACTED:([a-z0-9.-]{1,48}):[0-9a-f]{8}\]")
ROUNDS_MAX = 6
BORROWED = "detect-secrets."  # a rule of ours says better what it is
KNOWN_RULE = Rule("known-value", "known values", "", (), lambda _: iter(()))


class OutOfTimeError(Exception):
    """The time budget ended."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What is not a secret although it looks like one: this very value, values that match, or all that a rule finds."""

    value: str | None = None
    pattern: re.Pattern[str] | None = None
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """A masked stretch of a text; `marker` stands for it in the output."""

    start: int
    end: int
    rule: str
    confidence: str
    marker: str


@dataclass(frozen=True, slots=True)
class Deadline:
    """The moment after which work on an event stops."""

    at: float

    @classmethod
    def after(cls, budget_ms: float) -> "Deadline":
        """The deadline of work that may take so long from now on."""
        return cls(time.perf_counter() + budget_ms / 1000)

    def check(self) -> None:
        """Raises `OutOfTimeError` when it has passed."""
        if time.perf_counter() >= self.at:
            raise OutOfTimeError


class Search:
    """All rules, known values and exceptions, compiled."""

    __slots__ = ("_allowed", "_key", "_names", "known", "rules")

    def __init__(
        self, rules: Sequence[Rule], known: KnownValues, allowed: Iterable[Allowed], key: bytes | None
    ) -> None:
        self.rules = tuple(rules)
        self.known = known
        self._allowed = tuple(allowed)
        self._key = key or secrets.token_bytes(32)
        self._names = frozenset(rule.id for rule in (*rules, KNOWN_RULE))

    def active(self, line: str) -> tuple[Rule, ...]:
        """The rules that may find something in the line; every other one may be left out for all parts of it."""
        lowered = line.lower()
        return tuple(
            rule
            for rule in self.rules
            if any(map(lowered.__contains__, rule.needles)) and (rule.hint is None or rule.hint(line))
        )

    def text_spans(self, text: str, deadline: Deadline) -> list[Span]:
        """The stretches of a free text to mask."""
        seen = revealed(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")
        return self.spans(text, self.active(ANSI.sub("", seen)), deadline)

    def spans(self, text: str, rules: Sequence[Rule], deadline: Deadline, *, is_secret: bool = False) -> list[Span]:
        """The stretches to mask, in order and apart; `is_secret` says that the whole text is one because of its
        name."""
        found: list[Span] = []
        if "\\" not in text and "\x1b" not in text:
            lowered = text.lower()
            rules = [rule for rule in rules if any(map(lowered.__contains__, rule.needles))]
            if not rules and not is_secret and not self.known:
                return found
        for _ in range(ROUNDS_MAX):
            masked = View(text, ((span.start, span.end, span.marker) for span in found))
            more = self._round(masked, rules, deadline)
            if not more:
                break
            found = _merged(found + more)
        if is_secret and sum(span.end - span.start for span in found) < len(text):
            return list(self._span(KEYWORD_RULE, plain(text), 0, len(text)))
        return found

    def _round(self, base: View, rules: Sequence[Rule], deadline: Deadline) -> list[Span]:
        # Our own markers are not text: each becomes as many characters as it has, which no rule accepts.
        start = View(MARKER.sub(self._blanked, base.text), (), base)
        found: list[Span] = []
        for view in layers(start):
            lowered = view.text.lower()
            for rule in rules:
                deadline.check()
                if any(map(lowered.__contains__, rule.needles)):
                    for hit in rule.find(view.text):
                        found.extend(self._span(rule, view, *hit))
            deadline.check()
            for hit in self.known.find(view.text):
                found.extend(self._span(KNOWN_RULE, view, *hit))
        return found

    def _span(self, rule: Rule, view: View, start: int, end: int) -> Iterator[Span]:
        start, end = snap(view.text, start, end)
        secret = view.text[start:end]
        if not secret.strip("\0") or any(_allows(allowed, rule.id, secret) for allowed in self._allowed):
            return
        tag = hmac.new(self._key, secret.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:8]
        yield Span(*view.origin(start, end), rule.id, rule.confidence, f"[REDACTED:{rule.id}:{tag}]")

    def _blanked(self, marker: re.Match[str]) -> str:
        return "\0" * len(marker[0]) if marker[1] in self._names else marker[0]


def _allows(allowed: Allowed, rule: str, secret: str) -> bool:
    return (
        secret == allowed.value
        or rule == allowed.rule
        or (allowed.pattern is not None and allowed.pattern.search(secret) is not None)
    )


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Overlapping spans as one, named after the longest of our own rules among them."""
    merged: list[Span] = []
    best = 0
    for span in sorted(spans, key=lambda span: (span.start, span.rule.startswith(BORROWED))):
        length = span.end - span.start
        if not merged or span.start >= merged[-1].end:
            merged.append(span)
            best = length
            continue
        named = span if length > best and not span.rule.startswith(BORROWED) else merged[-1]
        best = max(best, length)
        merged[-1] = replace(named, start=merged[-1].start, end=max(span.end, merged[-1].end))
    return merged


def masked(text: str, spans: Iterable[Span]) -> str:
    """The text with each span replaced by its marker."""
    return View(text, ((span.start, span.end, span.marker) for span in spans)).text
