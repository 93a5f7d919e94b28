"""Run by the tests of the store in a process of its own: does something for ever, until it is killed."""

import os
import signal
import sys
from pathlib import Path

from exporter.core.delivery.position import Mark, Position
from exporter.core.delivery.segment import Unsendable
from exporter.state.lock import StateLock
from exporter.state.marks import MarkStore
from exporter.state.quarantine import Quarantine


def marks(path: Path) -> None:
    """Commits a mark at offset N together with the N-th id, and says N once that has returned."""
    store = MarkStore(path)
    sink = store.sink_id("one", "http://one")
    mark = store.mark("session", sink) or Mark()
    while True:
        number = mark.position.offset + 1
        mark = Mark(str(number), Position(number, b""), delivered=mark.delivered)
        mark = store.commit("session", sink, mark, [str(number)], [bytes(32)], {("day", "rule"): 1})
        print(number, flush=True)


def quarantine(path: Path) -> None:
    """Keeps events two by two, and says how many are kept."""
    kept = Quarantine(path, bytes_max=1 << 30, days_max=30)
    number = kept.count()
    while True:
        pair = [Unsendable(number + one, b"x", 1, "not_json", str(number + one)) for one in range(2)]
        number += kept.add("session", None, pair)
        print(number, flush=True)


def lock(state_dir: Path) -> None:
    """Holds the lock."""
    with StateLock(state_dir):
        print("held", flush=True)
        sys.stdin.read()


def lock_in_child(state_dir: Path) -> None:
    """Holds the lock, and lets a child have it too until standard input is closed."""
    with StateLock(state_dir):
        if os.fork() == 0:
            sys.stdin.read()
            os._exit(0)
        print("held", flush=True)
        signal.pause()


if __name__ == "__main__":
    chosen = {"marks": marks, "quarantine": quarantine, "lock": lock, "lock_in_child": lock_in_child}[sys.argv[1]]
    chosen(Path(sys.argv[2]))
