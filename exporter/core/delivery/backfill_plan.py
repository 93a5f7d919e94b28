"""Which sessions a request for history means."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unknown:
    """A session was named that is not here."""

    session: str


def chosen(modified: Mapping[str, float], *, named: Sequence[str] | None, since: float | None) -> list[str] | Unknown:
    """Return the named sessions in the order named, or those modified at or after `since`, or all; the oldest first.

    `modified` has the time of the last change of every session that is here.
    """
    if named:
        missing = [session for session in named if session not in modified]
        return Unknown(missing[0]) if missing else list(dict.fromkeys(named))
    return [
        session for session in sorted(modified, key=modified.__getitem__) if since is None or modified[session] >= since
    ]
