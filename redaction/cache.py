"""Compiled expressions kept in a directory, so that the next start need not compile them.

A compiled database is trusted like code: it is loaded only from a file and a directory that nobody else can write.
"""

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

_OTHERS: Final = 0o077
_KEPT_MAX: Final = 4


def cached(expressions: Sequence[bytes], directory: Path, compile_all: Callable[[], Any]) -> Any:
    """The database of these expressions, from the cache or compiled and kept there. One that fails costs time only."""
    path = directory / f"rules-{_key(expressions)}.hsdb"
    database = _loaded(path)
    if database is None:
        database = compile_all()
        with contextlib.suppress(OSError):
            _keep(path, database)
    return database


def _key(expressions: Sequence[bytes]) -> str:
    """What the compiled form depends on: the expressions, the library and what it was made for."""
    import hyperscan

    digest = hashlib.sha256(
        repr((getattr(hyperscan, "__version__", ""), os.uname().machine if hasattr(os, "uname") else "")).encode()
    )
    for expression in expressions:
        digest.update(b"%d:%b" % (len(expression), expression))
    return digest.hexdigest()[:32]


def _is_ours(facts: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or (facts.st_uid == os.getuid() and not facts.st_mode & _OTHERS)


def _loaded(path: Path) -> Any:
    import hyperscan

    try:
        if not _is_ours(path.parent.stat()):
            return None
        with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode) or not _is_ours(facts):
                return None
            content = file.read()
        digest, body = content[:32], content[32:]
        if hashlib.sha256(body).digest() != digest:
            return None
        return hyperscan.loadb(body, hyperscan.HS_MODE_BLOCK)
    except (OSError, hyperscan.HyperscanError):
        return None


def _keep(path: Path, database: Any) -> None:
    import hyperscan

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_ours(path.parent.stat()):
        return
    body = hyperscan.dumpb(database)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".rules-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(body).digest() + body)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
    kept = sorted(path.parent.glob("rules-*.hsdb"), key=lambda one: one.stat().st_mtime)
    for old in kept[:-_KEPT_MAX]:
        old.unlink(missing_ok=True)
