"""Is a value a password where its place proves that one stands there? Then anything is, words included, except what
stands for another value: references, templates, types, code and exact placeholders."""

import re
from typing import Final

from redaction.heuristics.names import Demand, demand_of
from redaction.heuristics.placeholders import is_reference
from redaction.heuristics.words import SEGMENT, alternatives, is_word, word_list

LENGTH_MIN: Final = 3
_PLACEHOLDER: Final = re.compile(f"(?:{alternatives('exact_placeholders')})")
_TYPES: Final = word_list("types")
_SAID: Final = word_list("said")
_PATH: Final = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\][\w./\\@ -]*")
_CODE: Final = re.compile(
    r"(?:self|this|cls|os|process|env|config|settings|args|options|opts|e|req|request)[.\[]|[\w$.]*[(\[]"
    r"|(?:default|dest|help|type|nargs|action|required)=|[A-Z]\w*(?:\._?[A-Z]\w*)+\Z"
)
_CHAIN: Final = re.compile(r"[A-Za-z_$]\w*(?:(?:\.|->|::|\?\.)\w+)+")
_JOINED: Final = re.compile(r"[A-Za-z]+(?:[_/-][A-Za-z]+)+|[a-z]+[A-Z][A-Za-z]*|(?:[A-Z][a-z]+){2,}")
_WEAK: Final = re.compile(r"([A-Za-z]{3,})\d*")
_WORDS_MAX: Final = 8
_BEHIND: Final = ".,;:!?)]}"
# Scripts that write a sentence without blanks.
SENTENCE: Final = re.compile(r"(?:[\u0e00-\u0e7f\u3001-\u30ff\u3400-\u9fff\uac00-\ud7af\uff01-\uff60].*){4}")
_OPTION: Final = re.compile(r"--[a-z][a-z-]+")
_SHORT_HEX: Final = re.compile(r"0[xX][0-9a-fA-F]{1,8}|\d{1,5}:\d{1,5}")  # or two ports
TOLD_LENGTH_MIN: Final = 6
_VERSION: Final = re.compile(
    r"v?\d+(?:[.:/-]\d+)+\w*|x\d{2,5}(?:[_-]\d+)?"
    # Digits among letters, twice after that, are no version.
    r"|(?:scram-)?(?:sha|md|aes|rsa|utf|base|pbkdf|argon|bcrypt|scrypt|rfc|ntlm|pkcs)[-_#]?v?\d+(?![a-z]*\d+[a-z]+\d).*",
    re.I,
)
# A path, an address, a member, a call.
PARTS: Final = re.compile(r"\.[a-z]+|.*[/\\(){}<>|=].*|[\w.+-]+@[\w-]+\.[\w.]+|\w+(?:\.[A-Za-z]\w*)+|.*:.*:.*")
_LOWER_NAME: Final = re.compile(r"[a-z]+(?:_[a-z0-9]+)+|[A-Z]+(?:_[A-Z0-9]+)+")
_SCRIPTS: Final = re.compile(r"[a-z\x80-\uffff][A-Z]|[a-z]_[a-z]")
_SIGNED: Final = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)*[!#*$%&@]+|(?=.*[#!$%&*^@~+].*[A-Za-z])[\w#!$%&*^@~+-]+")
_FOUR_WORDS: Final = re.compile(r"[a-z]{3,10}(?:-[a-z]{3,10}){3,6}")


def is_certain(value: str, *, quoted: bool) -> bool:
    """Whether the value, at a place that proves a password, is one and does not stand for another value."""
    lowered = value.lower()
    if (
        len(value) < LENGTH_MIN
        or value[0] in ")]};,"
        or _PLACEHOLDER.fullmatch(lowered.rstrip(".,;:!?)]}"))
        or lowered in _TYPES
        or is_reference(value)
    ):
        return False
    if _PATH.fullmatch(value) or "[REDACTED" in value or not value.isprintable():
        return False
    if SENTENCE.search(value) or _OPTION.fullmatch(value) or _SHORT_HEX.fullmatch(value):
        return False
    words = lowered.split()
    if len(words) > 1:
        return quoted and len(words) <= _WORDS_MAX and not any(_is_said(word) for word in words)
    if _JOINED.fullmatch(value) and demand_of(value.encode()) >= Demand.SECRET:
        return False  # the name of a variable or of a message
    return quoted or not (_is_said(lowered) or _is_code(value))


def is_weak(value: str) -> bool:
    """Whether the value is a single word, or one with digits behind it."""
    found = _WEAK.fullmatch(value)
    return found is not None and len(SEGMENT.findall(found[1])) == 1 and is_word(found[1])


def _is_said(word: str) -> bool:
    """Whether sentences about passwords contain this word."""
    word = word.strip(".,:;!?()")
    return word in _SAID or word in _TYPES or _PLACEHOLDER.fullmatch(word) is not None


def _is_code(value: str) -> bool:
    if _CODE.match(value) or value[0] in "([{<":
        return True
    if _CHAIN.fullmatch(value) is None:
        return False
    return any(demand_of(part.encode()) >= Demand.TOKEN for part in re.split(r"\W+", value))


def is_told(value: str, *, is_abroad: bool = False) -> bool:
    """Whether a word of a sentence about a password is the password: words of sentences have no digits or joints.

    `is_abroad`: the sentence is of another language than English, where names of programs are not expected.
    """
    if not is_certain(value, quoted=False) or value.startswith("-"):
        return False
    if _VERSION.fullmatch(value) or PARTS.fullmatch(value):
        return False
    letters = sum(map(str.isalpha, value))
    if letters and any(map(str.isdigit, value)):
        return len(value) >= TOLD_LENGTH_MIN and (is_abroad or _LOWER_NAME.fullmatch(value) is None)
    if letters >= TOLD_LENGTH_MIN and (is_abroad or not value.isascii()) and _SCRIPTS.search(value):
        return True
    if is_abroad and _LOWER_NAME.fullmatch(value) and value.islower():
        return demand_of(value.encode()) == Demand.NONE
    return letters >= TOLD_LENGTH_MIN and (
        _SIGNED.fullmatch(value) is not None or _FOUR_WORDS.fullmatch(value) is not None
    )
