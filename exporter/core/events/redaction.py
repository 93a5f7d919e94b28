"""The interface of a redactor: it returns the same bytes, the redacted line, or a refusal.

The engine is in the top-level package `redaction`; `wiring/redactor.py` connects the two.
"""

from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class Masked:
    """The redacted event, and the rule of each secret."""

    line: bytes
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """The event could not be redacted safely: it must not leave the machine."""

    reason: str


Redacted: TypeAlias = bytes | Masked | Refused


def line_of(redacted: Redacted) -> bytes | None:
    """Return the line that may leave the machine, None when the event is refused."""
    if isinstance(redacted, Refused):
        return None
    return redacted.line if isinstance(redacted, Masked) else redacted


class RedactEvent(Protocol):
    """Returns the very object it was given when nothing had to be removed. Never raises."""

    def __call__(self, line: bytes, /) -> Redacted: ...


CLEAN: Final = 1
"""The state of a line that leaves the machine as it is; 0 is that of a line nobody has looked at."""
FOUND: Final = 2


@dataclass(slots=True)
class Verdicts:
    """What is known already of some lines: the state of each, and what became of those whose state is `FOUND`."""

    states: bytearray
    found: dict[int, Masked | Refused]

    def redacted(self, index: int, event: bytes, redact: RedactEvent) -> Redacted:
        """Return what becomes of the event in a line; `redact` looks at it if nobody has."""
        state = self.states[index]
        if state == CLEAN:
            return event
        return self.found[index] if state else redact(event)
