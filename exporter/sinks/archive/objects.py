"""The store of an archive: an interface of four methods, so that other kinds can follow, and a directory as a store.

The directory writes a temporary file, then fsync, rename, fsync of the directory.
"""

import os
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol


class ObjectError(Exception):
    """An object cannot be stored, read or deleted now. Whether it was stored is unknown, but never a part of it."""


class ObjectStore(Protocol):
    """Bytes by key, such as `sessions/ID/NAME`. All methods block, are for any thread, and raise `ObjectError`."""

    def put(self, key: str, data: bytes) -> None:
        """Store the bytes durably before it returns, replacing those of this key; never only a part of them."""

    def get(self, key: str) -> bytes | None:
        """Return the bytes, None if there are none."""

    def list(self, prefix: str) -> Sequence[str]:
        """Return the keys below a prefix that ends in a slash."""

    def delete(self, key: str) -> None:
        """Delete the bytes durably, if there are any."""


_PARTIAL: Final = ".partial"
"""Where files are written before they are renamed. Leftovers of a kill are deleted at the next start."""


class ObjectFiles:
    """Stores every object in a file of its own; directories are 0700 and files 0600."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._swept = False
        self._sweeping = threading.Lock()

    def put(self, key: str, data: bytes) -> None:
        path = self._root / key
        with _reported("written"):
            self._sweep()
            _make(path.parent)
            partial = self._root / _PARTIAL / uuid.uuid4().hex
            try:
                _write(partial, data)
                partial.replace(path)
            except OSError:
                with suppress(OSError):
                    partial.unlink(missing_ok=True)
                raise
            _sync(path.parent)

    def get(self, key: str) -> bytes | None:
        with _reported("read"):
            try:
                return (self._root / key).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None

    def list(self, prefix: str) -> Sequence[str]:
        with _reported("read"):
            try:
                entries = sorted((self._root / prefix).iterdir())
            except (FileNotFoundError, NotADirectoryError):
                return []
            return [f"{prefix}{entry.name}" for entry in entries if entry.is_file()]

    def delete(self, key: str) -> None:
        path = self._root / key
        with _reported("written"):
            path.unlink(missing_ok=True)
            _sync(path.parent)

    def _sweep(self) -> None:
        """Delete, once, the incomplete files that a kill has left."""
        with self._sweeping:
            if not self._swept:
                _make(self._root / _PARTIAL)
                for left in (self._root / _PARTIAL).iterdir():
                    left.unlink(missing_ok=True)
                self._swept = True


@contextmanager
def _reported(what: str) -> Iterator[None]:
    """Raise `ObjectError` for an OSError in the block."""
    try:
        yield
    except OSError as error:
        raise ObjectError(f"the archive cannot be {what}: {error.strerror or error}") from error


def _make(directory: Path) -> None:
    """Create a directory and its parents, each durably."""
    if not directory.is_dir():
        _make(directory.parent)
        with suppress(FileExistsError):
            directory.mkdir(mode=0o700)
        _sync(directory.parent)


def _write(path: Path, data: bytes) -> None:
    _make(path.parent)  # it may have been deleted
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync(directory: Path) -> None:
    """Make the names in a directory durable, if the system supports that."""
    if os.name == "nt":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
