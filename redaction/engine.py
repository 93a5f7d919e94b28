"""Takes secrets out of event lines, texts and streams of text; the one interface that callers of this package need.

All rules together read a line once, as raw bytes. A line without a hit is returned untouched and never decoded.
Around a hit the rule that owns it extracts the secret, and only the bytes of secrets are replaced; all else stays as it
was recorded. Whatever goes wrong, the line is refused and never passed.
"""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Literal, Protocol, TypeAlias

from redaction.allowlist import Allowed, audited_digests
from redaction.commands.answers import AnswerString, answer_strings
from redaction.errors import InvalidJsonError, OutOfTimeError, TooManyHitsError
from redaction.known import KnownValues
from redaction.prefilter.cache import fill_apart
from redaction.prefilter.gate import EngineName, best_engine
from redaction.rules.rule import Certainty, Rule
from redaction.rules.rule_set import OPAQUE_RULE, RuleSet, all_rules
from redaction.search import Deadline, SecretSearch, is_marker
from redaction.spans import Part, masked, parts_of
from redaction.stream import DeltaStream
from redaction.text.json_strings import check, paths, pointer
from redaction.text.views import plain

FAILED_TEXT = "[REDACTED:redactor-failed:00000000]"


@dataclass(frozen=True, slots=True)
class Finding:
    """A masked secret: rule, JSON Pointer, offsets in the decoded string there and confidence; never the secret."""

    rule: str
    path: str
    start: int
    end: int
    confidence: Certainty


@dataclass(frozen=True, slots=True)
class Clean:
    """Nothing to mask: the line is used byte for byte."""


CLEAN = Clean()


class Masked:
    """The line with its secrets replaced, and what was replaced."""

    __slots__ = ("_find", "_findings", "line", "rules")

    def __init__(self, line: bytes, rules: tuple[str, ...], find: Callable[[], tuple[Finding, ...]]) -> None:
        self.line = line
        self.rules = rules
        """The rule of each secret, in order."""
        self._find = find
        self._findings: tuple[Finding, ...] | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Where each secret was; computed on first use."""
        if self._findings is None:
            self._findings = self._find()
        return self._findings

    def __repr__(self) -> str:
        return f"Masked(line={self.line!r}, rules={self.rules!r})"


@dataclass(frozen=True, slots=True)
class Refused:
    """The line must not be passed on. The reason is `not_json`, `time_budget` or `redactor_failed`."""

    reason: str


Redaction: TypeAlias = Clean | Masked | Refused


class Redactor(Protocol):
    """What callers rely on; one instance per thread."""

    def redact(self, line: bytes, budget_ms: float, call: str | None = None) -> Redaction:
        """The redacted line; takes about `budget_ms` at most and never raises.

        `call` is the rule of a command that prints a secret, if the line holds what it printed.
        """
        ...

    def rule_of_call(self, data: bytes) -> str | None:
        """The rule of a tool call whose command prints a secret, told by the data of the event that starts it."""
        ...

    def redact_text(self, text: str) -> str:
        """The redacted text; never raises."""
        ...

    def stream(self, key: str) -> DeltaStream:
        """A new stream for one text that arrives in pieces."""
        ...


class Engine:
    """A redactor with the built-in rules and those of the user.

    `key`: with the same key the same secret has the same tag in every run; without one the tags are random.
    `known_values` are masked wherever they occur; what `allowed` matches is never masked.
    `rule_files` are tables of formats like ours; `plugins` are plugins and `baselines` are baselines of detect-secrets:
    what was audited there as no secret is not masked, unless it is a known value. A bad file raises `RuleError`.
    `cache_dir` holds the compiled rules. `marker`: rule and tag, or stars, replace a secret. `opaque`: whether opaque
    fields pass or are dropped. `weak_passwords`: whether a single word, also one with digits behind it, is masked where
    the place proves a password. `engine`: another engine than the fastest that is installed.
    """

    __slots__ = ("_commands", "_search", "engine", "version")

    def __init__(
        self,
        key: bytes | None = None,
        known_values: Iterable[bytes | str] = (),
        allowed: Iterable[Allowed] = (),
        *,
        rule_files: Sequence[Path] = (),
        cache_dir: Path | None = None,
        marker: Literal["tag", "stars"] = "tag",
        opaque: Literal["pass", "drop"] = "pass",
        weak_passwords: Literal["mask", "leave"] = "mask",
        plugins: Sequence[Path] = (),
        baselines: Sequence[Path] = (),
        engine: EngineName | None = None,
    ) -> None:
        self.engine = engine or best_engine()
        allowed = [*allowed]
        if baselines:
            allowed.append(Allowed(digests=audited_digests(baselines)))
        if weak_passwords == "leave":
            allowed.append(Allowed(weak=True))

        def made() -> tuple[RuleSet, SecretSearch]:
            every = all_rules(rule_files, plugins, drop_opaque=opaque == "drop", cache_dir=cache_dir)
            search = SecretSearch(
                every.rules,
                KnownValues(known_values, self.engine),
                allowed,
                key,
                stars=marker == "stars",
                cache_dir=cache_dir,
                engine=self.engine,
                without_gates=every.commands.rules,
            )
            return every, search

        if cache_dir is not None and self.engine == "hyperscan":
            fill_apart(cache_dir, made)
        every, self._search = made()
        self.version, self._commands = every.version, every.commands

    def with_known_values(self, known_values: Iterable[bytes | str]) -> "Engine":
        """The same engine with other known values, for any one thread; no rule is compiled again."""
        other = copy(self)
        other._search = self._search.with_known_values(KnownValues(known_values, self.engine))
        return other

    def with_key(self, key: bytes) -> "Engine":
        """The same engine with another key of the tags, for any one thread; no rule is compiled again."""
        other = copy(self)
        other._search = self._search.with_key(key)
        return other

    def redact(self, line: bytes, budget_ms: float, call: str | None = None) -> Redaction:
        """The redacted line; whatever goes wrong is a refusal, never an exception and never the raw line.

        With a `call` every string of the answer is masked as a whole, whatever else is found in it.
        """
        if call is not None:
            return self._redact_answer(line, budget_ms, call)
        try:
            began = perf_counter()
            search = self._search
            hits = search.hits(line)
            if not hits and (not search.has_known_values or not search.known.hits(line)):
                return CLEAN
            spans = search.spans_of(line, hits, Deadline(began + budget_ms / 1000))
            if not spans:
                return CLEAN
            check(line)
            parts = [part for part in parts_of(line, spans) if _may_be_masked(part)]
            return self._masked(line, parts) if parts else CLEAN
        except (OutOfTimeError, TooManyHitsError):
            return Refused("time_budget")
        except InvalidJsonError:
            return Refused("not_json")
        except Exception:
            return Refused("redactor_failed")

    def rule_of_call(self, data: bytes) -> str | None:
        """The rule of a tool call whose command prints a secret, told by the data of the event that starts it.

        Any thread may ask, and never is there an exception.
        """
        rule = self._commands.rule_of(data)
        return None if rule is None else rule.id

    def mask_answer(self, line: bytes, call: str) -> Redaction:
        """Mask every string of the answer in a line that is redacted already; any thread may ask."""
        try:
            replaced = self._replaced(line, call)
            return Masked(masked(line, replaced), (call,) * len(replaced), tuple) if replaced else CLEAN
        except Exception:
            return Refused("redactor_failed")

    def redact_text(self, text: str) -> str:
        """The text with its secrets masked; if that fails, a marker instead of the text."""
        try:
            data = text.encode("utf-8", "surrogatepass")
            spans = self._search.spans(data, Deadline(math.inf))
            if not spans:
                return text
            return masked(data, self._search.replacements(data, spans)).decode("utf-8", "surrogatepass")
        except Exception:
            return FAILED_TEXT

    def stream(self, key: str) -> DeltaStream:
        """A new stream for one text that arrives in pieces; `key` is the caller's name for it."""
        return DeltaStream(self._search, key)

    def rules(self) -> tuple[Rule, ...]:
        """Every rule in force."""
        return self._search.rules + self._commands.rules

    def _redact_answer(self, line: bytes, budget_ms: float, call: str) -> Redaction:
        first = self.redact(line, budget_ms)
        redacted = first.line if isinstance(first, Masked) else line
        second = first if isinstance(first, Refused) else self.mask_answer(redacted, call)
        if not isinstance(second, Masked):
            return first if isinstance(second, Clean) else second
        rules = (first.rules if isinstance(first, Masked) else ()) + second.rules
        return Masked(second.line, rules, lambda: self._answer_findings(line, redacted, first, call))

    def _replaced(self, line: bytes, call: str) -> list[tuple[int, int, bytes]]:
        """The strings of the answer that are no marker yet, each with its marker."""
        search, rule = self._search, self._commands.rule_named(call)
        strings = ((start, end, line[start:end]) for start, end, _ in answer_strings(line))
        return [
            (start, end, search.marker(text, rule))
            for start, end, text in strings
            if not is_marker(text) and not search.allows(text, rule)
        ]

    def _answer_findings(self, line: bytes, redacted: bytes, first: Redaction, call: str) -> tuple[Finding, ...]:
        """One finding for each string of the answer, and what was found elsewhere."""
        replaced = {start for start, _, _ in self._replaced(redacted, call)}
        pairs: Iterable[tuple[AnswerString, AnswerString]] = zip(
            answer_strings(line), answer_strings(redacted), strict=True
        )
        confidence = self._commands.rule_named(call).confidence
        found = [
            Finding(call, pointer(before.path, {}), 0, _length(line[before.start : before.end]), confidence)
            for before, after in pairs
            if after.start in replaced
        ]
        whole = {finding.path for finding in found}
        others = first.findings if isinstance(first, Masked) else ()
        return (*(one for one in others if one.path not in whole), *found)

    def _masked(self, line: bytes, parts: Sequence[Part]) -> Masked:
        replacement = self._search.replacement
        replaced = [(part.start, part.end, replacement(line, part.start, part.end, part.rule)) for part in parts]
        return Masked(
            masked(line, replaced), tuple(part.rule.id for part in parts), lambda: _findings(line, parts, replaced)
        )


def _may_be_masked(part: Part) -> bool:
    return part.is_opaque if part.rule is OPAQUE_RULE else not part.is_protected


def _findings(line: bytes, parts: Sequence[Part], replaced: Sequence[tuple[int, int, bytes]]) -> tuple[Finding, ...]:
    string_paths = paths(line, {part.string.start for part in parts})
    masked_keys = _masked_keys(line, parts, replaced)
    findings = []
    path, string_start, position, length = "", -1, 0, 0
    for part in parts:
        if part.string.start != string_start:
            string_start = position = part.string.start
            path, length = pointer(string_paths[string_start], masked_keys), 0
        start = length + _length(line[position : part.start])
        length = start + _length(line[part.start : part.end])
        position = part.end
        certainty = part.rule.certainty_of(plain(line[part.start : part.end]))
        findings.append(Finding(part.rule.id, path, start, length, certainty))
    return tuple(findings)


def _masked_keys(line: bytes, parts: Sequence[Part], replaced: Sequence[tuple[int, int, bytes]]) -> dict[int, str]:
    """The keys in which something is masked, by where they begin."""
    changes: dict[int, list[tuple[int, int, bytes]]] = {}
    ends: dict[int, int] = {}
    for part, (start, end, new) in zip(parts, replaced, strict=True):
        if part.string.is_key and part.string.end is not None:
            key_start = part.string.start
            changes.setdefault(key_start, []).append((start - key_start, end - key_start, new))
            ends[key_start] = part.string.end
    return {
        start: masked(line[start : ends[start]], inside).decode("utf-8", "replace") for start, inside in changes.items()
    }


def _length(raw: bytes) -> int:
    """How many characters the raw text of a JSON string has once it is decoded."""
    return len(json.loads(b'"%b"' % raw, strict=False)) if b"\\" in raw else len(raw.decode("utf-8", "replace"))
