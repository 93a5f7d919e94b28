"""Values that are secret because of the name they are assigned to, in any language that a session may hold.

A gate ends a fixed number of characters into the value. From there the line is read backwards: the opening quote, the
operator, the end of the name, the name. Only if the name is that of a secret, the end of the value is searched for, and
only then the value is decoded and the heuristics decide.
"""

import re
from collections.abc import Iterator

from redaction.heuristics.names import Demand, demand_of
from redaction.heuristics.secrecy import Placement, is_secret
from redaction.heuristics.values import is_digest, is_padding, is_plain, is_plain_for_any_name, is_salt
from redaction.rules.context.table import table_of
from redaction.rules.rule import Extraction
from redaction.text.escapes import unescaped
from redaction.text.extent import Extent, extent

HEAD_LENGTH_MAX = 160
SECRET_LENGTH = 6
RUN_LENGTH_MIN = 48
_TABLE = table_of(__file__)
# The gate of each rule for names of any kind, and how many bytes into a value it ends.
ASSIGNMENT_GATES = tuple((row.gates[0], row.length) for row in _TABLE.rule if row.open_counts)
DIRECT, CALLING, ANNOTATED, SETTER, LINE_END, TAGGED, ITEM_BEGIN = _TABLE.patterns(
    "direct", "calling", "annotated", "setter", "line_end", "tagged", "item_begin"
)
# An escaped slash near the beginning of the value.
ESCAPED_SLASH = re.compile(rb"(?<![\w+.~\\-])[\w+.~-]{0,11}\\{1,15}/(?:\\{1,15}/)*\Z")

# Names of a UUID that makes a call idempotent, and of a token.
CALL_IDS = frozenset((b"clienttoken", b"client_token", b"client-token", b"clientrequesttoken"))
BARE_OPERATORS = frozenset(b"= : => := ::= :::= ?= :- | \xe2\x94\x82 \xe2\x86\x92 +=".split())
QUOTED_OPERATORS = BARE_OPERATORS.union(b"== === != !== || ?? -> <- ( , ||= ??= ::".split())
# Before a name: another string of a list; after a value: the next item.
IN_LIST = re.compile(rb"[\"'`][ \t]{0,4},(?:[ \t]|\\{1,15}[nr]|[\r\n]){0,12}\\{0,15}[\"'`]\Z")
LISTED_VALUE = re.compile(rb"[^\s\"'`\\]{1,80}\\{0,15}[\"'`][ \t]{0,4}[,\]]")
# Before a name: makes it a resource type of a cloud.
RESOURCE = re.compile(rb"[\"'`](?:[A-Z]\w{0,40}::(?:\w{1,60}::)*+|Microsoft\.\w{1,60}/(?:\w{1,60}/)*+)\Z")
RESOURCE_LENGTH_MAX = 160
IMPORTED = re.compile(rb"(?:import|require)\(\\{0,15}[\"'`]\Z")
# Before a name of so few letters: text that is written in all characters, as data are.
NOISE = frozenset(bytes((sign,)) for sign in b"+*%^~!|<#")
SHORT_NAME = 4
IMPORTED_LENGTH_MAX = 24
NOTHING_QUOTED = re.compile(rb"[,;:)}\]>|&?.+ \t\\\r\n]|\Z")
# Between two strings of which one text is made.
JOINED = re.compile(
    rb"\\{0,15}[\"'](?:[ \t]|\\{1,15}t){0,4}(?:\+|\.|&)(?:\s|\\{1,15}[nrt]){0,40}+(?P<open>\\{0,15}[\"'])"
)
ITEM_BEGIN_LENGTH_MAX = 120
ITEM_END = re.compile(rb"(?:\\{0,15}[\"'][\w\"'\\]{0,40})?[)\]]{0,3},(?:[\r\n]|\\{1,15}[nr])")
ESCAPED = 0x5C
BLANK = 0x20
BRACKETS = b"[({<"
QUOTES_OF_NOTHING = 2
QUOTE_CHARACTERS = b"\"'`"


def name_before(found: re.Match[bytes], line: bytes, start: int) -> bytes:
    """The group `name` of a match that reads backwards from `start`, without the letter of an escape before it."""
    name = found["name"][::-1]
    before = start - found.end("name") - 1
    return name[1:] if before >= 0 and line[before] == ESCAPED else name


def _demand_of_name(name: bytes, found: re.Match[bytes]) -> Demand:
    if name == b"PASS" and not found["open"] and found["operator"] == b":":
        return Demand.NONE  # a test that passed
    return min(demand_of(name), Demand.TOKEN) if name.lower() in CALL_IDS else demand_of(name)


def _demand(found: re.Match[bytes], line: bytes, start: int) -> Demand:
    name = name_before(found, line, start)
    demand = _demand_of_name(name, found)
    if demand == Demand.NONE:
        return demand
    if demand in (Demand.WEAK, Demand.TOKEN) and found["more"]:
        return demand_of(found["more"][::-1] + b" " + name)
    operator = found["operator"][::-1]
    before = start - found.end("name") - 1
    if _is_of_code(line, name, before, start, is_closed=bool(found["close"])):
        return Demand.NONE
    if operator.endswith(b"=") and not found["open"] and line[start : start + 1] == b"=":
        return Demand.NONE  # the operator continues
    if operator == b"=" and not found["close"] and is_padding(line, start):
        return Demand.NONE
    if operator == b"(" and not SETTER.match(name.rpartition(b".")[2]):
        return Demand.NONE
    is_part = line[before : before + 1] == b":" and line[start - 1] != BLANK
    if operator == b":" and not found["open"] and (is_part or line[start : start + 1] == b":"):
        return Demand.NONE  # one of many parts, as in ARNs and in C++
    if operator == b":" and not found["open"] and line[start - 1 : start + 1] == b":-":
        return Demand.NONE  # the operator continues
    if not found["open"] and _is_no_value(line, start, name, operator):
        return Demand.NONE
    if operator == b"|" and line[start - 1] != BLANK:
        return Demand.NONE  # alternatives of a pattern
    if operator == b"," and not _is_pair(line, name, found["close"][:1], before, start):
        return Demand.NONE
    if is_digest(line, start, before + 1, before + 1 + len(found["name"])):
        return Demand.NONE
    return demand


def _is_no_value(line: bytes, start: int, name: bytes, operator: bytes) -> bool:
    """Whether this is a variable of the same name, an address whose scheme is a name, or an empty default's end."""
    is_address = operator == b":" and line.startswith(b"//", start)
    return is_address or line.startswith((name, b"}"), start)


def _is_of_code(line: bytes, name: bytes, before: int, start: int, *, is_closed: bool) -> bool:
    """Whether the name is that of a resource or a few letters within data, or the value that of a module."""
    if IMPORTED.search(line, max(0, start - IMPORTED_LENGTH_MAX), start):
        return True
    if len(name) <= SHORT_NAME and line[before : before + 1] in NOISE:
        return True
    return is_closed and RESOURCE.search(line, max(0, before - RESOURCE_LENGTH_MAX), before + 1) is not None


def _is_pair(line: bytes, name: bytes, quote: bytes, before: int, start: int) -> bool:
    """Whether this is `"NAME", "value"`: the name alone in quotes of the same kind, and not in a list."""
    if not quote or quote not in QUOTE_CHARACTERS or line[before : before + 1] != quote:
        return False
    if name == b"password" and is_salt(line, start):
        return False
    is_listed = IN_LIST.search(line, max(0, before - 16), before + 1) and LISTED_VALUE.match(line, start)
    return name.startswith(b"-") or not is_listed


def _name_demand(line: bytes, start: int) -> tuple[Demand, bytes]:
    """What the name that the value at `start` is assigned to demands, and the quote before the value."""
    head = line[max(0, start - HEAD_LENGTH_MAX) : start][::-1]
    for form in (DIRECT, CALLING, ANNOTATED):
        found = form.match(head)
        if found is None:
            continue
        quote = found["open"]
        if found["operator"][::-1] not in (QUOTED_OPERATORS if quote else BARE_OPERATORS):
            continue
        if quote is not None and _is_empty(quote[::-1]) and NOTHING_QUOTED.match(line, start):
            return Demand.NONE, b""
        demand = _demand(found, line, start)
        if demand != Demand.NONE:
            return demand, (quote or b"")[::-1]
    return Demand.NONE, b""


def _is_empty(quote: bytes) -> bool:
    """Whether these are two quotes with nothing in between."""
    return quote.count(quote[-1:]) == QUOTES_OF_NOTHING and quote[: len(quote) // 2] * 2 == quote


def _one_quote(quote: bytes) -> bytes:
    """The first of three quotes, or the only one."""
    if quote.count(quote[-1:]) < 3:
        return quote
    return quote[: len(quote) // 3]


def _continued(line: bytes, value: Extent, quote: bytes) -> Iterator[tuple[int, int]]:
    """The other strings that are joined with this one."""
    end = value.end
    while quote and value.quoted and (joined := JOINED.match(line, end)) is not None and joined["open"] == quote:
        value = extent(line, joined.end(), quote)
        if value.end - value.start < SECRET_LENGTH:
            return
        yield value.start, value.end
        end = value.end


def _is_item(line: bytes, value: Extent, quote: bytes) -> bool:
    """Whether the value has a line for itself that ends with a comma: an item of a list, which has no name."""
    start = value.start - len(quote)
    return (
        ITEM_END.match(line, value.end) is not None
        and ITEM_BEGIN.search(line, max(0, start - ITEM_BEGIN_LENGTH_MAX), start) is not None
    )


def assigned_secret(line: bytes, start: int, quote: bytes, demand: Demand, to: int) -> Extraction:
    """The value at `start`, after this quote, if it is the secret that its name demands."""
    if demand == Demand.NONE or is_plain(line, start, demand, is_quoted=bool(quote)):
        return (), to
    if not quote and (tag := TAGGED.match(line, start)) is not None:
        return assigned_secret(line, tag.end(), tag["quote"] or b"", demand, to) if tag["plain"] else ((), to)
    value = extent(line, start, _one_quote(quote) if quote else quote)
    if value.end - value.start < SECRET_LENGTH:
        return (), to
    if quote.endswith(b"`") and BLANK in line[value.start : value.end]:
        return (), to  # a command
    placement = (
        Placement.QUOTED if value.quoted else Placement.LINE if LINE_END.match(line, value.end) else Placement.BARE
    )
    if is_secret(unescaped(line[value.start : value.end]), demand, placement) and not _is_item(line, value, quote):
        return ((value.start, value.end), *_continued(line, value, quote)), value.end
    # A long run without a blank is examined once, and not again for each name in it.
    is_long = not value.quoted and line[start] not in BRACKETS and value.end - value.start >= RUN_LENGTH_MIN
    return (), max(to, value.end) if is_long else to


def told_secret(line: bytes, start: int, quote: bytes, demand: Demand, to: int) -> Extraction:
    """The value at `start`, after this quote, that belongs to a name elsewhere; of a password anything is one."""
    if demand == Demand.PASSWORD and not TAGGED.match(line, start):
        value = extent(line, start, quote)
        placement = Placement.QUOTED if value.quoted else Placement.BARE
        if is_secret(unescaped(line[value.start : value.end])[:128], Demand.CERTAIN, placement):
            return ((value.start, value.end),), max(to, value.end)
    return assigned_secret(line, start, quote, demand, to)


def assigned_after_gate(length: int, line: bytes, to: int) -> Extraction:
    """The value that is assigned to a name, if the gate ends this many bytes into it."""
    start = to - length
    if line[to - 2 : to] == b"\\/" and (escaped := ESCAPED_SLASH.search(line, max(0, to - 32), to)):
        start = escaped.start()
    if is_plain_for_any_name(line, start):
        return (), to
    demand, quote = _name_demand(line, start)
    return assigned_secret(line, start, quote, demand, to)
