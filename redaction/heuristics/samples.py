"""Values that stand for a secret in documentation and tests, told from their characters or known from standards."""

import hashlib
import re
from operator import sub
from typing import Final

from redaction.heuristics.words import words_of

DIFFERENT_MIN: Final = 5
SEQUENCE_SHARE: Final = 0.6
RUN_LENGTH_MIN: Final = 8
_STEPS: Final = frozenset((-1, 0, 1))
_NUCLEOTIDES: Final = frozenset("ACGTUNacgtun")
# Hands that rest on the middle row of a keyboard type what looks random.
_MIDDLE_ROW: Final = frozenset("asdfghjkl")
_MIDDLE_SHARE: Final = 0.75
_MASHED: Final = re.compile(r"(?=[0-9]*+[a-z])[a-z0-9_-]{6,20}")
_LETTERS_OF_HEX: Final = frozenset("abcdef")
_LETTERS_MIN: Final = 6
_DIGEST_LENGTH: Final = 12
# Of what RFC 5849, 6749, 6750, 7009, 7617 and 7662 and documentation of Requests-OAuthlib and htdigest show.
_DOCUMENTED: Final = words_of(
    """
    00cf4c781dc3 04e3524cafd2 055671f8eca8 082bff0ad603 1984d686fff0 1c42fb199520 293257ab6495
    2ff8b0fb93ac 387d52f219c5 392d9bf6be67 43217a413d0a 4c20e6f5cc11 53f5da0aaa93 584b27d64ebc 649e1f5c769e
    658c08d3013c 687da00b09c8 6aa14267d949 6c96130f130a 7e8a30c80100 7f8e022ae8b7 80f8b7c904d4 8d567eb88aff
    9a6ce171d217 9d03b692e941 9e309cccd311 a15ab7edd955 a35b81a7d792 a71b359a87af a736c9372687 b87dad10a32a
    b8e148545b13 bb9b1163338b c0c97668ea4f c20fbc2b9618 c3d6f56b667e c4ad638fad0d c6526b2c498c ca7459e2b267
    cb87c87e4a13 cf4d418ed3de d167410a1686 e9974c507d2a ea9bdfd02c0c ed8462e1cfbe fc25fa46c0ba
    """
)


def is_monotonous(value: str) -> bool:
    """Whether the value is few characters many times, or one that follows the other."""
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
    letters = [character for character in value if character.isalpha()]
    return (
        len(letters) >= _LETTERS_MIN
        and sum(map(_MIDDLE_ROW.__contains__, letters)) >= _MIDDLE_SHARE * len(letters)
        and not _LETTERS_OF_HEX.issuperset(letters)
    )


def is_documented(value: str) -> bool:
    """Whether a standard shows this very value."""
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH] in _DOCUMENTED
