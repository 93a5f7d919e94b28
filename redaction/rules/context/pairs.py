"""Values whose name stands elsewhere: in the tag around them, in a member beside them, in a statement or a sentence."""

import re

from redaction.heuristics.names import Demand, demand_of
from redaction.rules.context.assignments import SECRET_LENGTH, SECRET_NAMES, judged
from redaction.rules.context.passphrases import NO_WORD, SAYS, WHEN_SAID
from redaction.rules.rule import Rule, Spans

HEAD_LENGTH_MAX = 240
BEFORE_LENGTH_MAX = 600
VALUE = r"""[^\s"'`\\]{6}"""
ANY = r"""[^\s"'`\\]"""
# Sentences go on with words, and words are lower case.
QUOTE = r"""\\{0,15}["'`]"""
MIXED_VALUE = "(?:" + "|".join(ANY * at + r"[0-9A-Z!@#$%^&*_+=~]" + ANY * (5 - at) for at in range(6)) + ")"
# What is in every line in which a value follows one of the names above, or stands before it, other than by an operator:
# a name with what may come after it there. Prose that merely speaks of keys and passwords has none of it.
_WORDS = (
    *("passw", "passphrase", "passcode", "passkey", "pwd", "secret", "kennwort", "contrase", "credential"),
    *("[_.-]pass", "[_.-]key", "apikey", "identified by"),
    *(f"{name} ?key" for name in ("api", "access", "account", "auth", "private", "client", "service", "storage")),
    *(f"{name} ?key" for name in ("encrypt", "encryption", "signing", "master", "admin", "shared", "license")),
    *(f"{name} ?key" for name in ("application", "consumer", "deploy", "webhook")),
)
# Each an expression of its own, which costs least. Open counts: bounded ones make the first reading a quarter slower.
_BLANK_AFTER = r"""[,<>\t|]|[ ][ "'`\\|]|\(["'\\]|: \(string\)|:\*|\*{1,2}:"""
_AFTER = rf"""[\w.\-]*(?:["'`\\]|{_BLANK_AFTER})"""
# Numbers of tokens are in every answer of a model.
_AFTER_TOKEN = rf"""[\w.\-]*(?:["'`\\]+[ ,;}}\])>\s\\nrt]|{_BLANK_AFTER})"""
WHEN = (
    *(f"(?i){word}{_AFTER}" for word in _WORDS),
    f"(?i)token{_AFTER_TOKEN}",
    WHEN_SAID,
    *(rf"(?i:{word}[\w.\-]*){SAYS}{NO_WORD}" for word in (*_WORDS, "token")),
    *("ENV[ ]", "ARG[ ]", "setx[ ]", "setenv[ ]", "#define[ ]", "(?i)set -[a-z]"),
)
QUOTES = r"""["'`\\]{0,17}"""
NAMES = "(?:" + SECRET_NAMES + r"|tokens?|[_\-.]key|credentials?|[_\-.]pass)"
VALUE_NAMES = (
    "value",
    "val",
    "default",
    "default_value",
    "defaultvalue",
    "content",
    "secret_value",
    "secretstring",
    "string",
)
NAME_NAMES = (
    "name",
    "key",
    "variable",
    "var",
    "id",
    "field",
    "property",
    "parameter",
    "param",
    "label",
    "parametername",
)
STATEMENTS = (
    b"env",
    b"arg",
    b"setx",
    b"setenv",
    b"export",
    b"define",
    b"setq",
    b"set",
    b"by",
    b"defparameter",
    b"defvar",
    b"const",
)
VERBS = ("is", "was", "equals", "ist", "lautet")


def _backwards(words: tuple[str, ...]) -> bytes:
    return "|".join(word[::-1] for word in words).encode()


# All of this is read backwards, from the value towards the name.
OPENED = rb"(?P<open>(?:[\"'`]\\{0,15}){1,3})?"
TAG = re.compile(rb">(?:(?P<attributes>[^<>]{0,160}?)[ \t])?(?P<name>[\w.\-]{2,80}+)(?::\w{1,20})?<")
# A placeholder before a host.
HOST_NEXT = re.compile(rb"@[\w\[][^\s<\"'\\]{2,80}(?!<)(?:[\s\"'\\]|\Z)")
NAMED_TAG = re.compile(
    rb"[\"'`]\\{0,15}(?P<name>[\w.\-]{2,80})[\"'`]\\{0,15}= ?(?i:" + _backwards(NAME_NAMES) + rb")\Z"
)
MEMBER = re.compile(
    OPENED
    + rb"[ \t]{0,8}[:=][ \t]{0,8}[\"'`\\]{0,17}(?i:"
    + _backwards(VALUE_NAMES)
    + rb")(?![\w.])[\s\"'`\\,;nrt\-]{1,64}?(?<=[\s\"'`\\,;nrt])(?P<name>[\w.\-/]{2,80}+)"
    + rb"[\"'`]?\\{0,15}[ \t]{0,4}[:=][ \t]{0,4}[\"'`\\]{0,17}(?i:"
    + _backwards(NAME_NAMES)
    + rb")"
)
SPACED = re.compile(
    OPENED + rb"(?P<gap>(?:[ \t]|t\\{1,15}){1,40})(?P<name>[\w.\-]{2,80}+)(?:[ \t]{1,8}(?P<before>[\w:\-]{1,16}))?"
)
SAID = re.compile(
    rb"(?P<open>(?:[\"'`]\\{0,15})?)[ \t:*]{1,4}(?i:" + _backwards(VERBS) + rb")[ \t](?P<name>[\w.\- ']{4,60})"
)
ESCAPED = 0x5C


def head_of(line: bytes, start: int) -> bytes:
    """What stands before that place, backwards."""
    return line[max(0, start - HEAD_LENGTH_MAX) : start][::-1]


def after_escape_of(name: bytes, line: bytes, before: int) -> bytes:
    """The name without the letter that belongs to an escape before it."""
    return name[1:] if before >= 0 and line[before] == ESCAPED else name


def look_in_tag(line: bytes, to: int) -> tuple[Spans, int]:
    """`<password>value</password>` and `<entry key="password">value</entry>`."""
    start = to - SECRET_LENGTH
    found = TAG.match(head_of(line, start))
    if found is None:
        return (), to
    if found["name"][::-1].lower() == b"clienttoken" or HOST_NEXT.match(line, start):
        return (), to
    demand = demand_of(found["name"][::-1])
    if demand == Demand.NONE and found["attributes"]:
        named = NAMED_TAG.search(found["attributes"])
        demand = demand_of(named["name"][::-1]) if named is not None else demand
    return judged(line, start, b"", demand, to) if demand else ((), to)


def look_beside(line: bytes, to: int) -> tuple[Spans, int]:
    """The value in a member of its own, after the one that holds the name."""
    start = to - SECRET_LENGTH
    found = MEMBER.match(head_of(line, start))
    if found is None:
        return (), to
    demand = demand_of(found["name"][::-1])
    return judged(line, start, (found["open"] or b"")[::-1], demand, to) if demand else ((), to)


VALUE_BEFORE = re.compile(
    rb"(?:[\s\"'`\\,;nrt]{1,64}?)(?P<quote>[\"'`]\\{0,15})(?P<value>[^\s\"'`]{6,400}?)(?P=quote)"
    rb"[ \t]{0,4}[:=][ \t]{0,4}[\"'`]\\{0,15}(?i:" + _backwards(VALUE_NAMES) + rb")"
)
NAME_OPENED = re.compile(
    rb"(?P<name>[\w.\-/]{2,80}+)[\"'`]\\{0,15}[ \t]{0,4}[:=][ \t]{0,4}[\"'`\\]{1,17}(?i:"
    + _backwards(NAME_NAMES)
    + rb")[\"'`]\\{0,15}"
)


def look_before(line: bytes, to: int) -> tuple[Spans, int]:
    """The value in a member of its own, before the one that holds the name."""
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
    return judged(line, end - found.end("value"), found["quote"][::-1], demand, to)[0], to


def look_spaced(line: bytes, to: int) -> tuple[Spans, int]:
    """A blank between name and value: SQL, `#define`, old Dockerfiles, columns."""
    start = to - SECRET_LENGTH
    head = head_of(line, start)
    found = SPACED.match(head)
    if found is None:
        return (), to
    name = after_escape_of(found["name"][::-1], line, start - found.end("name") - 1)
    before = (found["before"] or b"")[::-1].lower()
    is_identified = name.lower() == b"by" and before.endswith(b"identified")
    demand = Demand.PASSWORD if is_identified else demand_of(name)
    quote = (found["open"] or b"")[::-1]
    is_column = found["gap"] != b" " or before.startswith(b"-")  # as of fish's `set -gx`
    if before == b"define" and not quote:
        return (), to
    if demand == Demand.NONE or not (quote or is_column or before.endswith(STATEMENTS)):
        return (), to
    if not before.endswith(STATEMENTS) and name.lower() not in (b"password", b"by", b"passwd"):
        demand = min(demand, Demand.KEY)
    return judged(line, start, quote, demand, to)


def look_said(line: bytes, to: int) -> tuple[Spans, int]:
    """A sentence: `the password is value`."""
    start = to - SECRET_LENGTH
    found = SAID.match(head_of(line, start))
    if found is None:
        return (), to
    words = found["name"][::-1].split()
    demands = [demand_of(words[at - 1] + b" " + word if at else word) for at, word in enumerate(words)]
    demand = max(demands, default=Demand.NONE)
    if demand < Demand.TOKEN:
        return (), to
    quote = found["open"][::-1]
    return judged(line, start, quote, min(demand, Demand.KEY) if not quote else demand, to)


_RULES = (
    Rule(
        "tagged-secret",
        "any",
        "value in an XML element whose name holds a secret's name",
        (r"(?i)" + NAMES + r"[\w.\-]{0,16}(?:" + QUOTES + r"(?:[ ][^<>]{0,40})?)?>[^\s\"'`\\<]{6}",),
        look_in_tag,
        "medium",
        "<db.password><base62:14></db.password>",
        "<db.password>${DB_PASSWORD}</db.password>",
        WHEN,
    ),
    Rule(
        "paired-secret",
        "any",
        "value beside a member that holds a secret's name",
        (
            r"(?i)"
            + NAMES
            + r"[\w.\-]{0,24}"
            + r"""[\s"'`\\,;nrt\-]{1,64}(?:"""
            + "|".join(VALUE_NAMES)
            + ")"
            + QUOTES
            + r"[ \t]{0,8}[:=][ \t]{0,8}"
            + QUOTES
            + VALUE,
        ),
        look_beside,
        "medium",
        '{"name": "DB_PASSWORD", "value": "<base62:14>"}',
        '{"name": "DB_PASSWORD", "value": "${DB_PASSWORD}"}',
        WHEN,
    ),
    Rule(
        "paired-secret.before",
        "any",
        "value before a member that holds a secret's name",
        (
            r"(?i)(?:"
            + "|".join(NAME_NAMES)
            + ")"
            + r"""["'`\\]{1,17}[ ]{0,4}[:=][ ]{0,4}["'`\\]{1,17}[\w.\-/]{0,40}"""
            + NAMES
            + QUOTE,
        ),
        look_before,
        "medium",
        '{"value": "<base62:14>", "name": "DB_PASSWORD"}',
        '{"value": "${DB_PASSWORD}", "name": "DB_PASSWORD"}',
        WHEN,
    ),
    Rule(
        "spaced-secret",
        "any",
        "value behind a secret's name and blanks, as in SQL, #define, setx and columns",
        (
            r"(?i)(?:" + NAMES + r"[\w.\-]{0,24}|identified by(?: password)?)[ ]{1,12}[\"'\\]{1,17}" + VALUE,
            r"(?i)" + NAMES + r"[\w.\-]{0,24}(?:[ ]{2}[ ]{0,24}|(?:\t|\\{1,15}t){1,4})" + VALUE,
            r"(?i)(?:ENV|ARG|setx|setenv|define|export|set(?: -[a-z-]{1,10}){1,3})[ ]{1,4}[\w.\-]{0,40}"
            + NAMES
            + r"[\w.\-]{0,24}[ ]{1,12}"
            + VALUE,
        ),
        look_spaced,
        "medium",
        "ALTER USER app IDENTIFIED BY '<base62:14>'",
        "ALTER USER app IDENTIFIED BY '${DB_PASSWORD}'",
        WHEN,
    ),
    Rule(
        "said-secret",
        "any",
        "value that a sentence calls a password, secret, token or API key",
        ("(?i:" + NAMES + r"(?:[ ][\w' \-.]{0,30})?[ ](?:" + "|".join(VERBS) + "))[ :*]{1,4}" + QUOTES + MIXED_VALUE,),
        look_said,
        "low",
        "The password is <base62:14>.",
        "The password is required.",
        WHEN,
    ),
)


def rules() -> tuple[Rule, ...]:
    """The rules of this module."""
    return _RULES
