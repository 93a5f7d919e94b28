"""Checks of the state directory. Nothing is made, changed or locked there: a daemon may be at work."""

import os
import shutil
import sqlite3
import stat
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from exporter.core.names import RECEIVER
from exporter.doctor.check import Check, counted, existing, shown_size
from exporter.doctor.facts import Facts
from exporter.sources.files.watch import file_system_type, is_remote
from exporter.state.lock import lives
from exporter.state.redaction_key import NAME as KEY
from exporter.state.redaction_key import REMEDY, is_undamaged

_MIB: Final = 1024 * 1024
_FREE_BYTES_MIN: Final = 64 * _MIB
_NEARLY: Final = 0.8
_MOUNTS: Final = Path("/proc/self/mountinfo")
_LOCKS: Final = Path("/proc/locks")


def state_directory(facts: Facts) -> Iterator[Check]:
    """Check whether the directory is ours, private and writable, or can be made."""
    name, path = "state directory", facts.state_dir
    if not path.exists():
        parent = existing(path)
        if parent.is_dir() and os.access(parent, os.W_OK | os.X_OK):
            yield Check(name, "ok", f"{path} will be made when it is needed")
        else:
            remedy = "set state_dir (or EXPORTER_STATE_DIR) to a directory this user can write"
            yield Check(name, "failed", f"{path} cannot be made: {parent} cannot be written", remedy)
        return
    facts_of = path.stat()
    if not stat.S_ISDIR(facts_of.st_mode):
        yield Check(name, "failed", f"{path} is not a directory", "set state_dir to a directory")
    elif sys.platform != "win32" and facts_of.st_uid != os.getuid():
        remedy = "run as that user, or set state_dir to a directory of your own"
        yield Check(name, "failed", f"{path} belongs to another user", remedy)
    elif not os.access(path, os.W_OK | os.X_OK):
        yield Check(name, "failed", f"{path} cannot be written", f"make it writable: chmod 700 {path}")
    elif sys.platform != "win32" and facts_of.st_mode & 0o077:
        mode = stat.S_IMODE(facts_of.st_mode)
        remedy = f"the next start corrects it, or: chmod 700 {path}"
        yield Check(name, "warning", f"{path} is open to other users (mode {mode:o})", remedy)
    else:
        yield Check(name, "ok", str(path))


def redaction_key(facts: Facts) -> Iterator[Check]:
    """Check whether the key of the markers is whole and private, or will be made."""
    name, path = "redaction key", facts.state_dir / KEY
    if not path.exists():
        yield Check(name, "ok", "will be made when it is needed")
        return
    facts_of = path.stat()
    if not is_undamaged(path.read_bytes()):
        yield Check(name, "failed", f"{path} is damaged ({facts_of.st_size} bytes)", REMEDY)
    elif sys.platform != "win32" and facts_of.st_mode & 0o077:
        mode = stat.S_IMODE(facts_of.st_mode)
        yield Check(name, "warning", f"{path} is open to other users (mode {mode:o})", f"run chmod 600 {path}")
    else:
        yield Check(name, "ok", "whole and private")


def file_systems(facts: Facts, mounts: Path = _MOUNTS) -> Iterator[Check]:
    """Check whether the marks or the sessions lie on a network file system; says nothing but on Linux."""
    try:
        table = mounts.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    state = file_system_type(table, existing(facts.state_dir).stat().st_dev)
    sessions = file_system_type(table, existing(facts.copilot_home).stat().st_dev)
    name, kinds = "file system", f"state on {state or 'an unnamed one'}, sessions on {sessions or 'an unnamed one'}"
    if is_remote(state):
        remedy = "set state_dir to a local disk: databases and locks are not safe over a network"
        yield Check(name, "failed", f"{kinds}; the first is a network file system", remedy)
    elif is_remote(sessions):
        remedy = "nothing to do; run the exporter where the CLI runs to see changes sooner"
        yield Check(name, "note", f"{kinds}; the second is a network file system and is looked at repeatedly", remedy)
    else:
        yield Check(name, "ok", kinds)


def free_space(facts: Facts) -> Iterator[Check]:
    """Compare the free space with what marks and quarantine may need."""
    free = shutil.disk_usage(existing(facts.state_dir)).free
    detail = f"{shown_size(free)} free for the state directory"
    remedy = "free some space, or set state_dir to another disk; without space nothing is sent"
    if free < _FREE_BYTES_MIN:
        yield Check("disk space", "failed", detail, remedy)
    elif free < _FREE_BYTES_MIN + facts.quarantine_bytes:
        yield Check("disk space", "warning", f"{detail}, less than the quarantine may grow to", remedy)
    else:
        yield Check("disk space", "ok", detail)


def daemon(facts: Facts, locks: Path = _LOCKS) -> Iterator[Check]:
    """Check whether an exporter runs, by its answer and by its lock, without trying to take that."""
    answer = facts.status.get("daemon") if facts.status else None
    if isinstance(answer, dict) and answer.get("running"):
        since = f" since {answer['since']}" if answer.get("since") else ""
        yield Check("daemon", "ok", f"process {answer.get('pid')} runs{since}, version {answer.get('version')}")
        return
    holder = lock_holder(facts.state_dir / "lock", locks)
    if holder is None:
        yield Check("daemon", "note", "none runs", "`exporter up` or `exporter run` starts one")
    else:
        remedy = f"wait if it has just started or works on a backfill, else stop process {holder} and start it again"
        yield Check("daemon", "warning", f"process {holder} holds the lock and does not answer", remedy)


def lock_holder(path: Path, locks: Path = _LOCKS) -> int | None:
    """Return the process that holds a lock file; where the kernel lists no locks, the one named in it if it runs."""
    try:
        written = path.read_text(encoding="ascii").strip()
        inode = path.stat().st_ino
    except (OSError, UnicodeDecodeError):
        return None
    try:
        table = locks.read_text(encoding="ascii")
    except OSError:
        return int(written) if written.isdecimal() and lives(int(written)) else None
    for line in table.splitlines():
        parts = line.split()
        if len(parts) >= 6 and parts[1] == "FLOCK" and parts[5].rpartition(":")[2] == str(inode):
            return int(parts[4]) if int(parts[4]) > 0 else int(written or 0)
    return None


def marks(facts: Facts) -> Iterator[Check]:
    """Check whether the marks are sound."""
    path = facts.state_dir / "marks.db"
    yield _sound("marks", path) if path.exists() else Check("marks", "ok", "none yet")


def quarantine(facts: Facts) -> Iterator[Check]:
    """Check whether the quarantine is sound, and how full."""
    path = facts.state_dir / "quarantine.db"
    if not path.exists():
        yield Check("quarantine", "ok", "empty")
        return
    sound = _sound("quarantine", path)
    if sound.verdict != "ok":
        yield sound
        return
    with closing(_opened(path)) as connection:
        number, size = connection.execute("SELECT count(*), coalesce(sum(length(raw)), 0) FROM quarantine").fetchone()
    detail = f"{counted(number, 'event')}, {shown_size(size)} of {shown_size(facts.quarantine_bytes)}"
    remedy = "see why with `exporter quarantine list`, then replay or drop them"
    if size >= facts.quarantine_bytes * _NEARLY:
        yield Check("quarantine", "warning", f"{detail}; when it is full, sessions stop", remedy)
    elif number:
        yield Check("quarantine", "note", detail, remedy)
    else:
        yield Check("quarantine", "ok", "empty")


def set_aside(facts: Facts) -> Iterator[Check]:
    """Name the damaged stores of Mission Control that were put aside; says nothing when there are none."""
    found = sorted(facts.state_dir.glob(f"{RECEIVER}.corrupt-*"))
    if found:
        named = ", ".join(f"{path} ({shown_size(path.stat().st_size)})" for path in found)
        remedy = "delete them once you need nothing of them: they also hold sessions that were forgotten since"
        yield Check("damaged stores", "note", f"set aside: {named}", remedy)


def _sound(name: str, path: Path) -> Check:
    live = _is_live(path)
    log = path.with_name(f"{path.name}-wal")
    if not live and log.exists() and log.stat().st_size:
        detail = f"{path} has a write-ahead log and no index of it, so it cannot be read without changing it"
        return Check(name, "note", detail, "start the exporter once: it puts the two together")
    check = _checked(name, path)
    # A daemon that started meanwhile makes a look at a file without writers worthless, so it is repeated.
    return check if check.verdict == "ok" or live == _is_live(path) else _checked(name, path)


def _checked(name: str, path: Path) -> Check:
    remedy = "start the exporter: it sets the file aside and begins a new one; nothing is lost, some is sent again"
    try:
        with closing(_opened(path)) as connection:
            answers = [str(row[0]) for row in connection.execute("PRAGMA quick_check(5)")]
    except sqlite3.DatabaseError as error:
        if any(word in str(error) for word in ("locked", "unable to open", "readonly")):
            return Check(name, "note", f"{path} cannot be looked at now: {error}", "run it again later")
        return Check(name, "failed", f"{path} is damaged: {error}", remedy)
    if answers != ["ok"]:
        return Check(name, "failed", f"{path} is damaged: {answers[0][:200]}", remedy)
    return Check(name, "ok", f"sound, {shown_size(path.stat().st_size)}")


def _is_live(path: Path) -> bool:
    return path.with_name(f"{path.name}-shm").exists()


def _opened(path: Path) -> sqlite3.Connection:
    """Open a database so that not even SQLite's own companion files are made or written."""
    # With an index of the write-ahead log there may be a writer, whose index is only read. Without one there is none.
    mode = "mode=ro&readonly_shm=1" if _is_live(path) else "mode=ro&immutable=1"
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=1.0)
    connection.execute("PRAGMA query_only=ON")
    return connection
