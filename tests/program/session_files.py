"""Session files as the CLI writes them: whole lines appended, one chain of parentId, ephemeral events in between."""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

TIMESTAMP: Final = "2026-11-18T09:58:24.100Z"
TEXT: Final = "the build is green and every test of the module has passed so we can go on with the next step"
WORDS: Final = TEXT.split()


def event_id(line: bytes) -> str:
    """The id of an event's line, read without any code of the program."""
    return str(json.loads(line)["id"])


def durable_lines(path: Path) -> list[bytes]:
    """What a receiver must hold of this file: its durable events, each id once, in order."""
    lines: dict[str, bytes] = {}
    for line in path.read_bytes().split(b"\n"):
        if line and not (event := json.loads(line)).get("ephemeral", False):
            lines.setdefault(event["id"], line)
    return list(lines.values())


class SessionFile:
    """One session directory and the writer of its events.jsonl."""

    def __init__(self, home: Path, seed: int) -> None:
        self.chance = Random(seed)
        self.id = self.new_id()
        self.directory = home / "session-state" / self.id
        self.path = self.directory / "events.jsonl"
        self.parent: str | None = None

    def new_id(self) -> str:
        """An id nobody else has, the same in every run."""
        return str(UUID(int=self.chance.getrandbits(128), version=4))

    def create(self) -> "SessionFile":
        """Make the directory, as the CLI does before it writes anything."""
        self.directory.mkdir(mode=0o700, parents=True)
        return self

    def event(self, *, text: str | None = None, ephemeral: bool = False, **fields: Any) -> bytes:
        """A line that continues the chain; an ephemeral one does not."""
        words = self.chance.choices(WORDS, k=self.chance.randint(5, 120)) if text is None else [text]
        event = {
            "type": "assistant.message_delta" if ephemeral else "assistant.message",
            "data": {"content": " ".join(words)},
            "id": self.new_id(),
            "timestamp": TIMESTAMP,
            "parentId": self.parent,
            **fields,
        }
        if ephemeral:
            event["ephemeral"] = True
        else:
            self.parent = str(event["id"])
        return json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode()

    def events(self, count: int) -> list[bytes]:
        """So many durable events, and about one ephemeral one to every four of them."""
        lines: list[bytes] = []
        for _ in range(count):
            if self.chance.random() < 0.25:
                lines.append(self.event(ephemeral=True))
            lines.append(self.event())
        return lines

    def append(self, lines: Iterable[bytes]) -> None:
        """One write of whole lines, as the CLI does."""
        self.append_bytes(b"".join(line + b"\n" for line in lines))

    def append_bytes(self, content: bytes) -> None:
        """One write of anything."""
        descriptor = os.open(self.path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]
        finally:
            os.close(descriptor)

    def write(self, count: int) -> "SessionFile":
        """Append so many durable events with ephemeral ones between them."""
        self.append(self.events(count))
        return self

    def replace(self, lines: Sequence[bytes]) -> None:
        """Put another file in its place atomically, as the CLI's rewind does."""
        new = self.path.with_name("events.jsonl.tmp")
        new.write_bytes(b"".join(line + b"\n" for line in lines))
        new.replace(self.path)
        self.continue_after(lines)

    def continue_after(self, lines: Sequence[bytes]) -> None:
        """Let the chain go on from the last of these lines."""
        self.parent = event_id(lines[-1]) if lines else None

    def durable(self) -> list[bytes]:
        """What a receiver must hold of this session now."""
        return durable_lines(self.path)


def write_large(session: SessionFile, size_bytes: int) -> int:
    """Fill a session's file with this many bytes of events of about 1.8 KB quickly; returns how many are durable."""
    filler = " ".join(session.chance.choices(WORDS, k=330))
    count = 0
    with session.path.open("ab") as file:
        while file.tell() < size_bytes:
            lines = [session.event(text=filler, ephemeral=number % 5 == 4) for number in range(500)]
            file.write(b"\n".join(lines) + b"\n")
            count += 400
    return count
