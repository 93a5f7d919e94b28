"""The key of this installation's redaction markers: made once, kept in the state directory, for this user only."""

import os
import secrets
from pathlib import Path
from typing import Final

NAME: Final = "redaction.key"
_BYTES: Final = 32


def redaction_key(state_dir: Path) -> bytes | None:
    """Return the key, made at the first use; None where nothing may be written, so that markers hold for one run."""
    path = state_dir / NAME
    try:
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(secrets.token_bytes(_BYTES))
    except FileExistsError:
        pass
    except OSError:
        return None
    return path.read_bytes() or None


def existing_key(state_dir: Path) -> bytes | None:
    """Return the key if there is one; makes nothing."""
    try:
        return (state_dir / NAME).read_bytes() or None
    except OSError:
        return None
