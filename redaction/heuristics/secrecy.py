"""Is a value at the place of a secret a secret, or a variable, a placeholder, a word or code?

A secret has no other explanation and looks random: digits among letters, symbols, or letters that form no words. How
random it must look depends on what its name demands.
"""

import re
from enum import Enum
from functools import lru_cache

from redaction.heuristics.certain import SENTENCE, is_certain
from redaction.heuristics.names import Demand
from redaction.heuristics.placeholders import (
    DUMMIES,
    is_documented,
    is_mashed,
    is_monotonous,
    is_placeholder,
    is_sequence_of_bases,
    only_dummies,
)
from redaction.heuristics.words import NEITHER, alternatives, is_foreign, is_word, segments, share_of_words, word_list


class Placement(Enum):
    """Where a value is in its text: in quotes, as the rest of its line, or in the middle of a line."""

    QUOTED = "quoted"
    LINE = "line"
    BARE = "bare"


# The same values recur in a session and in a flood. Cached here only, because some of them are secret.
_CACHE_SIZE = 512
LENGTH_MIN = {Demand.WEAK: 16, Demand.TOKEN: 12, Demand.KEY: 8, Demand.SECRET: 7, Demand.PASSWORD: 6}
LENGTH_MAX = 4096
WORDS_SHARE_MAX = {Demand.WEAK: 0.42, Demand.TOKEN: 0.5, Demand.KEY: 0.62, Demand.SECRET: 0.62, Demand.PASSWORD: 0.62}
LETTERS_ONLY_MIN = {Demand.WEAK: 24, Demand.TOKEN: 16, Demand.KEY: 12, Demand.SECRET: 12, Demand.PASSWORD: 12}
SCATTERED_MIN = 3  # runs of digits; no name has as many
SCATTERED_SHARE_MAX = 0.8
# Among so many random letters some form words by chance; no name of so many is as broken.
LONG_LENGTH_MIN = 32
LONG_SHARE_MAX = 0.6
LONG_SEGMENT_LENGTH_MAX = 5
MIXED_LENGTH_MIN = 8  # letters only, whose case changes more often than in any name

LABEL_ENDS = re.compile(r"[-_.:/]")
LABEL_PARTS_MIN = 3
LABEL_PART_LENGTH_MAX = 8
OTHER_FORMS = re.compile(f"(?:{alternatives('other_forms')})", re.DOTALL)
KEY_ID = re.compile(r"[0-9A-F]{16}|[0-9A-F]{40}")  # of PGP
UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
PATH = re.compile(r"(?:~|\.{1,2})?/.*|(?:\w+:)?[\w.-]+(?:/[\w.-]+)+/?")
NAME = re.compile(r"\w+")
CHAIN = re.compile(r"[A-Za-z_$]\w*(?:(?:\.|->|::|\?\.|!\.|[?!](?![\w?!]))\w*)*")
CODE = re.compile(r"[&*!+~-]{0,2}[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.|!\.|!(?!\w))[A-Za-z_$]?\w*)*[(\[{<?].*", re.DOTALL)
COMPILED = re.compile(r"[A-Za-z_]\w*\$\w*(?:\.\w+)+")  # a member of a variable that a compiler named
BRACKETED = "([{<"
MEMBER = re.compile(
    r"(?:self|this|cls|os|process|env|config|settings|props|params|request|req|args|options|opts|ctx|context|data|app"
    r"|window|document|event|state|module|var|local|secrets|import\.meta|vars|user|form|body|res|response|input)\b[.?!\[]\D"
)
WORD_AND_DIGITS = re.compile(r"[A-Za-z\d]*\d[A-Za-z\d]*[!#$%*?@]*|[A-Za-z]{3,}[_#@-]\d+[!?]?")
CLASS_WORDS_SHARE_MIN = 0.7
CONSTANT = re.compile(r"[A-Z]{2,}[A-Z0-9]*(?:_[A-Z0-9]{1,14}){2,}")
CONSTANT_DIGITS_SHARE_MAX = 0.35
CLASS = re.compile(
    r"(?:[A-Z][a-z]*(?:\d{1,2}(?:[a-z]{1,5}\d{1,2})?)?){4,}[A-Z][a-z]{2,}|(?:[A-Z][a-z]{2,}){2,}[A-Z]?\d{1,2}[A-Z][a-z]{2,}"
)
ARGUMENT = re.compile(r"([A-Za-z_]\w{2,})=[\w(\[{]")  # named in a call
ARGUMENT_WORDS_SHARE_MIN = 0.7
EXPRESSION = re.compile(r" (?:[<>=+*/|&?-]|[<>=!]=|=>|&&|\|\|) |[\w)\]](?:&&|\|\||[!=]==?)[\w(!]")
POOR = re.compile(r"[A-Za-z]{3,}_\d{3,}")
CALLED = re.compile(r"[A-Za-z_$][\w$.]*\(")
NOUNS = ("password", "passwd", "secret", "token")
# Code between two strings of which the first one ended before it.
BETWEEN_STRINGS = re.compile(r"[)\]},;:?][^ ]*[\w.]\(\Z")
ASSET = re.compile(r"[\w./-]+\.(?:png|svg|jpe?g|gif|webp|js|css|html?|json)(?:\?[\w=&.-]*)?")
NAMED_AFTER_PASSWORD = re.compile(
    r"my_[a-z]+(?:Key|Secret|Token)|[a-z][a-z0-9]*(?:_[a-z0-9]+)*_(?:password|passwd|passphrase|secret|token|key)|(?:[A-Z][a-z]+)*Password(?:[A-Z][a-z]+)+"
)
UNPRINTABLE = re.compile(r"[\n\r\x00]")
PLAIN = re.compile(r"[\w+/=.~:%-]+")
HEX = re.compile(r"[0-9a-fA-F]+")
SEPARATED = re.compile(r"[A-Za-z0-9]*(?:[-_.:/|,;=+ ][A-Za-z0-9]*)+")
DIGITS = re.compile(r"[0-9]+")
# No counter, time, amount or id has as many digits: 2 to the power of 64 has twenty, ids of chains have more.
_LONG_NUMBER = re.compile(r"[0-9]{30,64}")
HAS_DIGIT = re.compile(r"[0-9]")
HAS_LETTER = re.compile(r"[^\W\d_]")
HAS_SYMBOL = re.compile(r"[!@#$%^&*?~|;<>()\[\]{}\"'`\\+=].")  # not as the last character, where text has them too
LAST_SYMBOL = re.compile(r"[A-Za-z]{8}[#$&@]\Z")  # texts end with others
FILE = re.compile(r".*[/\\].*\.[a-z]{2,5}|/.*", re.DOTALL)
BLANK_PARTS_MAX = 6
SHORT_WORD = 3
PHRASE_LENGTH_MAX = 128
WORDS_AND_NUMBER = re.compile(
    r"(?:[A-Z][a-z]{2,}){2,5}\d{2,6}([_.!@#$%&*?~^+-]{0,2})|[A-Z][a-z]{3,}\d{3,6}([_.!@#$%&*?~^+-]{1,2})"
)
_JOINED_WORDS = re.compile(r"[A-Za-z]{3,12}(?:[_.][A-Za-z]{3,12}){1,4}[_.]\d{3,6}")
# Names are not joined in these ways.
_MIXED_WORDS = re.compile(r"[a-z]{3,12}_[A-Z][a-z]{2,11}\d{2,4}[!#$%&*]?|[a-z]{3,10}(?:-[a-z]{3,10}){3}")
SIZED = word_list("sized")
TYPES = word_list("types")
# A type, a call, a comparison, a member after a condition, an expression of a template.
CODE_FORMS = re.compile(
    r"(?:str|bytes|int|bool)\|.*|[A-Za-z_]\w*\(\)|[\w.]+==[\w.]+|\w{1,8}:[A-Za-z]\w?\.\w+.*|\[\w+\(.*\)\]"
)
IDS = re.compile(r"\d{1,6}:\d{1,6}:[^ ]*:")  # of a user and a group, in files like /etc/passwd
ELLIPSIS = re.compile(r"\.{3,}|…")
CUT_LENGTH_MIN = 12
CUT_POOR_LENGTH_MIN = 16  # of lower case or upper case only


def is_words_and_number(value: str) -> bool:
    """Whether the value is a typical password and no name of a program: words, a number, perhaps a symbol."""
    if WORDS_AND_NUMBER.fullmatch(value) is None or any(noun in value.lower() for noun in NOUNS):
        return False
    words = {segment.lower() for segment in segments(value)}
    return SIZED.isdisjoint(words) and not only_dummies(value)


def is_joined_words(value: str) -> bool:
    """Whether the value is a typical password: joined words and a number, none of them a word of programs."""
    if _JOINED_WORDS.fullmatch(value) is None:
        return False
    return _is_of_no_program(value)


def is_mixed_words(value: str) -> bool:
    """The same of `word_Word99` and of four words, which are no names wherever they stand."""
    return _MIXED_WORDS.fullmatch(value) is not None and _is_of_no_program(value)


def _is_of_no_program(value: str) -> bool:
    if any(noun in value.lower() for noun in NOUNS):
        return False
    words = {segment.lower() for segment in segments(value)}
    return SIZED.isdisjoint(words) and DUMMIES.isdisjoint(words)


def _is_of_words(value: str, demand: Demand) -> bool:
    if demand >= Demand.SECRET and is_mixed_words(value):
        return True
    return demand == Demand.PASSWORD and is_joined_words(value)


def _is_cut(value: str, demand: Demand) -> bool:
    """Whether the value ends with an ellipsis and what comes before that is random."""
    head = ELLIPSIS.split(value, maxsplit=1)[0]
    if not value.endswith(("...", "…")) or len(head) < CUT_LENGTH_MIN or head.startswith("eyJ"):
        return False
    if len(head) < CUT_POOR_LENGTH_MIN and (head.lower() == head or head.upper() == head):
        return False
    if HAS_DIGIT.search(head) is None or is_monotonous(head[::2]) or is_monotonous(head[1::2]):
        return False
    return share_of_words(head) < WORDS_SHARE_MAX[Demand.WEAK] and is_secret(head, demand)


def _has_other_form(value: str, demand: Demand, share: float) -> bool:
    if OTHER_FORMS.fullmatch(value):
        return _LONG_NUMBER.fullmatch(value) is None
    if UUID.fullmatch(value):
        return demand < Demand.KEY
    if KEY_ID.fullmatch(value):
        return demand <= Demand.KEY
    return PATH.fullmatch(value) is not None and share >= 0.4


def _is_code(value: str, share: float, placement: Placement) -> bool:
    """Whether a value without quotes is an expression."""
    if placement is Placement.QUOTED or (placement is Placement.LINE and WORD_AND_DIGITS.fullmatch(value)):
        return False
    if value[0] in BRACKETED:
        return True
    if placement is Placement.BARE and (EXPRESSION.search(value) or _is_argument(value)):
        return True
    if MEMBER.match(value) or (CALLED.match(value) and (value.endswith("(") or "_" in value)):
        return True
    if COMPILED.fullmatch(value):
        return True
    if CHAIN.fullmatch(value):
        return share >= (0.62 if NAME.fullmatch(value) else 0.4)
    return share >= 0.4 and CODE.match(value) is not None


def _is_argument(value: str) -> bool:
    """Whether this is a named argument of a call."""
    argument = ARGUMENT.match(value)
    return argument is not None and share_of_words(argument[1]) >= ARGUMENT_WORDS_SHARE_MIN


def _is_phrase_secret(value: str) -> bool:
    """Whether a value with blanks is a password rather than a sentence."""
    parts = value.split()
    if len(parts) > BLANK_PARTS_MAX:
        return False
    if EXPRESSION.search(value):
        return False
    words = sum(_is_word_of_phrase(part.strip(".,:;!?'\"()")) for part in parts)
    return words * 3 < len(parts) and any(character.isdigit() for character in value)


def _is_word_of_phrase(part: str) -> bool:
    return is_word(part) or (part.isalpha() and (len(part) < 3 or not part.isascii()))


def _is_label(value: str) -> bool:
    """Whether the value is joined short words and numbers."""
    parts = LABEL_ENDS.split(value)
    mixed = sum(not (part.isalpha() or part.isdigit()) for part in parts)
    return len(parts) >= LABEL_PARTS_MIN and mixed <= 1 and max(map(len, parts)) <= LABEL_PART_LENGTH_MAX


def _letters_look_random(value: str, demand: Demand, share: float) -> bool:
    """Whether a value without digits and symbols is random letters."""
    if any(noun in value.lower() for noun in NOUNS) or _is_foreign(value):
        return False
    if len(value) >= LETTERS_ONLY_MIN[demand]:
        is_snake = "_" in value and (value.islower() or value.isupper())
        is_mixed = not value[1:].islower() and not value.isupper()
        return share < (0.5 if is_mixed and value.isalpha() else 0.4) and (
            not is_snake or len(value) >= 2 * LETTERS_ONLY_MIN[demand]
        )
    if demand < Demand.KEY or len(value) < MIXED_LENGTH_MIN or not value.isalpha() or value[1:].islower():
        return False
    parts = segments(value)
    return (share < 0.5 and len(parts) * 5 >= len(value) * 2) or (share == 0.0 and len(parts) > 1)


def _is_foreign(value: str) -> bool:
    """Whether the value is words of any language."""
    words = NEITHER.split(value)
    return any(len(word) > SHORT_WORD for word in words) and all(
        is_foreign(word) or len(word) <= SHORT_WORD or (is_word(word) and len(segments(word)) == 1) for word in words
    )


def _is_name(value: str) -> bool:
    """Whether the value with digits is a constant or a class."""
    if CLASS.fullmatch(value):
        return share_of_words(value) >= CLASS_WORDS_SHARE_MIN
    if CONSTANT.fullmatch(value) is None:
        return False
    return sum(map(str.isdigit, value)) <= CONSTANT_DIGITS_SHARE_MAX * len(value)


def _looks_random(value: str, demand: Demand, share: float) -> bool:
    has_digits = HAS_DIGIT.search(value) is not None
    has_symbols = (demand >= Demand.SECRET or share < 0.4) and HAS_SYMBOL.search(value) is not None
    has_symbols = has_symbols or (demand == Demand.PASSWORD and LAST_SYMBOL.search(value) is not None)
    if HAS_LETTER.search(value) is None:
        return has_digits and (has_symbols or _LONG_NUMBER.fullmatch(value) is not None)
    if not has_digits and not has_symbols:
        return _letters_look_random(value, demand, share)
    if ((share > 0.2 or len(value) < 12) and only_dummies(value)) or _is_name(value):
        return False
    if share <= WORDS_SHARE_MAX[demand]:
        return True
    if len(value) >= LONG_LENGTH_MIN and share < LONG_SHARE_MAX and value.isalnum():
        return len(segments(value)) * LONG_SEGMENT_LENGTH_MAX > len(value)
    if demand >= Demand.KEY and share < SCATTERED_SHARE_MAX and len(DIGITS.findall(value)) >= SCATTERED_MIN:
        return value.isalnum()
    if demand < Demand.SECRET or any(noun in value.lower() for noun in NOUNS):
        return False
    # Words with digits or symbols: a poor password, unless they are joined as names are.
    if POOR.fullmatch(value):
        return demand == Demand.PASSWORD
    if SEPARATED.fullmatch(value):
        return demand == Demand.PASSWORD and "-" in value and has_digits and "_" not in value
    return True


@lru_cache(_CACHE_SIZE)
def is_secret(value: str, demand: Demand, placement: Placement = Placement.QUOTED) -> bool:
    """Whether the decoded value is to be masked, by what its name demands and by its placement in the text."""
    if (len(value) > PHRASE_LENGTH_MAX and " " in value) or BETWEEN_STRINGS.match(value):
        return False
    if demand == Demand.CERTAIN:
        return is_certain(value, quoted=placement is Placement.QUOTED)
    if demand == Demand.NONE or not LENGTH_MIN[demand] <= len(value) <= LENGTH_MAX or UNPRINTABLE.search(value):
        return False
    if is_placeholder(value):
        return demand >= Demand.TOKEN and _is_cut(value, demand)
    if (
        demand >= Demand.SECRET
        and is_words_and_number(value)
        and (placement is not Placement.BARE or not value.isalnum())
    ):
        return True
    if placement is not Placement.BARE and _is_of_words(value, demand):
        return True
    if " " in value:
        return demand >= Demand.SECRET and _is_phrase_secret(value)
    if SENTENCE.search(value):
        return False
    share = share_of_words(value)
    if _has_other_form(value, demand, share) or _is_code(value, share, placement):
        return False
    if demand == Demand.WEAK and PLAIN.fullmatch(value) is None:
        return False
    if demand == Demand.WEAK and (HEX.fullmatch(value) or FILE.fullmatch(value) or UUID.search(value)):
        return False
    if _is_name_or_type(value) or (demand <= Demand.TOKEN and _is_label(value)):
        return False
    return _looks_random(value, demand, share) and not _is_sample(value, demand)


def _is_name_or_type(value: str) -> bool:
    if value.lower() in TYPES or NAMED_AFTER_PASSWORD.fullmatch(value):
        return True
    return IDS.match(value) is not None or ASSET.fullmatch(value) is not None or CODE_FORMS.fullmatch(value) is not None


def _is_sample(value: str, demand: Demand) -> bool:
    if is_monotonous(value) or is_sequence_of_bases(value) or is_documented(value):
        return True
    return demand < Demand.PASSWORD and is_mashed(value)
