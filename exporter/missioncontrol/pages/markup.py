"""HTML out of untrusted text: whatever goes through here is escaped, and only then given structure."""

import re
from datetime import UTC, datetime
from html import escape as _escape
from typing import Any, Final
from urllib.parse import quote, urlencode

from exporter.missioncontrol.store.amounts import amount

MARKER: Final = re.compile(r"\[REDACTED:([a-z0-9.-]{1,48}):([0-9a-f]{8})\]")
"""What stands where a secret was: the rule that found it, and a tag that is the same for the same secret."""

# One pass over text that is escaped already, so that no piece of structure can begin inside another.
_INLINE: Final = re.compile(
    r"\[REDACTED:(?P<rule>[a-z0-9.-]{1,48}):(?P<tag>[0-9a-f]{8})\]"
    r"|`(?P<code>[^`\n]{1,400})`|\*\*(?P<bold>[^*\n]{1,400})\*\*"
)
IN_UTC: Final = "All times are in UTC."
_FENCE: Final = re.compile(r"^```[^\n]*\n(.*?)(?:^```[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]")


def escape(text: object) -> str:
    """Return text that stands for itself in an element or in a quoted attribute.

    Control characters, and those that turn the direction of what follows, are shown as a replacement.
    """
    return _escape(_CONTROLS.sub("\ufffd", str(text)))


def marked(text: str) -> str:
    """Return escaped text in which each redaction marker says its rule."""
    return MARKER.sub(lambda match: _mark(match[1], match[2]), escape(text))


def rich(text: str) -> str:
    """Return a message as a person reads it: code fences, `code`, **bold** and redaction markers; all else as it is."""
    parts: list[str] = []
    end = 0
    for fence in _FENCE.finditer(text):
        parts += (_prose(text[end : fence.start()]), f'<pre tabindex="0">{marked(fence[1])}</pre>')
        end = fence.end()
    parts.append(_prose(text[end:]))
    return "".join(parts)


def _prose(text: str) -> str:
    stripped = text.strip("\n")
    return f"<p>{_INLINE.sub(_structured, escape(stripped))}</p>" if stripped.strip() else ""


def _structured(match: re.Match[str]) -> str:
    if match["rule"]:
        return _mark(match["rule"], match["tag"])
    inside = MARKER.sub(lambda marker: _mark(marker[1], marker[2]), match["code"] or match["bold"])
    return f"<code>{inside}</code>" if match["code"] else f"<strong>{inside}</strong>"


def _mark(rule: str, tag: str) -> str:
    return f'<mark title="A secret was masked here by the rule {rule}; {tag} tells it from others">{rule}</mark>'


def address(path: str, **query: object) -> str:
    """Return a local address, ready for an attribute; what is None is left out."""
    asked = urlencode({name: str(value) for name, value in query.items() if value is not None}, errors="replace")
    return _escape(f"{path}?{asked}" if asked else path)


def session_path(session_id: str) -> str:
    """Return the path of a session's page."""
    return f"/sessions/{quote(session_id, safe='')}"


def anchor(event_id: str) -> str:
    """Return the name of an event's place on a page, ready for an attribute."""
    return "e-" + _escape(quote(event_id, safe="", errors="replace"))


def moment(timestamp: str | None, *, short: bool = False, zone: bool = True) -> str:
    """Return a time element; the script turns it into the reader's own time, and until then it is in UTC and says so.

    Without `zone` it does not say so, which is for places where something else does.
    """
    at = utc(timestamp)
    if short:
        shown, kind = clock(timestamp), "clock"
    else:
        shown, kind = f"{at:%Y-%m-%d %H:%M:%S}" if at else (timestamp or "")[:19].replace("T", " "), "when"
    said = f"{shown} UTC" if zone and at else shown
    return f'<time class="{kind}" datetime="{escape(timestamp or "")}">{escape(said)}</time>'


def clock(timestamp: str | None) -> str:
    """Return the time of day, in UTC."""
    at = utc(timestamp)
    return f"{at:%H:%M:%S}" if at else (timestamp or "")[11:19]


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


STATES: Final = {
    "needs_attention": "needs attention",
    "working": "working",
    "idle": "idle",
    "ended": "ended",
    "crashed": "crashed",
}


def badge(state: str) -> str:
    """Return the state of a session in words."""
    kind = state if state in STATES else "unknown"
    return f'<span class="state {kind}">{escape(STATES.get(state, state))}</span>'
