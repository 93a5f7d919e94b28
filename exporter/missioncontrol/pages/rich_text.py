"""The small Markdown of messages: code fences, `code`, **bold** and redaction markers; all else stays as it is."""

import re
from collections.abc import Iterator
from typing import Final

MARK: Final = "[REDACTED:"
_MARKER: Final = re.compile(r"\[REDACTED:([a-z0-9.-]{1,48}):([0-9a-f]{8})\]")
"""What stands where a secret was: the rule that found it, and a tag that is the same for the same secret."""
# One pass, so that no piece of structure can begin inside another.
_SPAN: Final = re.compile(_MARKER.pattern + r"|`([^`\n]{1,400})`|\*\*([^*\n]{1,400})\*\*")
_FENCE: Final = re.compile(r"^```[^\n]*\n(.*?)(?:^```[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)


def redactions(text: str) -> Iterator[tuple[str | None, ...]]:
    """Return text in pieces, each with the rule and the tag of the redaction behind it, None at the end."""
    return _pieces(_MARKER, text)


def spans(paragraph: str) -> Iterator[tuple[str | None, ...]]:
    """Return a paragraph in pieces, each with the rule and the tag, the code or the bold words behind it, or None."""
    return _pieces(_SPAN, paragraph)


def _pieces(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str | None, ...]]:
    parts: list[str | None] = pattern.split(text)
    parts += [None] * pattern.groups
    return zip(*[iter(parts)] * (pattern.groups + 1), strict=True)


def paragraphs(text: str) -> Iterator[tuple[str, bool]]:
    """Yield what is told and what stands in code fences, which is true of the latter."""
    end = 0
    for fence in _FENCE.finditer(text):
        yield from _told(text[end : fence.start()])
        yield fence[1], True
        end = fence.end()
    yield from _told(text[end:])


def _told(text: str) -> Iterator[tuple[str, bool]]:
    if text.strip():
        yield text.strip("\n"), False
