"""The shapes that `status`, `verify` and `backfill` answer with, as scripts rely on them."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from exporter.errors import Exit

EQUAL: Final = "equal"
DIFFERENT: Final = "different"
DELETED: Final = "deleted there"
FOREIGN: Final = "of another token"
UNREACHABLE: Final = "not reachable"
UNKNOWN: Final = "unknown"
"""The receiver cannot be asked what it holds."""
REFUSED: Final = "refused"
NOT_ASKED: Final = "not asked"
"""The server or host was not asked for its history."""


class Problem(Struct, frozen=True):
    """Something that troubles a session at its source."""

    session: str
    kind: str
    offset: int
    count: int


class SourceStatus(Struct, frozen=True, omit_defaults=True):
    """One source. `state` says in words how it is, where more than one thing can be so.

    `unattributed` counts events that belong to no session that is known, `unknown` what came that is in no list of
    ours: types of events and, ending in "()", methods. `calls_unknown` counts results of tools whose command is not
    known.
    """

    name: str
    sessions: int
    events_per_second: float
    problems: list[Problem]
    state: str = ""
    bytes: int = 0
    dropped: int = 0
    unattributed: int = 0
    unknown: dict[str, int] = {}
    calls_unknown: int = 0


class SinkStatus(Struct, frozen=True):
    """One sink. `state` is ok, waiting (it failed and is tried again), refused (its token), or "off (404)".

    A signal is off where its OTLP endpoint takes others and gave this answer to it; it is asked again at times.

    `is_estimate` says that `lag_events` is no count. `sums_wait` says that metrics are counted and not sent yet.
    `deleted` counts the sessions that were deleted there, `foreign` those that belong to another token there, of which
    nothing is sent any more. `unconfirmed` counts the sessions that it accepted and has not confirmed since to hold;
    `confirmed_at` is when it confirmed the one that it confirmed longest ago, null where it confirmed none. `copies`
    counts other exporters that it knows with the id of this one. `remark` is what it said last of what it accepted.
    `earlier` counts the sessions of which it was not sent what was before `since`, because it was met then; `backfill`
    sends it.
    """

    name: str
    state: str
    lag_events: int
    lag_bytes: int
    lag_seconds: float = 0.0
    last_success: str | None = None
    last_error: str | None = None
    retries: int = 0
    quarantined: int = 0
    is_estimate: bool = False
    sums_wait: bool = False
    deleted: int = 0
    foreign: int = 0
    unconfirmed: int = 0
    confirmed_at: str | None = None
    copies: int = 0
    remark: str = ""
    since: str | None = None
    earlier: int = 0


class DaemonStatus(Struct, frozen=True):
    """Whether a daemon runs, and which. `defects` are errors of ours since it started, by their place in our code."""

    running: bool
    pid: int | None = None
    version: str | None = None
    since: str | None = None
    defects: dict[str, int] = {}


class StatusReport(Struct, frozen=True):
    """The answer of `exporter status`."""

    daemon: DaemonStatus
    sources: list[SourceStatus]
    sinks: list[SinkStatus]


_TROUBLES: Final = {"refused": (Exit.REFUSED, "refuses the token"), "waiting": (Exit.UNREACHABLE, "cannot be reached")}


def faults(status: Mapping[str, Any], *, lag_seconds: float, quarantined: int) -> list[tuple[Exit, str]]:
    """Return what a monitor is to be told of an answer of `exporter status`, each with its exit code.

    Sinks without a daemon are not judged: that no daemon runs is the fault then.
    """
    if not status["daemon"]["running"]:
        return [(Exit.LOCKED, "no exporter runs")]
    found = [
        (Exit.PARTIAL, f"{one['name']}: {one['state']}")
        for one in status["sources"]
        if one["name"] == "journals" and one.get("state", "ok") != "ok"
    ]
    for sink in status["sinks"]:
        if trouble := _TROUBLES.get(sink["state"]):
            found.append((trouble[0], f"{sink['name']} {trouble[1]}: {sink['last_error'] or 'no answer'}"))
        if sink["state"] == "stopped":
            found.append((Exit.PARTIAL, f"{sink['name']} has sessions that are stopped"))
        if (sink["lag_events"] or sink["lag_bytes"]) and sink["lag_seconds"] >= lag_seconds:
            found.append((Exit.PARTIAL, f"{sink['name']} is {sink['lag_seconds']:.0f} s behind"))
        if (number := sink["quarantined"]) >= quarantined:
            events = "1 event" if number == 1 else f"{number:,} events"
            found.append((Exit.PARTIAL, f"{sink['name']} has {events} in quarantine"))
    return found


class BackfillRow(Struct, frozen=True):
    """What a backfill did, or with --dry-run would do, for one session and sink."""

    session: str
    sink: str
    events: int
    bytes: int
    masked: int
    state: str
    why: str | None = None
    quarantined: int = 0


class VerifyRow(Struct, frozen=True):
    """What a file, our memory and a receiver hold of one session; `equal` when all of them agree.

    `verdict` is equal, different, "deleted there" (nothing is sent any more, and nothing is amiss), "of another token"
    (nothing is sent), "not reachable" or "refused" (its token): then nothing is known. `duplicates` are lines of the
    file that repeat an id.
    """

    session: str
    sink: str
    equal: bool
    file: int
    delivered: int
    receiver: int | None
    missing: list[str]
    extra: list[str]
    different: list[str]
    quarantined: int
    detail: str | None = None
    verdict: str = EQUAL
    duplicates: int = 0


class SourceRow(Struct, frozen=True):
    """What a sink was given of one session, and the history of its server or host, asked anew.

    `verdict` is equal, different, "not reachable" (the server or host) or "not asked" (it has not loaded the session,
    or the session is read from its file). `extra` are events that the history does not have; `turns` names the turns
    with differences: missing, double, different, or not in the history.
    """

    session: str
    sink: str
    source: str
    verdict: str
    history: int
    given: int
    missing: list[str]
    extra: list[str]
    different: list[str]
    turns: list[str]
    detail: str | None = None
