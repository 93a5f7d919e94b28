"""What the program writes is for its user alone, whatever the mask of new files is."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from tests.program.driver import Machine
from tests.program.waiting import until


def open_to_others(*roots: Path) -> Iterator[str]:
    """Names everything below these directories, and the directories, that others may read, write or enter."""
    for root in roots:
        for path in (root, *root.rglob("*")):
            mode = path.lstat().st_mode
            if mode & 0o077:
                yield f"{path.relative_to(root.parent)} {stat.filemode(mode)}"


def without_mask() -> None:
    os.umask(0)


def test_everything_on_disk_is_private_without_a_mask(machine: Machine) -> None:
    archive = machine.with_archive(seal_seconds=0.2)
    cache, store, bundle = machine.root / "cache", machine.root / "serve", machine.root / "report.zip"
    machine.environment["XDG_CACHE_HOME"] = str(cache)
    session = machine.session().write(30)
    session.append([b"a broken line"])

    running = machine.start("up", "--no-open", "--port", "0", prepare=without_mask)
    until(lambda: list(archive.rglob("*.zst")) != [], "an object of the archive")
    until((machine.state / "mission_control-search.db").exists, "the index of the store")
    made = machine.exporter("doctor", "--bundle", str(bundle), prepare=without_mask)
    token = ("mission-control", "token", "create", "me", "--store", str(store / "mc.db"))
    created = machine.exporter(*token, prepare=without_mask)
    while_it_runs = list(open_to_others(machine.state, archive, store, cache / "exporter"))
    running.stop()

    written = {path.name for path in machine.state.iterdir()}
    assert {"marks.db", "quarantine.db", "redaction.key", "lock", "mission_control.db"} <= written
    assert (store / "mc.db").exists(), created.stderr
    assert list((cache / "exporter").rglob("*")) != []
    assert while_it_runs == list(open_to_others(machine.state)) == []
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600, made.stderr
