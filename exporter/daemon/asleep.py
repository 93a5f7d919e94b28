"""The status of an exporter that does not run, from what it remembers; imports no client of anything."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from exporter.core.names import LOCAL, MARKS, QUARANTINE
from exporter.status import DaemonStatus, SinkStatus, SourceStatus, Status
from exporter.store.marks import FOLLOWING, Store
from exporter.store.quarantine import Quarantine

GUESSED_EVENT_BYTES: Final = 1_800
"""What an event is taken to measure where counting would cost too much."""


def status_asleep(root: Path, state_dir: Path, configured: Mapping[str, str], *, changed_after: float) -> Status:
    """Say how far every configured sink (name to address) is behind the files below `root`. Makes no file.

    A session that a sink never had anything of counts if it changed after that time: a start would deliver it.
    """
    sinks = configured or {LOCAL: LOCAL}
    marks, quarantine = state_dir / MARKS, state_dir / QUARANTINE
    files = {path.parent.name: path.stat() for path in root.glob("*/events.jsonl") if path.is_file()}
    sizes = {session: facts.st_size for session, facts in files.items()}
    recent = {session: facts.st_size for session, facts in files.items() if facts.st_mtime >= changed_after}
    source = SourceStatus("files", len(sizes), 0.0, [])
    if not marks.exists() or not quarantine.exists():
        owed = sum(recent.values())
        never = [SinkStatus(name, "never used", _events(owed), owed, 0.0, None, None, 0, 0) for name in sinks]
        return Status(DaemonStatus(False), [source], never)
    store, kept = Store(marks), Quarantine(quarantine, bytes_max=1, days_max=36_500)
    try:
        found = [_sink(store, kept, sizes, recent, name, url) for name, url in sinks.items()]
    finally:
        store.close()
        kept.close()
    return Status(DaemonStatus(False), [source], found)


def _sink(
    store: Store, kept: Quarantine, sizes: Mapping[str, int], recent: Mapping[str, int], name: str, url: str
) -> SinkStatus:
    marks = store.marks(store.sink_id(name, url))
    behind = sum(
        max(0, sizes[session] - mark.position.offset)
        for session, mark in marks.items()
        if session in sizes and mark.state == FOLLOWING
    ) + sum(size for session, size in recent.items() if session not in marks)
    return SinkStatus(name, "not running", _events(behind), behind, 0.0, None, None, 0, kept.count(sink=name))


def _events(size: int) -> int:
    """Guess how many events that many bytes are."""
    return -(-size // GUESSED_EVENT_BYTES)
