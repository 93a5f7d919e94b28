"""Rules from the regex detectors of detect-secrets, so that everything that these find is masked.

Only their patterns are used, with spans of our own. Nothing that analyses, verifies or connects is called, nor is
`secret_value`, which for some detectors is only a prefix of the secret. Importing one imports `requests`, so that
happens only where no cache has the patterns, and never while a line is read.
"""

import importlib
import importlib.util
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from redaction.errors import RuleError
from redaction.given import read_given
from redaction.heuristics.names import Demand
from redaction.heuristics.placeholders import is_monotonous, is_sequence_of_bases
from redaction.heuristics.values import is_value
from redaction.heuristics.words import share_of_words
from redaction.rules.rule import Extract, Extraction, Rule
from redaction.text.escapes import starts_word
from redaction.text.views import unescaped

# The window around the end of a match of a gate, in raw bytes.
_BEFORE: Final = 200
_AFTER: Final = 300
_DEPTH: Final = 4
# A value of twenty-four characters or more after one of their names.
_ASSIGNED: Final = r"""(?i:key|pw|pwd|pass|password|token)["'\\\]]*[ =:>]+["'\\]*[A-Za-z0-9_-]{24}"""
# The extent of a value whose first twenty-four characters end at the gate.
_VALUE_BEFORE: Final = 25
_VALUE_AFTER: Final = 72
_NAME_BEFORE: Final = 160  # a name, and blanks on both sides of the sign behind it
_PREFIX: Final = re.compile(rb"[a-zA-Z]{2,12}(?:_[a-z]{3,8}_|[_-])|SG\.")
_RANDOM_MIN: Final = 20
_WORDS_SHARE_MAX: Final = 0.5
# Their tokens have little form, so that names of classes match.
_WORDLESS: Final = frozenset(("telegram_token", "artifactory"))
# Theirs that are found in base64 by chance, if it is wrapped so that a line begins with their prefix.
_IN_BASE64: Final = frozenset(("aws", "artifactory"))
_BASE64_LINE: Final = re.compile(rb"[A-Za-z0-9+/]{44,}={0,2}(?=[\s\\\"']|\Z)")
_BASE64_LINE_BEFORE: Final = re.compile(rb"[A-Za-z0-9+/]{44}(?:\n|\\{1,15}n)[ \t]{0,8}\Z")
_BASE64_BEFORE: Final = 72
# Three unbounded runs of spaces in a row take cubic time; the second form matches the same in linear time.
_THEIR_SPACING: Final = r"(?: *)(?:=|:|:=|=>| +|::)(?: *)"
_LINEAR: Final = r"(?:(?: *+)(?:=>|:=|::|=|:)(?: *+)| ++)"
_DELIMITERS: Final = b" \t\r\n\v\f\"'=:"
_REST: Final = re.compile(rb"[A-Za-z0-9_-]*+")

# The source and the flags of each pattern, by the name of its detector.
Patterns: TypeAlias = Mapping[str, tuple[tuple[str, int], ...]]


class _Detector(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A row of `detectors.toml`: a detector and where it is tried."""

    name: str
    in_group: bool = False
    """Group 1 of its expressions is the secret."""
    is_assigned: bool = False
    """It finds values that are assigned to one of their names."""
    gates: tuple[str, ...] = ()
    hint: str = ""
    """Every text that it finds contains a match."""
    name_hint: str = ""
    """The name that a value is assigned to, or the host, contains a match."""
    when: tuple[str, ...] = ()
    """The triggers, if the gates begin with counts that would be costly in every line."""
    is_whole_word: bool = False
    """A match within a word is chance."""
    demand: str = ""
    """Its matches are short or have a name, so the heuristics decide as for rules of ours."""


_TABLE: Final = msgspec.toml.decode(
    Path(__file__).with_suffix(".toml").read_bytes(), type=dict[str, tuple[_Detector, ...]]
)
_DETECTORS: Final = {detector.name: detector for detector in _TABLE["detector"]}


def their_patterns() -> Patterns:
    """The patterns of all detectors of the installed detect-secrets; imports it."""
    return {
        name: tuple((pattern.pattern, pattern.flags) for detector in _detectors(name) for pattern in detector.denylist)
        for name in _DETECTORS
    }


def their_version() -> bytes:
    """What changes with the installed detect-secrets, without importing it."""
    found = importlib.util.find_spec("detect_secrets")
    return Path(found.origin).with_name("__version__.py").read_bytes() if found and found.origin else b""


def detector_rules(patterns: Patterns) -> tuple[Rule, ...]:
    """A rule for each regex detector of detect-secrets, whose patterns these are."""
    return tuple(
        Rule(
            f"detect-secrets.{detector.name.replace('_', '-')}",
            "detect-secrets",
            f"its detector {detector.name}",
            (_ASSIGNED, *detector.gates) if detector.is_assigned else detector.gates,
            _extractor(detector, patterns[detector.name]),
            "medium",
            when=detector.when,
        )
        for detector in _DETECTORS.values()
    )


def plugin_rules(files: Iterable[Path]) -> Iterator[Rule]:
    """A rule for each regex detector in users' plugin files; raises `RuleError` for a file that cannot be loaded."""
    for file in files:
        spec = importlib.util.spec_from_file_location(f"redaction_plugin_{file.stem}", file)
        if spec is None or spec.loader is None:
            raise RuleError(file.name, "", "not a Python file")
        module = importlib.util.module_from_spec(spec)
        try:
            read_given(file)
            spec.loader.exec_module(module)
        except Exception as error:
            raise RuleError(file.name, "", f"cannot be loaded: {type(error).__name__}: {error}") from error
        for detector in _detectors_of(module):
            patterns = tuple(pattern for pattern in detector.denylist)
            for pattern in patterns:
                yield _plugin_rule(file, detector, pattern)


def _plugin_rule(file: Path, detector: Any, pattern: re.Pattern[str]) -> Rule:
    name = re.sub(r"[^a-z0-9]+", "-", str(detector.secret_type).lower()).strip("-")[:30]
    linear = _linear(pattern.pattern, pattern.flags)

    def extract(line: bytes, to: int) -> Extraction:
        return _extract_around(line, to, (linear,), in_group=bool(linear.groups))

    gate = pattern.pattern if not pattern.flags & re.IGNORECASE else f"(?i){pattern.pattern}"
    return Rule(f"plugin.{name}", file.name, str(detector.secret_type), (gate,), extract, "medium")


@cache
def _base() -> Any:
    return importlib.import_module("detect_secrets.plugins.base").RegexBasedDetector


def _detectors(name: str) -> Iterator[Any]:
    return _detectors_of(importlib.import_module(f"detect_secrets.plugins.{name}"))


def _detectors_of(module: Any) -> Iterator[Any]:
    base = _base()
    for detector in vars(module).values():
        if isinstance(detector, type) and issubclass(detector, base) and not inspect.isabstract(detector):
            yield detector


@cache
def _linear(pattern: str, flags: int) -> re.Pattern[bytes]:
    return re.compile(pattern.replace(_THEIR_SPACING, _LINEAR).encode(), flags & ~re.UNICODE)


def _extractor(detector: _Detector, patterns: Iterable[tuple[str, int]]) -> Extract:
    name = detector.name
    hint, name_hint = (re.compile(one.encode()) for one in (detector.hint, detector.name_hint))

    def extract(line: bytes, to: int) -> Extraction:
        if (
            name_hint.search(line, max(0, to - _NAME_BEFORE), to) is None
            or hint.search(line, max(0, to - _VALUE_BEFORE), to + _VALUE_AFTER) is None
        ):
            return (), to
        linear = [_linear(*pattern) for pattern in patterns]
        spans, seen = _extract_around(line, to, linear, in_group=detector.in_group)
        return [span for span in spans if is_credible(name, line, *span)], seen

    return extract


def is_credible(name: str, line: bytes, start: int, end: int) -> bool:
    """Whether this finding of the detector can be a secret: no placeholder, no DNA, no part of a word."""
    detector = _DETECTORS[name]
    if detector.is_whole_word and not starts_word(line, start):
        return False
    if name in _IN_BASE64 and _is_line_of_base64(line, start):
        return False
    value = line[start:end]
    if detector.demand:
        return is_value(value, Demand[detector.demand.upper()])
    prefix = _PREFIX.match(value)
    text = value[prefix.end() if prefix else 0 :].decode("latin-1")
    if len(text) >= _RANDOM_MIN and name != "twilio" and is_monotonous(text):
        return False
    if name in _WORDLESS and share_of_words(text) > _WORDS_SHARE_MAX:
        return False
    return not is_sequence_of_bases(text)


def _is_line_of_base64(line: bytes, start: int) -> bool:
    """Whether the text there is a line of base64 that was wrapped: it and the line before are long runs."""
    run = _BASE64_LINE.match(line, start)
    before = _BASE64_LINE_BEFORE.search(line, max(0, start - _BASE64_BEFORE), start)
    return run is not None and before is not None


def _extract_around(line: bytes, to: int, patterns: Iterable[re.Pattern[bytes]], *, in_group: bool) -> Extraction:
    first = max(0, to - _BEFORE)
    last = min(len(line), to + _AFTER)
    found: dict[tuple[int, int], None] = {}
    for view in unescaped(line[first:last], _DEPTH):
        for pattern in patterns:
            for start, end in _spans(pattern, view.data, in_group=in_group):
                origin = view.origin(start, end)
                found[first + origin[0], first + origin[1]] = None
    return tuple(found), max((to, *(end for _, end in found)))


def _spans(pattern: re.Pattern[bytes], data: bytes, *, in_group: bool) -> Iterator[tuple[int, int]]:
    # Matches within the widened last one add nothing, and widening each of them would take quadratic time.
    covered = 0
    for match in pattern.finditer(data):
        if match.end() <= covered:
            continue
        if in_group and pattern.groups and match.group(1):
            yield match.span(1)
            continue
        start, end = match.span()
        while start < end and data[start] in _DELIMITERS:
            start += 1
        if end > start and data[end - 1] in _DELIMITERS:
            end -= 1
        elif (rest := _REST.match(data, end)) is not None:
            covered = end = rest.end()
        if end > start:
            yield start, end
