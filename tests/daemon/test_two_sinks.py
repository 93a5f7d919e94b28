"""Several sinks: each has its own mark, none holds another back, and what they have in common is done once."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from config.settings import Limits, MissionControl
from exporter.core.events.redaction import Redacted
from exporter.errors import Exit
from exporter.pipeline.redactors import Redactors
from tests.daemon.exchange import Reply
from tests.daemon.peer import Peer
from tests.daemon.receivers import Floor
from tests.daemon.station import Exporter, Station, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def other() -> Iterator[Peer]:
    """A second receiver."""
    with Peer(Floor()) as peer:
        yield peer


class CountingRedactor:
    """Finds nothing and counts how often it was given each line."""

    def __init__(self) -> None:
        self.lines: Counter[bytes] = Counter()

    def __call__(self, line: bytes, /) -> Redacted:
        self.lines[line] += 1
        return line


def _start(station: Station, one: Peer, two: Peer, *, redactor: CountingRedactor | None = None) -> Exporter:
    sinks = {"one": MissionControl(url=one.url), "two": MissionControl(url=two.url)}
    settings = station.settings(sinks, limits=Limits(poll_seconds=0.1, cache_bytes=64 * 1024))
    return station.exporter(settings, redaction=Redactors(redactor or CountingRedactor(), lambda text: text))


async def test_every_sink_gets_everything(station: Station, floor: Peer, other: Peer) -> None:
    session = station.session()
    session.add(1200)
    exporter = _start(station, floor, other)

    assert await exporter.idle() == Exit.DONE

    assert floor.ids() == other.ids() == session.durable_ids()
    assert await exporter.differences() == []


async def test_a_sink_that_is_down_holds_no_other_back_and_catches_up(
    station: Station, floor: Peer, other: Peer
) -> None:
    session = station.session()
    session.add(1000, size=500)
    down = [True]
    other.script = lambda request: Reply(503) if down[0] else None
    exporter = _start(station, floor, other)

    for _ in range(5):
        session.add(100, size=500)
        await until(lambda: floor.ids() == session.durable_ids())
    assert other.ids() == []
    status: dict[str, Any] = {}
    while not status or status["mission_control.one"]["lag_events"]:  # the answer to the last batch is on its way
        status = {one["name"]: one for one in (await exporter.ask("status"))["sinks"]}
    assert {name: one["lag_events"] for name, one in status.items()} == {
        "mission_control.one": 0,
        "mission_control.two": 1500,
    }
    down[0] = False

    await until(lambda: other.ids() == session.durable_ids())
    assert await exporter.idle() == Exit.DONE


async def test_an_event_is_redacted_once_for_sinks_that_are_level(station: Station, floor: Peer, other: Peer) -> None:
    redactor = CountingRedactor()
    session = station.session()
    exporter = _start(station, floor, other, redactor=redactor)

    for _ in range(10):
        session.add(20)
        await until(lambda: floor.ids() == session.durable_ids() == other.ids())
        await exporter.idle()

    assert set(redactor.lines.values()) == {1}
    assert len(redactor.lines) == 200


async def test_sinks_that_take_different_batches_share_the_work_too(station: Station, floor: Peer, full: Peer) -> None:
    redactor = CountingRedactor()
    session = station.session()
    session.add(1)
    exporter = _start(station, floor, full, redactor=redactor)
    await exporter.idle()

    session.add(1500)
    await until(lambda: floor.ids() == session.durable_ids() == full.ids())

    assert set(redactor.lines.values()) == {1}


async def test_sinks_that_were_apart_share_the_work_again(station: Station, floor: Peer, other: Peer) -> None:
    redactor = CountingRedactor()
    session = station.session()
    down = [True]
    other.script = lambda request: Reply(503) if down[0] else None
    exporter = _start(station, floor, other, redactor=redactor)
    session.add(1000, size=500)
    await until(lambda: floor.ids() == session.durable_ids())
    down[0] = False
    await until(lambda: other.ids() == session.durable_ids())
    await exporter.idle()
    redactor.lines.clear()

    session.add(20)
    await until(lambda: floor.ids() == session.durable_ids() == other.ids())

    assert set(redactor.lines.values()) == {1}


async def test_an_event_that_one_sink_refuses_is_in_quarantine_for_that_sink_only(
    station: Station, floor: Peer, other: Peer
) -> None:
    session = station.session()
    session.add(30)
    other.script = lambda request: Reply(400) if request.is_events and b'"id":"e9"' in request.body else None
    exporter = _start(station, floor, other)

    assert await exporter.idle() == Exit.PARTIAL

    assert floor.ids() == session.durable_ids()
    assert other.ids() == [one for one in session.durable_ids() if one != "e9"]
    assert [(one["event"], one["sink"]) for one in await exporter.quarantined()] == [("e9", "mission_control.two")]


async def test_a_sink_added_later_gets_the_sessions_from_their_first_event(
    station: Station, floor: Peer, other: Peer
) -> None:
    session = station.session()
    session.add(50)
    first = station.exporter(station.settings({"one": MissionControl(url=floor.url)}))
    await first.idle()
    await first.stop()
    sent = len(floor.event_requests())

    exporter = _start(station, floor, other)
    await exporter.idle()

    assert other.ids() == session.durable_ids()
    assert len(floor.event_requests()) == sent


async def test_a_sink_at_another_address_is_another_sink(station: Station, floor: Peer, other: Peer) -> None:
    session = station.session()
    session.add(50)
    first = station.exporter(floor)
    await first.idle()
    await first.stop()

    exporter = station.exporter(other)
    await exporter.idle()

    assert other.ids() == session.durable_ids()


async def test_a_rewind_reaches_every_sink(station: Station, floor: Peer, full: Peer) -> None:
    session = station.session()
    session.add(50)
    exporter = _start(station, floor, full)
    await exporter.idle()
    session.replace(*session.lines()[:20])
    session.append(*session.make(5, prefix="new"))

    await until(lambda: full.ids() == session.durable_ids())
    await until(lambda: floor.ids()[-5:] == session.durable_ids()[-5:])

    await exporter.idle()
    assert len(floor.ids()) == 55
    assert await exporter.differences() == []
