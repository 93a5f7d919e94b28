"""Two installations with one identity, a state directory that was copied: neither hides what the other sent."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from exporter.core.notice import Level
from exporter.daemon.status_report import Reports
from exporter.errors import Exit
from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.ingest import write_jobs
from exporter.missioncontrol.store.sqlite.store import SqliteStore
from exporter.missioncontrol.store.tokens import OWNER
from tests.daemon.peer import Peer
from tests.daemon.receivers import Full
from tests.daemon.sessions import SessionFile
from tests.daemon.station import Exporter, Station, until

pytestmark = pytest.mark.anyio

NOW = "2026-11-19T10:00:00.000Z"


def _copy(station: Station, session: SessionFile, to: Path) -> tuple[Station, SessionFile]:
    """Copy the machine: its state directory and its session."""
    shutil.copytree(station.copilot, to / "copilot")
    shutil.copytree(station.state, to / "state")
    other = Station.__new__(Station)
    other.copilot, other.state, other.exporters = to / "copilot", to / "state", []
    copied = SessionFile.__new__(SessionFile)
    copied.name, copied.directory = session.name, to / "copilot" / "session-state" / session.name
    copied.path, copied._count = copied.directory / "events.jsonl", session._count
    return other, copied


@asynccontextmanager
async def _reporting(*exporters: Exporter) -> AsyncIterator[None]:
    runnings = [one.running for one in exporters]
    tasks = [asyncio.create_task(Reports(one.daemon, str, "laptop", one.installation).run()) for one in runnings]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _rest(*exporters: Exporter) -> None:
    """Wait until no exporter has anything to send, and none asks about anything."""
    for _ in range(3):
        for one in exporters:
            assert await one.idle() == Exit.DONE


async def _both(station: Station, full: Peer, tmp_path: Path) -> tuple[Exporter, Exporter, SessionFile, SessionFile]:
    """Deliver ten events, copy the machine while nothing runs, and start an exporter on both."""
    session = station.session()
    session.add(10)
    first = station.exporter(full)
    async with _reporting(first):  # which is given its identity
        await first.idle()
    await first.stop()
    other, copied = _copy(station, session, tmp_path / "copy")
    one, two = station.exporter(full), other.exporter(full)
    station.exporters.append(two)
    return one, two, session, copied


async def test_neither_installation_hides_what_the_other_sent(station: Station, full: Peer, tmp_path: Path) -> None:
    one, two, session, copied = await _both(station, full, tmp_path)

    for turn in range(3):
        session.append(*session.make(4, prefix="a"))
        copied.append(*copied.make(4, prefix="b"))
        await _rest(one, two) if turn else await asyncio.gather(one.idle(), two.idle())
    session.append(*session.make(1, prefix="a"))
    await _rest(one, two)

    assert set(full.ids()) == {*session.durable_ids(), *copied.durable_ids()}
    assert len(full.ids()) == len(session.durable_ids()) + 12
    assert await one.differences() == await two.differences() == []


async def test_what_the_other_sent_is_not_hidden_after_a_start_and_a_rewind(
    station: Station, full: Peer, tmp_path: Path
) -> None:
    one, two, session, copied = await _both(station, full, tmp_path)
    copied.append(*copied.make(4, prefix="b"))
    await two.idle()
    session.append(*session.make(4, prefix="a"))
    await one.idle()
    await two.stop()
    await one.stop()

    session.replace(*session.path.read_bytes().splitlines()[:-2])  # a rewind by two events of its own
    again = station.exporter(full)
    assert await again.idle() == Exit.DONE

    assert set(full.ids()) == {*session.durable_ids(), *copied.durable_ids()}
    assert "a13" not in full.ids()
    assert await again.differences() == []


async def test_a_lost_memory_hides_what_is_gone_and_nothing_of_another(
    station: Station, full: Peer, tmp_path: Path
) -> None:
    one, two, session, copied = await _both(station, full, tmp_path)
    copied.append(*copied.make(4, prefix="b"))
    await two.idle()
    await one.idle()
    await one.stop()
    for file in station.state.glob("marks.db*"):
        file.unlink()
    session.replace(*session.path.read_bytes().splitlines()[:-2])
    await two.stop()

    again = station.exporter(full)
    assert await again.idle() == Exit.DONE

    assert set(full.ids()) == {*session.durable_ids(), *(f"b{number}" for number in range(10, 14))}


async def _shown(receiver: Full) -> tuple[dict[str, Any], str, str]:
    app = create_app(receiver.store)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        [exporter] = (await client.get("/api/v1/exporters")).json()["exporters"]
        return exporter, (await client.get("/health")).text, (await client.get("/metrics")).text


async def _lapsed(receiver: Full) -> tuple[dict[str, Any], str, str]:
    """Return what is shown when the last reports are old; one that is on its way arrives in between."""
    end = time.perf_counter() + 15
    while True:
        receiver.store.do(
            lambda database: database.execute("UPDATE exporters SET reported_at = '2026-01-01T00:00:00Z'")
        )
        shown = await _shown(receiver)
        if not shown[0]["copies"] or time.perf_counter() > end:
            return shown
        await asyncio.sleep(0.05)


@pytest.mark.usefixtures("fast_clock")
async def test_both_exporters_and_the_receiver_notice_the_copy(station: Station, full: Peer, tmp_path: Path) -> None:
    one, two, _, _ = await _both(station, full, tmp_path)

    def warned(exporter: Exporter) -> list[str]:
        return [notice.message for notice in exporter.notices if notice.level is Level.WARNING]

    async with _reporting(one, two):
        await until(lambda: warned(one) and warned(two))
        assert isinstance(full.behind, Full)
        shown, page, metrics = await _shown(full.behind)
    ended, page_after, metrics_after = await _lapsed(full.behind)

    assert all("was copied" in text for text in (*warned(one), *warned(two)))
    assert [(await exporter.sink_status())["copies"] for exporter in (one, two)] == [1, 1]
    assert (shown["copies"], len(shown["installations"])) == (1, 2)
    assert "2 installations report under this id" in page
    assert "exporter_receiver_exporters_copied 1" in metrics
    assert (ended["copies"], ended["installations"]) == (0, {})
    assert "report under this id" not in page_after
    assert "exporter_receiver_exporters_copied 0" in metrics_after


def _report(store: SqliteStore, installation: str, seconds: int) -> int:
    now = f"2026-11-19T10:{seconds // 60:02}:{seconds % 60:02}.000Z"
    report = {"installation": installation}
    copies, _ = store.do(lambda database: write_jobs.report_exporter(database, "x", report, now, OWNER))
    return copies


def test_an_installation_that_was_moved_or_started_again_is_no_copy(tmp_path: Path) -> None:
    one, two = "1" * 16, "2" * 16
    with SqliteStore(tmp_path / "store.db") as store:
        moved = [_report(store, name, at) for name, at in ((one, 0), (one, 10), (two, 20), (two, 30), (two, 40))]
        back = [_report(store, name, at) for name, at in ((one, 50), (two, 55))]
        later = [_report(store, two, at) for at in (100, 130)]

    assert moved == [0] * 5
    assert back == [1, 1]
    assert later == [1, 0]  # a minute after the other's last report it counts no more


def test_more_copies_than_are_remembered_are_told_of_all_the_same(tmp_path: Path) -> None:
    names = [f"{number:016x}" for number in range(30)]
    with SqliteStore(tmp_path / "store.db") as store:
        told = [[_report(store, name, round) for name in names] for round in (0, 10, 20)]

    assert min(told[2]) > 0


def test_an_installation_is_no_field_that_can_do_harm(tmp_path: Path) -> None:
    odd: list[Any] = [None, "", "x" * 500, 5, {"a": 1}]
    with SqliteStore(tmp_path / "store.db") as store:
        reports = ({"installation": one} for one in odd)
        jobs = [
            partial(write_jobs.report_exporter, exporter_id="x", report=one, now=NOW, holder=OWNER) for one in reports
        ]
        told = [copies for copies, _ in map(store.do, jobs)]

    assert told == [0] * 5
