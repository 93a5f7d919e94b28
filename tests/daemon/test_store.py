"""What the exporter remembers: crashes between effects, a disk that refuses, a database that is lost."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exporter.core.events.redaction import Redacted
from exporter.errors import Exit
from exporter.pipeline.redactors import Redactors
from exporter.state.marks import StoreUnwritableError
from tests.daemon.exchange import Reply
from tests.daemon.peer import Peer
from tests.daemon.station import Exporter, Station, never, until

pytestmark = pytest.mark.anyio


class CrashError(Exception):
    """Where a test lets the exporter die."""


def _fail_commits(exporter: Exporter, fails: Callable[[list[str]], Exception | None]) -> None:
    """Let commits of the store fail before they write, as `fails` says from the ids of the batch."""
    store: Any = exporter.running.daemon.store
    original = store.commit

    def commit(session: str, sink: int, mark: Any, ids: list[str], hashes: list[bytes], masked: Any, *more: Any) -> Any:
        error = fails(ids)
        if error is not None:
            raise error
        return original(session, sink, mark, ids, hashes, masked)

    store.commit = commit


async def test_a_crash_between_the_answer_and_the_mark_repeats_one_batch(station: Station, full: Peer) -> None:
    session = station.session()
    exporter = station.exporter(full)
    _fail_commits(exporter, lambda ids: CrashError() if "e700" in ids else None)
    session.add(2000)
    await until(lambda: "e700" in full.ids())
    await exporter.crash(full)
    before = len(full.event_requests())

    again = station.exporter(full)
    assert await again.idle() == Exit.DONE

    assert full.ids() == session.durable_ids()
    assert await again.differences() == []
    stored_before = {identity for request in full.event_requests()[:before] for identity in request.ids()}
    repeated = [request for request in full.event_requests()[before:] if stored_before.intersection(request.ids())]
    assert len(repeated) <= 1


async def test_after_a_crash_reading_goes_on_at_the_mark(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(600)
    first = station.exporter(floor)
    await first.idle()
    await first.crash(floor)
    read: list[bytes] = []

    def redact(line: bytes, /) -> Redacted:
        read.append(line)
        return line

    session.append(b'{"id":"new","type":"x"}')
    again = station.exporter(floor, redaction=Redactors(redact, lambda text: text))
    await again.idle()

    assert read == [b'{"id":"new","type":"x"}']
    assert not any("from its first event" in notice.message for notice in again.notices)
    assert floor.ids() == session.durable_ids()


async def test_a_crash_at_the_floor_repeats_one_batch(station: Station, floor: Peer) -> None:
    session = station.session()
    exporter = station.exporter(floor)
    _fail_commits(exporter, lambda ids: CrashError() if "e700" in ids else None)
    session.add(2000)
    await until(lambda: "e700" in floor.ids())
    await exporter.crash(floor)

    again = station.exporter(floor)
    await again.idle()

    sent = [identity for request in floor.event_requests() for identity in request.ids()]
    assert floor.ids() == session.durable_ids()
    assert len(sent) - len(set(sent)) <= 500
    assert await again.differences() == []


async def test_a_crash_before_the_answer_repeats_one_batch(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(100)
    full.next_replies.append(Reply(heard=True, delay=0.3))
    exporter = station.exporter(full)
    await until(lambda: bool(full.event_requests()))
    await exporter.crash(full)

    again = station.exporter(full)
    await again.idle()

    assert full.ids() == session.durable_ids()
    assert await again.differences() == []


async def test_a_crash_while_a_rewind_is_told_leaves_both_equal(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(50)
    exporter = station.exporter(full)
    await exporter.idle()
    full.script = lambda request: Reply(heard=True, hang=True) if b'"rewound"' in request.body else None
    session.replace(*session.lines()[:20])
    session.append(*session.make(10, prefix="new"))
    await until(lambda: any(b'"rewound"' in request.body for request in full.event_requests()))
    full.script = lambda request: None
    await exporter.crash()

    again = station.exporter(full)
    await again.idle()

    assert full.ids() == session.durable_ids()
    assert await again.differences() == []


async def test_a_disk_that_refuses_marks_pauses_the_session_until_it_does_not(
    station: Station, full: Peer, fast_clock: float
) -> None:
    session = station.session()
    exporter = station.exporter(full)
    full_disk = [True]
    _fail_commits(exporter, lambda ids: StoreUnwritableError("database or disk is full") if full_disk[0] else None)
    session.add(2000)
    await until(lambda: bool(exporter.alarms()))
    sent = len(full.event_requests())

    await never(lambda: len(full.event_requests()) > sent + 1, 0.3)
    assert len(exporter.alarms()) == 1
    status = await exporter.sink_status()
    assert status["state"] == "stopped"
    assert "database or disk is full" in status["last_error"]
    full_disk[0] = False

    await until(lambda: full.ids() == session.durable_ids())
    assert await exporter.idle() == Exit.DONE
    assert "the session goes on" in [notice.message for notice in exporter.notices]
    assert (await exporter.sink_status())["last_error"] is None
    assert await exporter.differences() == []


async def test_a_quarantine_that_cannot_be_written_holds_the_session(
    station: Station, full: Peer, fast_clock: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = station.session()
    session.add(3)
    exporter = station.exporter(full)
    await exporter.idle()
    quarantine = exporter.running.daemon.quarantine
    original = quarantine.add

    def refuse(*args: Any, **kwargs: Any) -> int:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(quarantine, "add", refuse)
    session.append(b"rubbish")
    session.add(3)
    await until(lambda: bool(exporter.alarms()))
    assert full.ids() == ["e0", "e1", "e2"]
    monkeypatch.setattr(quarantine, "add", original)

    await until(lambda: full.ids() == session.durable_ids())
    assert [one["reason"] for one in await exporter.quarantined()] == ["not_json"]


def _destroy(state: Path, how: str) -> None:
    marks = state / "marks.db"
    if how == "zeroed":
        for path in (marks, marks.with_name("marks.db-wal")):
            if path.exists():
                path.write_bytes(bytes(path.stat().st_size))
    elif how == "garbage":
        marks.write_bytes(b"this is no database" * 500)
    elif how == "truncated":
        for path in (marks, marks.with_name("marks.db-wal")):
            if path.exists():
                path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])
    elif how == "removed":
        for path in state.glob("marks.db*"):
            path.unlink()


@pytest.mark.parametrize("how", ["zeroed", "garbage", "truncated", "removed"])
async def test_a_store_that_is_lost_is_rebuilt_by_asking_the_receiver(station: Station, full: Peer, how: str) -> None:
    session = station.session()
    session.add(1200)
    first = station.exporter(full)
    await first.idle()
    await first.stop()
    before = len(full.event_requests())
    _destroy(station.state, how)
    session.add(10)

    exporter = station.exporter(full)
    assert await exporter.idle() == Exit.DONE

    assert full.ids() == session.durable_ids()
    assert sum(len(request.ids()) for request in full.event_requests()[before:]) <= 10 + 500
    assert await exporter.differences() == []
    session.add(1)
    await until(lambda: full.ids() == session.durable_ids())


async def test_a_store_that_is_lost_at_the_floor_sends_everything_again(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(600)
    first = station.exporter(floor)
    await first.idle()
    await first.stop()
    _destroy(station.state, "zeroed")

    exporter = station.exporter(floor)
    assert await exporter.idle() == Exit.DONE

    assert floor.ids() == session.durable_ids()
    assert await exporter.differences() == []


async def test_a_store_damaged_while_running_is_rebuilt_and_the_daemon_lives(
    station: Station, full: Peer, fast_clock: float
) -> None:
    session = station.session()
    session.add(1200)
    exporter = station.exporter(full)
    await exporter.idle()
    for path in station.state.glob("marks.db*"):
        with path.open("r+b") as file:
            file.write((b"\0" if path.name.endswith("-shm") else b"\xff") * path.stat().st_size)

    session.add(10)
    await until(lambda: full.ids() == session.durable_ids())
    session.add(10)
    await until(lambda: full.ids() == session.durable_ids())

    assert await exporter.idle() == Exit.DONE
    assert await exporter.differences() == []
    assert list(station.state.glob("marks.db.corrupt-*"))


async def test_a_torn_quarantine_is_set_aside_and_the_exporter_starts(station: Station, full: Peer) -> None:
    session = station.session()
    session.append(b"rubbish")
    session.add(3)
    first = station.exporter(full)
    await first.idle()
    await first.stop()
    for path in station.state.glob("quarantine.db*"):
        path.write_bytes(bytes(path.stat().st_size))
    session.add(3)

    exporter = station.exporter(full)
    await exporter.idle()

    assert full.ids() == session.durable_ids()
    assert any("set aside" in notice.message for notice in exporter.alarms())
