"""Values that stand for a secret without being one: placeholders, templates, references, dummies and samples."""

import hashlib
import re
from operator import sub
from typing import Final

from redaction.heuristics.words import alternatives, segments, share_of_words, word_list

_TEMPLATE: Final = re.compile(alternatives("templates"))
_VARIABLE: Final = re.compile(f"(?:{alternatives('variables')})")
_CONVERSION: Final = re.compile(r"%[sdrxv](?![A-Za-z0-9])")  # generated passwords have it by chance
_PLACEHOLDER: Final = re.compile(alternatives("placeholders"))
DUMMIES: Final = word_list("dummies")
_QUALITIES: Final = word_list("qualities")
_QUALITY_DIGITS_MAX: Final = 3  # a real password may contain `secure` too, but hardly with so few digits
_DUMMY_RUN: Final = re.compile("(?:" + "|".join(word for word in DUMMIES if len(word) > 2) + ")+")
_DUMMY_OR_QUALITY_RUN: Final = re.compile(
    "(?:" + "|".join(word for word in DUMMIES | _QUALITIES if len(word) > 2) + ")+"
)
_NOISE_SYMBOLS_MIN: Final = 7
_NOISE_LENGTH_MIN: Final = 11
_NOISE_WORDS_SHARE_MAX: Final = 0.2
DIFFERENT_MIN: Final = 5
SEQUENCE_SHARE: Final = 0.6
RUN_LENGTH_MIN: Final = 8
_STEPS: Final = frozenset((-1, 0, 1))
_NUCLEOTIDES: Final = frozenset("ACGTUNacgtun")
# Hands that rest on the middle row of a keyboard type text that looks random.
_MIDDLE_ROW: Final = frozenset("asdfghjkl")
_MIDDLE_SHARE: Final = 0.75
_MASHED: Final = re.compile(r"(?=[0-9]*+[a-z])(?:[a-z0-9_-]{6,20}|[A-Za-z0-9_-]{21,80})")
_LETTERS_OF_HEX: Final = frozenset("abcdef")
_LETTERS_MIN: Final = 6
_DIGEST_LENGTH: Final = 12
_DOCUMENTED: Final = word_list("documented")


def is_placeholder(value: str) -> bool:
    """Whether the value is written in place of another one."""
    return _PLACEHOLDER.search(value.lower()) is not None or is_reference(value)


def is_reference(value: str) -> bool:
    """Whether the value is a variable, a template, a reference or a pattern."""
    if value.isalnum():
        return False  # all forms have symbols
    if _TEMPLATE.search(value) or _VARIABLE.fullmatch(value):
        return True
    if _CONVERSION.search(value):
        return not _is_noise(value)
    return value.startswith("^") and value.endswith("$")


def _is_noise(value: str) -> bool:
    """Whether the value has so many symbols and so few words that it is random."""
    symbols = {character for character in value if not character.isalnum()}
    return (
        (len(symbols) >= _NOISE_SYMBOLS_MIN or sum(map(str.isalnum, value)) >= _NOISE_LENGTH_MIN)
        and " " not in symbols
        and all(any(map(kind, value)) for kind in (str.isdigit, str.islower, str.isupper))
        and share_of_words(value) < _NOISE_WORDS_SHARE_MAX
    )


def only_dummies(value: str) -> bool:
    """Whether all words of the value are dummies, as in tests and documentation."""
    words = [segment.lower() for segment in segments(value)]
    if all(word in DUMMIES or _DUMMY_RUN.fullmatch(word) for word in words):
        return True
    return sum(map(str.isdigit, value)) <= _QUALITY_DIGITS_MAX and all(
        word in DUMMIES or _DUMMY_OR_QUALITY_RUN.fullmatch(word) for word in words
    )


def is_monotonous(value: str) -> bool:
    """Whether the value repeats few characters, or counts up or down through the alphabet or digits."""
    lowered = value.lower()
    if len(set(lowered)) < DIFFERENT_MIN:
        return True
    codes = lowered.encode("latin-1", "replace")
    return sum(map(_STEPS.__contains__, map(sub, codes, codes[1:]))) >= SEQUENCE_SHARE * (len(codes) - 1)


def is_sequence_of_bases(value: str) -> bool:
    """Whether the value could be DNA or RNA."""
    return _NUCLEOTIDES.issuperset(value)


def is_mashed(value: str) -> bool:
    """Whether the value was typed by hitting the middle row of a keyboard."""
    if _MASHED.fullmatch(value) is None:
        return False
    letters = [character for character in value.lower() if character.isalpha()]
    return (
        len(letters) >= _LETTERS_MIN
        and sum(map(_MIDDLE_ROW.__contains__, letters)) >= _MIDDLE_SHARE * len(letters)
        and not _LETTERS_OF_HEX.issuperset(letters)
    )


def is_documented(value: str) -> bool:
    """Whether a standard documents this very value."""
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH] in _DOCUMENTED
