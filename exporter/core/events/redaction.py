"""What the exporter asks of a redactor: the same bytes when there is nothing to remove, or what was made of them.

The engine itself lives in the top-level package `redaction`; `app.py` joins the two.
"""

from dataclasses import dataclass
from typing import Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class Masked:
    """The event without its secrets, and the rule of each that was removed."""

    line: bytes
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """The redactor could not vouch for the event: it must not leave the machine."""

    reason: str


Redacted: TypeAlias = bytes | Masked | Refused


class RedactEvent(Protocol):
    """Returns the very object it was given when nothing had to be removed. Never raises."""

    def __call__(self, line: bytes, /) -> Redacted: ...
