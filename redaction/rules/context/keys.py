"""Private keys and signed tokens, told by their structure.

PEM, OpenSSH, SSH2, PGP and PuTTY keys, whatever is between their lines: a block is a key if key material follows its
BEGIN; the marks alone, as in source code, are not masked. A key that was cut off at its end or its beginning is masked
as far as its lines of key material go. Also PEM files in base64, private members of JSON web keys, and JSON web tokens,
whose header is decoded to tell them from other base64.
"""

import re
import string

from redaction.rules.checks import decoded_base64
from redaction.rules.context.table import table_of
from redaction.rules.rule import Extraction
from redaction.text.escapes import after_escape, starts_word

LENGTH_MAX = 64 * 1024
MATERIAL_MIN = 40
MATERIAL_CUT_MIN = 24
ELLIPSIS_MIN = 96  # less than this before an ellipsis is an example of how keys begin
VARIETY_MIN = 12

_MARK, _END, _BEGINS, _CUT, _LAST, _BACKWARDS, _PUTTY_END, _BASE64_LINES = table_of(__file__).patterns(
    "mark", "end", "begins", "cut", "last", "key_backwards", "putty_end", "base64_lines"
)
_ELLIPSIS = re.compile(rb"[\s\"'\\nr]{0,16}\[?(?:\.\.|\xe2\x80\xa6|\\{1,16}u2026|\*\*\*)")
_LINES_MAX = 400
_NEWLINE = re.compile(rb"\r?\n|(?:\\{1,16}r)?\\{1,16}n")
_NO_TEXT = re.compile(rb"[^A-Za-z0-9]{0,40}+")
_LINE_TAIL = re.compile(rb"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/=]{2,80}(?=[\s\"'\\$+,<>br]{0,32}\Z)")
_MATERIAL = re.compile(rb"[A-Za-z0-9+/=]{16,}+")
_PROSE = re.compile(rb"[A-Z]?[a-z]+")

TYPE_DISTANCE_MAX = 4096
ENCODED_BEFORE_MAX = 4096

_BASE64 = (string.ascii_letters + string.digits + "+/_-").encode()

_KEY_TYPE = re.compile(rb"kty\\{0,15}[\"']\s{0,2}:\s{0,2}\\{0,15}[\"'](?:RSA|EC|OKP|oct|AKP)")

HEADER_LENGTH_MAX = 400
SIGNATURE_LENGTH_MIN = 20
TOKEN_CUT_MIN = 20

_TOKEN_GATE_LENGTH = 16
_WORD_REST = re.compile(rb"[0-9A-Za-z]*+")
_TOKEN_HEADER = re.compile(rb"[0-9A-Za-z_-]{16,8192}+={0,2}")
_TOKEN_PARTS = re.compile(rb"(?:\.[0-9A-Za-z_=+/-]*+)++")
_HEADER_NAMES = re.compile(rb"\"(?:alg|typ|enc|kid|cty|x5t|x5c|jku|jwk)\"")
_JSON_START = re.compile(rb"\{\s{0,8}\"[A-Za-z][\w.:/#-]{0,40}\"\s{0,2}:")
_JSON_BEGIN = re.compile(rb"\{\s{0,8}(?:\Z|\"(?:\Z|[A-Za-z][\w.:/#-]{0,9}(?:\"|\Z)))")
_CLOSED = re.compile(rb"[\"'`\s\\<>),;\]}]|\Z")


def is_key_material(line: bytes, start: int, end: int, minimum: int = MATERIAL_MIN) -> bool:
    """Whether this part of the line holds key material: enough base64 of many different characters."""
    material = b"".join(_MATERIAL.findall(line, start, min(end, start + 4096)))
    if len(material) < minimum or len(set(material)) < VARIETY_MIN or material.islower():
        return False
    return any(48 <= byte <= 57 for byte in material)


def lines_end(line: bytes, start: int, limit: int) -> int:
    """The end of the lines of key material from `start` on, including the rest of a line that was cut off."""
    lines = _CUT.match(line, start, limit)
    end = lines.end() if lines else start
    last = _LAST.match(line, end, limit)
    return last.end(1) if last and not _PROSE.fullmatch(last[1]) else end


def _from_begin(line: bytes, start: int, at: int) -> Extraction:
    """The key whose BEGIN mark spans `start` to `at`."""
    begins = _BEGINS.match(line, at, min(len(line), at + 2048))
    if begins is None:
        return (), at
    limit = min(len(line), at + LENGTH_MAX)
    following = line.find(b"BEGIN", begins.end(), limit)
    limit = following if following >= 0 else limit
    mark = _END.search(line, begins.end(), limit)
    body_end = mark.start() if mark else lines_end(line, at, limit)
    if not is_key_material(line, at, body_end, MATERIAL_MIN if mark else MATERIAL_CUT_MIN):
        return (), at
    shown = lines_end(line, at, limit)
    if shown - at < ELLIPSIS_MIN and _ELLIPSIS.match(line, shown, limit):
        return (), at
    end = mark.end() if mark else body_end
    return ((start, end),), end


def _first_line(line: bytes, start: int, lowest: int) -> int:
    """Where the first line of key material before `start` begins, if each line has a prefix."""
    first = start
    ends = [found.span() for found in _NEWLINE.finditer(line, lowest, start)][-_LINES_MAX:]
    for at, (end, _) in enumerate(reversed(ends)):
        begin = ends[-at - 2][1] if at + 1 < len(ends) else lowest
        if _NO_TEXT.fullmatch(line, begin, end):
            continue
        tail = _LINE_TAIL.search(line[max(begin, end - 120) : end])
        if tail is None or (first < start and at + 1 < len(ends) and len(tail.group()) < MATERIAL_MIN):
            break
        first = max(begin, end - 120) + tail.start()
    return first


def _to_end(line: bytes, start: int, end: int) -> Extraction:
    """The key that was cut off at its beginning and whose END mark spans `start` to `end`."""
    lowest = max(0, start - LENGTH_MAX)
    lowest = max(lowest, line.rfind(b"--", lowest, start) + 2)
    found = _BACKWARDS.match(line[lowest:start][::-1])
    # A key with a BEGIN is extracted from there.
    if found is None or b"BEGIN" in line[max(0, lowest - 64) : lowest]:
        return (), end
    first = start - len(found.group().rstrip(b"\\ \t\r\n\"'`,>|*#:;+-"))
    first = after_escape(line, min(first, _first_line(line, start, lowest)))
    return (((first, end),), end) if is_key_material(line, first, start) else ((), end)


def extract_private_key(line: bytes, to: int) -> Extraction:
    """The whole block with its marks; a block without key material is no secret."""
    mark = None
    for mark in _MARK.finditer(line, max(0, to - 72), min(len(line), to + 3)):
        if mark.end() >= to:
            break
    if mark is None or mark.end() < to:
        return (), to
    extract = _from_begin if mark[1] == b"BEGIN" else _to_end
    return extract(line, mark.start(), mark.end())


def extract_putty_key(line: bytes, _start: int, count: re.Match[bytes], to: int) -> Extraction:
    """The lines of the private part of a PuTTY key and its MAC."""
    limit = min(len(line), to + LENGTH_MAX)
    end = lines_end(line, count.end(), limit)
    if not is_key_material(line, count.end(), end, MATERIAL_CUT_MIN):
        return (), to
    proof = _PUTTY_END.match(line, end, limit)
    top = line.rfind(b"PuTTY-User-Key-File-", max(0, to - 4096), to)
    end = proof.end() if proof else end
    return ((top if top >= 0 else count.start(), end),), end


def extract_encoded_pem(line: bytes, to: int) -> Extraction:
    """The whole run of base64 around the mark of a private key, with its further lines."""
    lowest = max(0, to - ENCODED_BEFORE_MAX)
    start = lowest + len(line[lowest:to].rstrip(_BASE64))
    after = _BASE64_LINES.match(line, to, min(len(line), to + LENGTH_MAX))
    end = after.end() if after else to
    return (((after_escape(line, start), end),) if is_key_material(line, to, end) else ()), end


def extract_jwk_member(line: bytes, start: int, value: re.Match[bytes], to: int) -> Extraction:
    """The value of a private member, if `kty` of a JSON web key is near."""
    lowest = max(0, start - TYPE_DISTANCE_MAX)
    if not (
        _KEY_TYPE.search(line, lowest, start)
        or _KEY_TYPE.search(line, value.end(), min(len(line), to + TYPE_DISTANCE_MAX))
    ):
        return (), to
    return ((start, value.end()),), value.end()


def _decoded(header: bytes) -> bytes:
    header = header.rstrip(b"=")[:HEADER_LENGTH_MAX]
    return decoded_base64(header[: len(header) - (len(header) % 4 == 1)]) or b""


def extract_web_token(line: bytes, to: int) -> Extraction:
    """The token with all its parts. A header alone is no secret, unless the token was cut off within it."""
    start = to - _TOKEN_GATE_LENGTH
    word_end = _WORD_REST.match(line, to)
    seen = word_end.end() if word_end else to
    if not _JSON_BEGIN.match(_decoded(line[start:to])):
        return (), seen
    header = _TOKEN_HEADER.match(line, start) if starts_word(line, start) else None
    if header is None:
        return (), seen
    decoded = _decoded(header.group())
    if _JSON_START.match(decoded) is None:
        return (), seen
    parts = _TOKEN_PARTS.match(line, header.end())
    known = _HEADER_NAMES.search(decoded) is not None
    if parts is None:
        is_cut = known and not decoded.rstrip().endswith(b"}") and header.end() - start >= TOKEN_CUT_MIN
        if is_cut and _CLOSED.match(line, header.end()):
            return ((start, header.end()),), header.end()
        return (), seen
    body = parts.group().rstrip(b".")
    end = header.end() + len(body)
    pieces = body.split(b".", 6)[1:]
    if not pieces or not (known or (len(pieces) > 1 and len(pieces[-1]) >= SIGNATURE_LENGTH_MIN)):
        return (), parts.end()
    return ((start, end),), max(parts.end(), to)
