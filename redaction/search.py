"""Finds the spans of secrets in raw bytes.

The prefilter reads the data once; the rules that own its hits extract the secrets around them. The result is then read
as another redactor would read it, and what that finds is added, until nothing more is found.
"""

import hmac
import re
import secrets
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from redaction.allowlist import Allowed
from redaction.errors import OutOfTimeError
from redaction.known import KNOWN_RULE, KnownValues
from redaction.prefilter.gate import EngineName, Hit
from redaction.prefilter.prefilter import Owner, Prefilter
from redaction.rules.rule import Family, Rule
from redaction.spans import SecretSpan, blank, is_binary, merged_spans
from redaction.text.escapes import quote_in_list, unescaped
from redaction.text.views import (
    HIDDEN_GATES,
    PERCENT_GATES,
    Replacement,
    View,
    percent_revealed,
    plain,
    revealed,
    snapped,
)

_MARKER: Final = re.compile(rb"\[REDACTED:([a-z0-9.-]{1,48}):[0-9a-f]{8}\]")
_MARKER_GATE: Final = r"\[REDACTED:[a-z0-9.-]{1,48}:[0-9a-f]{8}\]"
_VIEW_GATES: Final = (_MARKER_GATE, *HIDDEN_GATES, *PERCENT_GATES)
# The views to search as well, if one of these gates hits.
_VIEWS: Final = (
    (range(1, 1 + len(HIDDEN_GATES)), revealed),
    (range(1 + len(HIDDEN_GATES), len(_VIEW_GATES)), percent_revealed),
)
_STARS: Final = b"******"
_MARKER_LENGTH: Final = len("[REDACTED::00000000]")  # without the id of its rule
_ROUNDS_MAX: Final = 6
_EXTRACTIONS_PER_CHECK: Final = 64
_TAG_LENGTH: Final = 8


@dataclass(frozen=True, slots=True)
class Deadline:
    """The moment, on the clock of `time.perf_counter`, after which work on an event stops."""

    at: float

    def check(self) -> None:
        """Raise `OutOfTimeError` when it has passed."""
        if time.perf_counter() >= self.at:
            raise OutOfTimeError


def is_marker(text: bytes) -> bool:
    """Whether a text is one marker and nothing else."""
    return text == _STARS or _MARKER.fullmatch(text) is not None


class SecretSearch:
    """All rules, known values and the allowlist, compiled; one per thread.

    Rules `without_gates` are found by others, which use `marker` and `allows`.
    """

    __slots__ = (
        "_allowed",
        "_key",
        "_prefilter",
        "_rule_ids",
        "_stars",
        "has_known_values",
        "hits",
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
        without_gates: Sequence[Rule] = (),
    ) -> None:
        every = (one.rules if isinstance(one, Family) else (one,) for one in rules)
        self.rules = tuple(dict.fromkeys(chain.from_iterable(every)))
        self.known = known
        self.has_known_values = bool(known)
        self._allowed = tuple(allowed)
        self._key = key or secrets.token_bytes(32)
        self._stars = stars
        self._rule_ids = frozenset(rule.id.encode() for rule in (*self.rules, *without_gates, KNOWN_RULE))
        self._prefilter = Prefilter(_VIEW_GATES, rules, cache_dir=cache_dir, engine=engine)
        self.hits = self._prefilter.hits
        """The hits of the prefilter in some data."""

    def with_known_values(self, known: KnownValues) -> "SecretSearch":
        """The same search with other known values, for any one thread; no rule is compiled again."""
        other = copy(self)
        other.known = known
        other.has_known_values = bool(known)
        other._prefilter = self._prefilter.for_thread()
        other.hits = other._prefilter.hits
        return other

    def with_key(self, key: bytes) -> "SecretSearch":
        """The same search with another key of the tags, for any one thread; no rule is compiled again."""
        other = self.with_known_values(self.known)
        other._key = key
        return other

    def spans(self, data: bytes, deadline: Deadline) -> Sequence[SecretSpan]:
        """The spans to mask, in order and without overlaps."""
        return self.spans_of(data, self.hits(data), deadline)

    def spans_of(self, data: bytes, hits: Sequence[Hit], deadline: Deadline) -> Sequence[SecretSpan]:
        """The spans to mask in data with these hits; without hits only known values can be secret."""
        if not hits and not self.known.hits(data):
            return ()
        found = merged_spans(self._round(data, hits, deadline))
        for _ in range(_ROUNDS_MAX):
            if not found:
                break
            # Markers are blanked, as another redactor sees the output; so that one finds nothing more.
            view = View(data, [(span.start, span.end, self._blanked(span.rule)) for span in found])
            deadline.check()
            more = self._unmarked_round(view.data, deadline)
            if not more:
                break
            found = merged_spans(
                [*found, *(SecretSpan(*view.origin(span.start, span.end), span.rule) for span in more)]
            )
        return found

    def replacements(self, data: bytes, spans: Iterable[SecretSpan]) -> list[Replacement]:
        """The marker of each span, in place of its bytes."""
        return [(span.start, span.end, self.replacement(data, span.start, span.end, span.rule)) for span in spans]

    def replacement(self, data: bytes, start: int, end: int, rule: Rule) -> bytes:
        """The marker of a span, in quotes if it replaces numbers of a list of JSON."""
        quote = quote_in_list(data, start) if rule.is_numbers else b""
        return quote + self.marker(data[start:end], rule) + quote

    def marker(self, secret: bytes, rule: Rule) -> bytes:
        """What replaces a secret: the same marker for the same secret, however it is escaped."""
        if self._stars:
            return _STARS
        tag = hmac.digest(self._key, plain(secret), "sha256").hex()[:_TAG_LENGTH]
        return f"[REDACTED:{rule.id}:{tag}]".encode()

    def _round(self, data: bytes, hits: Sequence[Hit], deadline: Deadline) -> list[SecretSpan]:
        special = {number for number, _ in hits if number < len(_VIEW_GATES)}
        if 0 in special:
            unmarked = _MARKER.sub(self._without_marker, data)
            if unmarked != data:
                return self._unmarked_round(unmarked, deadline)
        found = self._extracted(data, hits, deadline)
        if special:
            for numbers, view_of in _VIEWS:
                if not special.isdisjoint(numbers):
                    view = view_of(data)
                    for span in self._extracted(view.data, self.hits(view.data), deadline):
                        found.append(SecretSpan(*view.origin(span.start, span.end), span.rule))
        return self._filtered(data, found) if found else found

    def _unmarked_round(self, data: bytes, deadline: Deadline) -> list[SecretSpan]:
        return self._round(data, self.hits(data), deadline)

    def _without_marker(self, marker: re.Match[bytes]) -> bytes:
        return blank(len(marker[0])) if marker[1] in self._rule_ids else marker[0]

    def _blanked(self, rule: Rule) -> bytes:
        """What a redactor sees in place of a marker of this rule."""
        return _STARS if self._stars else blank(_MARKER_LENGTH + len(rule.id))

    def _extracted(self, data: bytes, hits: Sequence[Hit], deadline: Deadline) -> list[SecretSpan]:
        """The secrets that the owners of the hits extract, before the allowlist is asked."""
        owners = self._prefilter.owners
        seen: dict[Owner, int] = {}
        seen_by = seen.get
        found: list[SecretSpan] = []
        postponed: list[tuple[Rule, int]] = []
        extractions = 0
        for number, to in hits:
            for owner in owners[number]:
                if to <= seen_by(owner, -1):
                    continue
                extractions += 1
                if extractions % _EXTRACTIONS_PER_CHECK == 0:
                    deadline.check()
                if isinstance(owner, Family):
                    members, seen[owner] = owner.extract(data, to)
                    if members:
                        found.extend(map(SecretSpan._make, members))
                elif owner.is_from_detect_secrets:
                    postponed.append((owner, to))
                else:
                    spans, seen[owner] = owner.extract(data, to)
                    for start, end in spans:
                        found.append(SecretSpan(start, end, owner))
        if self.known:
            found.extend(SecretSpan(start, end, KNOWN_RULE) for start, end in self.known.find(data))
        if postponed:
            found.extend(_from_detect_secrets(data, postponed, found, deadline))
        return found

    def _filtered(self, data: bytes, found: Iterable[SecretSpan]) -> list[SecretSpan]:
        """The spans without those in binary data and those on the allowlist; none cuts an escape in two."""
        kept: list[SecretSpan] = []
        has_escapes = b"\\" in data
        for span in found:
            start, end = snapped(data, span.start, span.end) if has_escapes else (span.start, span.end)
            if start < end and not is_binary(data, start, end) and not self.allows(data[start:end], span.rule):
                kept.append(SecretSpan(start, end, span.rule))
        return kept

    def allows(self, secret: bytes, rule: Rule) -> bool:
        """Whether a secret is on the allowlist."""
        if not self._allowed:
            return False
        text = unescaped(secret)
        return any(entry.allows(text, rule) for entry in self._allowed)


def _from_detect_secrets(
    data: bytes, hits: Iterable[tuple[Rule, int]], found: Iterable[SecretSpan], deadline: Deadline
) -> Iterator[SecretSpan]:
    """What the detectors of detect-secrets find where no rule of ours did; they are many times slower."""
    covered = merged_spans(found)
    starts = [span.start for span in covered]
    seen: dict[Rule, int] = {}
    for rule, to in hits:
        end = to - data.startswith(b"@", to - 1)  # the `@` follows the password in an address
        before = bisect_left(starts, end) - 1
        if to <= seen.get(rule, -1) or (before >= 0 and end <= covered[before].end):
            continue
        deadline.check()
        spans, seen[rule] = rule.extract(data, to)
        for start, end in spans:
            yield SecretSpan(start, end, rule)
