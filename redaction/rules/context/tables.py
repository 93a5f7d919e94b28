"""Values below the heads of columns: tables of databases and Markdown, boxes, CSV and TSV, INSERT and COPY."""

import re
from collections.abc import Sequence
from typing import Final

from redaction.heuristics.names import Demand, demand_of
from redaction.heuristics.secrecy import Placement
from redaction.heuristics.values import is_value
from redaction.rules.context.assignments import assigned_secret, told_secret
from redaction.rules.rule import Extraction

ROWS_MAX: Final = 64
STRANGE_ROWS_MAX: Final = 3
ROW_LENGTH_MAX: Final = 2048
HEAD_LENGTH_MAX: Final = 512
ROW_END_LENGTH_MAX: Final = 40
CELL_LENGTH_MIN: Final = 4

_BOX: Final = rb"\xe2\x94\x82|\xe2\x94\x83|\xe2\x95\x91"
_MARKS: Final = tuple(map(re.compile, (_BOX, rb"\|", rb"\t|\\{1,15}t", rb";", rb",")))
_LISTED: Final = _MARKS[3:]
_PIPE: Final = _MARKS[1]
_TAB: Final = _MARKS[2]
_MARK_TEXTS: Final = ((b"\xe2\x94\x82", b"\xe2\x94\x83", b"\xe2\x95\x91"), (b"|",), (b"\t", b"\\t"), (b";",), (b",",))
_PASSWORDS: Final = (b"pw", b"psw")
# A row that begins with its number, as SQLite prints it.
_COUNTED: Final = re.compile(rb"\d{1,12}\|")
_OPENED: Final = re.compile(rb"[:\[{] ?\\{0,15}\"")
_ROW_END: Final = re.compile(rb"\r?\n|(?:\\{1,15}r)?\\{1,15}n|(?<!\\)\"|\Z")
_RULER: Final = re.compile(rb"(?:[\s|+=:_-]|\xe2[\x94-\x96][\x80-\xbf])+")
_EDGE: Final = re.compile(rb"(?:[ \t\"'`*]|\\{1,15}(?=[\"'`*|]))*")
_EDGES: Final = b" \t\"'`*\\"
_QUOTE: Final = re.compile(rb"\\{0,15}[\"'`]\Z")
_HEAD: Final = re.compile(rb"[\w .\-/+:#]{0,60}")
# The last word of a head, perhaps with half a mark behind it.
_NAME_BACKWARDS: Final = re.compile(rb"(?:[\x94\x95]\xe2)?[ \t\"'`*\\\r]{0,64}+([\w.\-]{2,60})")
# The rest of a line of heads: what they are made of, marks, and what is around a head.
_HEADS_REST: Final = re.compile(rb"(?:[\w .\-/+:#,;|\t\r\"'`*\x80-\xff]|\\(?!n))*+(?=\\n|\n)")
# The first cell may follow the number of the line, or a prompt.
_FIRST_HEAD: Final = re.compile(rb"[\w .\-/+:#]{1,60}[\"'`\\ ]{0,17}\Z")
# A named argument, a call, a line that continues.
_CODE_CELL: Final = re.compile(rb"\A[ \t]{0,40}[A-Za-z_][\w.]{0,60}(?: ?=[^=\s]| = |\()|::|[\[{(]\s{0,2}\Z")
_SOURCE_FILE: Final = re.compile(rb"[\w.-]+(?:/[\w.-]+)+\.[a-z]{1,4}")
# The end of a document of JSON in a string, after which no cell goes on.
_DOCUMENT_END: Final = re.compile(rb"\\{1,15}\"(?=(?:\s|\\{1,15}[nrt])*+[}\],])")
_BLANKS: Final = rb"(?:\s|\\{1,15}[nrt])*+"
ALIGNED_BREAK_MAX: Final = 16
HTML_ROW_MAX: Final = 1024
BLANK: Final = 0x20
_ALIGNED_END: Final = re.compile(rb"(?:\r?\n|(?:\\{1,15}r)?\\{1,15}n)\Z")
_ALIGNED_HEAD: Final = re.compile(rb"[A-Z][A-Z0-9_-]*+(?: [A-Z][A-Z0-9_-]*+)*+")
_PATH_BEGINS: Final = b"./~-"
_ALIGNED_CELL: Final = re.compile(rb"[^\s\\]{4,200}+(?=[\s\\]|\Z)")
_HTML_ROW_END: Final = re.compile(rb"(?i)<\\{0,15}/tr>")
_HTML_HEAD: Final = re.compile(rb"(?i)<th[^<>]{0,80}>([^<>]{0,100})<")
_HTML_CELL: Final = re.compile(rb"(?i)<td[^<>]{0,80}>(?:<(?:code|b|strong|span)[^<>]{0,40}>)?([^<>]{0,200})<")
_SQL_VALUE: Final = re.compile(
    _BLANKS + rb"(?:[NEBnb]?'(?P<text>(?:[^'\\]|''|\\{1,15}[^'\\]|\\{1,15}')*+)'|[^,()']{1,200}(?:\([^()]{0,200}\))?)"
    rb"(?:::\w{1,40})?" + _BLANKS + rb"(?P<end>[,)])"
)
_NEXT_TUPLE: Final = re.compile(_BLANKS + rb"," + _BLANKS + rb"\(")


def _row_end(line: bytes, at: int) -> re.Match[bytes] | None:
    return _ROW_END.search(line, at, min(len(line), at + ROW_LENGTH_MAX))


def _before_escape(line: bytes, to: int) -> int:
    """The beginning of the character that ends there, which may be an escape."""
    at = to - 1
    while at > 0 and line[at - 1] == 0x5C and line[at] in b"nrt\\":
        at -= 1
    return at


def _mark_of(header: bytes) -> re.Pattern[bytes] | None:
    """The mark that is between most cells of this row, if there is one."""
    found, most = None, 0
    for mark, texts in zip(_MARKS, _MARK_TEXTS, strict=True):
        count = sum(map(header.count, texts))
        if count > most:
            found, most = mark, count
    return found


def _names(heads: Sequence[bytes], *, is_strict: bool) -> Sequence[bytes]:
    """The names of columns; none if these are no heads, as arguments or items of a list."""
    first = _FIRST_HEAD.search(heads[0].strip()) if heads[0].strip() else None
    if len(heads) == 1 or (first is None and heads[0].strip()):
        return ()
    names = [first.group() if first else b"", *heads[1:]]
    if not all(_HEAD.fullmatch(name.strip(_EDGES)) for name in names):
        return ()
    if is_strict and any(not name.strip(_EDGES) or name.strip(_EDGES).isdigit() for name in names):
        return ()  # a row of words and numbers is no row of heads, nor are items of a list
    return names


def _demand_of_head(name: bytes) -> Demand:
    """What a head demands of its cells; `pw` at the head of a column is nothing but a password."""
    return Demand.PASSWORD if name.lower() in _PASSWORDS else demand_of(name)


def _heads_start(line: bytes, here: int, lowest: int) -> int:
    """Where the line of heads begins that holds this place."""
    start = max(lowest, line.rfind(b"\\n", lowest, here) + 2, line.rfind(b"\n", lowest, here) + 1)
    if line.find(b'"', start, here) >= 0:
        start = max((opened.end() for opened in _OPENED.finditer(line, start, here)), default=start)
    return start


def extract_from_column(line: bytes, to: int) -> Extraction:
    """The cells below the head of a column."""
    here = _before_escape(line, to)
    found = _HEADS_REST.match(line, here, min(len(line), here + ROW_LENGTH_MAX))
    if found is None:
        return (), to
    stop, rest = found.end(), found.group()
    name = _NAME_BACKWARDS.match(line[max(0, here - 80) : here][::-1])
    if name is None or demand_of(name[1][::-1]) == Demand.NONE:
        return (), to  # such as a word that begins with a secret's name
    start = _heads_start(line, here, max(0, to - HEAD_LENGTH_MAX))
    header = line[start:stop]
    if b"(" in header or b"=" in header or header.startswith(b"#define") or (mark := _mark_of(header)) is None:
        return (), to
    is_listed = mark in _LISTED
    end = _row_end(line, here if b'"' in rest else max(here, stop - ROW_END_LENGTH_MAX))
    if end is None or end.group() in (b'"', b""):
        return (), to
    header = line[start : end.start()]
    below = _row_end(line, end.end())
    row = line[end.end() : below.start()] if below is not None else b""
    is_spaced = mark is not _PIPE or b" | " in header or header.lstrip().startswith(b"| ")
    if not is_spaced and not (_COUNTED.match(row) and row.count(b"|") == header.count(b"|")):
        return (), to  # alternatives, links of documentation
    if is_listed and not mark.search(row):
        return (), to  # a sentence
    heads = mark.split(header)
    names = _names(heads, is_strict=is_listed or mark is _TAB)
    demands = [_demand_of_head(name.strip(_EDGES)) for name in names]
    if not any(demands):
        return (), to
    if mark is _TAB and mark.split(row)[0] == heads[0]:
        return (), to  # a list
    is_told = (
        _RULER.fullmatch(row) is not None or not is_spaced if mark is _PIPE else not (is_listed and b", " in header)
    )
    spans, at = _rows(line, end.end(), mark, demands, is_told=is_told)
    return spans, max(to, at - 1)


def extract_copied(line: bytes, _start: int, found: re.Match[bytes], to: int) -> Extraction:
    """The cells of a dump of PostgreSQL, `COPY … FROM stdin`."""
    demands = [demand_of(name.strip(_EDGES)) for name in found["columns"].split(b",")]
    end = _row_end(line, to)
    if end is None or not any(demands):
        return (), to
    spans, at = _rows(line, end.end(), _TAB, demands, is_told=True)
    return spans, max(to, at)


def extract_aligned(line: bytes, to: int) -> Extraction:
    """The cells that begin below the heads of columns without marks."""
    end = _ALIGNED_END.search(line, max(0, to - ALIGNED_BREAK_MAX), to)
    stop = end.start() if end is not None else to
    lowest = max(0, stop - HEAD_LENGTH_MAX)
    start = max(lowest, *(line.rfind(mark, lowest, stop) + len(mark) for mark in (b"\n", b"\\n", b'"')))
    head = line[start:stop]
    heads = [(one.start(), demand_of(one.group())) for one in _ALIGNED_HEAD.finditer(head)]
    if head.upper() != head or len(heads) < 2 or not any(demand for _, demand in heads):
        return (), to
    spans: list[tuple[int, int]] = []
    at = to
    for _ in range(ROWS_MAX):
        below = _row_end(line, at)
        if below is None or below.start() == at:
            break
        for place, demand in heads:
            cell = _ALIGNED_CELL.match(line, at + place, below.start()) if demand else None
            is_name = cell is not None and line[cell.start()] in _PATH_BEGINS  # of a file, or of an option
            if cell is not None and not is_name and (place == 0 or line[at + place - 1] == BLANK):
                spans += _cell(line, cell.start(), cell.end(), demand, is_told=True)
        at = below.end()
        if below.group() in (b'"', b""):
            break
    return spans, max(to, at - 1)


def extract_html_column(line: bytes, to: int) -> Extraction:
    """The cells of the rows below the row of this head."""
    begin = max(line.rfind(b"<tr", max(0, to - HTML_ROW_MAX), to), to - HTML_ROW_MAX, 0)
    end = _HTML_ROW_END.search(line, to, min(len(line), to + HTML_ROW_MAX))
    if end is None:
        return (), to
    demands = [demand_of(head[1].strip()) for head in _HTML_HEAD.finditer(line, begin, end.start())]
    spans: list[tuple[int, int]] = []
    at = end.end()
    for _ in range(ROWS_MAX if any(demands) else 0):
        row = _HTML_ROW_END.search(line, at, min(len(line), at + HTML_ROW_MAX))
        if row is None:
            break
        for cell, demand in zip(_HTML_CELL.finditer(line, at, row.start()), demands, strict=False):
            if demand != Demand.NONE:
                spans += _cell(line, cell.start(1), cell.end(1), demand, is_told=True)
        at = row.end()
    return spans, max(to, end.end())


def _rows(
    line: bytes, at: int, mark: re.Pattern[bytes], demands: Sequence[Demand], *, is_told: bool
) -> tuple[list[tuple[int, int]], int]:
    """The secrets in the rows from this place on, and where the rows end."""
    spans: list[tuple[int, int]] = []
    strange = 0
    for _ in range(ROWS_MAX):
        end = _row_end(line, at)
        if end is None or end.start() == at:
            break
        row = line[at : end.start()]
        if _RULER.fullmatch(row) is None:
            edges = [(0, 0), *(one.span() for one in mark.finditer(row)), (len(row), len(row))]
            if len(edges) - 1 == len(demands):
                for (_, left), (right, _), demand in zip(edges, edges[1:], demands, strict=False):
                    if demand != Demand.NONE and right - left >= CELL_LENGTH_MIN:
                        spans += _cell(line, at + left, at + right, demand, is_told=is_told)
            else:
                strange += 1
                if strange > STRANGE_ROWS_MAX or (row.count(b" ") > len(demands) * 4 and not mark.search(row)):
                    break
        at = end.end()
        if end.group() in (b'"', b""):
            break
    return spans, at


def _cell(line: bytes, start: int, end: int, demand: Demand, *, is_told: bool) -> list[tuple[int, int]]:
    cell = line[start:end]
    opened = _EDGE.match(cell)
    if (opened is None or not opened.end()) and (ended := _DOCUMENT_END.search(cell)) is not None:
        cell = cell[: ended.start()]
    inner = start + (opened.end() if opened else 0)
    last = start + len(cell.rstrip(_EDGES))
    if inner >= last or _CODE_CELL.search(cell) or _SOURCE_FILE.fullmatch(line, inner, last):
        return []
    if is_told and demand == Demand.PASSWORD and is_value(line[inner:last], Demand.CERTAIN, Placement.BARE):
        return [(inner, last)]
    quote = _QUOTE.search(line, max(start, inner - 16), inner)
    found, _ = assigned_secret(line, inner, quote.group() if quote else b"", demand, inner)
    return [(first, min(one, last)) for first, one in found if first < last]


def extract_inserted(line: bytes, _start: int, found: re.Match[bytes], to: int) -> Extraction:
    """The values of `INSERT INTO … (…) VALUES (…), (…)`."""
    demands = [demand_of(name.strip(_EDGES)) for name in found["columns"].split(b",")]
    if not any(demands):
        return (), to
    spans: list[tuple[int, int]] = []
    at = to
    for _ in range(ROWS_MAX):
        for demand in demands:
            value = _SQL_VALUE.match(line, at, min(len(line), at + ROW_LENGTH_MAX))
            if value is None:
                return spans, max(to, at)
            if demand != Demand.NONE and value["text"]:
                start, end = value.span("text")
                found_here, _ = told_secret(line, start, b"'", demand, at)
                spans += [(first, min(last, end)) for first, last in found_here]
            at = value.end()
            if value["end"] == b")":
                break
        following = _NEXT_TUPLE.match(line, at)
        if following is None:
            break
        at = following.end()
    return spans, max(to, at)
