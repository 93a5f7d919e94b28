"""Takes secrets out of event lines, texts and streams of text; the one interface that callers of this package need.

The engine behind it reads a clean line with a handful of byte searches and gives it back untouched. Only a line
that may hold a secret is decoded, string by string, and only the secrets' own bytes are replaced, so everything
else stays as it was recorded. Whatever goes wrong, the line is refused, never passed.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from redaction.detectors import detector_rules
from redaction.finders import finder_rules
from redaction.old_gate import Gate, revealed
from redaction.json_text import NotJsonError, String, paths, pointer, strings
from redaction.keywords import KEYWORD_RULE, is_secret_member
from redaction.known import KnownValues
from redaction.protected import is_protected
from redaction.old_rules import token_rules
from redaction.search import Allowed, Deadline, OutOfTimeError, Search, Span, masked
from redaction.stream import DeltaStream
from redaction.views import View

STRING_LENGTH_MIN = 6  # shorter strings hold nothing that any rule finds
FAILED_TEXT = "[REDACTED:redactor-failed:00000000]"


@dataclass(frozen=True, slots=True)
class Finding:
    """A masked secret: rule, JSON Pointer, offsets in the decoded string there and confidence; never the secret."""

    rule: str
    path: str
    start: int
    end: int
    confidence: str


@dataclass(frozen=True, slots=True)
class Clean:
    """Nothing to mask: the line is to be used byte for byte."""


CLEAN = Clean()


@dataclass(frozen=True, slots=True)
class Masked:
    """The line with its secrets replaced, and what was replaced."""

    line: bytes
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """The line must not be passed on: `not_json`, `time_budget` or `redactor_failed`; the reason holds no content."""

    reason: str


Redaction: TypeAlias = Clean | Masked | Refused


class Redactor(Protocol):
    """What callers rely on; one instance per thread."""

    def redact(self, line: bytes, budget_ms: float) -> Redaction:
        """The line as it may leave; takes about `budget_ms` at most and never raises."""
        ...

    def redact_text(self, text: str) -> str:
        """The text as it may leave."""
        ...

    def stream(self, key: str) -> DeltaStream:
        """A new stream for one text that arrives in pieces."""
        ...


@dataclass(frozen=True, slots=True)
class _Hit:
    """A string of the line with what is to be masked in it."""

    string: String
    view: View
    spans: list[Span]


class Engine:
    """The floor engine: formats of our own and detect-secrets' detectors over strings that a byte gate let through.

    `key` makes the tags of the markers recognisable between runs (without one they are not); `known_values` are
    masked wherever they stand; `allowed` is never masked. Compiling imports detect-secrets, importing this module
    does not.
    """

    __slots__ = ("_gate", "_search")

    version = "floor-1"

    def __init__(
        self,
        key: bytes | None = None,
        known_values: Iterable[bytes | str] = (),
        allowed: Iterable[Allowed] = (),
    ) -> None:
        rules = (*finder_rules(), *token_rules(), KEYWORD_RULE, *detector_rules())
        self._search = Search(rules, KnownValues(known_values), allowed, key)
        self._gate = Gate(self._search.known.needles)

    def redact(self, line: bytes, budget_ms: float) -> Redaction:
        """The line as it may leave; whatever goes wrong is a refusal, never an exception and never the raw line."""
        try:
            if not self._gate.suspects(line):
                return CLEAN
            return self._masked(line, Deadline.after(budget_ms))
        except OutOfTimeError:
            return Refused("time_budget")
        except (NotJsonError, UnicodeDecodeError):
            return Refused("not_json")
        except Exception:
            return Refused("redactor_failed")

    def redact_text(self, text: str) -> str:
        """The text with its secrets masked; if that fails, a marker instead of the text."""
        try:
            return masked(text, self._search.text_spans(text, Deadline.after(float("inf"))))
        except Exception:
            return FAILED_TEXT

    def stream(self, key: str) -> DeltaStream:
        """A new stream for one text that arrives in pieces; `key` is the caller's name for it."""
        return DeltaStream(self._search, key)

    def rules(self) -> list[tuple[str, str, str]]:
        """Every rule as (id, provider, example); `D` in an example stands for the secret's own characters."""
        return [(rule.id, rule.provider, rule.example) for rule in self._search.rules]

    def _masked(self, line: bytes, deadline: Deadline) -> Redaction:
        deadline.check()
        text = line.decode()
        rules = self._search.active(revealed(line).decode("utf-8", "replace"))
        hits = []
        for string in strings(text):
            deadline.check()
            if len(string.raw) < STRING_LENGTH_MIN:
                continue
            view = string.view()
            is_secret = string.key is not None and is_secret_member(string.decoded_key(), view.text)
            spans = self._search.spans(view.text, rules, deadline, is_secret=is_secret)
            if spans:
                hits.append(_Hit(string, view, spans))
        return self._spliced(text, hits) if hits else CLEAN

    def _spliced(self, text: str, hits: list[_Hit]) -> Redaction:
        places = paths(text, {hit.string.start for hit in hits})
        hits = [hit for hit in hits if not is_protected([step.name for step in places[hit.string.start]])]
        if not hits:
            return CLEAN
        shown = {hit.string.start: masked(hit.view.text, hit.spans) for hit in hits if hit.string.is_key}
        findings = []
        replaced = []
        for hit in hits:
            path = pointer(places[hit.string.start], shown)
            for span in hit.spans:
                start, end = hit.view.origin(span.start, span.end)
                replaced.append((hit.string.start + start, hit.string.start + end, span.marker))
                findings.append(Finding(span.rule, path, span.start, span.end, span.confidence))
        return Masked(View(text, replaced).text.encode(), tuple(findings))
