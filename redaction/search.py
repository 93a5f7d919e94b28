"""Finds the spans of secrets in raw bytes: one pass of the gates, a look around each of their hits, repeated on what
is left until nothing more is found."""

import hashlib
import re
import secrets
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from redaction.baseline import digest
from redaction.deadline import Deadline
from redaction.known import KNOWN_RULE, KnownValues
from redaction.prefilter.gate import EngineName, Hit
from redaction.prefilter.prefilter import Owner, Prefilter
from redaction.rules.rule import Family, Rule
from redaction.text.escapes import unescaped
from redaction.text.percent import PERCENT_GATES, percent_revealed
from redaction.text.spans import SecretSpan, is_binary, merged_spans, nothing
from redaction.text.views import HIDDEN_GATES, Replacement, View, plain, revealed, snapped

_MARKER: Final = re.compile(rb"\[REDACTED:([a-z0-9.-]{1,48}):[0-9a-f]{8}\]")
_MARKER_GATE: Final = r"\[REDACTED:[a-z0-9.-]{1,48}:[0-9a-f]{8}\]"
_OWN_GATES: Final = (_MARKER_GATE, *HIDDEN_GATES, *PERCENT_GATES)
# Other ways to see a line in which these gates hit.
_VIEWS: Final = (
    (range(1, 1 + len(HIDDEN_GATES)), revealed),
    (range(1 + len(HIDDEN_GATES), len(_OWN_GATES)), percent_revealed),
)
_ROUNDS_MAX: Final = 6
_LOOKS_PER_CHECK: Final = 64
_TAG_LENGTH: Final = 8
_BLOCK_LENGTH: Final = 64
_INSIDE: Final = bytes(byte ^ 0x36 for byte in range(256))
_OUTSIDE: Final = bytes(byte ^ 0x5C for byte in range(256))


@dataclass(frozen=True, slots=True)
class Allowed:
    """What is not a secret although it looks like one: this very value, values that match as a whole, all that a rule
    finds, or values with these digests (see `baseline`), which do not make a known value harmless."""

    value: str | None = None
    pattern: re.Pattern[str] | None = None
    rule: str | None = None
    digests: frozenset[str] = frozenset()


class SecretSearch:
    """All rules, known values and exceptions, compiled; one per thread."""

    __slots__ = (
        "_allowed",
        "_begins",
        "_blanks",
        "_gates",
        "_names",
        "_stars",
        "_tag",
        "hits",
        "known",
        "knows_nothing",
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
        self.knows_nothing = not known
        self._allowed = tuple(allowed)
        self._tag = _tagging(key or secrets.token_bytes(32))
        self._begins: dict[Rule, bytes] = {}
        self._stars = stars
        self._blanks: dict[Rule, bytes] = {}
        self._names = frozenset(rule.id.encode() for rule in (*self.rules, KNOWN_RULE))
        self._gates = Prefilter(_OWN_GATES, rules, cache_dir=cache_dir, engine=engine)
        self.hits = self._gates.hits
        """What the gates say of some data, before any rule looks."""

    def another(self, known: KnownValues) -> "SecretSearch":
        """The same search with other known values, for any one thread; only those values are compiled."""
        other = copy(self)
        other.known = known
        other.knows_nothing = not known
        other._gates = self._gates.another()
        other.hits = other._gates.hits
        return other

    def spans(self, data: bytes, deadline: Deadline) -> Sequence[SecretSpan]:
        """The stretches to mask, in order and apart."""
        return self.spans_of(data, self.hits(data), deadline)

    def is_unknown(self, data: bytes) -> bool:
        """Whether no known value is in the data; data without hits in which there is none has no spans."""
        return not self.known.hits(data)

    def spans_of(self, data: bytes, hits: Sequence[Hit], deadline: Deadline) -> Sequence[SecretSpan]:
        """The stretches to mask in data with these hits."""
        if not hits and self.is_unknown(data):
            return ()
        found = merged_spans(self._round(data, hits, deadline))
        for _ in range(_ROUNDS_MAX):
            if not found:
                break
            # What another redactor would see, which takes no notice of markers; so there is nothing left to find.
            view = View(data, [(span.start, span.end, self._seen_as(data, span)) for span in found])
            deadline.check()
            more = self._unmarked_round(view.data, deadline)
            if not more:
                break
            found = merged_spans(
                [*found, *(SecretSpan(*view.origin(span.start, span.end), span.rule) for span in more)]
            )
        return found

    def replacements(self, data: bytes, spans: Iterable[SecretSpan]) -> list[Replacement]:
        """What is to stand for each of the stretches."""
        return [(span.start, span.end, self.marker(data[span.start : span.end], span.rule)) for span in spans]

    def marker(self, secret: bytes, rule: Rule) -> bytes:
        """What stands for a secret in the output: the same for the same secret, however it is escaped."""
        if self._stars:
            return b"******"
        begin = self._begins.get(rule)
        if begin is None:
            begin = self._begins[rule] = b"[REDACTED:%b:" % rule.id.encode()
        return b"%b%b]" % (begin, self._tag(plain(secret)))

    def _round(self, data: bytes, hits: Sequence[Hit], deadline: Deadline) -> list[SecretSpan]:
        own = {number for number, _ in hits if number < len(_OWN_GATES)}
        if 0 in own:
            unmarked = _MARKER.sub(self._without_marker, data)
            if unmarked != data:
                return self._unmarked_round(unmarked, deadline)
        found = self._looked(data, hits, deadline)
        if own:
            for numbers, view_of in _VIEWS:
                if not own.isdisjoint(numbers):
                    view = view_of(data)
                    for span in self._looked(view.data, self.hits(view.data), deadline):
                        found.append(SecretSpan(*view.origin(span.start, span.end), span.rule))
        return self._kept(data, found) if found else found

    def _unmarked_round(self, data: bytes, deadline: Deadline) -> list[SecretSpan]:
        return self._round(data, self.hits(data), deadline)

    def _without_marker(self, marker: re.Match[bytes]) -> bytes:
        return nothing(len(marker[0])) if marker[1] in self._names else marker[0]

    def _seen_as(self, data: bytes, span: SecretSpan) -> bytes:
        """What a redactor sees where the marker of this span stands."""
        rule = span.rule
        seen = self._blanks.get(rule)
        if seen is None:
            marker = _MARKER.fullmatch(b"[REDACTED:%b:00000000]" % rule.id.encode())
            seen = b"" if self._stars or marker is None else self._without_marker(marker)
            self._blanks[rule] = seen
        return seen or self.marker(data[span.start : span.end], rule)

    def _looked(self, data: bytes, hits: Sequence[Hit], deadline: Deadline) -> list[SecretSpan]:
        owners = self._gates.owners
        seen: dict[Owner, int] = {}
        found: list[SecretSpan] = []
        later: list[tuple[Rule, int]] = []
        looks = 0
        for number, to in hits:
            for owner in owners[number]:
                if to <= seen.get(owner, -1):
                    continue
                looks += 1
                if looks % _LOOKS_PER_CHECK == 0:
                    deadline.check()
                if isinstance(owner, Family):
                    named, seen[owner] = owner.look(data, to)
                    found.extend(map(SecretSpan._make, named))
                elif owner.is_borrowed:
                    later.append((owner, to))
                else:
                    spans, seen[owner] = owner.look(data, to)
                    for start, end in spans:
                        found.append(SecretSpan(start, end, owner))
        if self.known:
            found.extend(SecretSpan(start, end, KNOWN_RULE) for start, end in self.known.find(data))
        if later:
            found.extend(_borrowed(data, later, found, deadline))
        return found

    def _kept(self, data: bytes, found: Iterable[SecretSpan]) -> list[SecretSpan]:
        kept: list[SecretSpan] = []
        has_escapes = b"\\" in data
        for span in found:
            start, end = snapped(data, span.start, span.end) if has_escapes else (span.start, span.end)
            if start < end and not is_binary(data, start, end) and not self._allows(data[start:end], span.rule):
                kept.append(span if start == span.start and end == span.end else SecretSpan(start, end, span.rule))
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


def _tagging(key: bytes) -> Callable[[bytes], bytes]:
    """What makes tags with this key: the first eight digits of HMAC-SHA256, its two hashes begun once for all."""
    block = (key if len(key) <= _BLOCK_LENGTH else hashlib.sha256(key).digest()).ljust(_BLOCK_LENGTH, b"\0")
    inside = hashlib.sha256(block.translate(_INSIDE))
    outside = hashlib.sha256(block.translate(_OUTSIDE))

    def tag(secret: bytes) -> bytes:
        inner, outer = inside.copy(), outside.copy()
        inner.update(secret)
        outer.update(inner.digest())
        return outer.hexdigest()[:_TAG_LENGTH].encode()

    return tag


def _borrowed(
    data: bytes, hits: Iterable[tuple[Rule, int]], found: Iterable[SecretSpan], deadline: Deadline
) -> Iterator[SecretSpan]:
    """What detect-secrets' detectors find where no rule of ours did: their looks are many times slower."""
    covered = merged_spans(found)
    starts = [span.start for span in covered]
    seen: dict[Rule, int] = {}
    for rule, to in hits:
        end = to - data.startswith(b"@", to - 1)  # which is behind the password in an address
        before = bisect_left(starts, end) - 1
        if to <= seen.get(rule, -1) or (before >= 0 and end <= covered[before].end):
            continue
        deadline.check()
        spans, seen[rule] = rule.look(data, to)
        for start, end in spans:
            yield SecretSpan(start, end, rule)
