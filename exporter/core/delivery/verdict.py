"""What an HTTP answer means for the batch that was sent."""

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, TypeAlias

import msgspec

RETRY_AFTER_SECONDS_MAX: Final = 300.0
ALARM_WAIT_SECONDS: Final = 60.0
"""How long to wait after an answer that a person has to look at."""
QUOTA_WAIT_SECONDS: Final = 3600.0
"""How long to wait when the sink keeps no more of us."""
WORTH_REPEATING: Final = frozenset((401, 403, 408, 429))
"""Statuses below 500 after which a message that is in no file, such as a report, is worth sending again."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """2xx: the sink has the batch."""


@dataclass(frozen=True, slots=True)
class Later:
    """Send the same again, not before `after_seconds` when the sink named a time and our own wait is shorter.

    `alarm` says that a person should look: the sink will hardly recover by itself. `is_shared` says that this is the
    answer to a request that another session shares, for which it counts.
    """

    reason: str
    after_seconds: float | None = None
    alarm: bool = False
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class Smaller:
    """413: halve the batch; one event alone goes to quarantine."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """400 or 422: once more, then find the culprit by halving."""

    status: int


@dataclass(frozen=True, slots=True)
class LessCompression:
    """415: use a simpler content encoding from now on."""


@dataclass(frozen=True, slots=True)
class Unauthorized:
    """401 or 403: stop this sink until its token changes, and say so loudly.

    With `again_seconds` the sink has no room for us, and is asked again after that time too.
    """

    status: int
    again_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Unsupported:
    """404, 405, 415 or 501 from an address of an OTLP endpoint: it takes nothing of this signal."""

    status: int
    url: str


@dataclass(frozen=True, slots=True)
class Missing:
    """404 on a session: create it again and begin at the first event."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """410: the session was deleted there; it is not sent again unless a person asks for it.

    This holds for a receiver that declared that it means 410 so. From any other it is `Gone`.
    """


@dataclass(frozen=True, slots=True)
class Gone:
    """410 from a receiver that has not declared what it means: the session waits, with an alarm."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """409 `session_of_another_token`: the session is another exporter's there; it is not sent, and the sink goes on."""


@dataclass(frozen=True, slots=True)
class Unrestorable:
    """403 `restore_needs_admin`: the session stays deleted there until an administrator restores it."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """409: the receiver holds something else than we believe; ask it what."""


Verdict: TypeAlias = (
    Accepted
    | Later
    | Smaller
    | Suspect
    | LessCompression
    | Unauthorized
    | Unsupported
    | Missing
    | Deleted
    | Gone
    | Foreign
    | Unrestorable
    | Conflict
)

_BY_STATUS: Final[dict[int, Verdict]] = {
    400: Suspect(400),
    422: Suspect(422),
    401: Unauthorized(401),
    403: Unauthorized(403),
    404: Missing(),
    409: Conflict(),
    410: Deleted(),
    413: Smaller(),
    415: LessCompression(),
}
_BY_KIND: Final[dict[tuple[int, str], Verdict]] = {
    (409, "session_of_another_token"): Foreign(),
    (403, "restore_needs_admin"): Unrestorable(),
    (403, "quota_exceeded"): Unauthorized(403, QUOTA_WAIT_SECONDS),
}


def verdict(
    status: int,
    retry_after: str | None,
    now: datetime,
    *,
    fault: str | None = None,
    deletes: bool = True,
    kind: str = "",
) -> Verdict:
    """Judge an answer by its status and its Retry-After header. `now` is the wall clock, for the header's date form.

    `fault` is what `acceptance_fault` says of the body; `deletes` is whether the receiver declared what its 410 means;
    `kind` is what the receiver calls its error, if it is one of ours.
    """
    if 200 <= status < 300:
        return Accepted() if fault is None else Later(fault, ALARM_WAIT_SECONDS, alarm=True)
    known = _BY_KIND.get((status, kind), _BY_STATUS.get(status))
    if known is not None:
        return known if deletes or not isinstance(known, Deleted) else Gone()
    after = retry_after_seconds(retry_after, now)
    reason = f"answered {status}"
    if status in (408, 425, 429) or (status >= 500 and status not in (501, 505)):
        return Later(reason, after)
    # Redirects are not followed, so that the token goes nowhere else; these and the rest wait for a person.
    return Later(reason, after if after is not None else ALARM_WAIT_SECONDS, alarm=True)


def supported(refused: Unsupported, *, accepted: bool, others_accept: bool) -> Unsupported | Later:
    """Say what it means that an endpoint refuses a signal: the signal is off there, or it waits.

    A signal is off if it was never accepted there and another one was. If none was, the address is wrong.
    """
    if others_accept and not accepted:
        return refused
    why = f"{refused.url} answered {refused.status}: is this an OTLP endpoint for this signal?"
    return Later(why, ALARM_WAIT_SECONDS, alarm=True)


def acceptance_fault(status: int, content_type: str, body: bytes, *, whole: bool = True) -> str | None:
    """Return why a 2xx is no acceptance, None when it is one: empty, or JSON (an object or an array) to its end.

    A sign-in page, a proxy's page or a part of an answer say nothing about the batch.
    """
    if status == 206:
        return "answered 206, which is a part of an answer"
    if not whole:
        return f"answered {status} with a body that is too large or cannot be decoded"
    if not body:
        return None
    if content_type.partition(";")[0].strip().lower() == "text/html":
        return f"answered {status} with a web page, not as a Mission Control does; is a sign-in page in between?"
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = None
    return None if isinstance(found, dict | list) else f"answered {status} with a body that is not JSON"


def retry_after_seconds(header: str | None, now: datetime) -> float | None:
    """Read a Retry-After header in seconds or as a date, at most 300; None when it names no time in the future."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            moment = parsedate_to_datetime(header.strip())
        except (ValueError, TypeError, OverflowError, IndexError):
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = (moment - now).total_seconds()
    if seconds != seconds:  # noqa: PLR0124  not a number
        return None
    return min(seconds, RETRY_AFTER_SECONDS_MAX) if seconds > 0 else None
