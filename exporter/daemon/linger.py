"""The end of an exporter beside the CLI: asked to stop together with it, it follows what the CLI still writes.

A container's processes get SIGTERM together, and what is on its volume is gone when all have ended. So the exporter
goes on until no session is open any more, and until every sink has what was written.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from typing import Final

from exporter.core.events.envelope import Envelope, decode
from exporter.daemon.daemon import Daemon
from exporter.sources.files.cli_process import Liveness
from exporter.sources.files.session_file import SessionFile, open_inside

_LOOK_SECONDS: Final = 0.2
_SETTLE_SECONDS: Final = 0.5
"""How long what ended is looked at once more: its last lines may come after its lock is gone."""
_TAIL_BYTES: Final = 64 << 10
_SHUTDOWN: Final = "session.shutdown"


async def linger(daemon: Daemon, seconds: float, abandoned_seconds: float) -> None:
    """Return when no session is open and every sink has everything, or after so many seconds.

    A session whose holder cannot be seen counts as open until it ends, unless it was silent for `abandoned_seconds`.
    """
    now = time.monotonic()
    end, still_since = now + seconds, now
    while now < end:
        daemon.scan()
        if any(open_sessions(daemon, abandoned_seconds)):
            still_since = now
        elif now - still_since >= _SETTLE_SECONDS and all(run.idle() for run in daemon.runs):
            return
        await asyncio.sleep(_LOOK_SECONDS)
        now = time.monotonic()


def open_sessions(daemon: Daemon, abandoned_seconds: float) -> Iterator[str]:
    """Yield the sessions of which a process may write more."""
    now = time.time()
    for session, file in daemon.source.sessions.items():
        liveness = daemon.holders.of(file.directory)
        is_fresh = file.identity is None or now - file.modified < abandoned_seconds
        if liveness is Liveness.RUNNING or (liveness is Liveness.UNKNOWN and is_fresh and not _has_ended(file)):
            yield session


def _has_ended(file: SessionFile) -> bool:
    """Tell whether the last event of a file is the end of its session."""
    try:
        with open(file.path, "rb", opener=open_inside) as opened:
            opened.seek(max(0, os.fstat(opened.fileno()).st_size - _TAIL_BYTES))
            lines = opened.read(_TAIL_BYTES).split(b"\n")
    except OSError:
        return False
    if len(lines) < 2 or lines[-1]:  # a line is being written
        return False
    last = decode(lines[-2])
    return isinstance(last, Envelope) and last.type == _SHUTDOWN
