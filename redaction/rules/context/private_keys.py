"""Private keys from BEGIN to END, whatever stands between their lines: PEM, OpenSSH, SSH2 and PGP; also PuTTY's.

A block is taken for a key when key material follows its BEGIN; the mere marks, as in source code, are left alone.
A key that was cut at its end, or at its beginning, is masked as far as its lines of key material go.
"""

import re

from redaction.rules.rule import Rule, Spans

LENGTH_MAX = 64 * 1024
MATERIAL_MIN = 40
MATERIAL_CUT_MIN = 24
ELLIPSIS_MIN = 96  # less than this before an ellipsis is an example that shows how keys begin
VARIETY_MIN = 12

_SPACE = r"(?: |%20|\+)"
_NAME = rf"PRIVATE{_SPACE}KEY(?:{_SPACE}BLOCK)?{_SPACE}?--"
_KIND = rf"{_SPACE}(?:[A-Z0-9]{{2,12}}{_SPACE}){{0,3}}{_NAME}"
_MARK = re.compile(rf"-{{2,5}}{_SPACE}?(BEGIN|END){_KIND}-{{0,3}}".encode())
_END = re.compile(rf"END{_KIND}-{{0,3}}".encode())
# What may stand between two lines of a key: newlines and tabs at any depth, quotes, commas, the marks of diffs,
# quotations and numbered lines. A number counts only where such a mark follows it.
_SEP = (
    rb"(?:\\{1,16}[nrt]|\\{1,16}u(?:2192|2502|001b)|[\s\"'`,>|*#:;\\+$-]|//(?= )|\xe2\x86\x92|\xe2\x94\x82|%0[AaDd]"
    rb"|<br>|\d{1,6}\. |\d{1,6}(?=[:|\t ]|\\{1,16}[tu]|\xe2))"
)
_GAP = rb"(?:" + _SEP + rb"){0,96}+"
# What may stand before every line: a time, a file's name, a container's.
_BEFORE = rb"(?:\\{1,16}r|[\r$ ]){0,3}(?:\n|\\{1,16}n)(?:[^\n\\\"<>{}=]|\\{1,16}t){1,80}?(?:[ :|\-\]]|\\{1,16}t)"
_HEADERS = (
    rb"(?:(?:" + _GAP + rb"[A-Z][A-Za-z0-9-]{2,24}|" + _BEFORE + rb"(?:Proc-Type|DEK-Info|Comment|Version))"
    rb": [^\n\\\"]{0,200}+){0,6}+"
)
_BYTE = rb"(?:[A-Za-z0-9+/=]|%2[BbFf]|%3[Dd]|\\{1,16}/)"
_EMPTY = rb"(?:(?:\\{1,16}r|\r)?(?:\n|\\{1,16}n)(?![A-Za-z0-9+/=]{16})[^\n\\\"<>{}=]{0,48}(?=\r?\n|\\{1,16}[rn]))?+"
_BEGINS = re.compile(_HEADERS + _EMPTY + rb"(?:" + _GAP + _BYTE + rb"{16}|" + _BEFORE + _BYTE + rb"{40})")
_CUT_OFF = rb"(?=\\{0,15}\"|\Z|\.\.|\xe2\x80\xa6|(?:\s|\\{1,15}n){0,2}\[)"
LINES = re.compile(
    rb"(?:"
    + rb"|".join((_GAP + _BYTE + rb"{20,}+", _BEFORE + _BYTE + rb"{40,}+", _BEFORE + _BYTE + rb"{8,64}+" + _CUT_OFF))
    + rb")*+"
)
_CUT = re.compile(_HEADERS + _EMPTY + LINES.pattern)
_LAST = re.compile(_GAP + rb"([A-Za-z0-9+/=]{2,19}+)(?![A-Za-z_({:]| [a-z])")
_ELLIPSIS = re.compile(rb"[\s\"'\\nr]{0,16}\[?(?:\.\.|\xe2\x80\xa6|\\{1,16}u2026|\*\*\*)")
_BETWEEN_BACK = rb"(?:[nrt]\\{1,16}|[^A-Za-z0-9+/={}()<>])"
_BACKWARDS = re.compile(
    _BETWEEN_BACK + rb"{0,64}+(?:[A-Za-z0-9+/=]{2,}+" + _BETWEEN_BACK + rb"{1,32}+)?+"
    rb"(?:[A-Za-z0-9+/=]{20,}+(?:" + _BETWEEN_BACK + rb"|\d{1,6}){0,32}+)*+"
)
_LINES_MAX = 400
_NEWLINE = re.compile(rb"\r?\n|(?:\\{1,16}r)?\\{1,16}n")
_NO_TEXT = re.compile(rb"[^A-Za-z0-9]{0,40}+")
_LINE_TAIL = re.compile(rb"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/=]{2,80}(?=[\s\"'\\$+,<>br]{0,32}\Z)")
_MATERIAL = re.compile(rb"[A-Za-z0-9+/=]{16,}+")
_ESCAPE = re.compile(rb"[nrtbf]|u[0-9a-fA-F]{4}")
_PROSE = re.compile(rb"[A-Z]?[a-z]+")
_PUTTY = re.compile(rb" ?\d{1,3}(?=[\s\\\"'])")
_PUTTY_END = re.compile(rb"(?:" + _GAP + rb"|" + _BEFORE + rb")Private-(?:MAC|Hash): [0-9a-f]{8,}+")


def is_material(line: bytes, start: int, end: int, minimum: int = MATERIAL_MIN) -> bool:
    """Whether that part of the line holds key material: enough base64, of many different characters."""
    material = b"".join(_MATERIAL.findall(line, start, min(end, start + 4096)))
    if len(material) < minimum or len(set(material)) < VARIETY_MIN or material.islower():
        return False
    return any(48 <= byte <= 57 for byte in material)


def lines_end(line: bytes, start: int, limit: int) -> int:
    """The end of the lines of key material from `start` on, with the part of a line that a cut left over."""
    lines = _CUT.match(line, start, limit)
    end = lines.end() if lines else start
    last = _LAST.match(line, end, limit)
    return last.end(1) if last and not _PROSE.fullmatch(last[1]) else end


def after_escape(line: bytes, start: int) -> int:
    """`start`, or the end of the escape to which the byte there belongs."""
    if line[start - 2 : start] == b"\\u":
        start -= 1
    if line[start - 1 : start] != b"\\":
        return start
    escape = _ESCAPE.match(line, start)
    return escape.end() if escape else start


def _from_begin(line: bytes, start: int, at: int) -> tuple[Spans, int]:
    """The key whose BEGIN mark spans `start` to `at`."""
    begins = _BEGINS.match(line, at, min(len(line), at + 2048))
    if begins is None:
        return (), at
    limit = min(len(line), at + LENGTH_MAX)
    following = line.find(b"BEGIN", begins.end(), limit)
    limit = following if following >= 0 else limit
    mark = _END.search(line, begins.end(), limit)
    body_end = mark.start() if mark else lines_end(line, at, limit)
    if not is_material(line, at, body_end, MATERIAL_MIN if mark else MATERIAL_CUT_MIN):
        return (), at
    shown = lines_end(line, at, limit)
    if shown - at < ELLIPSIS_MIN and _ELLIPSIS.match(line, shown, limit):
        return (), at
    end = mark.end() if mark else body_end
    return ((start, end),), end


def _first_line(line: bytes, start: int, lowest: int) -> int:
    """Where the first of the lines of key material begins that stand before `start`, each behind something else."""
    first = start
    ends = [found.span() for found in _NEWLINE.finditer(line, lowest, start)][-_LINES_MAX:]
    for at, (end, _) in enumerate(reversed(ends)):
        begin = ends[-at - 2][1] if at + 1 < len(ends) else lowest
        if _NO_TEXT.fullmatch(line, begin, end):
            continue
        tail = _LINE_TAIL.search(line[max(begin, end - 120) : end])
        if tail is None or (at and at + 1 < len(ends) and len(tail.group()) < MATERIAL_MIN):
            break
        first = max(begin, end - 120) + tail.start()
    return first


def _to_end(line: bytes, start: int, end: int) -> tuple[Spans, int]:
    """The key that was cut at its beginning and whose END mark spans `start` to `end`."""
    lowest = max(0, start - LENGTH_MAX)
    lowest = max(lowest, line.rfind(b"--", lowest, start) + 2)
    found = _BACKWARDS.match(line[lowest:start][::-1])
    # What has a BEGIN was looked at from there.
    if found is None or b"BEGIN" in line[max(0, lowest - 64) : lowest]:
        return (), end
    first = after_escape(line, start - len(found.group().rstrip(b"\\ \t\r\n\"'`,>|*#:;+-")))
    first = min(first, _first_line(line, start, lowest))
    return (((first, end),), end) if is_material(line, first, start) else ((), end)


def find_private_key(line: bytes, to: int) -> tuple[Spans, int]:
    """The whole block, marks included; a block without key material is none."""
    mark = None
    for mark in _MARK.finditer(line, max(0, to - 72), min(len(line), to + 3)):
        if mark.end() >= to:
            break
    if mark is None or mark.end() < to:
        return (), to
    find = _from_begin if mark[1] == b"BEGIN" else _to_end
    return find(line, mark.start(), mark.end())


def find_putty_key(line: bytes, to: int) -> tuple[Spans, int]:
    """The lines of PuTTY's private part and what proves them."""
    count = _PUTTY.match(line, to)
    if count is None:
        return (), to
    limit = min(len(line), to + LENGTH_MAX)
    end = lines_end(line, count.end(), limit)
    if not is_material(line, count.end(), end, MATERIAL_CUT_MIN):
        return (), to
    proof = _PUTTY_END.match(line, end, limit)
    top = line.rfind(b"PuTTY-User-Key-File-", max(0, to - 4096), to)
    end = proof.end() if proof else end
    return ((top if top >= 0 else count.start(), end),), end


def rules() -> tuple[Rule, ...]:
    """The rules of this module."""
    return (
        Rule(
            "private-key",
            "PEM, OpenSSH, PGP",
            "private key",
            (_NAME,),
            find_private_key,
            example="-----BEGIN PRIVATE KEY-----\n<base64:64>\n<base64:40>\n-----END PRIVATE KEY-----",
            counter="-----BEGIN PRIVATE KEY-----\n<base64:8>\n-----END PRIVATE KEY-----",
        ),
        Rule(
            "putty-private-key",
            "PuTTY",
            "private key",
            ("Private-Lines:",),
            find_putty_key,
            example="Private-Lines: 2\n<base64:64>\n<base64:40>\nPrivate-MAC: <hex:40>",
            counter="Private-Lines: 2\nPrivate-MAC: <hex:40>",
        ),
    )
