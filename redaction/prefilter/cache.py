"""Compiled rules on disk, so that the next start need not compile them.

A compiled database is trusted like code: it is loaded only from a file and a directory that nobody else can write.
"""

import contextlib
import hashlib
import os
import signal
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

_OTHERS: Final = 0o077
_FILES_MAX: Final = 8
_END_WITH_STARTER: Final = 1  # PR_SET_PDEATHSIG


_Plan: TypeAlias = list[tuple[list[bytes], bool]]
_plans: Final = threading.Event()
"""Set in the process that finds out what is to be compiled; nothing is compiled there."""
_planned: Final[_Plan] = []


def fill_apart(directory: Path, make: Callable[[], object]) -> None:
    """Have processes of their own make what fills an empty cache, so that what they leave in memory ends with them.

    Reading the tables and compiling takes three times the memory of all rules. So one process reads the tables and says
    what is to be compiled, and compiles nothing; when it is gone, two at a time compile, on one core one. A fork is
    safe on Linux and without other threads; elsewhere, and after a failure, nothing is done: who needs something then
    makes it.
    """
    if sys.platform != "linux" or threading.active_count() > 1:
        return
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(directory.glob("*.hsdb")) or not _is_ours(directory.stat()) or not os.access(directory, os.W_OK):
            return
    except OSError:
        return
    with contextlib.ExitStack() as ending:
        for count, (expressions, literal) in enumerate(sorted(_plan(make), key=lambda one: -len(one[0]))):
            compiling = _apart(partial(cached_database, expressions, directory, literal=literal))
            if count == 0 and len(os.sched_getaffinity(0)) > 1:  # the largest takes as long as all others
                ending.enter_context(compiling)
            else:
                with compiling:
                    pass


def _plan(make: Callable[[], object]) -> _Plan:
    """Have a process make it all, but compile nothing, and return what it would have compiled."""
    reads, writes = os.pipe()

    def plan() -> None:
        _plans.set()
        make()
        with os.fdopen(writes, "wb") as file:
            file.write(msgspec.msgpack.encode(_planned))

    with os.fdopen(reads, "rb") as file, _apart(plan):
        os.close(writes)
        told = file.read()
    try:
        return msgspec.msgpack.decode(told, type=_Plan)
    except msgspec.DecodeError:
        return []


@contextlib.contextmanager
def _apart(work: Callable[[], object]) -> Iterator[None]:
    """Run this in a process of its own, which ends with this one, and wait for its end where the context is left."""
    starter, process = os.getpid(), os.fork()
    if process == 0:
        try:
            import ctypes

            ctypes.CDLL(None).prctl(_END_WITH_STARTER, signal.SIGKILL)
            if os.getppid() == starter:
                work()
        finally:
            os._exit(0)
    try:
        yield
    finally:
        os.waitpid(process, 0)


def compiled(expressions: Sequence[bytes], *, literal: bool) -> Any:
    """A database of these expressions, whose ids are their numbers."""
    import hyperscan

    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    numbers = list(range(len(expressions)))
    database.compile(expressions=list(expressions), ids=numbers, flags=[0] * len(numbers), literal=literal)
    return database


def cached_database(expressions: Sequence[bytes], directory: Path, *, literal: bool) -> Any:
    """The database of these expressions, from the cache or compiled and stored there. A failure costs time only."""
    import hyperscan

    if _plans.is_set():
        _planned.append((list(expressions), literal))
        return compiled([b"planned"], literal=True)
    path = directory / f"rules-{_key(expressions)}.hsdb"
    body = load(path)
    if body is not None:
        with contextlib.suppress(hyperscan.HyperscanError):
            return hyperscan.loadb(body, hyperscan.HS_MODE_BLOCK)
    database = compiled(expressions, literal=literal)
    store(path, hyperscan.dumpb(database))
    return database


def load(path: Path) -> bytes | None:
    """The content that was stored under this path, if it is whole and only this user can have written it."""
    try:
        if not _is_ours(path.parent.stat()):
            return None
        with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode) or not _is_ours(facts):
                return None
            content = file.read()
    except OSError:
        return None
    digest, body = content[:32], content[32:]
    return body if hashlib.sha256(body).digest() == digest else None


def store(path: Path, body: bytes) -> None:
    """Store it for this user alone, and delete all but the latest files of its kind; a failure is ignored."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_ours(path.parent.stat()):
            return
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(body).digest() + body)
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
        alike = path.parent.glob(f"*{path.suffix}")
        for old in sorted(alike, key=lambda one: one.stat().st_mtime)[:-_FILES_MAX]:
            old.unlink(missing_ok=True)


def _key(expressions: Sequence[bytes]) -> str:
    """A digest of all that the compiled form depends on: the expressions, the library and the machine."""
    import hyperscan

    digest = hashlib.sha256(
        repr((getattr(hyperscan, "__version__", ""), os.uname().machine if hasattr(os, "uname") else "")).encode()
    )
    for expression in expressions:
        digest.update(b"%d:%b" % (len(expression), expression))
    return digest.hexdigest()[:32]


def _is_ours(facts: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or (facts.st_uid == os.getuid() and not facts.st_mode & _OTHERS)
