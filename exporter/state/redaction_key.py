"""The key of this installation's redaction markers: created once, readable by this user only."""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from exporter.errors import StateError

NAME: Final = "redaction.key"
BYTES: Final = 32
REMEDY: Final = (
    "put it back from a backup, or delete it for a new one: then the same secret gets another tag than before"
)


def redaction_key(state_dir: Path) -> bytes | None:
    """Return the key, created at its first use; None if it cannot be written, so that markers are valid for one run.

    Raises `StateError` for a key that is too short: secrets could be guessed from its tags.
    """
    path = state_dir / NAME
    key = _read(path)
    if key is None:
        try:
            _make(path)
        except OSError:
            return None
        key = _read(path)
    return key


def existing_key(state_dir: Path) -> bytes | None:
    """Return the key if there is one; creates none, and raises `StateError` like `redaction_key`."""
    try:
        return _read(state_dir / NAME)
    except OSError:
        return None


def has_key(state_dir: Path) -> bool:
    """Tell whether there is a key, valid or not."""
    try:
        return (state_dir / NAME).stat().st_size > 0
    except OSError:
        return False


def _read(path: Path) -> bytes | None:
    """Return the key, None if there is none. An empty file is no key: no tag was made with it."""
    try:
        key = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if 0 < len(key) < BYTES:
        raise StateError(f"{path} is no key: it has {len(key)} of {BYTES} bytes", hint=REMEDY)
    return key or None


def _make(path: Path) -> None:
    """Write a complete key, unless another process was faster."""
    made = path.with_name(f"{NAME}.{os.getpid()}")
    try:
        with os.fdopen(os.open(made, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
            file.write(secrets.token_bytes(BYTES))
        with suppress(OSError):  # it exists, or this file system has no links
            os.link(made, path)
        if _read(path) is None:
            made.replace(path)
    finally:
        made.unlink(missing_ok=True)
