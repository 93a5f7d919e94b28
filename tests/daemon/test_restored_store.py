"""A receiver's store that is older than what it answered is noticed, and idle sessions are delivered again."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from exporter.daemon.status_report import Reports
from exporter.errors import Exit
from exporter.pipeline import lane as lanes
from tests.daemon.peer import Peer
from tests.daemon.receivers import Full
from tests.daemon.sessions import SessionFile
from tests.daemon.station import Exporter, Station, never, until

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("fast_clock")]

_SESSIONS = [f"s{number}" for number in range(4)]


def _write(station: Station, events: int = 10) -> dict[str, SessionFile]:
    made = {name: station.session(name) for name in _SESSIONS}
    for session in made.values():
        session.add(events)
    return made


def _backup(peer: Peer) -> Path:
    """Copy the closed store away, as a nightly backup does."""
    assert isinstance(peer.behind, Full)
    peer.behind.close()
    kept = peer.behind.path.with_suffix(".backup")
    shutil.copy(peer.behind.path, kept)
    peer.behind.open()
    return kept


def _restore(peer: Peer, backup: Path, *, epoch: str | None = None) -> None:
    """Put the copy in the place of the store; with `epoch` as an engine does that keeps the epoch of before."""
    assert isinstance(peer.behind, Full)
    peer.behind.close()
    for file in peer.behind.path.parent.glob(f"{peer.behind.path.name}*"):
        file.unlink()
    shutil.copy(backup, peer.behind.path)
    peer.behind.open()
    if epoch is not None:
        peer.behind.store.epoch = epoch


def _reporting(exporter: Exporter) -> "asyncio.Task[None]":
    """Send the reports of the exporter every ten seconds, as a daemon does."""
    running = exporter.running
    return asyncio.create_task(Reports(running.daemon, str, "laptop", running.installation).run())


def _holds(peer: Peer, made: dict[str, SessionFile]) -> bool:
    return all(peer.ids(name) == session.durable_ids() for name, session in made.items())


async def _confirmed(exporter: Exporter) -> dict[str, Any]:
    """Wait until the receiver has confirmed every session; return what `status` says then."""
    run = exporter.running.daemon.runs[0]
    await until(lambda: all(lane.mark.is_confirmed for lane in run.lanes.values()))
    return await exporter.sink_status()


async def _delivered_twice(station: Station, full: Peer) -> tuple[Exporter, dict[str, SessionFile], Path]:
    """Deliver, make a backup, and deliver some more; every session is idle then."""
    made = _write(station)
    exporter = station.exporter(full)
    assert await exporter.idle() == Exit.DONE
    backup = _backup(full)
    for session in made.values():
        session.add(10)
    assert await exporter.idle() == Exit.DONE
    assert _holds(full, made)
    await _confirmed(exporter)
    exporter.notices.clear()
    return exporter, made, backup


def _forget_epoch(answer: dict[str, Any]) -> None:
    for name in ("epoch", "changes"):
        answer.get("ack", {}).pop(name, None)


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[Peer]:
    """A receiver of the version before, which says nothing of its age."""
    with Peer(Full(tmp_path / "receiver.db", change=_forget_epoch)) as peer:
        yield peer


@pytest.mark.parametrize("keeps_epoch", [False, True])
async def test_idle_sessions_are_delivered_again_to_a_restored_store(
    station: Station, full: Peer, keeps_epoch: bool
) -> None:
    exporter, made, backup = await _delivered_twice(station, full)
    reporting = _reporting(exporter)
    await until(lambda: any("/exporters/" in one.path for one in full.requests))
    before = await exporter.sink_status()
    assert isinstance(full.behind, Full)

    _restore(full, backup, epoch=full.behind.store.epoch if keeps_epoch else None)
    await until(lambda: any("gone back" in one.message for one in exporter.notices))
    noticed = await exporter.sink_status()
    await until(lambda: _holds(full, made))
    after = await _confirmed(exporter)
    reporting.cancel()

    assert (before["unconfirmed"], noticed["unconfirmed"]) == (0, len(made))
    assert noticed["lag_bytes"] == 0
    assert before["confirmed_at"] is not None
    assert after["confirmed_at"] > before["confirmed_at"]
    assert await exporter.differences() == []


async def test_the_questions_are_spread_over_a_minute(station: Station, full: Peer) -> None:
    exporter, made, _ = await _delivered_twice(station, full)
    reporting = _reporting(exporter)
    await until(lambda: any("/exporters/" in one.path for one in full.requests))
    assert isinstance(full.behind, Full)
    full.behind.close()
    full.behind.open()
    await until(lambda: any("gone back" in one.message for one in exporter.notices))

    noticed = len(full.requests)
    await _confirmed(exporter)
    reporting.cancel()
    times = {one.path.rpartition("/")[2]: one.at for one in full.requests[noticed:] if one.method == "GET"}

    assert set(times) == set(made)
    assert len({round(at, 1) for at in times.values()}) > 1
    assert max(times.values()) - min(times.values()) < 70
    assert not any(one.is_events for one in full.requests[noticed:])


async def test_a_store_that_says_nothing_of_its_age_is_asked_in_time(
    station: Station, forgetful: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "ROUND_SECONDS", 200.0)
    exporter, made, backup = await _delivered_twice(station, forgetful)

    _restore(forgetful, backup)

    await never(lambda: _holds(forgetful, made), 1.5)
    assert (await exporter.sink_status())["lag_bytes"] == 0
    await until(lambda: _holds(forgetful, made))


async def test_a_store_restored_while_the_exporter_was_off_is_filled_by_the_next_run(
    station: Station, full: Peer
) -> None:
    first, made, backup = await _delivered_twice(station, full)
    await first.stop()
    _restore(full, backup)

    exporter = station.exporter(full)
    assert await exporter.idle() == Exit.DONE

    assert _holds(full, made)


async def test_a_receiver_that_cannot_be_asked_confirms_nothing(station: Station, floor: Peer) -> None:
    _write(station)
    exporter = station.exporter(floor)

    assert await exporter.idle() == Exit.DONE

    told = await exporter.sink_status()
    assert (told["state"], told["lag_bytes"], told["unconfirmed"], told["confirmed_at"]) == ("ok", 0, 4, None)
    assert exporter.alarms() == []


async def test_what_was_confirmed_is_known_after_a_start(station: Station, full: Peer) -> None:
    _write(station)
    first = station.exporter(full)
    await first.idle()
    before = await first.sink_status()
    await first.stop()

    exporter = station.exporter(full)
    await until(lambda: len(exporter.running.daemon.runs[0].lanes) == 4)

    assert (await exporter.sink_status())["confirmed_at"] == before["confirmed_at"] is not None
