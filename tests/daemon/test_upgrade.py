"""A receiver that learns or forgets capabilities between two requests: what was delivered before stays believed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from exporter.errors import Exit
from tests.daemon.peer import Peer
from tests.daemon.receivers import Full
from tests.daemon.station import Station, until

pytestmark = pytest.mark.anyio


class Changing:
    """Whether the receiver of a test says what it can."""

    def __init__(self) -> None:
        self.old = True

    def __call__(self, answer: dict[str, Any]) -> None:
        if self.old:
            del answer["capabilities"]
            answer.pop("ack", None)


@pytest.fixture
def changing() -> Changing:
    return Changing()


@pytest.fixture
def peer(tmp_path: Path, changing: Changing) -> Iterator[Peer]:
    with Peer(Full(tmp_path / "changing.db", changing)) as opened:
        yield opened


async def test_what_was_delivered_at_the_floor_is_not_sent_again_after_an_upgrade(
    station: Station, peer: Peer, changing: Changing
) -> None:
    session = station.session()
    session.add(600)
    first = station.exporter(peer)
    await first.idle()
    await first.stop()
    before = len(peer.event_requests())
    changing.old = False
    session.add(10)

    exporter = station.exporter(peer)
    await exporter.idle()

    assert [request.ids() for request in peer.event_requests()[before:]] == [[f"e{n}" for n in range(600, 610)]]
    assert await exporter.differences() == []


async def test_a_rewind_after_an_upgrade_hides_what_was_delivered_before(
    station: Station, peer: Peer, changing: Changing
) -> None:
    session = station.session()
    session.add(600)
    first = station.exporter(peer)
    await first.idle()
    await first.stop()
    changing.old = False
    session.replace(*session.lines()[:100])
    session.append(*session.make(5, prefix="new"))

    exporter = station.exporter(peer)
    await exporter.idle()

    assert peer.ids() == session.durable_ids()
    assert await exporter.differences() == []


async def test_a_repair_after_an_upgrade_sends_what_is_missing_only(
    station: Station, peer: Peer, changing: Changing
) -> None:
    session = station.session()
    session.add(50)
    first = station.exporter(peer)
    await first.idle()
    await first.stop()
    changing.old = False
    exporter = station.exporter(peer)
    await exporter.idle()
    remembered = exporter.running.daemon.runs[0].sink_state.sink
    await remembered.register("s", "s")
    await remembered.send("s", [], [], ["e7"])
    before = len(peer.event_requests())

    result = await exporter.ask("verify", all=True, repair=True)

    assert result["exit"] == Exit.DONE
    assert [request.ids() for request in peer.event_requests()[before:]] == [["e7"]]


async def test_a_receiver_that_is_rolled_back_to_the_floor_is_spoken_to_at_the_floor(
    station: Station, peer: Peer, changing: Changing
) -> None:
    changing.old = False
    session = station.session()
    session.add(50)
    first = station.exporter(peer)
    await first.idle()
    await first.stop()
    before = len(peer.event_requests())
    changing.old = True
    session.add(5)

    exporter = station.exporter(peer)
    await exporter.idle()

    assert peer.ids() == session.durable_ids()
    assert [len(request.ids()) for request in peer.event_requests()[before:]] == [5]
    assert "idempotency-key" not in peer.event_requests()[-1].headers
    assert await exporter.differences() == []


async def test_sessions_delivered_before_and_after_an_upgrade_verify_equal(
    station: Station, peer: Peer, changing: Changing
) -> None:
    session = station.session()
    session.add(50)
    first = station.exporter(peer)
    await first.idle()
    await first.stop()
    changing.old = False
    session.add(50)
    second = station.exporter(peer)
    await second.idle()
    await second.stop()
    changing.old = True
    session.add(50)
    third = station.exporter(peer)
    await third.idle()
    await third.stop()
    changing.old = False
    sent = len(peer.event_requests())

    exporter = station.exporter(peer)
    await exporter.idle()

    assert await exporter.differences() == []
    assert len(peer.event_requests()) == sent
    session.replace(*session.lines()[:20])
    session.add(1)
    await until(lambda: peer.ids() == session.durable_ids())
    await exporter.idle()
    assert await exporter.differences() == []
