"""Passwords made of words, where a sentence says that they are passwords."""

import re

from redaction.heuristics.secrecy import is_joined_words, is_words_and_number
from redaction.rules.rule import Rule, Spans

_SAID = r"(?:passw(?:or)?d|passphrase)(?:[ ][\w' \-.]{0,30})?[ ](?:is|was|equals|ist|lautet)[ :*]{1,4}"
_OPENED = r"""\\{0,15}["'`]?"""
_GATES = (
    f"(?i:{_SAID}){_OPENED}[A-Za-z]{{3,12}}-[A-Za-z]{{3,12}}-[A-Za-z]{{3}}",
    f"(?i:{_SAID}){_OPENED}[A-Z][a-z]{{2,12}}[A-Z][a-z]{{2}}",
    f"(?i:{_SAID}){_OPENED}[A-Za-z]{{3,12}}[_.][A-Za-z]{{3}}",
)
# A sentence, and the beginning of a value that is no word.
SAYS = r"""[ ](?i:is|was|equals|ist|lautet)[ :*]+["'`\\]*"""
NO_WORD = r"""[^\s"'`\\]{0,5}[0-9A-Z!@#$%^&*_+=~]"""
# What is in every such sentence, with open counts.
WHEN_SAID = rf"(?i:pass(?:w|phrase)[\w' \-.]*){SAYS}(?:{NO_WORD}|[A-Za-z]+(?:-[A-Za-z]+-|[_.][A-Za-z]{{3}}))"
_BEFORE_LENGTH_MAX = 60
_BEGUN = re.compile(rb"(?<=[\s*:\"'`])[A-Za-z_.-]{6,40}\Z")
_WORDS = re.compile(rb"[A-Za-z]{3,12}(?:-[A-Za-z]{3,12}){2,7}(?:-?\d{1,6}[!?_]?)(?![\w/-])")
_WORDS_AND_NUMBER = re.compile(rb"[A-Za-z]{6,40}\d{2,6}[_!@#$%&*?~^+-]{0,2}(?![\w/-])")
_JOINED_WORDS = re.compile(rb"[A-Za-z_.]{7,60}\d{3,6}(?![\w/-]|\.\w)")
_FORMS = ((_WORDS, bool), (_WORDS_AND_NUMBER, is_words_and_number), (_JOINED_WORDS, is_joined_words))


def find_said(line: bytes, to: int) -> tuple[Spans, int]:
    """`The password is words-with-hyphens57`, `WordsAndNumber57`, and `words_with_joints_571`."""
    begun = _BEGUN.search(line, max(0, to - _BEFORE_LENGTH_MAX), to)
    if begun is None:
        return (), to
    start = begun.start()
    for form, is_password in _FORMS:
        found = form.match(line, start)
        if found is not None and is_password(found.group().decode("ascii")):
            return (found.span(),), max(to, found.end())
    return (), to


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
        (WHEN_SAID,),
    ),
)


def rules() -> tuple[Rule, ...]:
    """The rules of this module."""
    return _RULES
