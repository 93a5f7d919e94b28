"""Checks of this machine: versions, file watching, open files."""

import platform
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from exporter.doctor.check import Check, counted
from exporter.doctor.facts import Facts
from exporter.version import VERSION

_INOTIFY: Final = Path("/proc/sys/fs/inotify")


def versions() -> Iterator[Check]:
    """Say which versions run here."""
    yield Check("exporter", "ok", VERSION)
    python = f"{platform.python_implementation()} {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    yield Check("python", "ok", python)
    yield Check("platform", "ok", f"{platform.system()} {platform.release()} on {platform.machine()}")


def configuration(facts: Facts) -> Iterator[Check]:
    """Say which file is in force, and what in it or in the environment has no effect."""
    read = f"read from {facts.config_file}" if facts.config_file else "no file, so defaults and variables"
    remarks = [*facts.notes, *(f"{name} is set and not used" for name in facts.found_not_used)]
    if remarks:
        remedy = "see `exporter config show --origin`; correct or remove what was not meant"
        yield Check("configuration", "note", f"{read}; {'; '.join(remarks)}", remedy)
    else:
        yield Check("configuration", "ok", read)


def service(facts: Facts) -> Iterator[Check]:
    """Say whether the installed service is current and has what acts here; says nothing where none is installed."""
    found = facts.service()
    if found is None:
        return
    said, problems = found
    for problem in problems:
        what, _, remedy = problem.partition(": run ")
        yield Check("service", "warning", what, f"run {remedy}" if remedy else "see `exporter service status`")
    if not problems:
        yield Check("service", "ok", said)


def file_watching(sessions: int, limits: Path = _INOTIFY) -> Iterator[Check]:
    """Compare the kernel's limits with what following this many sessions takes; says nothing but on Linux."""
    if sys.platform != "linux":
        return
    try:
        watches = int((limits / "max_user_watches").read_text(encoding="ascii"))
        instances = int((limits / "max_user_instances").read_text(encoding="ascii"))
    except OSError:
        return  # a container may hide them
    needed = sessions + 1
    detail = f"{watches:,} directories may be watched by {counted(instances, 'program')}; {needed:,} needed"
    remedy = ""
    if instances < 1 or not _can_watch():
        detail += "; no further program may watch now"
        remedy = f"raise fs.inotify.max_user_instances (sysctl), for example to {max(512, instances * 4)}"
    elif needed > watches:
        remedy = f"raise fs.inotify.max_user_watches (sysctl), for example to {max(524_288, needed * 4)}"
    if remedy:
        yield Check("file watching", "warning", f"{detail}; what cannot be watched is looked at repeatedly", remedy)
    else:
        yield Check("file watching", "ok", detail)


def _can_watch() -> bool:
    from os import close

    from exporter.sources.files.inotify import Kernel

    try:
        close(Kernel().open())
    except OSError:
        return False
    return True


def open_files(wanted: int) -> Iterator[Check]:
    """Compare the limit of this process with the files it is set to hold open; says nothing on Windows."""
    if sys.platform == "win32":
        return
    from exporter.sources.files.session_file import files_possible

    possible, limit = files_possible(wanted)
    detail = f"limit {'none' if limit is None else f'{limit:,}'}, up to {possible:,} session files"
    if possible < wanted:
        remedy = f"lower limits.open_files from {wanted} to {possible}, or raise the limit (ulimit -n)"
        yield Check("open files", "warning", detail, remedy)
    else:
        yield Check("open files", "ok", detail)
