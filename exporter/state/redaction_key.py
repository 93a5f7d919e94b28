"""The key of this installation's redaction markers: made once, kept in the state directory, for this user only."""

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
    """Return the key, made at the first use; None where nothing may be written, so that markers hold for one run.

    Raises `StateError` for a key that is shorter than those made here: from its tags secrets could be guessed.
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
    """Return the key if there is one; makes nothing, and raises `StateError` as `redaction_key` does."""
    try:
        return _read(state_dir / NAME)
    except OSError:
        return None


def has_key(state_dir: Path) -> bool:
    """Tell whether there is a key, whatever it is worth."""
    try:
        return (state_dir / NAME).stat().st_size > 0
    except OSError:
        return False


def _read(path: Path) -> bytes | None:
    """Return the key, None without one. An empty file is none: nothing was ever tagged with it."""
    try:
        key = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if 0 < len(key) < BYTES:
        raise StateError(f"{path} is no key: it has {len(key)} of {BYTES} bytes", hint=REMEDY)
    return key or None


def _make(path: Path) -> None:
    """Put a whole key there, unless another process was faster."""
    made = path.with_name(f"{NAME}.{os.getpid()}")
    try:
        with os.fdopen(os.open(made, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
            file.write(secrets.token_bytes(BYTES))
        with suppress(OSError):  # it is there, or this file system has no links
            os.link(made, path)
        if _read(path) is None:
            made.replace(path)
    finally:
        made.unlink(missing_ok=True)
