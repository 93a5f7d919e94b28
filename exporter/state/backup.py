"""Backup and restore: databases by their own online backup, so that a running exporter need not stop, and other files.

Marks are copied first: a mark that is older than everything else costs events that are sent twice, which receivers
know; one that is newer would cost the events between.
"""

import glob
import hashlib
import io
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

from exporter.core.names import MARKS, RECEIVER
from exporter.errors import LockedError, StateError, UsageError
from exporter.files import copy_database, write_private

MANIFEST: Final = "backup.json"
_FORMAT: Final = 1
_LEFT_OUT: Final = ("lock", ".writable")
_LEFT_OUT_ENDS: Final = ("-search.db", ".sock", "-wal", "-shm", "-journal", ".backup", ".new")
_DIRECTORIES: Final = ("journals", "ahp")


def back_up(state_dir: Path, target: Path, version: str) -> dict[str, Any]:
    """Copy a state directory to a new one and return the manifest; raises `UsageError` and `StateError`."""
    if not state_dir.is_dir():
        raise UsageError(f"{state_dir} is not there: there is nothing to keep", hint="see: exporter config show")
    return _backed_up(_parts(state_dir), target, version)


def back_up_store(store: Path, target: Path, version: str) -> dict[str, Any]:
    """Copy the store of a receiver in the same way."""
    if not store.is_file():
        raise UsageError(f"there is no store {store}", hint="give the path that `mission-control serve --store` has")
    return _backed_up(_stores(store), target, version)


def _tenants_of(store: Path) -> list[Path]:
    """Return the files of the other tenants of a store, without their indexes."""
    found = store.parent.glob(f"{glob.escape(store.stem)}-tenant-*{store.suffix}")
    return sorted(path for path in found if not path.stem.endswith("-search"))


def _stores(store: Path) -> Iterator[tuple[Path, Path]]:
    yield store, Path(RECEIVER)
    for path in _tenants_of(store):
        yield path, Path(Path(RECEIVER).stem + path.name.removeprefix(store.stem)).with_suffix(".db")


def _backed_up(parts: Iterator[tuple[Path, Path]], target: Path, version: str) -> dict[str, Any]:
    try:
        target.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        raise UsageError(f"{target} is there already", hint="name a directory that is not there") from None
    except OSError as error:
        raise StateError(f"{target} cannot be made: {error.strerror}", hint="name another directory") from None
    files: dict[str, dict[str, Any]] = {}
    for source, name in parts:
        path = target / name
        path.parent.mkdir(mode=0o700, exist_ok=True, parents=True)
        facts: dict[str, Any] = {}
        if name.suffix == ".db":
            facts["schema"] = _copied(source, path)
        else:
            with suppress(FileNotFoundError):  # a journal whose session has ended meanwhile
                _copy(source, path)
        if path.exists():
            files[name.as_posix()] = {"bytes": path.stat().st_size, "sha256": _sha256(path), **facts}
    manifest = {"format": _FORMAT, "version": version, "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    manifest["files"] = files
    write_private(target / MANIFEST, io.BytesIO(json.dumps(manifest, indent=2).encode() + b"\n"))
    return manifest


def _copied(source: Path, target: Path) -> int:
    try:
        return copy_database(source, target)
    except OSError as error:
        message = f"{source} cannot be copied: {error.strerror}"
        raise StateError(message, hint="check the free space and the permissions") from None


def _parts(state_dir: Path) -> Iterator[tuple[Path, Path]]:
    """Yield what a state directory holds that cannot be made again: marks first, the store of the receiver last."""
    here = [
        path
        for path in sorted(state_dir.iterdir())
        if path.is_file() and path.name not in _LEFT_OUT and ".corrupt-" not in path.name
        if not path.name.endswith(_LEFT_OUT_ENDS)
    ]
    here.sort(key=lambda path: (path.name != MARKS, path.name == RECEIVER))
    below = [path for name in _DIRECTORIES for path in sorted((state_dir / name).rglob("*")) if path.is_file()]
    last = [path for path in here if path.name == RECEIVER]
    for path in (*(one for one in here if one not in last), *below, *last):
        yield path, path.relative_to(state_dir)


def read_manifest(backup: Path, newest: Mapping[str, int]) -> dict[str, Any]:
    """Return the manifest of a backup that is whole and not of a later version; raises `StateError`.

    `newest` are the schemas that this program has, by file.
    """
    try:
        manifest: dict[str, Any] = json.loads((backup / MANIFEST).read_text(encoding="utf-8"))
        files = dict(manifest["files"])
    except (OSError, ValueError, LookupError, TypeError):
        raise StateError(
            f"{backup} is no backup: it has no {MANIFEST}", hint="give what `exporter backup` made"
        ) from None
    if manifest.get("format") != _FORMAT:
        raise StateError(f"{backup} was made by a newer version of this program", hint="install that version")
    for name, facts in files.items():
        path = backup / name
        if ".." in Path(name).parts or not path.is_file() or _sha256(path) != facts["sha256"]:
            raise StateError(f"{name} of the backup is not as it was written", hint="use another backup")
        if facts.get("schema", 0) > newest.get(name, facts.get("schema", 0)):
            message = f"{name} of the backup has schema {facts['schema']}, and this program's newest is {newest[name]}"
            raise StateError(message, hint=f"install version {manifest.get('version')} or newer")
    return manifest


def put_back(backup: Path, manifest: Mapping[str, Any], state_dir: Path) -> Path | None:
    """Put a backup in the place of a state directory; return where what was there is now, None if nothing was.

    The caller holds the lock of the directory. What was there is moved aside, not deleted.
    """
    there = [path for path in state_dir.iterdir() if path.name not in _LEFT_OUT and not path.name.endswith(".sock")]
    aside = _aside(state_dir / "before-restore") if there else None
    if aside is not None:
        aside.mkdir(mode=0o700)
        for path in there:
            if not path.name.startswith("before-restore"):
                path.rename(aside / path.name)
    for name in manifest["files"]:
        target = state_dir / name
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _copy(backup / name, target)
    return aside


def put_back_store(backup: Path, store: Path) -> Path | None:
    """Put the store of a backup in the place of a receiver's; return where that is now, None if there was none.

    The receiver must not run. The search index beside it is made again.
    """
    aside = _put_aside(store)
    for path in _tenants_of(store):
        _put_aside(path)
    _copy(backup / RECEIVER, store)
    for path in _tenants_of(backup / RECEIVER):
        name = store.stem + path.name.removeprefix(Path(RECEIVER).stem)
        _copy(path, store.with_name(name).with_suffix(store.suffix))
    return aside


def _put_aside(store: Path) -> Path | None:
    aside = _aside(store.with_name(f"{store.name}.before-restore")) if store.exists() else None
    if aside is not None:
        _refuse_in_use(store)
        store.rename(aside)
    for suffix in ("-wal", "-shm"):
        store.with_name(store.name + suffix).unlink(missing_ok=True)
    return aside


def _refuse_in_use(store: Path) -> None:
    """Raise `LockedError` while a receiver has the store open; what is in its log is written into the file."""
    try:
        with closing(sqlite3.connect(store, timeout=1.0)) as database:
            database.execute("PRAGMA journal_mode = DELETE").fetchone()  # possible for the only connection
    except sqlite3.OperationalError:
        raise LockedError(f"{store} is in use", hint="stop the receiver first") from None
    except sqlite3.DatabaseError:
        return  # it is damaged, which may be why it is replaced


def _aside(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}-{number}")).exists():
        number += 1
    return aside


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as read:
        write_private(target, read)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
