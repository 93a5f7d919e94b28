"""Finds the spans of secrets in raw bytes: one pass of the gate, a look around each of its hits, repeated on what is
left until nothing more is found."""

import hashlib
import hmac
import re
import secrets
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Final

from redaction.baseline import digest
from redaction.gate import EngineName, Hit, make_gate
from redaction.known import KNOWN_RULE, KnownValues
from redaction.raw import unescaped
from redaction.rule import Family, Rule
from redaction.views import HIDDEN_GATES, revealed, snapped

MARKER: Final = re.compile(rb"\[REDACTED:([a-z0-9.-]{1,48}):[0-9a-f]{8}\]")
_MARKER_GATE: Final = r"\[REDACTED:[a-z0-9.-]{1,48}:[0-9a-f]{8}\]"
_OWN_GATES: Final = (_MARKER_GATE, *HIDDEN_GATES)
ROUNDS_MAX: Final = 6
_LOOKS_PER_CHECK: Final = 64
# Between so much base64 on both sides a hit is chance: an image, an archive.
_BINARY_LENGTH: Final = 256
_BINARY: Final = re.compile(rb"[A-Za-z0-9+/]{256}")


class OutOfTimeError(Exception):
    """The time budget ended."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What is not a secret although it looks like one: this very value, values that match as a whole, all that a rule
    finds, or values with these digests (see `baseline`), which do not make a known value harmless."""

    value: str | None = None
    pattern: re.Pattern[str] | None = None
    rule: str | None = None
    digests: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Span:
    """Where a secret stands in the raw bytes, and by which rule."""

    start: int
    end: int
    rule: Rule


@dataclass(frozen=True, slots=True)
class Deadline:
    """The moment after which work on an event stops."""

    at: float

    @classmethod
    def after(cls, budget_ms: float) -> "Deadline":
        """The deadline of work that may take so long from now on."""
        return cls(time.perf_counter() + budget_ms / 1000)

    def check(self) -> None:
        """Raise `OutOfTimeError` when it has passed."""
        if time.perf_counter() >= self.at:
            raise OutOfTimeError


class Search:
    """All rules, known values and exceptions, compiled; one per thread."""

    __slots__ = (
        "_allowed",
        "_first_count",
        "_gate",
        "_key",
        "_names",
        "_owners",
        "_second",
        "_stars",
        "_triggers",
        "known",
        "rules",
    )

    def __init__(
        self,
        rules: Sequence[Rule | Family],
        known: KnownValues,
        allowed: Iterable[Allowed] = (),
        key: bytes | None = None,
        *,
        stars: bool = False,
        cache_dir: Path | None = None,
        engine: EngineName | None = None,
    ) -> None:
        every = (one.rules if isinstance(one, Family) else (one,) for one in rules)
        self.rules = tuple(dict.fromkeys(chain.from_iterable(every)))
        self.known = known
        self._allowed = tuple(allowed)
        self._key = key or secrets.token_bytes(32)
        self._stars = stars
        self._names = frozenset(rule.id.encode() for rule in (*self.rules, KNOWN_RULE))
        first: dict[str, list[Rule | Family]] = {gate: [] for gate in _OWN_GATES}
        first.update((gate, []) for rule in rules if isinstance(rule, Rule) for gate in rule.when)
        self._triggers = range(len(_OWN_GATES), len(first))
        second: dict[str, list[Rule | Family]] = {}
        for rule in rules:
            owners = second if isinstance(rule, Rule) and rule.when else first
            for gate in rule.gates:
                owners.setdefault(gate, []).append(rule)
        self._owners = [*first.values(), *second.values()]
        self._first_count = len(first)
        gates = [[gate.encode() for gate in owners] for owners in (first, second)]
        self._gate = make_gate(gates[0], cache_dir=cache_dir, engine=engine)
        self._second = make_gate(gates[1], cache_dir=cache_dir, engine=engine) if second else None

    def another(self, known: KnownValues) -> "Search":
        """The same search with other known values, for any one thread; only those values are compiled."""
        other = copy(self)
        other.known = known
        other._gate = self._gate.another()
        other._second = self._second.another() if self._second is not None else None
        return other

    def spans(self, data: bytes, deadline: Deadline) -> Sequence[Span]:
        """The stretches to mask, in order and apart; usually none, and then this is all that it costs."""
        hits = self._hits(data)
        if not hits and not (self.known and self.known.hits(data)):
            return ()
        found: list[Span] = []
        rest = data
        for _ in range(ROUNDS_MAX):
            deadline.check()
            more = self._round(rest, hits, deadline)
            if not more:
                break
            found += more
            # Lengths stay, and with them all places.
            rest = _blanked(rest, more)
            hits = self._hits(rest)
        return _merged(found)

    def marker(self, secret: bytes, rule: Rule) -> bytes:
        """What stands for a secret in the output: the same for the same secret, however it is escaped."""
        if self._stars:
            return b"******"
        plain = secret
        if b"\\" in secret or b"\x1b" in secret:
            plain = unescaped(revealed(secret).data).encode("utf-8", "surrogatepass")
        tag = hmac.digest(self._key, plain, hashlib.sha256)[:4].hex()
        return b"[REDACTED:%b:%b]" % (rule.id.encode(), tag.encode())

    def _hits(self, data: bytes) -> Sequence[Hit]:
        """The hits of all gates; those of costly ones are looked for only where something says that they may hit."""
        hits = self._gate.hits(data)
        triggers = self._triggers
        if self._second is None or not any(number in triggers for number, _ in hits):
            return hits
        offset = self._first_count
        return [
            *(hit for hit in hits if hit[0] not in triggers),
            *((number + offset, to) for number, to in self._second.hits(data)),
        ]

    def _round(self, data: bytes, hits: Sequence[Hit], deadline: Deadline) -> list[Span]:
        own = {number for number, _ in hits if number < len(_OWN_GATES)}
        if 0 in own:
            unmarked = MARKER.sub(self._without_marker, data)
            if unmarked != data:
                return self._round(unmarked, self._hits(unmarked), deadline)
        found = self._looked(data, hits, deadline)
        if own - {0}:
            view = revealed(data)
            for span in self._looked(view.data, self._hits(view.data), deadline):
                start, end = view.origin(span.start, span.end)
                found.append(replace(span, start=start, end=end))
        return self._kept(data, found)

    def _without_marker(self, marker: re.Match[bytes]) -> bytes:
        return _nothing(len(marker[0])) if marker[1] in self._names else marker[0]

    def _looked(self, data: bytes, hits: Sequence[Hit], deadline: Deadline) -> list[Span]:
        seen: dict[Rule | Family, int] = {}
        found: list[Span] = []
        later: list[tuple[Rule, int]] = []
        looks = 0
        for number, to in hits:
            for owner in self._owners[number]:
                if to <= seen.get(owner, -1):
                    continue
                looks += 1
                if looks % _LOOKS_PER_CHECK == 0:
                    deadline.check()
                if isinstance(owner, Family):
                    named, seen[owner] = owner.look(data, to)
                    found.extend(Span(*one) for one in named)
                elif owner.is_borrowed:
                    later.append((owner, to))
                else:
                    spans, seen[owner] = owner.look(data, to)
                    found.extend(Span(start, end, owner) for start, end in spans)
        if self.known:
            found.extend(Span(start, end, KNOWN_RULE) for start, end in self.known.find(data))
        if later:
            found.extend(_borrowed(data, later, found, deadline))
        return found

    def _kept(self, data: bytes, found: Iterable[Span]) -> list[Span]:
        kept: list[Span] = []
        has_escapes = b"\\" in data
        for span in found:
            start, end = snapped(data, span.start, span.end) if has_escapes else (span.start, span.end)
            if start < end and not _is_binary(data, start, end) and not self._allows(data[start:end], span.rule):
                kept.append(span if start == span.start and end == span.end else Span(start, end, span.rule))
        return kept

    def _allows(self, secret: bytes, rule: Rule) -> bool:
        if not self._allowed:
            return False
        text = unescaped(secret)
        return any(
            text == allowed.value
            or rule.id == allowed.rule
            or (allowed.pattern is not None and allowed.pattern.fullmatch(text) is not None)
            or (allowed.digests and rule is not KNOWN_RULE and digest(text) in allowed.digests)
            for allowed in self._allowed
        )


def _borrowed(
    data: bytes, hits: Iterable[tuple[Rule, int]], found: Iterable[Span], deadline: Deadline
) -> Iterator[Span]:
    """What detect-secrets' detectors find where no rule of ours did: their looks are many times slower."""
    covered = _merged(found)
    starts = [span.start for span in covered]
    seen: dict[Rule, int] = {}
    for rule, to in hits:
        before = bisect_left(starts, to) - 1
        if to <= seen.get(rule, -1) or (before >= 0 and to <= covered[before].end):
            continue
        deadline.check()
        spans, seen[rule] = rule.look(data, to)
        for start, end in spans:
            yield Span(start, end, rule)


def _is_binary(data: bytes, start: int, end: int) -> bool:
    return (
        end - start < _BINARY_LENGTH
        and len(data) > 2 * _BINARY_LENGTH
        and (
            _BINARY.fullmatch(data, max(0, start - _BINARY_LENGTH), start) is not None
            and _BINARY.match(data, end) is not None
        )
    )


def _nothing(length: int) -> bytes:
    """What stands where a secret was: ends a word, a line, and what goes on over lines."""
    return b"\n" + b"\0" * (length - 2) + b"\n" if length > 2 else b"\n" * length


def _blanked(data: bytes, spans: Iterable[Span]) -> bytes:
    blanked = bytearray(data)
    for span in spans:
        blanked[span.start : span.end] = _nothing(span.end - span.start)
    return bytes(blanked)


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Overlapping spans as one, named after a known value, else after the longest of our own rules among them."""
    merged: list[Span] = []
    best = 0
    for span in sorted(spans, key=lambda span: (span.start, span.rule.is_borrowed, -span.end)):
        length = span.end - span.start
        if not merged or span.start >= merged[-1].end:
            merged.append(span)
            best = length
            continue
        is_better = span.rule is KNOWN_RULE or (
            length > best and not span.rule.is_borrowed and merged[-1].rule is not KNOWN_RULE
        )
        named = span if is_better else merged[-1]
        best = max(best, length)
        merged[-1] = Span(merged[-1].start, max(span.end, merged[-1].end), named.rule)
    return merged


def masked(data: bytes, replacements: Iterable[tuple[int, int, bytes]]) -> bytes:
    """The data with each stretch replaced; stretches are in order and apart."""
    pieces: list[bytes] = []
    position = 0
    for start, end, new in replacements:
        pieces += (data[position:start], new)
        position = end
    pieces.append(data[position:])
    return b"".join(pieces)
