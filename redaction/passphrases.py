"""Passwords made of words, where a sentence says that they are passwords."""

import re

from redaction.judge import is_words_and_number
from redaction.rule import Rule, Spans

_SAID = r"(?:passw(?:or)?d|passphrase)(?:[ ][\w' \-.]{0,30})?[ ](?:is|was|equals|ist|lautet)[ :*]{1,4}"
_OPENED = r"""\\{0,15}["'`]?"""
_GATES = (
    f"(?i:{_SAID}){_OPENED}[A-Za-z]{{3,12}}-[A-Za-z]{{3,12}}-[A-Za-z]{{3}}",
    f"(?i:{_SAID}){_OPENED}[A-Z][a-z]{{2,12}}[A-Z][a-z]{{2}}",
)
_BEFORE_LENGTH_MAX = 60
_BEGUN = re.compile(rb"(?<=[\s*:\"'`])[A-Za-z-]{6,40}\Z")
_WORDS = re.compile(rb"[A-Za-z]{3,12}(?:-[A-Za-z]{3,12}){2,7}(?:-?\d{1,6}[!?_]?)(?![\w/-])")
_WORDS_AND_NUMBER = re.compile(rb"[A-Za-z]{6,40}\d{2,6}[_!@#$%&*?~^+-]{0,2}(?![\w/-])")


def find_said(line: bytes, to: int) -> tuple[Spans, int]:
    """`The password is words-with-hyphens57`, and `WordsAndNumber57`."""
    begun = _BEGUN.search(line, max(0, to - _BEFORE_LENGTH_MAX), to)
    if begun is None:
        return (), to
    found = _WORDS.match(line, begun.start())
    if found is None:
        found = _WORDS_AND_NUMBER.match(line, begun.start())
        if found is None or not is_words_and_number(found.group().decode("ascii")):
            return (), to
    return (found.span(),), max(to, found.end())


_RULES = (
    Rule(
        "said-passphrase",
        "any",
        "words and a number that a sentence calls a password",
        _GATES,
        find_said,
        "medium",
        "The password is amber-nickel-candle-<digits:3>",
        "The password is machine-generated-daily.",
    ),
)


def rules() -> tuple[Rule, ...]:
    """The rules of this module."""
    return _RULES
