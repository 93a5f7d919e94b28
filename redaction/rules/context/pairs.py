"""Values whose name is not next to them: in a tag around them, a member beside them, a line above, a cell, a column, or
the same sentence.

Each line may have a prefix, as in numbered views, diffs, logs and the output of grep.
"""

import re

from redaction.heuristics.names import Demand, demand_of
from redaction.heuristics.secrecy import Placement, is_joined_words, is_words_and_number
from redaction.heuristics.values import is_value, value_span
from redaction.rules.context.assignments import ESCAPED, QUOTE_CHARACTERS, assigned_secret, name_before, told_secret
from redaction.rules.context.table import table_of
from redaction.rules.rule import Extraction

BEFORE_LENGTH_MAX = 600
NAMED_TAG, VALUE_BEFORE, NAME_OPENED = table_of(__file__).patterns("named_tag", "value_before", "name_opened")
STATEMENTS = tuple(b"env arg setx setenv export define setq set by defparameter defvar const".split())


BESIDE_USER_BYTES = 3
_TEXT_MAX = 200
VERSION = re.compile(rb"[~^]?\d+(?:\.\d+)+\\{0,15}[\"']")
SETTING = re.compile(rb"(?P<value>[^\s\"'`\\$<>{}()\[\]%,;]{3,128}+)(?=\r?\n|\\{1,15}[nr]|[\"]| [a-z0-9_]{2,40}=|\Z)")
LABEL = re.compile(rb"(?:[A-Z\xc3-\xef]|\\{1,15}u[0-9a-f]{4})(?:[^\s\d\\]| |\\{1,15}u[0-9a-f]{4})*")
ROW_MEMBERS_MAX, ROW_MEMBER_LENGTH_MAX = 128, 1024
# The rest of the mark, or a line with a name and a value.
ROW_MEMBER = re.compile(
    rb"[-+*]*+(?:(?:\\{1,15}r|\r)?(?:\n|\\{1,15}n)[ ]{0,40}+(?P<name>[A-Za-z_][\w.-]{0,60}+)[ ]{0,60}+(?:\||:)[ ]?"
    rb"(?P<value>[^\n\r\\\"]{0,512}+)|(?<=[-+*])(?=[\n\r\\]))"
)
# A placeholder before a host.
HOST_NEXT = re.compile(rb"@[\w\[][^\s<\"'\\]{2,80}(?!<)(?:[\s\"'\\]|\Z)")
_HYPHENATED_WORDS = re.compile(rb"[A-Za-z]{3,12}(?:-[A-Za-z]{3,12}){2,7}(?:-?\d{1,6}[!?_]?)(?![\w/-])")
_WORDS_AND_NUMBER = re.compile(rb"[A-Za-z]{6,40}\d{2,6}[_!@#$%&*?~^+-]{0,2}(?![\w/-])")
_JOINED_WORDS = re.compile(rb"[A-Za-z_.]{7,60}\d{3,6}(?![\w/-]|\.\w)")
_PASSPHRASE_FORMS = (
    (_HYPHENATED_WORDS, bool),
    (_WORDS_AND_NUMBER, is_words_and_number),
    (_JOINED_WORDS, is_joined_words),
)


def extract_from_block(line: bytes, start: int, found: re.Match[bytes], to: int) -> Extraction:
    """The first line of a YAML block, whose name is in the line above with a bar after it."""
    return told_secret(line, start, b"", demand_of(name_before(found, line, start)), to)


def extract_from_tag(line: bytes, start: int, found: re.Match[bytes], to: int) -> Extraction:
    """`<password>value</password>` and `<entry key="password">value</entry>`."""
    if found["name"][::-1].lower() == b"clienttoken" or HOST_NEXT.match(line, start):
        return (), to
    if line[start - found.end() - 1 : start - found.end()] == b"=" or line[start : start + 1] in (b";", b","):
        return (), to  # a placeholder
    demand = demand_of(found["name"][::-1])
    if demand == Demand.NONE and found["attributes"]:
        named = NAMED_TAG.search(found["attributes"])
        demand = demand_of(named["name"][::-1]) if named is not None else demand
    return told_secret(line, start, b"", demand, to)


def extract_beside(line: bytes, start: int, found: re.Match[bytes], to: int) -> Extraction:
    """The value in a member after the one that holds the name."""
    return told_secret(line, start, (found["open"] or b"")[::-1], demand_of(found["name"][::-1]), to)


def extract_before(line: bytes, to: int) -> Extraction:
    """The value in a member before the one that holds the name."""
    end = to - 1
    while line[end - 1] == ESCAPED:
        end -= 1
    head = line[max(0, end - BEFORE_LENGTH_MAX) : end][::-1]
    opened = NAME_OPENED.match(head)
    if opened is None:
        return (), to
    demand = demand_of(opened["name"][::-1])
    found = VALUE_BEFORE.match(head, opened.end()) if demand else None
    if found is None:
        return (), to
    return assigned_secret(line, end - found.end("value"), found["quote"][::-1], demand, to)[0], to


def extract_spaced(line: bytes, start: int, found: re.Match[bytes], to: int) -> Extraction:
    """A value after a name and a blank: SQL, `#define`, old Dockerfiles, columns."""
    name = name_before(found, line, start)
    before = (found["before"] or b"")[::-1].lower()
    is_identified = name.lower() == b"by" and before.endswith(b"identified")
    demand = Demand.PASSWORD if is_identified else demand_of(name)
    quote = (found["open"] or b"")[::-1]
    is_column = found["gap"] != b" " or before.startswith(b"-")  # such as `set -gx` of fish
    if before == b"define" and not quote:
        return (), to
    if demand == Demand.NONE or not (quote or is_column or before.endswith(STATEMENTS)):
        return (), to
    if not before.endswith(STATEMENTS) and name.lower() not in (b"password", b"by", b"passwd"):
        demand = min(demand, Demand.KEY)
    return assigned_secret(line, start, quote, demand, to)


def extract_said(line: bytes, start: int, found: re.Match[bytes], to: int) -> Extraction:
    """The value in a sentence such as `the password is value`."""
    words = found["name"][::-1].split()
    demands = [demand_of(words[at - 1] + b" " + word if at else word) for at, word in enumerate(words)]
    demand = max(demands, default=Demand.NONE)
    if demand < Demand.TOKEN:
        return (), to
    quote = found["open"][::-1]
    return assigned_secret(line, start, quote, min(demand, Demand.KEY) if not quote else demand, to)


def extract_said_in_code(line: bytes, start: int, found: re.Match[bytes], to: int) -> Extraction:
    """The value in a sentence in which the name and the value are each marked as code."""
    name = found["name"]
    demand = demand_of(name[1:] if line[found.start() - 1 : found.start()] == b"\\" else name)
    return assigned_secret(line, start, found["open"][-1:], demand, to) if demand > Demand.WEAK else ((), to)


def extract_said_passphrase(line: bytes, _start: int, begun: re.Match[bytes], to: int) -> Extraction:
    """`The password is words-with-hyphens57`, `WordsAndNumber57`, and `words_with_joints_571`."""
    for form, is_password in _PASSPHRASE_FORMS:
        found = form.match(line, begun.start())
        if found is not None and is_password(found.group().decode("ascii")):
            return (found.span(),), max(to, found.end())
    return (), to


def extract_beside_user(line: bytes, to: int) -> Extraction:
    """The password, unless it is a label of a form: words of which the first has a capital, as in translations."""
    start, end = value_span(line, to - BESIDE_USER_BYTES)
    if LABEL.fullmatch(line, start, end) is not None:
        return (), max(to, end)
    placement = Placement.QUOTED if line[start - 1] in QUOTE_CHARACTERS else Placement.BARE
    return (((start, end),) if is_value(line[start:end], Demand.CERTAIN, placement) else ()), max(to, end)


def extract_owned_password(line: bytes, to: int) -> Extraction:
    """The same, unless it is the version of a package that has such a name."""
    return ((), to) if VERSION.match(line, to - BESIDE_USER_BYTES) else extract_beside_user(line, to)


def extract_settings_password(line: bytes, to: int) -> Extraction:
    """The value without quotes that ends a line, or that another setting follows; an argument of a call does not."""
    found = SETTING.match(line, to - BESIDE_USER_BYTES)
    if found is None or not is_value(found["value"], Demand.CERTAIN, Placement.BARE):
        return (), to
    return (found.span("value"),), found.end("value")


def extract_row_members(line: bytes, to: int) -> Extraction:
    """The values of the lines below the mark of a row, each with its name before it."""
    spans: list[tuple[int, int]] = []
    at = to
    for _ in range(ROW_MEMBERS_MAX):
        found = ROW_MEMBER.match(line, at, min(len(line), at + ROW_MEMBER_LENGTH_MAX))
        if found is None:
            break
        if found["name"] is not None:
            members, _ = told_secret(line, found.start("value"), b"", demand_of(found["name"]), at)
            spans += [(start, min(end, found.end("value"))) for start, end in members]
        at = found.end()
    return spans, max(to, at)


def extract_from_next_tag(line: bytes, start: int, found: re.Match[bytes], to: int) -> Extraction:
    """`<key>name</key>` and `<string>value</string>`, as in property lists and settings; a sentence is none."""
    if b" " in line[start : start + _TEXT_MAX].partition(b"<")[0].strip():
        return (), to
    return told_secret(line, start, b"", demand_of(found["name"] or found["attribute"]), to)


def extract_inside(line: bytes, start: int, found: re.Match[bytes], to: int) -> Extraction:
    """The value of a member of an object, or of an element in an element, which has the name of a secret."""
    return told_secret(line, start, found["open"] or b"", demand_of(found["name"] or found["element"]), to)
