"""Baselines of detect-secrets: what a person has looked at there and found to be no secret."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec

from redaction.errors import RuleError


class _Secret(msgspec.Struct):
    hashed_secret: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{40}$")]
    is_secret: bool | None = None


class _Baseline(msgspec.Struct):
    results: dict[str, list[_Secret]]


def harmless(files: Iterable[Path]) -> frozenset[str]:
    """The digests of all texts that were audited as no secret, and nowhere as one.

    Raises `RuleError` for a file that is no baseline. The message quotes nothing of the file.
    """
    verdicts: dict[bool, set[str]] = {True: set(), False: set()}
    for file in files:
        try:
            baseline = msgspec.json.decode(file.read_bytes(), type=_Baseline)
        except OSError as error:
            raise RuleError(file.name, "", f"cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise RuleError(file.name, "", f"is no baseline of detect-secrets: {error}") from None
        for found in baseline.results.values():
            for secret in found:
                if secret.is_secret is not None:
                    verdicts[secret.is_secret].add(secret.hashed_secret)
    return frozenset(verdicts[False] - verdicts[True])


def digest(text: str) -> str:
    """What a baseline keeps of a text in place of it."""
    return hashlib.sha1(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
