"""What the tests of the doctor share: sessions to find, and what was found."""

import asyncio
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from config.settings import Source
from exporter.doctor.check import Check
from exporter.doctor.doctor import doctor
from exporter.doctor.facts import Facts, SourceFacts
from exporter.wiring.sources import facts_of

SESSION: Final = "0d6f0f9c-4f4e-4a51-9d0e-0d7a8a7f0001"
Responder = Callable[[str, dict[str, str]], tuple[int, dict[str, str]]]


def event(type: str = "session.info", number: int = 1, **data: object) -> bytes:
    document = {"type": type, "data": data, "id": f"{number:08}", "timestamp": "2026-01-01T00:00:00Z", "parentId": None}
    return json.dumps(document).encode() + b"\n"


def record(facts: Facts, *lines: bytes, session: str = SESSION, age_seconds: int = 0) -> Path:
    directory = facts.copilot_home / "session-state" / session
    directory.mkdir(parents=True)
    path = directory / "events.jsonl"
    path.write_bytes(b"".join(lines))
    os.utime(path, (1_700_000_000 - age_seconds,) * 2)
    return path


def state_dir(facts: Facts) -> Path:
    facts.state_dir.mkdir(mode=0o700)
    return facts.state_dir


def told(url: str) -> SourceFacts:
    """What the doctor is told of a source that the settings name."""
    return facts_of(Source(url=url))


def only(checks: Iterator[Check]) -> Check:
    [check] = checks
    return check


def contents(directory: Path) -> dict[str, tuple[str, int]]:
    """What is in a directory: bytes and times."""
    return {
        str(path.relative_to(directory)): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in directory.rglob("*")
        if path.is_file()
    }


def examined(facts: Facts, **options: Any) -> dict[str, dict[str, str]]:
    return {check["name"]: check for check in asyncio.run(doctor(facts, **options))["checks"]}
