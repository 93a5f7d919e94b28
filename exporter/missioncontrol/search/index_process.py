"""Fills the search index in a process of its own while it is far behind.

Finding words keeps the interpreter busy, for which the writer would have to wait. The process reads the store's file
and writes the index's, both as the program itself does, and ends when no new events arrive, when its parent has ended,
or when it is terminated. Nothing depends on how it ends.
"""

import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from exporter.missioncontrol.search.fts5 import open_index, path_beside
from exporter.missioncontrol.search.index import read_on
from exporter.missioncontrol.store.port import Job, Result
from exporter.missioncontrol.store.queries import identity
from exporter.missioncontrol.store.sqlite.database import connect, engine_errors

_NICE: Final = 5
_QUIET_SECONDS: Final = 0.5
_LOOK_SECONDS: Final = 0.05
_ENTRY: Final = "import sys; sys.path.insert(0, sys.argv[1]); from {name} import main; main(sys.argv[2], sys.argv[3])"


def start(store: Path) -> "subprocess.Popen[bytes]":
    """Start the process for the index of this store; raises `OSError` where none can be started."""
    root = str(Path(__file__).parents[3])
    command = [sys.executable, "-I", "-c", _ENTRY.format(name=__name__), root, str(store), str(os.getpid())]
    nothing = subprocess.DEVNULL
    # In a group of its own, Ctrl-C does not reach it; in the same session its priority is one beside ours.
    return subprocess.Popen(  # noqa: S603  ourselves
        command, stdin=nothing, stdout=nothing, stderr=nothing, cwd=store.parent, process_group=0
    )


def main(store: str, parent: str) -> None:
    """Fill the index until no new events arrive for a moment."""
    path = Path(store)
    if hasattr(os, "nice"):
        os.nice(_NICE)  # storing comes first
    with closing(connect(path, read_only=True)) as database:

        def read(job: Job[Result]) -> Result:
            with engine_errors(), database.transaction(writes=False):
                return job(database)

        with closing(open_index(path_beside(path), read(identity))) as index:
            last = time.monotonic()
            while os.getppid() == int(parent):
                if (texts := read_on(index, read)) is not None:
                    index.put(texts)
                    last = time.monotonic()
                elif time.monotonic() - last > _QUIET_SECONDS:
                    return
                else:
                    time.sleep(_LOOK_SECONDS)
