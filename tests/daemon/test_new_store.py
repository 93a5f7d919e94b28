"""A receiver of ours that comes back with an empty store is noticed, and gets every session again."""

from collections.abc import Callable
from pathlib import Path

import pytest

from config.settings import Settings
from exporter.errors import Exit
from tests.daemon.peer import Peer
from tests.daemon.receivers import Full
from tests.daemon.sessions import SessionFile
from tests.daemon.station import Exporter, Station, until

pytestmark = pytest.mark.anyio

_SESSIONS = [f"s{number}" for number in range(4)]


def _lose(peer: Peer) -> None:
    assert isinstance(peer.behind, Full)
    peer.behind.close()
    _remove(peer.behind.path)
    peer.behind.open()


def _remove(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def _overwrite(path: Path) -> None:
    _remove(path)
    path.write_bytes(b"this is no database" * 500)


def _write(station: Station) -> dict[str, SessionFile]:
    made = {name: station.session(name) for name in _SESSIONS}
    for session in made.values():
        session.add(12)
    return made


def _assert_holds(peer: Peer, made: dict[str, SessionFile]) -> None:
    assert {name: peer.ids(name) for name in made} == {name: session.durable_ids() for name, session in made.items()}


def _told(exporter: Exporter) -> list[str]:
    return [one.message for one in exporter.notices if "another store" in one.message or "made again" in one.message]


async def test_a_store_lost_while_the_exporter_was_off_is_filled_at_its_start(station: Station, full: Peer) -> None:
    made = _write(station)
    first = station.exporter(full)
    await first.idle()
    await first.stop()
    _lose(full)

    exporter = station.exporter(full)
    assert await exporter.idle() == Exit.DONE

    _assert_holds(full, made)
    assert len(_told(exporter)) == 1
    assert await exporter.differences() == []


@pytest.mark.usefixtures("fast_clock")  # the questions are spread over a minute
async def test_one_event_of_one_session_brings_all_of_them_back(station: Station, full: Peer) -> None:
    made = _write(station)
    exporter = station.exporter(full)
    await exporter.idle()
    _lose(full)

    made[_SESSIONS[2]].add(1)
    await until(lambda: all(len(full.ids(name)) >= 12 for name in _SESSIONS))
    await exporter.idle()

    _assert_holds(full, made)
    assert await exporter.differences() == []


async def test_a_store_that_is_the_one_of_before_is_asked_about_one_session_only(station: Station, full: Peer) -> None:
    _write(station)
    first = station.exporter(full)
    await first.idle()
    await first.stop()
    before = len(full.requests)

    exporter = station.exporter(full)
    await exporter.idle()

    assert [one.method for one in full.requests[before:]] == ["GET"]
    assert _told(exporter) == []


async def test_what_a_backfill_of_one_session_notices_is_not_forgotten(station: Station, full: Peer) -> None:
    made = _write(station)
    first = station.exporter(full)
    await first.idle()
    await first.stop()
    _lose(full)
    one = station.exporter(full, session_ids=(_SESSIONS[0],))
    await one.idle()
    await one.stop()
    assert full.ids(_SESSIONS[1]) == []

    exporter = station.exporter(full)
    await exporter.idle()

    _assert_holds(full, made)


@pytest.mark.parametrize("lose", [_remove, _overwrite])
async def test_the_embedded_store_is_filled_again_at_the_start(station: Station, lose: Callable[[Path], None]) -> None:
    _write(station)
    settings: Settings = station.settings({})
    first = station.exporter(settings, local=True)
    await first.idle()
    await first.stop()
    lose(station.state / "mission_control.db")

    exporter = station.exporter(settings, local=True)
    assert await exporter.idle() == Exit.DONE

    assert len(_told(exporter)) == 1
    assert ["set aside" in one.message for one in exporter.alarms()] == [True] * (lose is _overwrite)
    rows = (await exporter.ask("verify", all=True))["sessions"]
    assert [(row["sink"], row["receiver"], row["equal"]) for row in rows] == [("local", 12, True)] * 4
