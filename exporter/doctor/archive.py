"""The check of an archive: is its directory private, can it be written, and is there room."""

import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from exporter.doctor.check import Check, Probe, described, existing, shown_size

_FREE_BYTES_MIN: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class ArchiveProbe:
    """A configured archive."""

    name: str
    path: Path

    async def probe(self) -> Probe:
        """Write a file and take it away again: only that shows that a file system takes one."""
        return Probe(tuple(self._checks()))

    def _checks(self) -> Iterator[Check]:
        there = existing(self.path)
        try:
            with tempfile.TemporaryFile(dir=there) as file:
                file.write(b"written by exporter doctor")
            free = shutil.disk_usage(there).free
        except OSError as error:
            remedy = "make it writable, or name another directory; the events stay in their files until then"
            yield Check(self.name, "failed", f"{there} cannot be written: {described(error)}", remedy)
            return
        detail = f"{self.path}, {shown_size(free)} free" + ("" if there == self.path else "; made when it is needed")
        mode = stat.S_IMODE(there.stat().st_mode)
        if free < _FREE_BYTES_MIN:
            yield Check(self.name, "warning", detail, "free some space; what does not fit waits in the session files")
        elif there == self.path and sys.platform != "win32" and mode & 0o077:
            remedy = f"what is in it is private all the same; to hide even that it is there: chmod 700 {self.path}"
            yield Check(self.name, "note", f"{detail}; open to other users (mode {mode:o})", remedy)
        else:
            yield Check(self.name, "ok", detail)
