"""Numbers, times and texts as people read them; pure functions."""

import re
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime

ELLIPSIS = "…"
_SPACE = re.compile(r"\s+")
# Control characters (a terminal obeys them) and the marks that reorder text on screen.
_ORDERS = "\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_UNSAFE = re.compile(f"[\x00-\x1f{_ORDERS}\ud800-\udfff]")
_UNSAFE_IN_JSON = re.compile(f"[{_ORDERS}]")


def plain(text: object) -> str:
    """One line that is safe to show on a terminal, whatever a session put into it."""
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", _SPACE.sub(" ", str(text)).strip())


def safe_json(text: str) -> str:
    """The same JSON, with what a terminal might obey as an escape."""
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def columns(text: str) -> int:
    """How many terminal columns the text takes (wide characters two, combining ones none)."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def shorten(text: str, width: int) -> str:
    """At most `width` columns, the cut marked with an ellipsis."""
    if columns(text) <= width:
        return text
    if width <= 0:
        return ""
    kept, taken = [], 1
    for char in text:
        taken += columns(char)
        if taken > width:
            break
        kept.append(char)
    return "".join(kept).rstrip() + ELLIPSIS


def number(value: float) -> str:
    """With thousands separators: `12,480`."""
    return f"{value:,.0f}"


def count(value: int, noun: str) -> str:
    """`1 event`, `12 events`."""
    return f"{number(value)} {noun}" if value == 1 else f"{number(value)} {noun}s"


def size(bytes_: float) -> str:
    """Decimal units, as file managers show them: `842 B`, `1.2 MB`."""
    value = float(bytes_)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" or value >= 99.95 else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError("the loop returns at its last unit")


def duration(seconds: float) -> str:
    """`0.4 s`, `38 s`, `12 min`, `3 h 20 min`, `5 days`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s" if seconds % 1 else f"{seconds:.0f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes and hours < 10 else f"{hours} h"
    return count(round(hours / 24), "day")


def moment(text: object) -> datetime | None:
    """The time an ISO text names (UTC when it names no zone), or None when it is none."""
    if not isinstance(text, str):
        return None
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def ago(text: object, now: datetime) -> str:
    """How long ago an ISO time was, in words; a dash when there is none."""
    when = moment(text)
    if when is None:
        return "-"
    seconds = (now - when).total_seconds()
    if seconds < -5:
        return f"in {duration(-seconds)}"
    if seconds < 5:
        return "just now"
    if seconds < 14 * 86_400:
        return f"{duration(seconds if seconds >= 60 else round(seconds))} ago"
    local = when.astimezone(now.tzinfo)
    return f"{local.day} {local:%b}" if local.year == now.year else f"{local.day} {local:%b %Y}"


def words(state: object) -> str:
    """A state or reason as words: `needs_attention` becomes `needs attention`."""
    return plain(state).replace("_", " ")


def listing(items: Iterable[str], *, last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    *head, tail = list(items) or [""]
    return f"{', '.join(head)} {last} {tail}" if head else tail
