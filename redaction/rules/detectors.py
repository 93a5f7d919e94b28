"""Rules from the regex detectors of detect-secrets, so that everything that these find is masked.

Only their compiled patterns are used, with spans of our own. Nothing that analyses, verifies or connects is called, nor
is `secret_value`, which for some detectors is only a prefix of the secret. Importing a detector imports `requests`,
so this happens when a line first passes one of the gates.
"""

import importlib
import importlib.util
import inspect
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from redaction.errors import RuleError
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
_ASSIGNED: Final = (r"""(?i:key|pw|pwd|pass|password|token)["'\\\]]*[ =:>]+["'\\]*[A-Za-z0-9_-]{24}""",)
_ARTIFACTORY: Final = r"A(?:KC|P[0-9A-F])[A-Za-z0-9]{8}"
_PYPI_REST: Final = r"[A-Za-z0-9_-]{70}"
# Detector, whether its group 1 is the secret, the gates, and a hint that every text it finds contains. Left out are
# public IP addresses and BEGIN lines of keys, which are not secret, and JSON web tokens, which a rule of ours confirms
# as well; a test proves that nothing is lost.
_DETECTORS: Final[tuple[tuple[str, bool, tuple[str, ...], str], ...]] = (
    ("artifactory", False, (rf"[\s=:\"^]{_ARTIFACTORY}", rf"\\[nrt]{_ARTIFACTORY}"), ""),
    (
        "aws",
        True,
        (r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}", r"""(?i:aws)[^\n]{0,80}["'][0-9A-Za-z/+]{40}["'\\]"""),
        "",
    ),
    ("azure_storage_key", False, (r"AccountKey=[A-Za-z0-9+/=]{88}",), ""),
    ("basic_auth", True, (r"://[^\n:/?#\[\]@]{0,64}:[^\n:/?#\[\]@]{1,64}@",), ""),
    ("cloudant", True, (*_ASSIGNED, r"(?i:[^\n]cloudant[^\n]com)"), r"(?i)[0-9a-f]{64}|[a-z]{24}"),
    ("discord", False, (r"[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}",), ""),
    ("github_token", False, (r"gh[pousr]_[A-Za-z0-9_]{36}",), ""),
    ("gitlab_token", False, (r"(?:gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas)-|GR1348941)[A-Za-z0-9_-]{20}",), ""),
    ("ibm_cloud_iam", True, _ASSIGNED, r"[A-Za-z0-9_-]{44}"),
    ("ibm_cos_hmac", True, _ASSIGNED, r"(?i)[a-f0-9]{48}"),
    ("mailchimp", False, (r"[0-9a-z]{32}-us[0-9]",), ""),
    ("npm", True, (r":_authToken=",), ""),
    ("openai", False, (r"[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}",), ""),
    ("pypi_token", False, (rf"pypi-AgEIcHlwaS5vcmc{_PYPI_REST}", rf"pypi-AgENdGVzdC5weXBpLm9yZw{_PYPI_REST}"), ""),
    ("sendgrid", False, (r"SG\.[a-zA-Z0-9_-]{22}\.[a-zA-Z0-9_-]{43}",), ""),
    ("slack", False, (r"(?i:xox[abposr]-)[0-9]", r"(?i:hooks\.slack\.com/services/T)"), ""),
    ("softlayer", True, (*_ASSIGNED, r"(?i:softlayer[^\n]com/soap/v3)"), r"(?i)[a-z0-9]{64}"),
    ("square_oauth", False, (r"sq0csp-[0-9A-Za-z\\_-]{43}",), ""),
    ("stripe", False, (r"[rs]k_live_[0-9a-zA-Z]{24}",), ""),
    ("telegram_token", False, (r"[0-9]{8,10}:[0-9A-Za-z_-]{35}",), ""),
    ("twilio", False, (r"(?:AC|SK)[a-z0-9]{32}",), ""),
)
# Triggers of detectors whose gates begin with counts that would be costly in every line.
_WHEN: Final = {
    "discord": (r"[A-Za-z0-9_-]{24}\.[A-Za-z0-9_-]{6}\.",),
    "telegram_token": (r"[0-9]{8}:[0-9A-Za-z_-]{8}",),
}
# The extent of a value whose first twenty-four characters end at the gate.
_VALUE_BEFORE: Final = 25
_VALUE_AFTER: Final = 72
# A match of these within a word is chance.
_WHOLE_WORDS: Final = frozenset(("aws", "telegram_token", "twilio"))
# Matches of these are short or have a name, so the heuristics decide as for rules of ours.
_DEMANDS: Final = {"basic_auth": Demand.PASSWORD, "cloudant": Demand.KEY, "ibm_cloud_iam": Demand.WEAK}
_PREFIX: Final = re.compile(rb"[a-zA-Z]{2,12}(?:_[a-z]{3,8}_|[_-])|SG\.")
_RANDOM_MIN: Final = 20
_WORDS_SHARE_MAX: Final = 0.5
# Three unbounded runs of spaces in a row take cubic time; the second form matches the same in linear time.
_THEIR_SPACING: Final = r"(?: *)(?:=|:|:=|=>| +|::)(?: *)"
_LINEAR: Final = r"(?:(?: *+)(?:=>|:=|::|=|:)(?: *+)| ++)"
_DELIMITERS: Final = b" \t\r\n\v\f\"'=:"
_REST: Final = re.compile(rb"[A-Za-z0-9_-]*+")


def detector_rules() -> tuple[Rule, ...]:
    """A rule for each regex detector of the installed detect-secrets."""
    return tuple(
        Rule(
            f"detect-secrets.{name.replace('_', '-')}",
            "detect-secrets",
            f"its detector {name}",
            gates,
            _extractor(name, hint, in_group=in_group),
            "medium",
            when=_WHEN.get(name, ()),
        )
        for name, in_group, gates, hint in _DETECTORS
    )


def plugin_rules(files: Iterable[Path]) -> Iterator[Rule]:
    """A rule for each regex detector in users' plugin files; raises `RuleError` for a file that cannot be loaded."""
    for file in files:
        spec = importlib.util.spec_from_file_location(f"redaction_plugin_{file.stem}", file)
        if spec is None or spec.loader is None:
            raise RuleError(file.name, "", "not a Python file")
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise RuleError(file.name, "", f"cannot be loaded: {type(error).__name__}: {error}") from error
        for detector in _detectors_of(module, _base()):
            patterns = tuple(pattern for pattern in detector.denylist)
            for pattern in patterns:
                yield _plugin_rule(file, detector, pattern)


def _plugin_rule(file: Path, detector: Any, pattern: re.Pattern[str]) -> Rule:
    name = re.sub(r"[^a-z0-9]+", "-", str(detector.secret_type).lower()).strip("-")[:30]
    linear = _linear(pattern)

    def extract(line: bytes, to: int) -> Extraction:
        return _extract_around(line, to, (linear,), in_group=bool(linear.groups))

    gate = pattern.pattern if not pattern.flags & re.IGNORECASE else f"(?i){pattern.pattern}"
    return Rule(f"plugin.{name}", file.name, str(detector.secret_type), (gate,), extract, "medium")


@cache
def _base() -> Any:
    return importlib.import_module("detect_secrets.plugins.base").RegexBasedDetector


@cache
def _patterns(name: str) -> tuple[re.Pattern[bytes], ...]:
    module = importlib.import_module(f"detect_secrets.plugins.{name}")
    return tuple(_linear(pattern) for detector in _detectors_of(module, _base()) for pattern in detector.denylist)


def _detectors_of(module: Any, base: Any) -> Iterator[Any]:
    for detector in vars(module).values():
        if isinstance(detector, type) and issubclass(detector, base) and not inspect.isabstract(detector):
            yield detector


def _linear(pattern: re.Pattern[str]) -> re.Pattern[bytes]:
    source = pattern.pattern.replace(_THEIR_SPACING, _LINEAR)
    return re.compile(source.encode(), pattern.flags & ~re.UNICODE)


def _extractor(name: str, hint: str, *, in_group: bool) -> Extract:
    pattern = re.compile(hint.encode())

    def extract(line: bytes, to: int) -> Extraction:
        if hint and pattern.search(line, max(0, to - _VALUE_BEFORE), to + _VALUE_AFTER) is None:
            return (), to
        spans, seen = _extract_around(line, to, _patterns(name), in_group=in_group)
        return [span for span in spans if is_credible(name, line, *span)], seen

    return extract


def is_credible(name: str, line: bytes, start: int, end: int) -> bool:
    """Whether this finding of the detector can be a secret: no placeholder, no DNA, no part of a word."""
    if name in _WHOLE_WORDS and not starts_word(line, start):
        return False
    value = line[start:end]
    if name in _DEMANDS:
        return is_value(value, _DEMANDS[name])
    prefix = _PREFIX.match(value)
    text = value[prefix.end() if prefix else 0 :].decode("latin-1")
    if len(text) >= _RANDOM_MIN and name != "twilio" and is_monotonous(text):
        return False
    if name == "telegram_token" and share_of_words(text) > _WORDS_SHARE_MAX:
        return False
    return not is_sequence_of_bases(text)


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
