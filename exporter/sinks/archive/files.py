"""A directory as the store of an archive: a temporary file, fsync, rename, fsync of the directory."""

import os
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from exporter.sinks.archive.objects import ObjectError

_PARTIAL: Final = ".partial"
"""Where files are written before they get their name. What a kill has left there is deleted at the next start."""


class ObjectFiles:
    """Keeps every object in a file of its own; directories are 0700 and files 0600."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._swept = False
        self._sweeping = threading.Lock()

    def put(self, key: str, data: bytes) -> None:
        path = self._root / key
        with _told("written"):
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
        with _told("read"):
            try:
                return (self._root / key).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None

    def list(self, prefix: str) -> Sequence[str]:
        with _told("read"):
            try:
                entries = sorted((self._root / prefix).iterdir())
            except (FileNotFoundError, NotADirectoryError):
                return []
            return [f"{prefix}{entry.name}" for entry in entries if entry.is_file()]

    def delete(self, key: str) -> None:
        path = self._root / key
        with _told("written"):
            path.unlink(missing_ok=True)
            _sync(path.parent)

    def _sweep(self) -> None:
        """Delete, once, what a kill has left half written."""
        with self._sweeping:
            if not self._swept:
                _make(self._root / _PARTIAL)
                for left in (self._root / _PARTIAL).iterdir():
                    left.unlink(missing_ok=True)
                self._swept = True


@contextmanager
def _told(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ObjectError(f"the archive cannot be {what}: {error.strerror or error}") from error


def _make(directory: Path) -> None:
    """Make a directory and those above it, each durably."""
    if not directory.is_dir():
        _make(directory.parent)
        with suppress(FileExistsError):
            directory.mkdir(mode=0o700)
        _sync(directory.parent)


def _write(path: Path, data: bytes) -> None:
    _make(path.parent)  # somebody may have deleted it
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync(directory: Path) -> None:
    """Make the names in a directory durable, where a system knows how."""
    if os.name == "nt":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
