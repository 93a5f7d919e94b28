"""A file read once gives its durable events, whatever else is in it."""

import os
from pathlib import Path

import pytest

from exporter.core.events.envelope import Envelope
from exporter.sources.files.history import durable_events
from tests.core.made_events import event


def read(path: Path, line_bytes_max: int = 1 << 20) -> list[tuple[str, bytes]]:
    return [(envelope.id, raw) for envelope, raw in durable_events(path, line_bytes_max)]


def test_durable_events_come_in_order_with_their_bytes(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    a, b, c, d = event("a"), event("b", ephemeral=True), event("c", data='"\\ud800"'), event("d")
    path.write_bytes(a + b"\n" + b + b"\nrubbish\n\n " + c + b"\r\n" + d + b + a[:30] + d + b"\n" + event("torn"))

    assert read(path) == [("a", a), ("c", c), ("d", d), ("d", d)]


def test_a_line_too_long_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(event("a") + b"\n" + event("long", data='"' + "x" * 3_000_000 + '"') + b"\n" + event("b") + b"\n")

    assert [identity for identity, _ in read(path)] == ["a", "b"]


def test_it_can_be_left_before_its_end(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(event(str(number)) + b"\n" for number in range(9)))

    events = durable_events(path, 1000)
    first, _ = next(events)
    events.close()  # type: ignore[attr-defined]  # it is a generator, which an Iterator need not be

    assert isinstance(first, Envelope)
    assert first.id == "0"


@pytest.mark.parametrize("kind", ["missing", "directory", "loop", "pipe", "below a file"])
def test_what_is_no_file_has_no_events_and_does_not_block(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "events.jsonl"
    if kind == "directory":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "below a file":
        path.touch()
        path = path / "events.jsonl"

    assert read(path) == []
