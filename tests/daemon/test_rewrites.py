"""Files whose past changes: what is shown at the receiver follows the file, whatever the change looks like."""

import pytest

from exporter.errors import Exit
from tests.daemon.exchange import Reply
from tests.daemon.peer import Peer
from tests.daemon.sessions import event
from tests.daemon.station import Station, never, until

pytestmark = pytest.mark.anyio


async def test_a_file_overwritten_in_place_to_the_same_size(station: Station, full: Peer) -> None:
    session = station.session()
    session.append(event("e1"), event("e2"))
    exporter = station.exporter(full)
    await until(lambda: full.ids() == ["e1", "e2"])
    await exporter.idle()

    session.overwrite(event("e1"), event("e3"))

    await until(lambda: full.ids() == ["e1", "e3"], 5.0)
    assert await exporter.differences() == []


async def test_a_file_overwritten_to_the_same_size_while_nobody_looked(station: Station, full: Peer) -> None:
    session = station.session()
    session.append(event("e1"), event("e2"))
    first = station.exporter(full)
    await until(lambda: full.ids() == ["e1", "e2"])
    await first.idle()
    await first.stop()

    session.overwrite(event("e1"), event("e3"))
    exporter = station.exporter(full)

    await until(lambda: full.ids() == ["e1", "e3"], 5.0)
    await exporter.idle()
    assert await exporter.differences() == []


async def test_a_rewind_and_a_change_of_mind_show_the_event_again(station: Station, full: Peer) -> None:
    session = station.session()
    lines = session.make(5)
    session.append(*lines)
    exporter = station.exporter(full)
    await until(lambda: full.ids() == ["e0", "e1", "e2", "e3", "e4"])
    session.replace(*lines[:2], event("x"))
    await until(lambda: full.ids() == ["e0", "e1", "x"])

    session.replace(*lines[:2], event("x"), lines[3])

    await until(lambda: full.ids() == ["e0", "e1", "x", "e3"])
    await exporter.idle()
    assert await exporter.differences() == []


async def test_a_rewind_sends_nothing_again_that_the_receiver_has(station: Station, full: Peer) -> None:
    session = station.session()
    lines = session.make(50)
    session.append(*lines)
    exporter = station.exporter(full)
    await until(lambda: len(full.ids()) == 50)
    await exporter.idle()
    sent = len(full.event_requests())

    session.replace(*lines[:20], event("new"))
    await until(lambda: len(full.ids()) == 21)
    await exporter.idle()

    assert sorted(identity for one in full.event_requests()[sent:] for identity in one.ids()) == ["new"]


async def test_an_emptied_file_hides_everything_once_it_has_an_event_again(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(3)
    exporter = station.exporter(full)
    await until(lambda: len(full.ids()) == 3)

    session.overwrite()
    session.append(event("x"))

    await until(lambda: full.ids() == ["x"])
    await exporter.idle()
    assert await exporter.differences() == []


async def test_a_file_that_is_replaced_and_gone_before_it_is_opened_hides_nothing(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(5)
    exporter = station.exporter(full)
    await until(lambda: full.ids() == session.durable_ids())
    await exporter.idle()
    before = full.ids()
    new = session.path.with_name("new")
    new.write_bytes(session.path.read_bytes() + event("later") + b"\n")

    new.replace(session.path)
    exporter.running.daemon.source.notice("s")  # noticed, and gone before the lane has its turn
    session.path.unlink()

    await never(lambda: full.ids() != before, 2.5)
    assert await exporter.idle() in (Exit.DONE, Exit.PARTIAL)
    assert full.ids() == before


async def test_an_event_twice_in_the_file_is_delivered_once(station: Station, full: Peer) -> None:
    session = station.session()
    lines = session.make(3)
    session.append(*lines, *lines, event("x"), lines[0])

    exporter = station.exporter(full)

    await until(lambda: full.ids() == ["e0", "e1", "e2", "x"])
    await exporter.idle()
    assert await exporter.differences() == []


async def test_an_event_repeated_later_is_delivered_once(station: Station, full: Peer) -> None:
    session = station.session()
    lines = session.make(3)
    session.append(*lines)
    exporter = station.exporter(full)
    await until(lambda: len(full.ids()) == 3)

    session.append(lines[1], event("x"))

    await until(lambda: full.ids() == ["e0", "e1", "e2", "x"])
    await exporter.idle()
    assert await exporter.differences() == []
    assert (await exporter.sink_status())["lag_events"] == 0


async def test_what_was_read_and_not_sent_before_the_file_changed_does_not_count_as_there(
    station: Station, full: Peer
) -> None:
    session = station.session()
    lines = session.make(4)
    session.append(*lines)
    first = station.exporter(full)
    await until(lambda: len(full.ids()) == 4)
    await first.idle()
    await first.stop()
    session.overwrite(*lines[:3], event("x"))
    full.next_replies.append(Reply(503))
    exporter = station.exporter(full)
    await until(lambda: len(full.event_requests()) == 2)

    session.overwrite(*session.make(3, size=2_000))

    await until(lambda: full.ids() == ["e4", "e5", "e6"], 5.0)
    await exporter.idle()
    assert await exporter.differences() == []
