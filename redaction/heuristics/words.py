"""How much of a text is words, by the pairs of letters that words consist of; and the word lists of `words.toml`.

Random letters rarely form such pairs, so a random value and a name in code differ without a dictionary.
"""

import re
import tomllib
from operator import add
from pathlib import Path
from string import ascii_lowercase
from typing import Any, Final

_TABLES: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
COMMON = frozenset(first + second for first, followers in _TABLES["pairs"].items() for second in followers)
LIKELIHOOD = {
    first + second: int(digit) - 5
    for first, digits in _TABLES["likelihoods"].items()
    for second, digit in zip(ascii_lowercase, digits, strict=True)
}
_LINE_BREAK: Final = re.compile(r"\n *")
LIKELIHOOD_MIN = 0.1
FOREIGN_LENGTH_MIN = 7
SCATTERED_PARTS = 4
MEMBER_LENGTH_MIN = 8
NEITHER = re.compile(r"[\W_]+")
SEGMENT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
WORD_LENGTH_MIN = 3
WORD_PAIRS_SHARE = 0.72


def word_list(name: str) -> frozenset[str]:
    """The words of this list in `words.toml`."""
    return frozenset(_TABLES[name].split())


def alternatives(name: str) -> str:
    """The expressions of this list in `words.toml`, any of which may match."""
    return _LINE_BREAK.sub("", "|".join(_TABLES[name]))


def segments(text: str) -> list[str]:
    """The runs of letters, split where camel case splits them."""
    return SEGMENT.findall(text)


def is_word(segment: str) -> bool:
    """Whether the run of letters could be a word; fewer than three letters are none."""
    length = len(segment)
    if length < WORD_LENGTH_MIN:
        return False
    lowered = segment.lower()
    common = sum(map(COMMON.__contains__, map(add, lowered, lowered[1:])))
    return common >= WORD_PAIRS_SHARE * (length - 1)


def share_of_words(text: str) -> float:
    """The share of the letters and digits that belong to words, from 0 to 1."""
    # Most runs in random letters are short; checking each of them would take longer than all the rest.
    words = sum([len(run) for run in SEGMENT.findall(text) if len(run) >= WORD_LENGTH_MIN and is_word(run)])
    return words / len(NEITHER.sub("", text)) if words else 0.0


def is_foreign(text: str) -> bool:
    """Whether the letters could be a word or a compound in one of many languages."""
    if len(text) < FOREIGN_LENGTH_MIN or not text.isalpha():
        return False
    if not text.isascii():
        return True
    if len(SEGMENT.findall(text)) * SCATTERED_PARTS > len(text):
        return False
    lowered = text.lower()
    return sum(map(LIKELIHOOD.__getitem__, map(add, lowered, lowered[1:]))) >= LIKELIHOOD_MIN * (len(text) - 1)


def is_scrambled_member(value: str) -> bool:
    """Whether what looks like a member of an object has a random name."""
    last = value.rpartition(".")[2]
    is_mixed = not last.islower() and not last.isupper() and not last[1:].islower()
    return len(last) >= MEMBER_LENGTH_MIN and is_mixed and share_of_words(value) == 0.0 and not is_foreign(last)
