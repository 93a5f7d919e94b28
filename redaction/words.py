"""How much of a text is words, told from the pairs of letters that words are made of.

Random letters rarely form such pairs, so a random value and a name in code differ without a dictionary.
"""

import re
from operator import add

# For each letter, those that often follow it in English words and in the names of programs.
PAIRS = {
    "a": "bcdfgiklmnprstuvy",
    "b": "aeilorusy",
    "c": "acehikloqrtu",
    "d": "adeiorsuy",
    "e": "acdefglmnpqrstvxy",
    "f": "aefilortu",
    "g": "aehilnorsu",
    "h": "aeiortu",
    "i": "abcdefglmnoprstvz",
    "j": "aeosu",
    "k": "eins",
    "l": "abdeilopstuvy",
    "m": "abeimopsuy",
    "n": "acdefgiknostuvy",
    "o": "bcdfgiklmnoprstuvw",
    "p": "aehiloprstuy",
    "q": "lu",
    "r": "acdegiklmnoprstuvy",
    "s": "acehikloprstuwy",
    "t": "acehilmorstuwy",
    "u": "abcdegilmnprst",
    "v": "aeior",
    "w": "aehiors",
    "x": "acefipty",
    "y": "eiopst",
    "z": "aeioy",
}
COMMON = frozenset(first + second for first, followers in PAIRS.items() for second in followers)
NEITHER = re.compile(r"[\W_]+")
SEGMENT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
WORD_LENGTH_MIN = 3
WORD_PAIRS_SHARE = 0.72


def words_of(text: str) -> frozenset[str]:
    """The words that the text lists."""
    return frozenset(text.split())


def segments(text: str) -> list[str]:
    """The runs of letters, parted where camel case parts them."""
    return SEGMENT.findall(text)


def is_word(segment: str) -> bool:
    """Whether the run of letters could be a word; never so for fewer than three."""
    length = len(segment)
    if length < WORD_LENGTH_MIN:
        return False
    lowered = segment.lower()
    common = sum(map(COMMON.__contains__, map(add, lowered, lowered[1:])))
    return common >= WORD_PAIRS_SHARE * (length - 1)


def share_of_words(text: str) -> float:
    """Which part of the letters and digits belongs to words, from 0 to 1."""
    words = sum(map(len, filter(is_word, SEGMENT.findall(text))))
    return words / len(NEITHER.sub("", text)) if words else 0.0
