"""The status of an exporter that does not run, from its state directory; imports no client."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from exporter.core.delivery.position import DELETED_THERE, FOLLOWING, FOREIGN_THERE, Identity, Mark
from exporter.core.events.envelope import Envelope, decode
from exporter.core.names import JOURNALS, LOCAL, MARKS, QUARANTINE, SESSION_NAME, last_error_name, met_name, off_name
from exporter.sources.files.session_file import leads_out, open_inside
from exporter.state.marks import MarkStore
from exporter.state.quarantine import Quarantine
from exporter.status import DaemonStatus, SinkStatus, SourceStatus, StatusReport

GUESSED_EVENT_BYTES: Final = 1_800
"""The size of an event in estimates, where counting would cost too much."""
COUNT_BYTES_MAX: Final = 1 << 20
"""How much is read to count events; of more their number is an estimate."""


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    size: int
    identity: Identity
    is_recent: bool
    modified: float
    begins: int = 0  # where the first event stands, in a journal whose front was cut off


def status_asleep(
    roots: Sequence[Path],
    state_dir: Path,
    configured: Mapping[str, str],
    *,
    changed_after: float,
    waits: Callable[[bytes], bool],
    history: Mapping[str, float],
) -> StatusReport:
    """Return how far every configured sink (name to address) is behind the files below `roots`. Creates no file.

    A session without a mark counts if it changed after `changed_after`: a start would deliver it. `history` has the
    sinks that are sent only so many seconds of what was before they were met. `waits` tells whether
    sums, as they are stored, hold something that was not sent.
    """
    sinks = configured or {LOCAL: LOCAL}
    marks, quarantine = state_dir / MARKS, state_dir / QUARANTINE
    files = {name: file for root in reversed(roots) for name, file in _files(root, changed_after).items()}
    sources = [SourceStatus("files", len(files), 0.0, [])]
    if (state_dir / JOURNALS).exists():
        from exporter.sources.journals import begins_of  # not without need: it takes time that `status` has not

        left = _files(state_dir / JOURNALS, changed_after).items()
        journals = {one: replace(file, begins=begins_of(file.path)) for one, file in left if one not in files}
        used = sum(file.size - file.begins for file in journals.values())
        sources += [SourceStatus("journals", len(journals), 0.0, [], bytes=used)] if journals else []
        files |= journals
    if not marks.exists() or not quarantine.exists():
        owed = {name: _owed(files, {}, time.time() - history[name] if name in history else 0.0) for name in sinks}
        never = [SinkStatus(name, "never used", *owed[name][:2], is_estimate=owed[name][2]) for name in sinks]
        return StatusReport(DaemonStatus(False), sources, never)
    store, kept = MarkStore(marks), Quarantine(quarantine, bytes_max=1, days_max=36_500)
    try:
        found = [_sink(store, kept, files, name, url, waits, history) for name, url in sinks.items()]
    finally:
        store.close()
        kept.close()
    return StatusReport(DaemonStatus(False), sources, found)


def _files(root: Path, changed_after: float) -> dict[str, _File]:
    found = {}
    for path in root.glob("*/events.jsonl"):
        if path.is_file() and SESSION_NAME.fullmatch(path.parent.name) and not leads_out(path):
            facts = path.stat()
            identity = Identity(facts.st_dev, facts.st_ino)
            is_recent = facts.st_mtime >= changed_after
            found[path.parent.name] = _File(path, facts.st_size, identity, is_recent, facts.st_mtime)
    return found


def _sink(
    store: MarkStore,
    kept: Quarantine,
    files: Mapping[str, _File],
    name: str,
    url: str,
    waits: Callable[[bytes], bool],
    history: Mapping[str, float],
) -> SinkStatus:
    sink_id = store.sink_id(name, url)
    marks = store.marks(sink_id)
    since = _since(store, sink_id, history.get(name))
    events, size, is_estimate = _owed(files, marks, since)
    earlier = sum(1 for session, file in files.items() if session not in marks and file.modified < since)
    states = Counter(mark.state for session, mark in marks.items() if session in files)
    sums_wait = any(
        one.bodies or (one.state is not None and waits(one.state)) for one in store.pending_metrics(sink_id, 1)
    )
    error, quarantined = store.fact(last_error_name(sink_id)) or None, kept.count(sink=name)
    unconfirmed, confirmed_at = confirmations(mark for session, mark in marks.items() if session in files)
    if off := store.fact(off_name(sink_id)):
        return SinkStatus(name, f"off ({off})", 0, 0, quarantined=quarantined)
    return SinkStatus(
        name, "not running", events, size, 0.0, None, error, 0, quarantined, is_estimate, sums_wait,
        states[DELETED_THERE], states[FOREIGN_THERE], unconfirmed, confirmed_at,
        since=iso(since) if since else None, earlier=earlier + store.fronts_lacking(sink_id) if since else 0,
    )  # fmt: skip


def _since(store: MarkStore, sink_id: int, history_seconds: float | None) -> float:
    """Return from when a sink is sent what sessions hold, 0 where that is all; before it was met, from now on."""
    if history_seconds is None:
        return 0.0
    met = float(store.fact(met_name(sink_id)) or time.time())
    return max(0.0, met - history_seconds) if met else 0.0


def confirmations(marks: Iterable[Mark]) -> tuple[int, str | None]:
    """Return of how many sessions it is not confirmed that a sink has them, and when the oldest confirmation was."""
    told = [mark for mark in marks if mark.state == FOLLOWING and (mark.delivered or mark.position.offset)]
    times = [mark.confirmed_at for mark in told if mark.confirmed_at is not None]
    return sum(not mark.is_confirmed for mark in told), iso(min(times, default=None))


def iso(moment: float | None) -> str | None:
    """Return a time of the wall clock as text, in UTC."""
    if moment is None:
        return None
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _owed(files: Mapping[str, _File], marks: Mapping[str, Mark], since: float) -> tuple[int, int, bool]:
    """Return how many events and bytes are after the marks, and whether that is an estimate.

    A session without a mark counts if it has changed `since`.

    A file that is not the one of its mark will be compared from its first event, so what is pending is an estimate.
    """
    rests = []
    is_estimate = False
    for session, file in files.items():
        mark = marks.get(session)
        if mark is None:
            if file.is_recent and file.modified >= since:
                rests.append((file, file.begins))
        elif mark.state == FOLLOWING:
            same = mark.identity == file.identity and mark.position.offset <= file.size
            is_estimate = is_estimate or not same
            rests.append((file, max(file.begins, mark.position.offset) if same else file.begins))
    size = sum(file.size - offset for file, offset in rests)
    if size > COUNT_BYTES_MAX:
        return -(-size // GUESSED_EVENT_BYTES), size, True
    counts = [
        (durable_between(file.path, offset, file.size), file.size - offset)
        for file, offset in rests
        if offset < file.size
    ]
    return sum(count for count, _ in counts), sum(rest for count, rest in counts if count), is_estimate


def durable_between(path: Path, offset: int, end: int) -> int:
    """Count the durable events of a file between two offsets; nothing in a file that cannot be read."""
    try:
        with open(path, "rb", opener=open_inside) as opened:
            opened.seek(offset)
            lines = opened.read(end - offset).split(b"\n")[:-1]
    except OSError:
        return 0
    return sum(1 for line in lines if isinstance(found := decode(line), Envelope) and not found.ephemeral)
