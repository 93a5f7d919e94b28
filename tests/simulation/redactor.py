"""A redactor that takes no time: it masks one word, and refuses lines with another."""

from typing import Final

from exporter.core.events.redaction import Masked, Redacted, Refused

SECRET: Final = b"SECRET"
MASK: Final = b"masked"
REFUSED: Final = b"REFUSED"
UNSAFE: Final = "unsafe"
"""How the id of an event begins that cannot be redacted."""


def redact(line: bytes, /) -> Redacted:
    """Return what may leave of a line."""
    if REFUSED in line:
        return Refused("refused")
    return Masked(line.replace(SECRET, MASK), ("word",)) if SECRET in line else line


def leaks(body: bytes) -> bool:
    """Tell whether something leaves that must not."""
    return SECRET in body or REFUSED in body
