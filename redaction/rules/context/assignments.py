"""Values that are secret because of the name they are given to, in any language that a session may hold.

A gate ends a fixed number of characters into the value. The look reads backwards from there: an opening quote, an
operator, what closes the name, the name. Only if the name asks for a secret, the value's end is looked for, and only
then the value is decoded and judged.
"""

import re
from functools import partial

from redaction.heuristics.digests import is_digest, is_padding, is_salt
from redaction.heuristics.names import Demand, demand_of
from redaction.heuristics.plain import is_plain, is_plain_anyhow
from redaction.heuristics.secrecy import Stand, is_secret
from redaction.rules.context import passphrases
from redaction.rules.rule import Rule, Spans, opened
from redaction.text.escapes import unescaped
from redaction.text.extent import Extent, extent

HEAD_LENGTH_MAX = 160
SECRET_LENGTH = 6
TOKEN_LENGTH = 12
KEY_LENGTH = 16
RUN_LENGTH_MIN = 48

CALL = r"(?:[A-Za-z_][\w.:!&]{0,30}\([ ]?)?"
OPENING = r"""(?:[rbufRBUFL@$&]{0,2}["'`\\]{1,24}|\[\[)"""
CLOSING = r"""["'`\\\]\[)}*0-9]{0,17}[ \t.]{0,24}"""
TYPE = r"(?::[ ]?[&'\w<>\[\].|?*][&'\w<>\[\].|?* ]{0,30}|[ ][\w<>\[\].|?*]{1,24}[ ]?)?"
VALUE = r"""[^\s"'`\\]{6}"""
# A quoted value may hold blanks and quotes, too.
QUOTED_VALUE = r"""[^\s"'`\\,;:)}\]>][^\r\n\x00]{5}"""
OPERATOR = r"(?:" + TYPE + r"(?:=>|[=!]==?|(?::{1,3}|[?|+])?=)|:-?|->|<-|\|\|?|\?\?|\xe2\x94\x82)[ \t]{0,12}"
GIVEN = CLOSING + "(?:" + OPERATOR + "(?:" + CALL + OPENING + ")?|[,(][ ]{0,4}" + CALL + OPENING + ")"
GIVEN_QUOTED = CLOSING + "(?:" + OPERATOR + "|[,(][ ]{0,4})" + CALL + OPENING
SECRET_NAMES = (
    r"(?:passw(?:or[dt]|d)?s?|passphrase|passcode|passkey|pwd|secrets?|kennwort|contrase|(?:api|access|account|auth|private"
    r"|client|service|storage|encrypt(?:ion)?"
    r"|signing|master|admin|shared|license|application|consumer|deploy|webhook)[_\-. ]?key)"
)
SECRET_GATE = (
    "(?i)(?:"
    + SECRET_NAMES
    + r"[\w.\-]{0,24}|pass|pw|psw)(?:"
    + GIVEN
    + VALUE
    + "|"
    + GIVEN_QUOTED
    + QUOTED_VALUE
    + ")"
)
TOKEN_GATE = (
    r"(?i)tokens?(?:[_\-.][\w.\-]{0,20}|value|string|secret|\d{1,2})?" + GIVEN + r"""[^\s"'`\\,;(){}\[\]<>]{12}"""
)
KEY_GATE = (
    r"(?i)(?:key|auth|credentials?|creds|pin|salt|cookies?|session|jwt|bearer|otp|sas|psk|pat)"
    + GIVEN
    + r"[\w+/=.~\-]{16}"
)
# An escaped slash near the value's beginning.
SLASH = r"[\w+.~\-]{0,11}\\{1,15}/"
ESCAPED_SLASH = re.compile(rb"(?<![\w+.~\\-])[\w+.~-]{0,11}\\{1,15}/(?:\\{1,15}/)*\Z")
SECRET_SLASH_GATE = "(?i)" + SECRET_NAMES + r"[\w.\-]{0,24}" + GIVEN + SLASH
TOKEN_SLASH_GATE = r"(?i)tokens?" + GIVEN + SLASH
# Each ends so many bytes into a value.
ASSIGNMENT_GATES = ((SECRET_GATE, SECRET_LENGTH), (TOKEN_GATE, TOKEN_LENGTH), (KEY_GATE, KEY_LENGTH))

# All of this is read backwards, from the value towards the name.
OPENED = rb"(?P<open>(?:[\"'`]\\{0,15}){1,3})?(?P<prefix>(?<=[\"'`\\])[rbufRBUFL@$&]{1,2}(?=[\s=:(,>|]))?(?:\[\[)?"
CALLED = rb" ?\([\w.:!&]{1,40}"
OPERATED = rb"[ \t]{0,12}(?P<operator>[=:|?!<>+~-]{1,4}|[,(]|\x82\x94\xe2)[ \t]{0,12}"
CLOSED = rb"(?P<close>(?:\]\d{0,4}\[)?[\"'`\\\])}*]{0,17})[ \t.]{0,24}"
NAMED = rb"(?P<name>[\w.\-$]{1,80}+)(?P<more>(?: [A-Za-z][\w-]{0,24}){0,2})"
TYPED = rb"(?:[\w<>\[\].|&'?*, ]{1,41}:|[\w<>\[\].|&'?*]{1,40} ) {0,4}"
DIRECT = re.compile(OPENED + OPERATED + CLOSED + NAMED)
CALLING = re.compile(OPENED + CALLED + OPERATED + CLOSED + NAMED)
ANNOTATED = re.compile(
    OPENED
    + rb"(?:"
    + CALLED
    + rb")?[ \t]{0,12}(?P<operator>[=?]{1,2})[ \t]{0,12}"
    + TYPED
    + rb"(?P<close>[\"'`?]{0,2})"
    + NAMED
)
BARE_OPERATORS = frozenset((b"=", b":", b"=>", b":=", b"::=", b":::=", b"?=", b":-", b"|", b"\xe2\x94\x82", b"+="))
QUOTED_OPERATORS = BARE_OPERATORS | {
    b"==",
    b"===",
    b"!=",
    b"!==",
    b"||",
    b"??",
    b"->",
    b"<-",
    b"(",
    b",",
    b"||=",
    b"??=",
    b"::",
}
# A name that stands after another string and a value that another item stands behind.
IN_LIST = re.compile(rb"[\"'`][ \t]{0,4},(?:[ \t]|\\{1,15}[nr]|[\r\n]){0,12}\\{0,15}[\"'`]\Z")
LISTED_VALUE = re.compile(rb"[^\s\"'`\\]{1,80}\\{0,15}[\"'`][ \t]{0,4}[,\]]")
# Of the functions whose names hold a secret's name, those that are given the secret.
SETTER = re.compile(
    rb"(?:(?i:set|with|use|put|add|new|verify|check|validate|compare|encode|encrypt|hash|change|update|login)(?![a-z])"
    rb"|(?i:pass(?:word|wd|phrase)?|pwd|secret|token|api_?key|auth|access|client|bearer|basic))"
)
LINE_END = re.compile(
    rb" {0,2}\.?(?:[\r\n&\"'`]|\\{1,15}[nrt\"]|#|</|\Z|;[\w ]{1,30}=| \||\||\xe2\x94\x82)"
    rb"| (?=--?\w|[a-z]{2,12} |[a-z_]{2,20}=[^\s=])"
)
# Before a name: what makes it a type of a cloud's resources.
RESOURCE = re.compile(rb"[\"'`](?:[A-Z]\w{0,40}::(?:\w{1,60}::)*+|Microsoft\.\w{1,60}/(?:\w{1,60}/)*+)\Z")
RESOURCE_LENGTH_MAX = 160
# A tag of YAML.
TAGGED = re.compile(
    rb"!{1,2}(?:(?P<plain>unsafe|str|binary)|[A-Za-z][\w.:/-]{0,60})[ \t]{1,4}(?P<quote>\\{0,15}[\"'])?"
)
NOTHING_QUOTED = re.compile(rb"[,;:)}\]>|&?.+ \t\\\r\n]|\Z")
# What stands before and after an item of a list that has a line for itself; the line may be numbered.
ITEM_BEGIN = re.compile(
    rb"(?:[\r\n]|\\{1,15}[nr])(?:[\w./-]{0,60}[-:]\d{1,6}[-:]|[ ]{0,8}\d{1,6}(?:\t|\\{1,15}t|[.:|] ?|  )|[+> -])?"
    rb"(?:[ \t]|\\{1,15}t){1,40}\Z"
)
ITEM_BEGIN_LENGTH_MAX = 120
ITEM_END = re.compile(rb"(?:\\{0,15}[\"'][\w\"'\\]{0,40})?[)\]]{0,3},(?:[\r\n]|\\{1,15}[nr])")
ESCAPED = 0x5C
BLANK = 0x20
BRACKETS = b"[({<"
QUOTES_OF_NOTHING = 2
QUOTE_CHARACTERS = b"\"'`"


def _name(found: re.Match[bytes], line: bytes, start: int) -> bytes:
    """The name as it reads forwards, without the letter that belongs to an escape before it."""
    name = found["name"][::-1]
    before = start - found.end("name") - 1
    return name[1:] if before >= 0 and line[before] == ESCAPED else name


def _demand(found: re.Match[bytes], line: bytes, start: int) -> Demand:
    name = _name(found, line, start)
    demand = demand_of(name)
    if demand == Demand.NONE:
        return demand
    if demand in (Demand.WEAK, Demand.TOKEN) and found["more"]:
        return demand_of(found["more"][::-1] + b" " + name)
    operator = found["operator"][::-1]
    before = start - found.end("name") - 1
    if RESOURCE.search(line, max(0, before - RESOURCE_LENGTH_MAX), before + 1) and found["close"]:
        return Demand.NONE
    if operator.endswith(b"=") and not found["open"] and line[start : start + 1] == b"=":
        return Demand.NONE  # the operator goes on
    if operator == b"=" and not found["close"] and is_padding(line, start):
        return Demand.NONE
    if operator == b"(" and not SETTER.match(name.rpartition(b".")[2]):
        return Demand.NONE
    is_part = line[before : before + 1] == b":" and line[start - 1] != BLANK
    if operator == b":" and not found["open"] and (is_part or line[start : start + 1] == b":"):
        return Demand.NONE  # one of many parts, as in ARNs and in C++
    if operator == b":" and not found["open"] and line[start - 1 : start + 1] == b":-":
        return Demand.NONE  # the operator goes on
    if operator == b"|" and line[start - 1] != BLANK:
        return Demand.NONE  # alternatives of a pattern
    if operator == b"," and not _is_pair(line, name, found["close"][:1], before, start):
        return Demand.NONE
    if is_digest(line, start, before + 1, before + 1 + len(found["name"])):
        return Demand.NONE
    return demand


def _is_pair(line: bytes, name: bytes, quote: bytes, before: int, start: int) -> bool:
    """Whether this is `"NAME", "value"`: the name alone in quotes of the same kind, and no list."""
    if not quote or quote not in QUOTE_CHARACTERS or line[before : before + 1] != quote:
        return False
    if name == b"password" and is_salt(line, start):
        return False
    is_listed = IN_LIST.search(line, max(0, before - 16), before + 1) and LISTED_VALUE.match(line, start)
    return name.startswith(b"-") or not is_listed


def _given(line: bytes, start: int) -> tuple[Demand, bytes]:
    """What the value at `start` is given to, and the quote before it."""
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


def _is_item(line: bytes, value: Extent, quote: bytes) -> bool:
    """Whether the value has a line for itself that ends in a comma: an item of a list, which no name belongs to."""
    start = value.start - len(quote)
    return (
        ITEM_END.match(line, value.end) is not None
        and ITEM_BEGIN.search(line, max(0, start - ITEM_BEGIN_LENGTH_MAX), start) is not None
    )


def judged(line: bytes, start: int, quote: bytes, demand: Demand, to: int) -> tuple[Spans, int]:
    """The span of the value at `start`, if it is a secret, and up to where need not be looked again."""
    if is_plain(line, start, demand, is_quoted=bool(quote)):
        return (), to
    if not quote and (tag := TAGGED.match(line, start)) is not None:
        return judged(line, tag.end(), tag["quote"] or b"", demand, to) if tag["plain"] else ((), to)
    value = extent(line, start, _one_quote(quote) if quote else quote)
    if value.end - value.start < SECRET_LENGTH:
        return (), to
    if quote.endswith(b"`") and BLANK in line[value.start : value.end]:
        return (), to  # a command
    stand = Stand.QUOTED if value.quoted else Stand.LINE if LINE_END.match(line, value.end) else Stand.BARE
    if is_secret(unescaped(line[value.start : value.end]), demand, stand) and not _is_item(line, value, quote):
        return ((value.start, value.end),), value.end
    # A long run without a blank is not looked at again from each name in it.
    is_long = not value.quoted and line[start] not in BRACKETS and value.end - value.start >= RUN_LENGTH_MIN
    return (), max(to, value.end) if is_long else to


def _look(length: int, line: bytes, to: int) -> tuple[Spans, int]:
    start = to - length
    if line[to - 2 : to] == b"\\/" and (escaped := ESCAPED_SLASH.search(line, max(0, to - 32), to)):
        start = escaped.start()
    if is_plain_anyhow(line, start):
        return (), to
    demand, quote = _given(line, start)
    return judged(line, start, quote, demand, to) if demand != Demand.NONE else ((), to)


_RULES = (
    Rule(
        "assigned-secret",
        "any",
        "value given to a name such as password, secret or api_key",
        (SECRET_GATE, SECRET_SLASH_GATE),
        partial(_look, SECRET_LENGTH),
        "medium",
        'password = "<base62:14>"',
        'password = "${DB_PASSWORD}"',
    ),
    Rule(
        "assigned-token",
        "any",
        "value given to a name that ends in token",
        (TOKEN_GATE, TOKEN_SLASH_GATE),
        partial(_look, TOKEN_LENGTH),
        "medium",
        'session_token: "<base62:24>"',
        'next_page_token: "<base62:24>"',
    ),
    Rule(
        "assigned-key",
        "any",
        "random value given to a name such as key, auth, credential, cookie or salt",
        (KEY_GATE,),
        partial(_look, KEY_LENGTH),
        "low",
        "MAPS_KEY=<base62:24>",
        "cacheKey=<base62:24>",
    ),
)


def rules() -> tuple[Rule, ...]:
    """The rules of this module."""
    return (*map(opened, _RULES), *passphrases.rules())
