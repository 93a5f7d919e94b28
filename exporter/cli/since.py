"""What people write after `--since`: an ISO time, a span such as `7d`, or a day in words."""

import re
from datetime import datetime, timedelta

_SPAN = re.compile(r"(\d{1,6})\s*(s|m|min|h|d|w)")
_UNITS = {"s": "seconds", "m": "minutes", "min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
EXPECTED = "an ISO time (2026-11-18 or 2026-11-18T09:30:00Z), a span (90m, 36h, 7d, 2w), today or yesterday"


def parse_since(text: str, now: datetime) -> datetime:
    """The moment that is meant, in the zone of `now` when it names none; ValueError says what is expected."""
    wanted = text.strip().lower()
    if wanted == "now":
        return now
    if wanted in ("today", "yesterday"):
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight - timedelta(days=1 if wanted == "yesterday" else 0)
    try:
        if span := _SPAN.fullmatch(wanted.removesuffix(" ago")):
            return now - timedelta(**{_UNITS[span[2]]: int(span[1])})
        when = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise ValueError(f"expected {EXPECTED}, got {text!r}") from None
    return when if when.tzinfo else when.replace(tzinfo=now.tzinfo)
