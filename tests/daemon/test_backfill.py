"""`backfill`: sessions that nobody follows are delivered when asked for, and what would happen can be asked first."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from config.settings import MissionControl
from exporter.core.events.redaction import Masked, Redacted
from exporter.errors import Exit, UsageError
from exporter.pipeline.redactors import Redactors
from tests.daemon.exchange import Reply
from tests.daemon.peer import Peer
from tests.daemon.receivers import Floor
from tests.daemon.sessions import SessionFile, event
from tests.daemon.station import Exporter, Station, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def other() -> Iterator[Peer]:
    """A second receiver."""
    with Peer(Floor()) as peer:
        yield peer


def _old(station: Station, name: str, days: float = 30.0, count: int = 10) -> SessionFile:
    session = station.session(name)
    session.add(count)
    session.age(days)
    return session


def _rows(result: dict[str, Any]) -> dict[str, tuple[int, str]]:
    return {row["session"]: (row["events"], row["state"]) for row in result["sessions"]}


async def test_everything_old_is_delivered_when_asked_for(station: Station, full: Peer) -> None:
    sessions = [_old(station, f"s{number}") for number in range(3)]
    exporter = station.exporter(full)
    await exporter.idle()

    result = await exporter.ask("backfill", all=True)

    assert result["exit"] == Exit.DONE
    assert _rows(result) == {f"s{number}": (10, "delivered") for number in range(3)}
    assert all(full.ids(one.name) == one.durable_ids() for one in sessions)
    assert await exporter.differences() == []


async def test_only_the_named_sessions_are_delivered(station: Station, full: Peer) -> None:
    first, second = _old(station, "one"), _old(station, "two")
    exporter = station.exporter(full)

    result = await exporter.ask("backfill", sessions=["two"])

    assert _rows(result) == {"two": (10, "delivered")}
    assert full.ids(second.name) == second.durable_ids()
    assert full.ids(first.name) == []


async def test_only_what_changed_since_a_moment_is_delivered(station: Station, full: Peer) -> None:
    _old(station, "older", days=60)
    _old(station, "newer", days=20)
    exporter = station.exporter(full)

    since = (datetime.now(UTC) - timedelta(days=40)).isoformat()
    result = await exporter.ask("backfill", since=since)

    assert _rows(result) == {"newer": (10, "delivered")}


async def test_a_second_backfill_sends_nothing(station: Station, full: Peer) -> None:
    _old(station, "s")
    exporter = station.exporter(full)
    await exporter.ask("backfill", all=True)
    sent = len(full.event_requests())

    result = await exporter.ask("backfill", all=True)

    assert _rows(result) == {"s": (0, "delivered")}
    assert len(full.event_requests()) == sent


async def test_a_dry_run_says_what_would_be_sent_and_sends_nothing(station: Station, full: Peer) -> None:
    def mask(line: bytes, /) -> Redacted:
        return Masked(line.replace(b"hunter2", b"***"), ("password",)) if b"hunter2" in line else line

    session = _old(station, "s", count=9)
    session.append(event("secret", note="hunter2"))
    session.age(30)
    exporter = station.exporter(full, redaction=Redactors(mask, lambda text: text))

    result = await exporter.ask("backfill", all=True, dry_run=True)

    [row] = result["sessions"]
    assert (result["exit"], row["events"], row["masked"], row["state"]) == (Exit.DONE, 10, 1, "would send")
    assert row["bytes"] > 0
    assert full.requests == []


async def test_a_dry_run_leaves_out_what_was_delivered(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(10)
    exporter = station.exporter(full)
    await exporter.idle()

    result = await exporter.ask("backfill", all=True, dry_run=True)
    from_start = await exporter.ask("backfill", all=True, dry_run=True, from_start=True)

    assert _rows(result) == {"s": (0, "nothing to send")}
    assert _rows(from_start) == {"s": (10, "would send")}


async def test_from_the_start_sends_everything_again_and_stores_nothing_twice(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(10)
    exporter = station.exporter(full)
    await exporter.idle()
    before = len(full.event_requests())

    result = await exporter.ask("backfill", sessions=["s"], from_start=True)

    assert _rows(result) == {"s": (10, "delivered")}
    assert [request.ids() for request in full.event_requests()[before:]] == [session.durable_ids()]
    assert full.ids() == session.durable_ids()
    assert await exporter.differences() == []


async def test_a_session_goes_on_being_followed_after_a_backfill(station: Station, full: Peer) -> None:
    session = _old(station, "s")
    exporter = station.exporter(full)
    await exporter.ask("backfill", all=True)

    session.add(3)

    await until(lambda: full.ids() == session.durable_ids())


async def test_a_backfill_while_the_session_is_written_makes_no_gap_and_no_duplicate(
    station: Station, full: Peer
) -> None:
    session = station.session()
    session.add(3000)
    full.script = lambda request: Reply(delay=0.02) if request.is_events else None
    exporter = station.exporter(full)
    await until(lambda: bool(full.event_requests()))
    session.add(500)

    await exporter.ask("backfill", all=True)
    session.add(10)

    await until(lambda: full.ids() == session.durable_ids())
    sent = [identity for request in full.event_requests() for identity in request.ids()]
    assert len(sent) == len(set(sent))


async def test_only_the_named_sink_is_served(station: Station, floor: Peer, other: Peer) -> None:
    session = _old(station, "s")
    sinks = {"one": MissionControl(url=floor.url), "two": MissionControl(url=other.url)}
    exporter = station.exporter(station.settings(sinks))

    result = await exporter.ask("backfill", all=True, sinks=["mission_control.two"])

    assert [row["sink"] for row in result["sessions"]] == ["mission_control.two"]
    assert other.ids() == session.durable_ids()
    assert floor.requests == []


@pytest.mark.parametrize(
    ("options", "named"),
    [({"sessions": ["nobody"]}, "nobody"), ({"all": True, "sinks": ["mission_control.x"]}, "mission_control.x")],
)
async def test_an_unknown_name_is_an_error_that_says_so(
    station: Station, full: Peer, options: dict[str, Any], named: str
) -> None:
    _old(station, "s")
    exporter = station.exporter(full)

    with pytest.raises(UsageError, match=named) as caught:
        await exporter.ask("backfill", **options)

    assert caught.value.hint
    assert full.requests == []


async def _ended(station: Station, peer: Peer, **changes: Any) -> tuple[Exporter, dict[str, Any]]:
    settings = station.settings({"default": MissionControl(url=peer.url)}, **changes)
    exporter = station.exporter(settings)
    return exporter, await exporter.ask("backfill", all=True)


async def test_a_receiver_that_stays_down_ends_the_backfill_with_unreachable(station: Station, full: Peer) -> None:
    _old(station, "s")
    full.script = lambda request: Reply(503)

    _, result = await _ended(station, full, give_up_seconds=0.5)

    assert result["exit"] == Exit.UNREACHABLE
    assert _rows(result) == {"s": (0, "waiting")}


async def test_a_refused_token_ends_the_backfill_with_refused(station: Station, full: Peer) -> None:
    _old(station, "s")
    full.script = lambda request: Reply(401)

    _, result = await _ended(station, full)

    assert result["exit"] == Exit.REFUSED
    assert _rows(result) == {"s": (0, "refused")}


async def test_a_line_that_cannot_be_sent_ends_the_backfill_with_partial(station: Station, full: Peer) -> None:
    session = _old(station, "s")
    session.append(b"rubbish")
    session.age(30)

    exporter, result = await _ended(station, full)

    assert result["exit"] == Exit.PARTIAL
    assert full.ids() == session.durable_ids()
    assert len(await exporter.quarantined()) == 1


async def test_progress_is_told_and_ends_at_the_whole(station: Station, full: Peer) -> None:
    session = _old(station, "s", count=4000)
    full.script = lambda request: Reply(delay=0.1) if request.is_events else None
    exporter = station.exporter(full)
    told: list[dict[str, Any]] = []

    await exporter.running.answers().answer({"do": "backfill", "all": True}, told.append)

    assert full.ids() == session.durable_ids()
    assert {"sessions", "sessions_done", "events", "bytes", "bytes_total", "masked"} <= told[-1].keys()
    assert [one["events"] for one in told] == sorted(one["events"] for one in told)
    assert all(one["bytes"] <= one["bytes_total"] == session.path.stat().st_size for one in told)
