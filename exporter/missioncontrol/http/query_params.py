"""Parameters of a request's query: which entries, how many and from where."""

from datetime import UTC, datetime
from typing import Final

from starlette.requests import Request

from exporter.missioncontrol.http.responses import ApiError, bad_cursor

STATES: Final = ("working", "idle", "needs_attention", "ended", "crashed")
"""What a session can be."""


def limit_of(request: Request, default: int, maximum: int) -> int:
    """Return `limit`, at most `maximum`; raise `ApiError` 400 when it is no number."""
    text = request.query_params.get("limit", str(default))
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 9 and int(text) > 0):
        raise ApiError(400, "bad_limit", "`limit` is not a number from 1 up.", hint=f"At most {maximum} are given.")
    return min(int(text), maximum)


def state_of(request: Request) -> str | None:
    """Return `state`, None for all; raise `ApiError` 400 when it is none of `STATES`."""
    state = request.query_params.get("state") or None
    if state is not None and state not in STATES:
        raise ApiError(400, "bad_state", "`state` is not one.", hint=f"States are {', '.join(STATES)}.")
    return state


def since_of(request: Request) -> str | None:
    """Return `since` in the form of event timestamps; raise `ApiError` 400 when it is no time."""
    text = request.query_params.get("since")
    if not text:
        return None
    try:
        asked = datetime.fromisoformat(text)
        since = (asked if asked.tzinfo else asked.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        hint = "Write 2026-01-31, or 2026-01-31T12:00:00Z."
        raise ApiError(400, "bad_since", "`since` is not a date or time.", hint=hint) from None
    return since.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def number_cursor(request: Request) -> int | None:
    """Return a cursor that is a number, None at the beginning; raise `ApiError` 400 when it is none."""
    text = request.query_params.get("cursor")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise bad_cursor()
    return int(text)
