"""The stored checkpoints of one agent host's sessions; without them a restart of both sides could duplicate events.

The journal recognises every event by its id. That is enough until a restarted host splits the same history into
other parts; then only the checkpoint says how much of which turn was recorded.
"""

import os
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Final

import xxhash

from exporter.core.names import SESSION_NAME

BYTES_MAX: Final = 16 << 20
KEPT_SECONDS: Final = 90 * 86_400.0
_SUFFIX: Final = ".json"
_CLIENT: Final = "client"


class AhpMarks:
    """The checkpoints of one host, one file per session. Raises `OSError` when the directory cannot be used."""

    def __init__(self, root: Path, host: str) -> None:
        self._root = root / xxhash.xxh3_64_hexdigest(host.encode())
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._expire()

    def client(self) -> str:
        """Return the client id that the host knows this exporter by; it never changes."""
        path = self._root / _CLIENT
        try:
            found = path.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            found = ""
        if SESSION_NAME.fullmatch(found):
            return found
        made = f"exporter-{uuid.uuid4()}"
        self._write(path, made.encode())
        return made

    def load(self, session: str) -> bytes | None:
        """Return the stored state of a session; None if there is none or it cannot be read."""
        if SESSION_NAME.fullmatch(session) is None:
            return None
        try:
            with (self._root / f"{session}{_SUFFIX}").open("rb") as file:
                return file.read(BYTES_MAX)
        except OSError:
            return None

    def save(self, session: str, mark: bytes) -> None:
        """Replace the stored state of a session atomically."""
        if SESSION_NAME.fullmatch(session) is not None and len(mark) <= BYTES_MAX:
            self._write(self._root / f"{session}{_SUFFIX}", mark)

    def _expire(self) -> None:
        """Remove the state of sessions without events for a long time; their event ids stay the same."""
        for path in self._root.glob(f"*{_SUFFIX}"):
            with suppress(OSError):
                if path.stat().st_mtime < time.time() - KEPT_SECONDS:
                    path.unlink()

    def _write(self, path: Path, content: bytes) -> None:
        beside = path.with_name(f".{path.name}.new")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        beside.replace(path)
