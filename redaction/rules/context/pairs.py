"""Values whose name is not next to them: in a tag around them, a member beside them, a line above, a cell, a column, or
the same sentence.

Each line may have a prefix, as in numbered views, diffs, logs and the output of grep.
"""

import re
from functools import partial

from redaction.heuristics.names import Demand, demand_of
from redaction.heuristics.secrecy import is_joined_words, is_words_and_number
from redaction.rules.context.assignments import ESCAPED, SECRET_LENGTH, SECRET_NAMES, extract_assigned, name_before
from redaction.rules.rule import Extract, Extraction, Rule

HEAD_LENGTH_MAX = 240
BEFORE_LENGTH_MAX = 600
VALUE = r"""[^\s"'`\\]{6}"""
ANY = r"""[^\s"'`\\]"""
QUOTE = r"""\\{0,15}["'`]"""
# Sentences continue with words, and words are in lower case.
MIXED_VALUE = "(?:" + "|".join(ANY * at + r"[0-9A-Z!@#$%^&*_+=~]" + ANY * (5 - at) for at in range(6)) + ")"
# The triggers: a name with what may follow it in every line in which its value comes before it, or after it without an
# operator. Prose that only speaks of keys and passwords has none of them.
_WORDS = (
    *("passw", "passphrase", "passcode", "passkey", "pwd", "secret", "kennwort", "contrase", "credential"),
    *("[_.-]pass", "[_.-]key", "apikey", "identified by"),
    *(f"{name} ?key" for name in ("api", "access", "account", "auth", "private", "client", "service", "storage")),
    *(f"{name} ?key" for name in ("encrypt", "encryption", "signing", "master", "admin", "shared", "license")),
    *(f"{name} ?key" for name in ("application", "consumer", "deploy", "webhook")),
)
# Each is an expression of its own, which costs least. With bounded counts the first reading is a quarter slower.
_BLANK_AFTER = r"""[,<>\t|]|[ ][ "'`\\|]|\(["'\\]|: \(string\)|:\*|\*{1,2}:"""
_AFTER = rf"""[\w.\-]*(?:["'`\\]|{_BLANK_AFTER})"""
# Every answer of a model contains numbers of tokens.
_AFTER_TOKEN = rf"""[\w.\-]*(?:["'`\\]+[ ,;}}\])>\s\\nrt]|{_BLANK_AFTER})"""
# A sentence, and the beginning of a value that is no word.
SAYS = r"""[ ](?i:is|was|equals|ist|lautet)[ :*]+["'`\\]*"""
NO_WORD = r"""[^\s"'`\\]{0,5}[0-9A-Z!@#$%^&*_+=~]"""
# The trigger of such sentences, with open counts.
WHEN_SAID = rf"(?i:pass(?:w|phrase)[\w' \-.]*){SAYS}(?:{NO_WORD}|[A-Za-z]+(?:-[A-Za-z]+-|[_.][A-Za-z]{{3}}))"
WHEN = (
    *(f"(?i){word}{_AFTER}" for word in _WORDS),
    f"(?i)token{_AFTER_TOKEN}",
    WHEN_SAID,
    *(rf"(?i:{word}[\w.\-]*){SAYS}{NO_WORD}" for word in (*_WORDS, "token")),
    *("ENV[ ]", "ARG[ ]", "setx[ ]", "setenv[ ]", "#define[ ]", "(?i)set -[a-z]"),
)
QUOTES = r"""["'`\\]{0,17}"""
NAMES = "(?:" + SECRET_NAMES + r"|tokens?|[_\-.]key|credentials?|[_\-.]pass)"
VALUE_NAMES = "value|val|default|default_value|defaultvalue|content|secret_value|secretstring|string"
NAME_NAMES = "name|key|variable|var|id|field|property|parameter|param|label|parametername"
STATEMENTS = tuple(b"env arg setx setenv export define setq set by defparameter defvar const".split())
VERBS = "is|was|equals|ist|lautet"


def _backwards(words: str) -> bytes:
    return "|".join(word[::-1] for word in words.split("|")).encode()


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
VALUE_BEFORE = re.compile(
    rb"(?:[\s\"'`\\,;nrt]{1,64}?)(?P<quote>[\"'`]\\{0,15})(?P<value>[^\s\"'`]{6,400}?)(?P=quote)"
    rb"[ \t]{0,4}[:=][ \t]{0,4}[\"'`]\\{0,15}(?i:" + _backwards(VALUE_NAMES) + rb")"
)
NAME_OPENED = re.compile(
    rb"(?P<name>[\w.\-/]{2,80}+)[\"'`]\\{0,15}[ \t]{0,4}[:=][ \t]{0,4}[\"'`\\]{1,17}(?i:"
    + _backwards(NAME_NAMES)
    + rb")[\"'`]\\{0,15}"
)
BLOCK = re.compile(
    rb"[ \t]{1,24}(?:[\r\n]|[nr]\\{1,15}){1,3}[ \t]{0,4}[\d+\-]{0,2}[|>][ \t]{1,8}:[\"']?(?P<name>[\w.\-]{2,80}+)"
)
LINES_ABOVE_LENGTH_MAX = 320
ROWS_MAX = 32
ROW_LENGTH_MAX = 2048

_LINE_BREAK = r"(?:[\r\n]|\\{1,15}[rn]){1,4}"
_REST = r"[\w.\-]{0,24}"
_VALUES = "(?:param-)?(?:" + VALUE_NAMES + ")"
_LINE_PREFIX = r"""[^"'`\r\n<=]{0,80}"""
_TAG = r"<[\w:.\-]{1,30}(?:[ ][^<>\r\n]{0,60})?>"
# The value begins after each of these.
_LINE_ABOVE = re.compile(
    rb"(?i:name|key|variable|var|field|property|parameter|param|label|id)[\"'`\\]{0,17}[ \t]{0,4}[:=]"
    rb"[ \t]{0,4}[\"'`\\]{0,17}"
    rb"(?P<name>[\w.\-/]{2,80})[\"'`\\]{0,17}(?<!\\),?[ \t]{0,4}(?:[\r\n]|\\{1,15}[rn]){1,4}[^\"'`\r\n<=]{0,80}"
    rb"(?<![A-Za-z])(?i:" + _VALUES.encode() + rb")[\"'`\\]{0,17}[ \t]{0,8}[:=][ \t]{0,8}(?P<open>[\"'`\\]{0,17})\Z"
)
_TAG_ABOVE = re.compile(
    rb"(?:<[\w:.\-]{0,20}(?i:key|name)(?:[ ][^<>]{0,60})?>(?P<name>[\w.\-/ ]{2,80})<\\{0,15}/[\w:.\-]{1,30}"
    rb"|(?i:name|key|id)=[\"'\\]{1,17}(?P<attribute>[\w.\-/]{2,80})[\"'\\]{1,17}(?:[ ][^<>]{0,60})?)>[^<>]{0,100}"
    + _TAG.encode()
    + rb"\Z"
)
_DUMPED = re.compile(rb"(?P<name>\w{2,60}): \(string\) (?:\(len=\d{1,5}\) )?(?P<open>\\{0,15}\")\Z")
_CALLED = re.compile(rb"(?:\.|->)(?P<name>[A-Za-z]\w{1,60})\((?P<open>\\{0,15}[\"'])\Z")
_ASKING = re.compile(
    rb"(?i:get|find|has|is|fetch|read|load|lookup|delete|remove|list|describe|expect|match|contains|require|resolve|log)"
    rb"(?=[A-Z_]|\Z)"
)
_CELLS = re.compile(
    rb"(?:\A|[\s|`\"'\\*>-]|[rn])(?P<name>[\w.\-]{2,80}|[\w.\-]{2,30}(?: [\w.\-]{2,30}){1,3})[\"'`\\*]{0,17}[ \t]{0,24}"
    rb"(?:\||:\*{1,2}|\*{1,2}:)[ \t]{1,24}(?P<open>[\"'`\\]{0,17})\Z"
)
_COMMA = re.compile(rb"(?:\A|[\r\n]|\\{1,15}[nr])(?P<name>[\w.\-]{2,80}),(?P<open>)\Z")
_MARKS = rb"(?: |\\{0,15}[\"'`])"
_HEAD_REST = re.compile(
    _MARKS
    + rb"{0,9}+(?:[,;|]"
    + _MARKS
    + rb"{0,17}+[\w .\-/+:()#]{0,60}+"
    + _MARKS
    + rb"{0,17}+){0,40}+(?P<end>\r?\n|(?:\\{1,15}r)?\\{1,15}n)"
)
_HEAD_OPENED = re.compile(rb"[:\[{] ?\\{0,15}\"")
_HEAD_TAIL = re.compile(rb"[\w .\-/+:()#]{1,60}[\"'`\\ ]{0,17}\Z")
_ROW_END = re.compile(rb"\r?\n|(?:\\{1,15}r)?\\{1,15}n|(?<!\\)\"|\Z")
_CELL_EDGE = b" \t\"'`\\"
_QUOTE = re.compile(rb"\\{0,15}[\"']\Z")
# A named argument, a call, a line that continues.
_CODE_CELL = re.compile(rb"\A[ \t]{0,40}[A-Za-z_][\w.]{0,60}(?: ?=[^=\s]| = |\()|::|[\[{(]\s{0,2}\Z")
_HEAD = re.compile(rb"[\w .\-/+:()#]{0,60}")
_SAYING = r"(?:is|was|to|as|equals|with|=|:|->)"
_SAID_IN_CODE = re.compile(
    rb"(?P<name>[\w.-]{2,80})[`'\"\\*]{1,9} " + _SAYING.encode() + rb" (?:the value )?(?P<open>[`'\"\\*]{1,9})\Z"
)
_SENTENCE_LENGTH_MAX = 160
_SAID_PASSWORD = r"(?:passw(?:or)?d|passphrase)(?:[ ][\w' \-.]{0,30})?[ ](?:is|was|equals|ist|lautet)[ :*]{1,4}"
_MAYBE_QUOTE = r"""\\{0,15}["'`]?"""
_PASSPHRASE_GATES = (
    f"(?i:{_SAID_PASSWORD}){_MAYBE_QUOTE}[A-Za-z]{{3,12}}-[A-Za-z]{{3,12}}-[A-Za-z]{{3}}",
    f"(?i:{_SAID_PASSWORD}){_MAYBE_QUOTE}[A-Z][a-z]{{2,12}}[A-Z][a-z]{{2}}",
    f"(?i:{_SAID_PASSWORD}){_MAYBE_QUOTE}[A-Za-z]{{3,12}}[_.][A-Za-z]{{3}}",
)
_PASSPHRASE_BEFORE_LENGTH_MAX = 60
_PASSPHRASE_BEGUN = re.compile(rb"(?<=[\s*:\"'`])[A-Za-z_.-]{6,40}\Z")
_HYPHENATED_WORDS = re.compile(rb"[A-Za-z]{3,12}(?:-[A-Za-z]{3,12}){2,7}(?:-?\d{1,6}[!?_]?)(?![\w/-])")
_WORDS_AND_NUMBER = re.compile(rb"[A-Za-z]{6,40}\d{2,6}[_!@#$%&*?~^+-]{0,2}(?![\w/-])")
_JOINED_WORDS = re.compile(rb"[A-Za-z_.]{7,60}\d{3,6}(?![\w/-]|\.\w)")
_PASSPHRASE_FORMS = (
    (_HYPHENATED_WORDS, bool),
    (_WORDS_AND_NUMBER, is_words_and_number),
    (_JOINED_WORDS, is_joined_words),
)


def _head(line: bytes, start: int) -> bytes:
    """The line before this place, backwards."""
    return line[max(0, start - HEAD_LENGTH_MAX) : start][::-1]


def extract_from_block(line: bytes, to: int) -> Extraction:
    """The first line of a YAML block, whose name is in the line above with a bar after it."""
    start = to - SECRET_LENGTH
    found = BLOCK.match(_head(line, start))
    if found is None:
        return (), to
    return extract_assigned(line, start, b"", demand_of(name_before(found, line, start)), to)


def extract_from_tag(line: bytes, to: int) -> Extraction:
    """`<password>value</password>` and `<entry key="password">value</entry>`."""
    start = to - SECRET_LENGTH
    found = TAG.match(_head(line, start))
    if found is None:
        return (), to
    if found["name"][::-1].lower() == b"clienttoken" or HOST_NEXT.match(line, start):
        return (), to
    demand = demand_of(found["name"][::-1])
    if demand == Demand.NONE and found["attributes"]:
        named = NAMED_TAG.search(found["attributes"])
        demand = demand_of(named["name"][::-1]) if named is not None else demand
    return extract_assigned(line, start, b"", demand, to)


def extract_beside(line: bytes, to: int) -> Extraction:
    """The value in a member after the one that holds the name."""
    start = to - SECRET_LENGTH
    found = MEMBER.match(_head(line, start))
    if found is None:
        return (), to
    return extract_assigned(line, start, (found["open"] or b"")[::-1], demand_of(found["name"][::-1]), to)


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
    return extract_assigned(line, end - found.end("value"), found["quote"][::-1], demand, to)[0], to


def extract_spaced(line: bytes, to: int) -> Extraction:
    """A value after a name and a blank: SQL, `#define`, old Dockerfiles, columns."""
    start = to - SECRET_LENGTH
    head = _head(line, start)
    found = SPACED.match(head)
    if found is None:
        return (), to
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
    return extract_assigned(line, start, quote, demand, to)


def extract_said(line: bytes, to: int) -> Extraction:
    """The value in a sentence such as `the password is value`."""
    start = to - SECRET_LENGTH
    found = SAID.match(_head(line, start))
    if found is None:
        return (), to
    words = found["name"][::-1].split()
    demands = [demand_of(words[at - 1] + b" " + word if at else word) for at, word in enumerate(words)]
    demand = max(demands, default=Demand.NONE)
    if demand < Demand.TOKEN:
        return (), to
    quote = found["open"][::-1]
    return extract_assigned(line, start, quote, min(demand, Demand.KEY) if not quote else demand, to)


def extract_said_in_code(line: bytes, to: int) -> Extraction:
    """The value in a sentence in which the name and the value are each marked as code."""
    start = to - SECRET_LENGTH
    found = _SAID_IN_CODE.search(line, max(0, start - _SENTENCE_LENGTH_MAX), start)
    if found is None:
        return (), to
    name = found["name"]
    demand = demand_of(name[1:] if line[found.start() - 1 : found.start()] == b"\\" else name)
    return extract_assigned(line, start, found["open"][-1:], demand, to) if demand > Demand.WEAK else ((), to)


def extract_said_passphrase(line: bytes, to: int) -> Extraction:
    """`The password is words-with-hyphens57`, `WordsAndNumber57`, and `words_with_joints_571`."""
    begun = _PASSPHRASE_BEGUN.search(line, max(0, to - _PASSPHRASE_BEFORE_LENGTH_MAX), to)
    if begun is None:
        return (), to
    start = begun.start()
    for form, is_password in _PASSPHRASE_FORMS:
        found = form.match(line, start)
        if found is not None and is_password(found.group().decode("ascii")):
            return (found.span(),), max(to, found.end())
    return (), to


def _extract_after(
    pattern: re.Pattern[bytes], reach: int = LINES_ABOVE_LENGTH_MAX, *, unless: re.Pattern[bytes] | None = None
) -> Extract:
    """Return what extracts a value after a match of the pattern, with the groups `name` and `open`, its quote.

    Names that match `unless` do not count.
    """

    def extract(line: bytes, to: int) -> Extraction:
        start = to - SECRET_LENGTH
        found = pattern.search(line, max(0, start - reach), start)
        if found is None or (unless is not None and unless.match(found["name"])):
            return (), to
        is_escaped = line[found.start("name") - 1 : found.start("name")] == b"\\"
        name = found["name"][1:] if is_escaped else found["name"]
        return extract_assigned(line, start, found["open"] or b"", demand_of(name), to)

    return extract


def extract_from_next_tag(line: bytes, to: int) -> Extraction:
    """`<key>name</key>` and `<string>value</string>`, as in property lists and settings."""
    start = to - SECRET_LENGTH
    found = _TAG_ABOVE.search(line, max(0, start - LINES_ABOVE_LENGTH_MAX), start)
    if found is None:
        return (), to
    return extract_assigned(line, start, b"", demand_of(found["name"] or found["attribute"]), to)


def extract_from_column(line: bytes, to: int) -> Extraction:
    """The cells below the head of a column."""
    header_end = _HEAD_REST.match(line, to - 1)
    if header_end is None:
        return (), to
    lowest = max(0, to - 512)
    start = max(lowest, line.rfind(b"\n", lowest, to) + 1, line.rfind(b"\\n", lowest, to - 2) + 2)
    start = max((opened.end() for opened in _HEAD_OPENED.finditer(line, start, to)), default=start)
    header = line[start : header_end.start("end")]
    mark = max((b",", b";", b"|"), key=header.count)
    heads = header.split(mark)
    first = _HEAD_TAIL.search(heads[0])
    if first is None or not all(_HEAD.fullmatch(head.strip(_CELL_EDGE)) for head in heads[1:]):
        return (), to
    if mark != b"|" and not all(head.strip(_CELL_EDGE) for head in heads):
        return (), to  # arguments, or items of a list
    demands = [demand_of(head.strip(_CELL_EDGE)) for head in (first.group(), *heads[1:])]
    spans: list[tuple[int, int]] = []
    at = header_end.end()
    for _ in range(ROWS_MAX):
        row = _ROW_END.search(line, at, min(len(line), at + ROW_LENGTH_MAX))
        if row is None or line.count(mark, at, row.start()) != len(heads) - 1:
            break
        for cell, demand in zip(line[at : row.start()].split(mark), demands, strict=True):
            inner = at + len(cell) - len(cell.lstrip(_CELL_EDGE))
            if demand != Demand.NONE and len(cell) > SECRET_LENGTH and not _CODE_CELL.search(cell):
                found, _ = extract_assigned(line, inner, _quote_of(line, inner), demand, to)
                spans.extend((first, min(last, at + len(cell.rstrip(_CELL_EDGE)))) for first, last in found)
            at += len(cell) + 1
        at = row.end()
    return [span for span in spans if span[0] < span[1]], max(to, at - 1)


def _quote_of(line: bytes, start: int) -> bytes:
    found = _QUOTE.search(line, max(0, start - 16), start)
    return found.group() if found else b""


# Most values whose name is elsewhere: the triggers and the confidence are the same.
_named = partial(Rule, confidence="medium", when=WHEN)
RULES = (
    _named(
        "tagged-secret",
        "any",
        "value in an XML element whose name holds a secret's name",
        (r"(?i)" + NAMES + r"[\w.\-]{0,16}(?:" + QUOTES + r"(?:[ ][^<>]{0,40})?)?>[^\s\"'`\\<]{6}",),
        extract_from_tag,
        example="<db.password><base62:14></db.password>",
        counter="<db.password>${DB_PASSWORD}</db.password>",
    ),
    _named(
        "paired-secret",
        "any",
        "value beside a member that holds a secret's name",
        (
            (
                rf"""(?i){NAMES}[\w.\-]{{0,24}}[\s"'`\\,;nrt\-]{{1,64}}(?:{VALUE_NAMES}){QUOTES}"""
                rf"[ \t]{{0,8}}[:=][ \t]{{0,8}}{QUOTES}{VALUE}"
            ),
        ),
        extract_beside,
        example='{"name": "DB_PASSWORD", "value": "<base62:14>"}',
        counter='{"name": "DB_PASSWORD", "value": "${DB_PASSWORD}"}',
    ),
    _named(
        "paired-secret.before",
        "any",
        "value before a member that holds a secret's name",
        (
            (
                rf"""(?i)(?:{NAME_NAMES})["'`\\]{{1,17}}[ ]{{0,4}}[:=][ ]{{0,4}}["'`\\]{{1,17}}[\w.\-/]{{0,40}}"""
                rf"{NAMES}{QUOTE}"
            ),
        ),
        extract_before,
        example='{"value": "<base62:14>", "name": "DB_PASSWORD"}',
        counter='{"value": "${DB_PASSWORD}", "name": "DB_PASSWORD"}',
    ),
    _named(
        "spaced-secret",
        "any",
        "value behind a secret's name and blanks, as in SQL, #define, setx and columns",
        (
            r"(?i)(?:" + NAMES + r"[\w.\-]{0,24}|identified by(?: password)?)[ ]{1,12}[\"'\\]{1,17}" + VALUE,
            r"(?i)" + NAMES + r"[\w.\-]{0,24}(?:[ ]{2}[ ]{0,24}|(?:\t|\\{1,15}t){1,4})" + VALUE,
            (
                r"(?i)(?:ENV|ARG|setx|setenv|define|export|set(?: -[a-z-]{1,10}){1,3})[ ]{1,4}[\w.\-]{0,40}"
                rf"{NAMES}[\w.\-]{{0,24}}[ ]{{1,12}}{VALUE}"
            ),
        ),
        extract_spaced,
        example="ALTER USER app IDENTIFIED BY '<base62:14>'",
        counter="ALTER USER app IDENTIFIED BY '${DB_PASSWORD}'",
    ),
    _named(
        "said-secret",
        "any",
        "value that a sentence calls a password, secret, token or API key",
        ("(?i:" + NAMES + r"(?:[ ][\w' \-.]{0,30})?[ ](?:" + VERBS + "))[ :*]{1,4}" + QUOTES + MIXED_VALUE,),
        extract_said,
        example="The password is <base62:14>.",
        counter="The password is required.",
        confidence="low",
    ),
    _named(
        "said-secret.code",
        "any",
        "value in marks of code that a sentence gives to a secret's name",
        (rf"(?i:{NAMES}[\w.\-]{{0,24}}[`'\"\\*]{{1,9}} {_SAYING} (?:the value )?)[`'\"\\*]{{1,9}}{VALUE}",),
        extract_said_in_code,
        example="I set `DB_PASSWORD` to `<base62:14>`.",
        counter="I set `DB_PASSWORD` to `$(pass show db)`.",
    ),
    _named(
        "said-passphrase",
        "any",
        "words and a number that a sentence calls a password",
        _PASSPHRASE_GATES,
        extract_said_passphrase,
        example="The password is amber-nickel-candle-<digits:3>",
        counter="The password is machine-generated-daily.",
        when=(WHEN_SAID,),
    ),
    _named(
        "paired-secret.below",
        "any",
        "value in the line below the one with a secret's name",
        (
            (
                rf"(?i){NAMES}{_REST}{QUOTES},?[ \t]{{0,4}}{_LINE_BREAK}{_LINE_PREFIX}{_VALUES}{QUOTES}"
                rf"[ \t]{{0,8}}[:=][ \t]{{0,8}}{QUOTES}{VALUE}"
            ),
        ),
        _extract_after(_LINE_ABOVE),
        example="a.yml:7: - name: DB_PASSWORD\na.yml:8:   value: <base62:14>",
        counter="a.yml:7: - name: DB_PASSWORD\na.yml:8:   value: ${DB_PASSWORD}",
    ),
    _named(
        "tagged-secret.next",
        "any",
        "value in the XML element after the one that holds a secret's name",
        (
            (
                rf"(?i){NAMES}{_REST}{QUOTES}"
                rf"(?:[ ][^<>\r\n]{{0,60}})?(?:<\\{{0,15}}/[\w:.\-]{{1,30}})?>[^<>]{{0,100}}{_TAG}[^\s\"'`\\<]{{6}}"
            ),
        ),
        extract_from_next_tag,
        example="<param-name>DBPassword</param-name>\n<param-value><base62:14></param-value>",
        counter="<param-name>DBPassword</param-name>\n<param-value>${DB_PASSWORD}</param-value>",
    ),
    _named(
        "dumped-secret",
        "Go",
        "member of a dumped structure",
        (r"(?i)" + NAMES + r"\w{0,24}: \(string\) (?:\(len=\d{1,5}\) )?\\{0,15}\"" + VALUE,),
        _extract_after(_DUMPED),
        example='DBPassword: (string) (len=14) "<base62:14>"',
        counter='DBPassword: (string) (len=14) "${DB_PASSWORD}"',
    ),
    _named(
        "built-secret",
        "any",
        "value given to a builder's method that a secret is named after",
        (r"(?i)" + NAMES + r"\w{0,12}\(\\{0,15}[\"']" + VALUE,),
        _extract_after(_CALLED, 80, unless=_ASKING),
        example='.spotifyClientSecret("<base62:24>")',
        counter='.getClientSecret("<base62:24>")',
    ),
    _named(
        "cell-secret",
        "any",
        "value in a table's cell, or behind bold text, that a secret's name stands before",
        (
            r"(?i)" + NAMES + _REST + r"[\"'`\\*]{1,17}[ \t]{0,24}\|[ \t]{1,24}" + QUOTES + VALUE,
            r"(?i)" + NAMES + _REST + r"(?::\*{1,2}|\*{1,2}:)[ \t]{1,4}" + QUOTES + VALUE,
            r"(?i)" + NAMES + _REST + r"[ \t]{1,24}\|[ \t]{1,24}`" + VALUE,
        ),
        _extract_after(_CELLS),
        example="| `DB_PASSWORD` | `<base62:14>` |",
        counter="| `DB_PASSWORD` | `${DB_PASSWORD}` |",
    ),
    _named(
        "column-secret",
        "CSV",
        "value in a column with a secret's name",
        (
            r"""(?i)[,;|]["'`\\ ]{0,9}[\w\-.]{0,30}""" + NAMES + _REST + r"""["'`\\ ]{0,9}[,;|\r\n]""",
            r"""(?i)[,;|]["'`\\ ]{0,9}[\w\-.]{0,30}""" + NAMES + _REST + r"""["'`\\ ]{0,9}\\\\""",
            r"(?i)" + NAMES + _REST + QUOTES + r"[,;|]",
        ),
        extract_from_column,
        example="host,db_password,port\nh1,<base62:14>,1\n",
        counter="host,db_password,port\nh1,required,1\n",
    ),
    _named(
        "column-secret.pair",
        "CSV",
        "value in a row of a secret's name and its value",
        (r"(?i)(?:[\r\n]|\\{1,15}[nr])[\w.\-]{0,40}" + NAMES + _REST + r",[^\s\"'`\\,]{6}",),
        _extract_after(_COMMA),
        example="key,value\nDB_PASSWORD,<base62:14>\n",
        counter="key,value\nDB_PASSWORD,required\n",
    ),
    _named(
        "block-secret",
        "any",
        "first line of a YAML block that belongs to a secret's name",
        (
            (
                rf"(?i){NAMES}"
                r"[\w.\-]{0,24}[\"']?:[ ]{1,8}[|>][\d+\-]{0,2}[ ]{0,4}(?:[\r\n]|\\{1,15}[nr]){1,3}[ ]{1,24}"
                rf"{VALUE}"
            ),
        ),
        extract_from_block,
        example="password: |\n  <base62:14>",
        counter="password: |\n  ${DB_PASSWORD}",
    ),
)
