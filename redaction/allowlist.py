"""What is not masked although a rule finds it: entries of the settings, and audited baselines of detect-secrets."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from redaction.errors import RuleError
from redaction.given import read_given
from redaction.heuristics.certain import is_weak
from redaction.known import KNOWN_RULE
from redaction.rules.checks import decoded_base64
from redaction.rules.rule import Rule


@dataclass(frozen=True, slots=True)
class Allowed:
    """One entry of the allowlist: a value, values that match as a whole, all findings of a rule, or values with these
    digests (see `audited_digests`), or single words as passwords; the last two do not apply to known values."""

    value: str | None = None
    pattern: re.Pattern[str] | None = None
    rule: str | None = None
    digests: frozenset[str] = frozenset()
    weak: bool = False

    def allows(self, text: str, rule: Rule) -> bool:
        """Whether this text (without escapes) that the rule found is not to be masked."""
        return (
            text == self.value
            or rule.id == self.rule
            or (self.pattern is not None and self.pattern.fullmatch(text) is not None)
            or (bool(self.digests) and rule is not KNOWN_RULE and digest(text) in self.digests)
            or (self.weak and rule is not KNOWN_RULE and is_weak(_password(text, rule)))
        )


def _password(text: str, rule: Rule) -> str:
    """The password in what the rule masks; two rules mask the user with it."""
    match rule.id:
        case "basic-auth":
            text = (decoded_base64(text.encode("utf-8", "replace")) or b"").decode("utf-8", "replace")
        case "command-user":
            pass
        case _:
            return text
    return text.partition(":")[2]


class _Secret(msgspec.Struct):
    hashed_secret: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{40}$")]
    is_secret: bool | None = None


class _Baseline(msgspec.Struct):
    results: dict[str, list[_Secret]]


def audited_digests(files: Iterable[Path]) -> frozenset[str]:
    """The digests of all texts that these baselines call no secret, and none of them calls a secret.

    Raises `RuleError` for a file that is no baseline. The message quotes nothing of the file.
    """
    verdicts: dict[bool, set[str]] = {True: set(), False: set()}
    for file in files:
        try:
            baseline = msgspec.json.decode(read_given(file), type=_Baseline)
        except OSError as error:
            raise RuleError(file.name, "", f"cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise RuleError(file.name, "", f"is no baseline of detect-secrets: {error}") from None
        for secrets in baseline.results.values():
            for secret in secrets:
                if secret.is_secret is not None:
                    verdicts[secret.is_secret].add(secret.hashed_secret)
    return frozenset(verdicts[False] - verdicts[True])


def digest(text: str) -> str:
    """What a baseline stores in place of a text."""
    return hashlib.sha1(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
