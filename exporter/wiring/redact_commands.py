"""What the commands below `exporter redact` do: redact an input, preview a session, list the rules.

An input is JSON lines or any text. It is read in pieces, so that memory does not grow with it. A text is given to the
engine as one JSON string, so that it is searched like the same text in an event, within a time budget and with
findings. It is not cut inside a secret or shortly before one: the context that makes a value a secret may be some
lines above it.

A preview shows each finding with the redacted text around it, never with the secret.
"""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from exporter.core.delivery.position import START
from exporter.core.events.envelope import REFUSALS, Envelope, decode, is_utf8
from exporter.core.events.json_scanner import NotJsonError, scan_value, skip_whitespace
from exporter.core.events.redaction import Redacted
from exporter.core.events.redaction import Refused as RefusedEvent
from exporter.core.events.tool_calls import ToolCalls, nothing_before
from redaction.engine import Clean, Engine, Finding, Masked, Redaction, Redactor, Refused
from redaction.rules.examples import expanded
from redaction.rules.formats import built_in_pack, read_table
from redaction.rules.rule import Rule

if TYPE_CHECKING:
    from exporter.sources.files.session_file import SessionFile

Format: TypeAlias = Literal["jsonl", "text"]

PIECE_BYTES: Final = 1024 * 1024
AHEAD_BYTES: Final = 128 * 1024
_CONTEXT: Final = 512
_BOM: Final = b"\xef\xbb\xbf"
_FIRST_LINES: Final = 3
_OF_CALLS: Final = (b"tool.", b"hook.")
_CALLS_MAX: Final = 1 << 20
"""An input cannot be read again, so every call is remembered."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for the lines `first` to `last` (from 1): output and findings by line, or why it is refused."""

    first: int
    last: int
    output: bytes = b""
    findings: tuple[tuple[int, Finding], ...] = ()
    event: str | None = None
    refused: str | None = None


class _Told:
    """What a redactor knows of commands; a line that is an answer is given to `again` with the rule of its call."""

    def __init__(self, redactor: Redactor, again: Callable[[bytes, str], Redacted]) -> None:
        self.rule_of = redactor.rule_of_call
        self._again = again

    def mask(self, line: bytes, _redacted: Redacted, rule: str, /) -> Redacted:
        """See `Commands.mask`."""
        return self._again(line, rule)


def mask_given(
    redactor: Redactor, source: IO[bytes], *, format: Format | None, name: str, budget_ms: float, line_bytes_max: int
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


def mask_lines(redactor: Redactor, source: IO[bytes], *, budget_ms: float, line_bytes_max: int) -> Iterator[Outcome]:
    """Redact JSON lines, one outcome each; line ends and empty lines stay unchanged."""
    number, calls = 0, ToolCalls(_Told(redactor, lambda line, _: line), 0, nothing_before, memory_max=_CALLS_MAX)
    while line := source.readline(line_bytes_max + 1):
        number += 1
        if len(line) > line_bytes_max and not line.endswith(b"\n"):
            _skip_line(source)
            yield Outcome(number, number, refused="line_too_long")
            continue
        start = _BOM if number == 1 and line.startswith(_BOM) else b""
        body = line[len(start) :].rstrip(b"\r\n")
        if not body.strip():
            yield Outcome(number, number, line)
            continue
        envelope = decode(body) if any(name in body for name in _OF_CALLS) else None
        call = calls.rule_at(envelope, number) if isinstance(envelope, Envelope) else None
        result = redactor.redact(body, budget_ms, call) if is_utf8(body) else Refused("not_utf8")
        if isinstance(result, Clean):
            yield Outcome(number, number, line) if _is_json(body) else Outcome(number, number, refused="not_json")
        elif isinstance(result, Refused):
            yield Outcome(number, number, refused=result.reason)
        else:
            output = start + result.line + line[len(start) + len(body) :]
            findings = tuple((number, finding) for finding in result.findings)
            yield Outcome(number, number, output, findings, _event_id(redactor, body))


def _event_id(redactor: Redactor, line: bytes) -> str | None:
    """Return the event's id, None if the line is no event or the id looks like a secret."""
    envelope = decode(line)
    if isinstance(envelope, Envelope) and redactor.redact_text(envelope.id) == envelope.id:
        return envelope.id
    return None


def _skip_line(source: IO[bytes]) -> None:
    while (rest := source.readline(PIECE_BYTES)) and not rest.endswith(b"\n"):
        pass


def mask_text(redactor: Redactor, source: IO[bytes], *, budget_ms: float, line_bytes_max: int) -> Iterator[Outcome]:
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


AROUND: Final = 40
_MARKER: Final = re.compile(r"\[REDACTED:[^\]\s]{1,80}\]|\*{6}")


@dataclass(frozen=True, slots=True)
class PreviewPiece:
    """A part of a redacted text: unchanged text, or a marker with the finding that it replaces."""

    text: str
    finding: Finding | None = None


@dataclass(frozen=True, slots=True)
class PreviewFinding:
    """A finding with the text around it on its line, other markers included; in `pieces` it is at `index`."""

    event: str | None
    type: str
    finding: Finding
    pieces: tuple[PreviewPiece, ...]
    index: int


@dataclass(frozen=True, slots=True)
class Withheld:
    """An event that could not be redacted and would go to quarantine."""

    event: str | None
    reason: str


async def preview(
    redactor: Redactor, file: "SessionFile", *, budget_ms: float, line_bytes_max: int
) -> AsyncIterator[PreviewFinding | Withheld | int]:
    """Yield what would be redacted in the session's durable events, and after each segment the number of its events.

    Reads the file as delivery does, and delivers nothing.
    """
    found: list[tuple[bytes, Masked | Refused]] = []

    def note(line: bytes, call: str | None = None, /) -> Redacted:
        if call is not None and found and found[-1][0] is line:
            found.pop()
        result = redactor.redact(line, budget_ms, call)
        if isinstance(result, Masked | Refused):
            found.append((line, result))
        return RefusedEvent(result.reason) if isinstance(result, Refused) else line

    from exporter.pipeline.segment_reader import SegmentReader  # an input needs no reader of sessions
    from exporter.sources.files.session_file import OpenFiles

    files = OpenFiles(1)
    reader = SegmentReader(files, note, line_bytes_max=line_bytes_max, cache_bytes=0, commands=_Told(redactor, note))
    position = START
    try:
        file.refresh(files)
        while (segment := await reader.segment(file, position)) is not None:
            for line, result in found:
                for place in _places(redactor, line, result):
                    yield place
            found.clear()
            yield len(segment.ids)
            position = segment.end
    finally:
        files.close_all()


def _places(redactor: Redactor, line: bytes, result: Masked | Refused) -> Iterator[PreviewFinding | Withheld]:
    envelope = decode(line)
    event, kind = None, ""
    if isinstance(envelope, Envelope):
        event, kind = redactor.redact_text(envelope.id), redactor.redact_text(envelope.type)
    if isinstance(result, Refused):
        yield Withheld(event, result.reason)
        return
    document = _document(result.line)
    for path in dict.fromkeys(finding.path for finding in result.findings):
        here = sorted((one for one in result.findings if one.path == path), key=lambda one: one.start)
        for text in (*_texts_at(document, path), ""):  # a key has the same path as its value
            pieces = split(text, here)
            here = [one for one in here if not any(piece.finding is one for piece in pieces)]
            for index, piece in enumerate(pieces):
                if piece.finding is not None:
                    yield PreviewFinding(event, kind, piece.finding, *_around(pieces, index))


def _document(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _texts_at(document: Any, path: str) -> Iterator[str]:
    """Yield the redacted texts that a path may refer to: the string at the path, and its last key."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]
    for step in steps:
        document = document[int(step)] if isinstance(document, list) else (document or {}).get(step)
        if not isinstance(document, dict | list):
            break
    if isinstance(document, str):
        yield document
    yield from steps[-1:]


def split(masked: str, findings: Sequence[Finding]) -> list[PreviewPiece]:
    """Split a redacted text at its markers; the findings are those of the text, in order, with their former offsets.

    In an empty text each finding is a piece without text. A finding without a marker in the text is left out.
    """
    if not masked:
        return [PreviewPiece("", finding) for finding in findings]
    pieces: list[PreviewPiece] = []
    position = removed = 0  # in the redacted text; in the original text
    for finding in findings:
        found = _MARKER.match(masked, position + finding.start - removed) or _MARKER.search(masked, position)
        if found is None:
            continue
        if found.start() > position:
            pieces.append(PreviewPiece(masked[position : found.start()]))
        pieces.append(PreviewPiece(found[0], finding))
        position, removed = found.end(), finding.end
    return [*pieces, PreviewPiece(masked[position:])]


def _around(pieces: Sequence[PreviewPiece], index: int) -> tuple[tuple[PreviewPiece, ...], int]:
    """Return the pieces around one on the same line, up to `AROUND` characters, and the index of the piece in them."""
    before = _near(reversed(pieces[:index]), lambda text: text.rpartition("\n")[2][-AROUND:])[::-1]
    after = _near(pieces[index + 1 :], lambda text: text.partition("\n")[0][:AROUND])
    return (*before, pieces[index], *after), len(before)


def _near(pieces: Iterable[PreviewPiece], cut: Callable[[str], str]) -> list[PreviewPiece]:
    near: list[PreviewPiece] = []
    for piece in pieces:
        text = piece.text if piece.finding else cut(piece.text)
        near.append(PreviewPiece(text, piece.finding))
        if text != piece.text or sum(len(one.text) for one in near) > AROUND:
            break
    return [piece for piece in near if piece.text]


_BUILT_IN: Final = "built-in"
_DETECT_SECRETS: Final = "detect-secrets"
_PYTHONS_OWN: Final = "re"
_Pack: TypeAlias = tuple[str, str]


def described(engine: Engine, rule_files: Iterable[str]) -> dict[str, Any]:
    """Return the search engine, every rule with its pack, and the number of rules of each pack and version."""
    ours = (_BUILT_IN, max(built_in_pack().versions))
    tables = [(Path(name).name, read_table(Path(name))) for name in rule_files]
    pack_of = {row.id: (name, table.version) for name, table in tables for row in (*table.format, *table.command)}
    theirs = (_DETECT_SECRETS, _version_of(_DETECT_SECRETS))
    rows = [_row(rule, pack_of.get(rule.id) or _pack_of_code(rule, ours, theirs)) for rule in engine.rules()]
    packs = Counter((row["pack"], row["version"]) for row in rows)
    return {
        "engine": {"name": engine.engine, "version": _version_of(engine.engine)},
        "packs": [{"pack": pack, "version": of, "rules": times} for (pack, of), times in packs.items()],
        "rules": rows,
    }


def _pack_of_code(rule: Rule, ours: _Pack, theirs: _Pack) -> _Pack:
    if rule.id.startswith("plugin."):
        return rule.provider, ""
    return theirs if rule.is_from_detect_secrets else ours


def _version_of(name: str) -> str:
    import platform
    from importlib.metadata import PackageNotFoundError, version  # what redacts an input does without it

    if name == _PYTHONS_OWN:
        return platform.python_version()
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _row(rule: Rule, pack: _Pack) -> dict[str, Any]:
    return {
        "id": rule.id,
        "provider": rule.provider,
        "name": rule.name,
        "confidence": rule.confidence,
        "example": expanded(rule.example),
        "pack": pack[0],
        "version": pack[1],
    }
