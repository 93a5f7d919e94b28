"""Writes the bundled demo session as Copilot CLI would: new ids, current times, a growing file."""

import asyncio
import json
import os
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from exporter.demo.lock import let_go, take

# Like the CLI: events within this time are written together as whole lines.
FLUSH_SECONDS: Final = 0.1
_ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


async def replay(into_copilot_home: Path, *, speed: float) -> str:
    """Plays the session once into `session-state` below this directory and returns its id when it has ended.

    `speed` 1.0 takes as long as the session did, about forty seconds; 10.0 a tenth of it. Cancelling it leaves a
    session that stopped in the middle, as a killed CLI would, without its lock.
    """
    if speed <= 0:
        raise ValueError(f"the speed of a replay is above 0, not {speed}")
    script = _Script(datetime.now(UTC), speed)
    directory = into_copilot_home / "session-state" / script.session_id
    loop = asyncio.get_running_loop()
    started = loop.time()
    with _recording(directory, script.workspace()) as append:
        for due_seconds, lines in script.flushes():
            await asyncio.sleep(max(0.0, started + due_seconds - loop.time()))
            append(lines)
    return script.session_id


class _Script:
    """The bundled session, moved to the present, at a given speed, with new ids."""

    def __init__(self, now: datetime, speed: float) -> None:
        self.now = now
        self.speed = speed
        self.ids: dict[str, str] = {}
        text = files("exporter.demo").joinpath("session.jsonl").read_text(encoding="utf-8")
        self.events: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]
        self.began = datetime.fromisoformat(self.events[0]["data"]["startTime"])

    @property
    def session_id(self) -> str:
        return self._fresh_id(str(self.events[0]["data"]["sessionId"]))

    def workspace(self) -> str:
        return self._moved(files("exporter.demo").joinpath("workspace.yaml").read_text(encoding="utf-8"))

    def flushes(self) -> Iterator[tuple[float, bytes]]:
        """The lines of each write, and how many seconds after the start it is due."""
        due, lines = 0.0, b""
        for event in self.events:
            at = (datetime.fromisoformat(event["timestamp"]) - self.began).total_seconds() / self.speed
            if lines and at > due:
                yield due, lines
                lines = b""
            if not lines:
                due = at + FLUSH_SECONDS
            lines += self._moved(json.dumps(event, separators=(",", ":"), ensure_ascii=False)).encode() + b"\n"
        yield due, lines

    def _moved(self, text: str) -> str:
        """The text with every id replaced and every time moved; the same id always becomes the same fresh one."""
        return _TIME.sub(
            lambda found: self._moved_time(found[0]), _ID.sub(lambda found: self._fresh_id(found[0]), text)
        )

    def _fresh_id(self, old: str) -> str:
        return self.ids.setdefault(old, str(uuid.uuid4()))

    def _moved_time(self, text: str) -> str:
        moved = self.now + timedelta(seconds=(datetime.fromisoformat(text) - self.began).total_seconds() / self.speed)
        return moved.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@contextmanager
def _recording(directory: Path, workspace: str) -> Iterator[Callable[[bytes], None]]:
    """A session directory as the CLI keeps it: 0700, files 0600, a lock with our pid while in the block.

    It gives what appends whole lines in one write; the file appears with the first of them.
    """
    directory.mkdir(mode=0o700, parents=True)
    take(directory)
    fresh = directory / "workspace.yaml.tmp"
    fresh.touch(mode=0o600)
    fresh.write_text(workspace, encoding="utf-8")
    fresh.replace(directory / "workspace.yaml")

    def append(lines: bytes) -> None:
        handle = os.open(directory / "events.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, lines)
        finally:
            os.close(handle)

    try:
        yield append
    finally:
        let_go(directory)
