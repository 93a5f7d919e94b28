"""detect-secrets' own patterns with our spans, so that nothing its regex detectors find is left.

Only the compiled patterns are read. Nothing that analyses, verifies or connects is ever called, and `secret_value`,
which for some detectors is a mere prefix of the secret, is not used. Importing a detector imports `requests`, so
this happens when rules are compiled.
"""

import importlib
import inspect
import pkgutil
import re
from typing import Any

from redaction.old_rules import Hits, Rule

# Public addresses are no secrets. The others are covered by finders of ours that need linear time where their
# patterns need quadratic; a test proves that nothing is lost.
LEFT_OUT = frozenset({"azure_storage_key", "ip_public", "jwt", "npm", "openai"})
# Detectors whose group 1 is the secret; in all others the whole match is.
IN_GROUP = frozenset({"aws", "basic_auth", "cloudant", "ibm_cloud_iam", "ibm_cos_hmac", "softlayer"})
ASSIGNMENT_HINT = re.compile(
    r"(?i)(?:key|pwd?|pass(?:word)?|token)[\"'\\]{0,4}\]? *+[=:> ]?[=:> ]*+[\"'\\]{0,8}[a-z0-9_-]{24}"
)
ASSIGNMENT_NEEDLES = ("key", "pw", "pass", "token")
NEEDLES: dict[str, tuple[str, ...]] = {
    "artifactory": ("akc", "ap"),
    "aws": ("aws", "a3t", "abia", "acca", "akia", "asia"),
    "basic_auth": ("@",),
    "cloudant": ("cl",),
    "discord": (".",),
    "github_token": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    "gitlab_token": ("gl", "gr1348941"),
    "ibm_cloud_iam": ASSIGNMENT_NEEDLES,
    "ibm_cos_hmac": ("key",),
    "mailchimp": ("-us",),
    "private_key": ("private key", "putty-"),
    "pypi_token": ("pypi-",),
    "sendgrid": ("sg.",),
    "slack": ("xox", "hooks.slack"),
    "softlayer": ("softlayer", "sl"),
    "square_oauth": ("sq0csp-",),
    "stripe": ("k_live_",),
    "telegram_token": (":",),
    "twilio": ("ac", "sk"),
}
# Three unbounded runs of spaces one after the other take cubic time; the same language, written so that it takes
# linear time.
SPACING = r"(?: *)(?:=|:|:=|=>| +|::)(?: *)"
SPACING_LINEAR = r"(?:(?: *+)(?:=>|:=|::|=|:)(?: *+)| ++)"
DELIMITERS = " \t\r\n\v\f\"'=:"
REST = re.compile(r"[A-Za-z0-9_-]*+")


def _linear(pattern: re.Pattern[str]) -> re.Pattern[str]:
    source = pattern.pattern
    return re.compile(source.replace(SPACING, SPACING_LINEAR), pattern.flags) if SPACING in source else pattern


def _spans(pattern: re.Pattern[str], text: str, *, in_group: bool) -> Hits:
    # Matches within what the last one was widened to say nothing new, and widening each would take quadratic time.
    covered = 0
    for match in pattern.finditer(text):
        if match.end() <= covered:
            continue
        if in_group and pattern.groups and match.group(1):
            yield match.span(1)
            continue
        start, end = match.span()
        while start < end and text[start] in DELIMITERS:
            start += 1
        if end > start and text[end - 1] in DELIMITERS:
            end -= 1
        elif (rest := REST.match(text, end)) is not None:
            covered = end = rest.end()
        if end > start:
            yield start, end


def detector_rules() -> tuple[Rule, ...]:
    """A rule for each pattern of each regex detector of the installed detect-secrets."""
    plugins = importlib.import_module("detect_secrets.plugins")
    base = importlib.import_module("detect_secrets.plugins.base").RegexBasedDetector
    rules: list[Rule] = []
    for found in pkgutil.iter_modules(plugins.__path__):
        if found.name in LEFT_OUT:
            continue
        module = importlib.import_module(f"{plugins.__name__}.{found.name}")
        for detector in vars(module).values():
            if isinstance(detector, type) and issubclass(detector, base) and not inspect.isabstract(detector):
                facts: Any = detector
                rules.extend(_rule(found.name, facts.secret_type, pattern) for pattern in facts.denylist)
    return tuple(rules)


def _rule(name: str, provider: str, original: re.Pattern[str]) -> Rule:
    pattern = _linear(original)
    in_group = name in IN_GROUP

    def find(text: str) -> Hits:
        return _spans(pattern, text, in_group=in_group)

    hint = ASSIGNMENT_HINT.search if SPACING in original.pattern else None
    if name in {"discord", "mailchimp", "telegram_token", "twilio"}:
        hint = pattern.search
    return Rule(
        f"detect-secrets.{name.replace('_', '-')}", provider, "", NEEDLES.get(name, ("",)), find, "medium", hint
    )
