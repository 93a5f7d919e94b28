"""Values whose name stands elsewhere in a layout: a line above, in a cell before, at the head of the column, in a tag.

Each line may have something before it, as numbered views, diffs, logs and the output of grep have.
"""

import re

from redaction.heuristics.names import Demand, demand_of
from redaction.rules.context.assignments import SECRET_LENGTH, judged
from redaction.rules.context.pairs import NAMES, VALUE, VALUE_NAMES, WHEN
from redaction.rules.rule import Rule, Spans

HEAD_LENGTH_MAX = 320
ROWS_MAX = 32
ROW_LENGTH_MAX = 2048

_NEWLINE = r"(?:[\r\n]|\\{1,15}[rn]){1,4}"
_REST = r"[\w.\-]{0,24}"
_QUOTES = r"""["'`\\]{0,17}"""
_VALUES = "(?:param-)?(?:" + "|".join(VALUE_NAMES) + ")"
_BEFORE = r"""[^"'`\r\n<=]{0,80}"""
_TAG = r"<[\w:.\-]{1,30}(?:[ ][^<>\r\n]{0,60})?>"
# Behind all of these the value begins.
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
_ESCAPE = re.compile(rb"\\{1,15}[nrt]")
_MARKS = rb"(?: |\\{0,15}[\"'`])"
_HEAD_REST = re.compile(
    _MARKS
    + rb"{0,9}+(?:[,;|]"
    + _MARKS
    + rb"{0,17}+[\w .\-/+:()#]{0,60}+"
    + _MARKS
    + rb"{0,17}+){0,40}+(?P<end>\r?\n|(?:\\{1,15}r)?\\{1,15}n)"
)
_OPENED = re.compile(rb"[:\[{] ?\\{0,15}\"")
_HEAD_TAIL = re.compile(rb"[\w .\-/+:()#]{1,60}[\"'`\\ ]{0,17}\Z")
_LINE_END = re.compile(rb"\r?\n|(?:\\{1,15}r)?\\{1,15}n|(?<!\\)\"|\Z")
_CELL_EDGE = b" \t\"'`\\"


def _name(found: re.Match[bytes]) -> bytes:
    name: bytes = found["name"]
    before = found.string[found.start("name") - 1 : found.start("name")]
    return name[1:] if before == b"\\" else name


def _find(pattern: re.Pattern[bytes], line: bytes, to: int) -> tuple[Spans, int]:
    start = to - SECRET_LENGTH
    found = pattern.search(line, max(0, start - HEAD_LENGTH_MAX), start)
    if found is None:
        return (), to
    demand = demand_of(_name(found))
    return judged(line, start, found["open"] or b"", demand, to) if demand != Demand.NONE else ((), to)


def look_below(line: bytes, to: int) -> tuple[Spans, int]:
    """`value: …` in the line below `name: …`."""
    return _find(_LINE_ABOVE, line, to)


def look_in_next_tag(line: bytes, to: int) -> tuple[Spans, int]:
    """`<key>name</key>` and `<string>value</string>`, as property lists and settings have it."""
    start = to - SECRET_LENGTH
    found = _TAG_ABOVE.search(line, max(0, start - HEAD_LENGTH_MAX), start)
    if found is None:
        return (), to
    demand = demand_of(found["name"] or found["attribute"])
    return judged(line, start, b"", demand, to) if demand != Demand.NONE else ((), to)


def look_dumped(line: bytes, to: int) -> tuple[Spans, int]:
    """A member of a dumped Go structure."""
    return _find(_DUMPED, line, to)


def look_called(line: bytes, to: int) -> tuple[Spans, int]:
    """A method of a builder that is named after the secret it is given."""
    start = to - SECRET_LENGTH
    found = _CALLED.search(line, max(0, start - 80), start)
    if found is None or _ASKING.match(found["name"]):
        return (), to
    return _find(_CALLED, line, to)


def look_in_cell(line: bytes, to: int) -> tuple[Spans, int]:
    """The cell of a table beside the one with the name; the text behind a bold name."""
    return _find(_CELLS, line, to)


def look_after_comma(line: bytes, to: int) -> tuple[Spans, int]:
    """A row of two cells."""
    return _find(_COMMA, line, to)


def look_in_column(line: bytes, to: int) -> tuple[Spans, int]:
    """The cells below a column's head."""
    header_end = _HEAD_REST.match(line, to - 1)
    if header_end is None:
        return (), to
    lowest = max(0, to - 512)
    start = max(lowest, line.rfind(b"\n", lowest, to) + 1, line.rfind(b"\\n", lowest, to - 2) + 2)
    start = max((opened.end() for opened in _OPENED.finditer(line, start, to)), default=start)
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
        row = _LINE_END.search(line, at, min(len(line), at + ROW_LENGTH_MAX))
        if row is None or line.count(mark, at, row.start()) != len(heads) - 1:
            break
        for cell, demand in zip(line[at : row.start()].split(mark), demands, strict=True):
            inner = at + len(cell) - len(cell.lstrip(_CELL_EDGE))
            if demand != Demand.NONE and len(cell) > SECRET_LENGTH and not _CODE_CELL.search(cell):
                found, _ = judged(line, inner, _quote_of(line, inner), demand, to)
                spans.extend((first, min(last, at + len(cell.rstrip(_CELL_EDGE)))) for first, last in found)
            at += len(cell) + 1
        at = row.end()
    return [span for span in spans if span[0] < span[1]], max(to, at - 1)


def _quote_of(line: bytes, start: int) -> bytes:
    found = _QUOTE.search(line, max(0, start - 16), start)
    return found.group() if found else b""


_QUOTE = re.compile(rb"\\{0,15}[\"']\Z")
# An argument with its name, a call, what goes on in the next line.
_CODE_CELL = re.compile(rb"\A[ \t]{0,40}[A-Za-z_][\w.]{0,60}(?: ?=[^=\s]| = |\()|::|[\[{(]\s{0,2}\Z")
_HEAD = re.compile(rb"[\w .\-/+:()#]{0,60}")

_RULES = (
    Rule(
        "paired-secret.below",
        "any",
        "value in the line below the one with a secret's name",
        (
            r"(?i)"
            + NAMES
            + _REST
            + _QUOTES
            + r",?[ \t]{0,4}"
            + _NEWLINE
            + _BEFORE
            + _VALUES
            + _QUOTES
            + r"[ \t]{0,8}[:=][ \t]{0,8}"
            + _QUOTES
            + VALUE,
        ),
        look_below,
        "medium",
        "a.yml:7: - name: DB_PASSWORD\na.yml:8:   value: <base62:14>",
        "a.yml:7: - name: DB_PASSWORD\na.yml:8:   value: ${DB_PASSWORD}",
        WHEN,
    ),
    Rule(
        "tagged-secret.next",
        "any",
        "value in the XML element after the one that holds a secret's name",
        (
            r"(?i)"
            + NAMES
            + _REST
            + _QUOTES
            + r"(?:[ ][^<>\r\n]{0,60})?(?:<\\{0,15}/[\w:.\-]{1,30})?>[^<>]{0,100}"
            + _TAG
            + r"[^\s\"'`\\<]{6}",
        ),
        look_in_next_tag,
        "medium",
        "<param-name>DBPassword</param-name>\n<param-value><base62:14></param-value>",
        "<param-name>DBPassword</param-name>\n<param-value>${DB_PASSWORD}</param-value>",
        WHEN,
    ),
    Rule(
        "dumped-secret",
        "Go",
        "member of a dumped structure",
        (r"(?i)" + NAMES + r"\w{0,24}: \(string\) (?:\(len=\d{1,5}\) )?\\{0,15}\"" + VALUE,),
        look_dumped,
        "medium",
        'DBPassword: (string) (len=14) "<base62:14>"',
        'DBPassword: (string) (len=14) "${DB_PASSWORD}"',
        WHEN,
    ),
    Rule(
        "built-secret",
        "any",
        "value given to a builder's method that a secret is named after",
        (r"(?i)" + NAMES + r"\w{0,12}\(\\{0,15}[\"']" + VALUE,),
        look_called,
        "medium",
        '.spotifyClientSecret("<base62:24>")',
        '.getClientSecret("<base62:24>")',
        WHEN,
    ),
    Rule(
        "cell-secret",
        "any",
        "value in a table's cell, or behind bold text, that a secret's name stands before",
        (
            r"(?i)" + NAMES + _REST + r"[\"'`\\*]{1,17}[ \t]{0,24}\|[ \t]{1,24}" + _QUOTES + VALUE,
            r"(?i)" + NAMES + _REST + r"(?::\*{1,2}|\*{1,2}:)[ \t]{1,4}" + _QUOTES + VALUE,
            r"(?i)" + NAMES + _REST + r"[ \t]{1,24}\|[ \t]{1,24}`" + VALUE,
        ),
        look_in_cell,
        "medium",
        "| `DB_PASSWORD` | `<base62:14>` |",
        "| `DB_PASSWORD` | `${DB_PASSWORD}` |",
        WHEN,
    ),
    Rule(
        "column-secret",
        "CSV",
        "value in a column with a secret's name",
        (
            r"""(?i)[,;|]["'`\\ ]{0,9}[\w\-.]{0,30}""" + NAMES + _REST + r"""["'`\\ ]{0,9}[,;|\r\n]""",
            r"""(?i)[,;|]["'`\\ ]{0,9}[\w\-.]{0,30}""" + NAMES + _REST + r"""["'`\\ ]{0,9}\\\\""",
            r"(?i)" + NAMES + _REST + _QUOTES + r"[,;|]",
        ),
        look_in_column,
        "medium",
        "host,db_password,port\nh1,<base62:14>,1\n",
        "host,db_password,port\nh1,required,1\n",
        WHEN,
    ),
    Rule(
        "column-secret.pair",
        "CSV",
        "value in a row of a secret's name and its value",
        (r"(?i)(?:[\r\n]|\\{1,15}[nr])[\w.\-]{0,40}" + NAMES + _REST + r",[^\s\"'`\\,]{6}",),
        look_after_comma,
        "medium",
        "key,value\nDB_PASSWORD,<base62:14>\n",
        "key,value\nDB_PASSWORD,required\n",
        WHEN,
    ),
)


def rules() -> tuple[Rule, ...]:
    """The rules of this module."""
    return _RULES
