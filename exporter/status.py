"""The shapes that `status`, `verify` and `backfill` answer with, as scripts rely on them."""

from typing import Final

from msgspec import Struct

EQUAL: Final = "equal"
DIFFERENT: Final = "different"
DELETED: Final = "deleted there"
FOREIGN: Final = "of another token"
UNREACHABLE: Final = "not reachable"
UNKNOWN: Final = "unknown"
"""The receiver cannot be asked what it holds."""
REFUSED: Final = "refused"


class Problem(Struct, frozen=True):
    """Something that troubles a session at its source."""

    session: str
    kind: str
    offset: int
    count: int


class SourceStatus(Struct, frozen=True, omit_defaults=True):
    """One source. `state` says in words how it is, where more than one thing can be so.

    `unattributed` counts events that belong to no session that is known, `unknown` what came that is in no list of
    ours: types of events and, ending in "()", methods.
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


class SinkStatus(Struct, frozen=True):
    """One sink. `state` is ok, waiting (it failed and is tried again), or refused (its token).

    `is_estimate` says that `lag_events` is no count. `sums_wait` says that metrics are counted and not sent yet.
    `deleted` counts the sessions that were deleted there, `foreign` those that belong to another token there, of which
    nothing is sent any more.
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
