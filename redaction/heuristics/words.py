"""How much of a text is words, told from the pairs of letters that words are made of.

Random letters rarely form such pairs, so a random value and a name in code differ without a dictionary.
"""

import re
from operator import add
from string import ascii_lowercase

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
# For each letter, how often each letter follows it in the words of nineteen European languages: the logarithm of how
# much more often than at random, plus five. Counted in translations of programs' messages.
LIKELY = {
    "a": "45561343435667140767443133",
    "b": "73317112741713610643611030",
    "c": "71427007635411710546500024",
    "d": "73248222733434730553532033",
    "e": "43554442435657241766332423",
    "f": "62137632811511720545500030",
    "g": "73247155623435620665612030",
    "h": "81137014723434720535622030",
    "i": "64656452345657641566350224",
    "j": "82048100614324610054621002",
    "k": "72317224615524730566633040",
    "l": "73247232733634620155530040",
    "m": "86228110712353660132511020",
    "n": "72566472744324620167530042",
    "o": "34553352435667451765554113",
    "p": "71227123602612751745500020",
    "q": "50112030400400333424900000",
    "r": "73458242724354630455532033",
    "s": "62527324726433651267521044",
    "t": "71227214713323620655622042",
    "u": "55455342555667350666332223",
    "v": "82118101722315610432410141",
    "w": "81327102701315630451300062",
    "x": "64547322703332470447401640",
    "y": "74646343545566560466424133",
    "z": "84347033713445620234543054",
}
LIKELIHOOD = {
    first + second: int(digit) - 5
    for first, digits in LIKELY.items()
    for second, digit in zip(ascii_lowercase, digits, strict=True)
}
LIKELIHOOD_MIN = 0.1
FOREIGN_LENGTH_MIN = 7
SCATTERED_PARTS = 4
MEMBER_LENGTH_MIN = 8
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
    # Random letters are short runs mostly; to ask for each would take longer than all the rest.
    words = sum([len(run) for run in SEGMENT.findall(text) if len(run) >= WORD_LENGTH_MIN and is_word(run)])
    return words / len(NEITHER.sub("", text)) if words else 0.0


def is_foreign(text: str) -> bool:
    """Whether the letters could be a word, or words put together, in one of many languages."""
    if len(text) < FOREIGN_LENGTH_MIN or not text.isalpha():
        return False
    if not text.isascii():
        return True
    if len(SEGMENT.findall(text)) * SCATTERED_PARTS > len(text):
        return False
    lowered = text.lower()
    return sum(map(LIKELIHOOD.__getitem__, map(add, lowered, lowered[1:]))) >= LIKELIHOOD_MIN * (len(text) - 1)


def is_scrambled_member(value: str) -> bool:
    """Whether what reads as an object's member has a name that no one would give."""
    last = value.rpartition(".")[2]
    is_mixed = not last.islower() and not last.isupper() and not last[1:].islower()
    return len(last) >= MEMBER_LENGTH_MIN and is_mixed and share_of_words(value) == 0.0 and not is_foreign(last)
