"""Session files as the CLI writes them, under the control of a test."""

import json
import os
from pathlib import Path
from typing import Any


def event(identity: str, *, parent: str | None = None, size: int = 0, ephemeral: bool = False, **data: Any) -> bytes:
    """Return one line without its newline, about `size` bytes long when that is given."""
    body: dict[str, Any] = {"type": "tool.x", "data": data, "id": identity, "timestamp": "2026-11-18T10:00:00.000Z"}
    body["parentId"] = parent
    if ephemeral:
        body["ephemeral"] = True
    line = json.dumps(body, separators=(",", ":")).encode()
    if size > len(line):
        data["padding"] = "x" * (size - len(line) - len('"padding":"",'))
        line = json.dumps({**body, "data": data}, separators=(",", ":")).encode()
    return line


class SessionFile:
    """One session directory with its events.jsonl."""

    def __init__(self, root: Path, name: str = "s") -> None:
        self.name = name
        self.directory = root / "session-state" / name
        self.directory.mkdir(parents=True)
        self.path = self.directory / "events.jsonl"
        self._count = 0

    def make(self, count: int, *, size: int = 0, prefix: str = "e") -> list[bytes]:
        """Return new events with ids that go on counting."""
        first, self._count = self._count, self._count + count
        return [event(f"{prefix}{number}", size=size) for number in range(first, first + count)]

    def append(self, *lines: bytes) -> None:
        """Append whole lines in one write."""
        self.append_raw(b"".join(line + b"\n" for line in lines))

    def append_raw(self, data: bytes) -> None:
        """Append bytes as they are."""
        with self.path.open("ab") as file:
            file.write(data)

    def add(self, count: int, *, size: int = 0) -> list[str]:
        """Append new events; return their ids."""
        lines = self.make(count, size=size)
        self.append(*lines)
        return [json.loads(line)["id"] for line in lines]

    def replace(self, *lines: bytes) -> None:
        """Put another file in the place of this one, as a rewind does."""
        temporary = self.path.with_name("events.jsonl.tmp")
        temporary.write_bytes(b"".join(line + b"\n" for line in lines))
        temporary.replace(self.path)

    def overwrite(self, *lines: bytes) -> None:
        """Truncate the file in place and write it again."""
        self.path.write_bytes(b"".join(line + b"\n" for line in lines))

    def lines(self) -> list[bytes]:
        """Return the whole lines in the file."""
        return self.path.read_bytes().split(b"\n")[:-1] if self.path.exists() else []

    def durable_ids(self) -> list[str]:
        """Return the ids of the durable events in the file, each once, in order."""
        found: dict[str, None] = {}
        for line in self.lines():
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict) and isinstance(value.get("id"), str) and not value.get("ephemeral"):
                found[value["id"]] = None
        return list(found)

    def age(self, days: float) -> None:
        """Make the file look as if it had been changed so long ago."""
        moment = self.path.stat().st_mtime - days * 86_400
        os.utime(self.path, (moment, moment))
