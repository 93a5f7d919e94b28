"""Values as a person reads them: times, sizes, amounts, addresses of pages, and the small Markdown of messages.

Markdown is code fences, `code`, **bold** and redaction markers; all else stays as it is. Templates escape the values.
"""

import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final
from urllib.parse import quote, quote_plus

from exporter.missioncontrol.store.amounts import amount

_AGENT_COLOURS: Final = 6
IN_UTC: Final = "All times are in UTC."
STATES: Final = {name: name.replace("_", " ") for name in ("needs_attention", "working", "idle", "ended", "crashed")}
_PLAIN: Final = re.compile(r"[\w.~-]*", re.ASCII)
"""What is the same in an address; mostly ids are, and there are many on a page."""


def address(path: str, **query: object) -> str:
    """Return a local address; what is None is left out."""
    asked = [f"{name}={_quoted(str(value), quote_plus)}" for name, value in query.items() if value is not None]
    return f"{path}?{'&'.join(asked)}" if asked else path


def _quoted(text: str, quote: Callable[..., str] = quote) -> str:
    return text if _PLAIN.fullmatch(text) else quote(text, safe="", errors="replace")


ROOT: Final[ContextVar[str]] = ContextVar("root", default="")
"""The path below which a proxy serves the receiver, while a request of it is answered; empty without one."""


def local(path: str) -> str:
    """Return the address of one of our pages, as a browser asks for it."""
    return ROOT.get() + path


def session_path(session_id: str) -> str:
    """Return the path of a session's page."""
    return local(f"/sessions/{_quoted(session_id)}")


def event_address(event_id: str, path: str) -> str:
    """Return the address of an event in the timeline of its session, which has this path."""
    return f"{address(path, at=event_id)}#{anchor(event_id)}"


def anchor(event_id: str) -> str:
    """Return the name of an event's place on a page."""
    return f"e-{_quoted(event_id)}"


def moment(timestamp: str | None) -> str:
    """Return a date and a time of day, which say that they are in UTC where they are."""
    at = utc(timestamp)
    return f"{at:%Y-%m-%d %H:%M:%S} UTC" if at else (timestamp or "")[:19].replace("T", " ")


def clock(timestamp: str | None, *, zone: bool = False) -> str:
    """Return the time of day in UTC; with `zone` it says so."""
    at = utc(timestamp)
    return at.isoformat()[11:19] + (" UTC" if zone else "") if at else (timestamp or "")[11:19]


def utc(timestamp: str | None) -> datetime | None:
    """Return the moment that a timestamp means, in UTC; None when it does not tell its zone, or is none."""
    try:
        at = parsed(timestamp)
        return at.astimezone(UTC) if at is not None and at.tzinfo is not None else None
    except OverflowError:
        return None


def parsed(timestamp: str | None) -> datetime | None:
    """Return the moment that a timestamp means, or None."""
    try:
        return datetime.fromisoformat(timestamp) if timestamp else None
    except ValueError:
        return None


def seconds_between(start: str | None, end: str | None) -> float | None:
    """Return how long it took, or None when one of the two is no time."""
    first, last = parsed(start), parsed(end)
    if first is None or last is None or (first.tzinfo is None) != (last.tzinfo is None):
        return None
    return max(0.0, (last - first).total_seconds())


def duration(seconds: float | None) -> str:
    """Return a length of time as people say it."""
    if seconds is None or amount(seconds) is None:
        return ""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def size(count: int) -> str:
    """Return a number of bytes as people say it."""
    if count < 1000:
        return f"{count} B"
    amount = count / 1000
    for unit in ("kB", "MB"):
        if amount < 999.95:
            return f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def short_number(value: float) -> str:
    """Return a number in few characters: 950, 5.2k, 1.3M."""
    if value < 1000:
        return f"{value:,.0f}"
    return f"{value / 1000:.1f}k" if value < 999_950 else f"{value / 1e6:.1f}M"


def figure(value: Any) -> str:
    """Return a whole number with its thousands apart."""
    known = amount(value)
    return "" if known is None else f"{int(known):,}"


def counted(value: Any, noun: str, several: str = "") -> str:
    """Return how many there are of something: "1 event", "12 events"."""
    return f"{figure(value)} {noun if value == 1 else several or noun + 's'}"


def colour_of(agent: str) -> str:
    """Return the class of an agent's colour, the same wherever it is shown."""
    return f"agent-{blake2b(agent.encode('utf-8', 'replace'), digest_size=1).digest()[0] % _AGENT_COLOURS}"


@dataclass(frozen=True, slots=True)
class FilterLink:
    """A link that shows of a list what it names, and how much that is."""

    name: str
    count: int
    is_current: bool
    kind: str
    address: str


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
    """Yield the parts of a text, each with whether it is in a code fence."""
    end = 0
    for fence in _FENCE.finditer(text):
        yield from _told(text[end : fence.start()])
        yield fence[1], True
        end = fence.end()
    yield from _told(text[end:])


def _told(text: str) -> Iterator[tuple[str, bool]]:
    if text.strip():
        yield text.strip("\n"), False
