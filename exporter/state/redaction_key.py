"""The key of this installation's redaction markers: created once, readable by this user only, checked when it is read.

The file ends with a checksum of what is before it, because a crash may leave a file that is short or full of zeros.
"""

import hashlib
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from exporter.core.notice import Level, Notice, NoticeName
from exporter.state.lock import one_at_a_time

NAME: Final = "redaction.key"
BYTES: Final = 40
REMEDY: Final = (
    "put it back from a backup, or start the exporter, which sets it aside and makes a new one: then the same secret "
    "gets another tag than before"
)
_SAID: Final = "the key of the markers was damaged and was set aside; with the new one the same secret gets another tag"
_RANDOM_BYTES: Final = 32
_ZEROS: Final = bytes(8)


def redaction_key(state_dir: Path, say: Callable[[Notice], None]) -> bytes | None:
    """Return the key, created at its first use; None if it cannot be written, so that markers are valid for one run.

    A damaged key is never returned: it is set aside, which is said, and there is a new key.
    """
    path = state_dir / NAME
    if (key := _read(path)) is None:
        try:
            with one_at_a_time(state_dir):  # so that nobody sets aside the key that another process has just made
                if (key := _read(path)) is None:
                    from exporter.state.database import set_aside  # which is rare, and brings SQLite

                    if aside := set_aside(path):
                        say(Notice(NoticeName.KEY_SET_ASIDE, Level.ERROR, _SAID, fields={"as": aside.name}))
                    key = _make(path)
        except OSError:
            return None
    return key


def existing_key(state_dir: Path) -> bytes | None:
    """Return the key if there is one that is undamaged; creates none."""
    try:
        return _read(state_dir / NAME)
    except OSError:
        return None


def is_undamaged(key: bytes) -> bool:
    """Tell whether this is a whole key; one of an earlier version has no checksum."""
    made, checksum = key[:_RANDOM_BYTES], key[_RANDOM_BYTES:]
    return len(made) == _RANDOM_BYTES and _ZEROS not in made and checksum in (b"", _checksum(made))


def _checksum(made: bytes) -> bytes:
    return hashlib.blake2b(made, digest_size=BYTES - _RANDOM_BYTES).digest()


def _read(path: Path) -> bytes | None:
    """Return the key, None if there is none or a damaged one."""
    try:
        key = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return key if is_undamaged(key) else None


def _make(path: Path) -> bytes:
    """Write a complete key and return it."""
    made = secrets.token_bytes(_RANDOM_BYTES)
    key, beside = made + _checksum(made), path.with_name(f"{NAME}.{os.getpid()}")
    try:
        with os.fdopen(os.open(beside, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        with suppress(OSError):  # it exists, or this file system has no links
            os.link(beside, path)
        if (found := _read(path)) is None:
            beside.replace(path)
        return found or key
    finally:
        beside.unlink(missing_ok=True)
