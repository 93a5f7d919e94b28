"""Redacts JSON lines or any text, read in pieces, so that memory does not grow with the input.

A text is given to the engine as one JSON string, so that it is searched like the same text in an event, within a time
budget and with findings. It is not cut inside a secret or shortly before one: the context that makes a value a secret
may be some lines above it.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from io import BufferedReader
from typing import IO, TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from exporter.core.events.envelope import REFUSALS, Envelope, decode, is_utf8
from exporter.core.events.json_scanner import NotJsonError, scan_value, skip_whitespace
from redaction.engine import Clean, Finding, Masked, Redaction, Refused

if TYPE_CHECKING:
    from redaction.engine import Redactor

Format: TypeAlias = Literal["jsonl", "text"]

PIECE_BYTES: Final = 1024 * 1024
AHEAD_BYTES: Final = 128 * 1024
_CONTEXT: Final = 512
_BOM: Final = b"\xef\xbb\xbf"
_FIRST_LINES: Final = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for the lines `first` to `last` (from 1): output and findings by line, or why it is refused."""

    first: int
    last: int
    output: bytes = b""
    findings: tuple[tuple[int, Finding], ...] = ()
    event: str | None = None
    refused: str | None = None


def mask_given(
    redactor: "Redactor", source: IO[bytes], *, format: Format | None, name: str, budget_ms: float, line_bytes_max: int
) -> Iterator[Outcome]:
    """Redact an input in the format named, or in the format that it seems to have."""
    head = source.peek(1) if format is None and isinstance(source, BufferedReader) else b""
    mask = mask_lines if (format or guess_format(name, head)) == "jsonl" else mask_text
    return mask(redactor, source, budget_ms=budget_ms, line_bytes_max=line_bytes_max)


def guess_format(name: str, head: bytes) -> Format:
    """Guess the format of an input from its name or its beginning."""
    if name.endswith(".jsonl"):
        return "jsonl"
    *whole, rest = head.removeprefix(_BOM).split(b"\n")
    lines = [line for line in whole if line.strip()][:_FIRST_LINES]
    if not lines:
        return "jsonl" if _is_object(rest) or (len(rest) > 1 and rest.lstrip()[:2] == b'{"') else "text"
    return "jsonl" if all(map(_is_object, lines)) else "text"


def _is_object(line: bytes) -> bool:
    line = line.strip()
    return line[:1] == b"{" and _is_json(line)


def _is_json(line: bytes) -> bool:
    with suppress(*REFUSALS):
        msgspec.json.decode(line, type=msgspec.Raw)
        return True
    try:
        return skip_whitespace(line, scan_value(line, skip_whitespace(line, 0))) == len(line)
    except NotJsonError:
        return False


def mask_lines(redactor: "Redactor", source: IO[bytes], *, budget_ms: float, line_bytes_max: int) -> Iterator[Outcome]:
    """Redact JSON lines, one outcome each; line ends and empty lines stay unchanged."""
    number = 0
    while line := source.readline(line_bytes_max + 1):
        number += 1
        if len(line) > line_bytes_max and not line.endswith(b"\n"):
            _skip_line(source)
            yield Outcome(number, number, refused="line_too_long")
            continue
        start = _BOM if number == 1 and line.startswith(_BOM) else b""
        body = line[len(start) :].rstrip(b"\r\n")
        end = line[len(start) + len(body) :]
        if not body.strip():
            yield Outcome(number, number, line)
        elif not is_utf8(body):
            yield Outcome(number, number, refused="not_utf8")
        else:
            yield _masked_line(redactor, body, number, budget_ms, start, end)


def _masked_line(redactor: "Redactor", body: bytes, number: int, budget_ms: float, start: bytes, end: bytes) -> Outcome:
    result = redactor.redact(body, budget_ms)
    if isinstance(result, Refused):
        return Outcome(number, number, refused=result.reason)
    if isinstance(result, Clean):
        if not _is_json(body):
            return Outcome(number, number, refused="not_json")
        return Outcome(number, number, start + body + end)
    findings = tuple((number, finding) for finding in result.findings)
    return Outcome(number, number, start + result.line + end, findings, _event_id(redactor, body))


def _event_id(redactor: "Redactor", line: bytes) -> str | None:
    """Return the event's id, None if the line is no event or the id looks like a secret."""
    envelope = decode(line)
    if isinstance(envelope, Envelope) and redactor.redact_text(envelope.id) == envelope.id:
        return envelope.id
    return None


def _skip_line(source: IO[bytes]) -> None:
    while (rest := source.readline(PIECE_BYTES)) and not rest.endswith(b"\n"):
        pass


def mask_text(redactor: "Redactor", source: IO[bytes], *, budget_ms: float, line_bytes_max: int) -> Iterator[Outcome]:
    """Redact a text, one outcome per piece; a finding's offsets are relative to the line in which it begins."""

    def redact(text: bytes) -> Redaction:
        return redactor.redact(_as_json(text), budget_ms)

    first = 1
    for piece, result in _pieces(redact, source, max(line_bytes_max, PIECE_BYTES + AHEAD_BYTES)):
        last = first + piece.count(b"\n", 0, -1)
        yield _outcome(piece, result, first, last)
        first = last + 1


def _pieces(
    redact: Callable[[bytes], Redaction], source: IO[bytes], bytes_max: int
) -> Iterator[tuple[bytes, Redaction]]:
    """Yield the text in pieces of whole lines, each with the result of its redaction."""
    text, wanted = b"", PIECE_BYTES + AHEAD_BYTES
    while True:
        while len(text) < wanted and (read := source.read(wanted - len(text))):
            text += read
        if len(text) < wanted:
            break
        seen = redact(text)
        cut = _safe_cut(text, seen)
        if cut is None and wanted < bytes_max:
            wanted = min(2 * wanted, bytes_max)
            continue
        if cut is None:
            if not text.endswith(b"\n"):
                _skip_line(source)
            yield text, Refused("line_too_long")
            text = b""
        else:
            yield text[:cut], seen if isinstance(seen, Clean) else redact(text[:cut])
            text = text[cut:]
        wanted = PIECE_BYTES + AHEAD_BYTES
    if text:
        yield text, redact(text)


def _safe_cut(text: bytes, seen: Redaction) -> int | None:
    """Return an end of a line, well before the end of the text, at which no secret is cut; None if there is none."""
    before = text[: text.rfind(b"\n", 0, len(text) - AHEAD_BYTES) + 1].decode("utf-8", "surrogateescape")
    findings = seen.findings if isinstance(seen, Masked) else ()
    for context in (_CONTEXT, 0):
        cut = len(before)
        while cut and (starts := [one.start for one in findings if one.start - context < cut < one.end]):
            cut = before.rfind("\n", 0, max(0, min(starts) - context)) + 1
        if cut:
            return len(before[:cut].encode("utf-8", "surrogateescape"))
    return None


def _as_json(text: bytes) -> bytes:
    # A byte that is not UTF-8 becomes a lone surrogate, which JSON can hold only as an escape.
    decoded = text.decode("utf-8", "surrogateescape")
    return json.dumps(decoded, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _outcome(piece: bytes, result: Redaction, first: int, last: int) -> Outcome:
    if isinstance(result, Refused):
        return Outcome(first, last, refused=result.reason)
    if isinstance(result, Clean):
        return Outcome(first, last, piece)
    masked = json.loads(result.line)
    assert isinstance(masked, str), "the engine changes the content of strings only"
    found = _located(piece.decode("utf-8", "surrogateescape"), first, result.findings)
    return Outcome(first, last, masked.encode("utf-8", "surrogateescape"), tuple(found))


def _located(text: str, number: int, findings: tuple[Finding, ...]) -> Iterator[tuple[int, Finding]]:
    """Yield each finding with the number of its line and its offsets in that line."""
    position = 0
    for finding in sorted(findings, key=lambda one: one.start):
        number += text.count("\n", position, finding.start)
        position = finding.start
        line_start = text.rfind("\n", 0, position) + 1
        yield number, replace(finding, start=finding.start - line_start, end=finding.end - line_start)
