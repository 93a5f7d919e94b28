"""Shows what would be redacted in a session: each finding with the redacted text around it, never with the secret."""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from exporter.core.delivery.position import START
from exporter.core.events.envelope import Envelope, decode
from exporter.core.events.redaction import Redacted
from exporter.core.events.redaction import Refused as RefusedEvent
from exporter.pipeline.segment_reader import SegmentReader
from exporter.sources.files.session_file import OpenFiles, SessionFile
from redaction.engine import Finding, Masked, Refused

if TYPE_CHECKING:
    from redaction.engine import Redactor

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
    redactor: "Redactor", file: SessionFile, *, budget_ms: float, line_bytes_max: int
) -> AsyncIterator[PreviewFinding | Withheld | int]:
    """Yield what would be redacted in the session's durable events, and after each segment the number of its events.

    Reads the file as delivery does, and delivers nothing.
    """
    found: list[tuple[bytes, Masked | Refused]] = []

    def note(line: bytes, /) -> Redacted:
        result = redactor.redact(line, budget_ms)
        if isinstance(result, Masked | Refused):
            found.append((line, result))
        return RefusedEvent(result.reason) if isinstance(result, Refused) else line

    files = OpenFiles(1)
    reader = SegmentReader(files, note, line_bytes_max=line_bytes_max, cache_bytes=0)
    position = START
    try:
        file.refresh(files)
        while (segment := await reader.segment(file, position, None)) is not None:
            for line, result in found:
                for place in _places(redactor, line, result):
                    yield place
            found.clear()
            yield len(segment.ids)
            position = segment.end
    finally:
        files.close_all()


def _places(redactor: "Redactor", line: bytes, result: Masked | Refused) -> Iterator[PreviewFinding | Withheld]:
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
