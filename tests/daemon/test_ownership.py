"""A session that belongs to another token at the receiver, and one that only an administrator may restore."""

from pathlib import Path

import pytest

from exporter.core.notice import Level
from exporter.daemon.offline_status import status_asleep
from exporter.errors import Exit
from exporter.missioncontrol.ingest import write_jobs
from exporter.missioncontrol.store import tokens
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from exporter.missioncontrol.store.token_admin import restore_session
from tests.daemon.exchange import Request
from tests.daemon.peer import Peer
from tests.daemon.receivers import Full
from tests.daemon.station import Exporter, Station, never, until

pytestmark = pytest.mark.anyio

NOW = "2026-11-18T10:00:00.000Z"


def store_of(peer: Peer) -> Store:
    assert isinstance(peer.behind, Full)
    return peer.behind.store


def give(peer: Peer, session: str, owner: str) -> None:
    """Make a session, which the receiver may have already, this token's."""
    store = store_of(peer)
    store.do(lambda database: write_jobs.register(database, session, session, NOW))
    store.do(lambda database: database.execute("UPDATE sessions SET owner = ? WHERE id = ?", (owner, session)))


@pytest.fixture
def token(full: Peer) -> str:
    """The token of a laptop, for uploading."""
    return store_of(full).do(lambda database: tokens.create(database, "laptop", NOW, scope="upload"))


def registrations(peer: Peer, session: str) -> list[Request]:
    asked = [one for one in list(peer.requests) if one.method == "POST" and one.path == "/agents/sessions"]
    return [one for one in asked if one.json()["id"] == session]


async def stopped(exporter: Exporter) -> None:
    await until(lambda: [one for one in exporter.alarms() if "another token" in one.message])


async def test_a_session_of_another_token_stops_alone_and_is_never_registered_again(
    station: Station, full: Peer, token: str
) -> None:
    give(full, "s", "desktop")
    session, other = station.session(), station.session("other")
    session.add(10)
    other.add(10)
    first = station.exporter(full, token=token)
    await stopped(first)
    await until(lambda: full.ids("other") == other.durable_ids())
    ended = await first.idle()
    await first.stop()
    session.add(5)
    other.add(5)

    exporter = station.exporter(full, token=token)
    await until(lambda: full.ids("other") == other.durable_ids())
    session.add(5)
    await never(lambda: len(registrations(full, "s")) > 1, 0.5)

    assert (ended, await exporter.idle()) == (Exit.PARTIAL, Exit.PARTIAL)
    assert full.ids("s") == []
    assert full.event_requests("s") == []
    assert [notice.level for notice in first.alarms()] == [Level.ERROR]
    status = await exporter.sink_status()
    assert (status["state"], status["foreign"], status["deleted"], status["lag_events"]) == ("ok", 1, 0, 0)


async def test_every_command_says_whose_a_stopped_session_is(station: Station, full: Peer, token: str) -> None:
    give(full, "s", "desktop")
    station.session().add(10)
    exporter = station.exporter(full, token=token)
    await stopped(exporter)

    backfilled = [await exporter.ask("backfill", all=True), await exporter.ask("backfill", sessions=["s"])]
    verified = await exporter.ask("verify", all=True)
    [listed] = (await exporter.ask("sessions"))["sessions"]
    await exporter.stop()
    root, sinks = station.copilot / "session-state", {"mission_control": full.url}
    [asleep] = status_asleep([root], station.state, sinks, changed_after=0.0, waits=lambda _: False, history={}).sinks

    assert [(one["exit"], one["sessions"][0]["state"]) for one in backfilled] == [
        (Exit.PARTIAL, "of another token")
    ] * 2
    assert (verified["exit"], verified["sessions"][0]["verdict"]) == (Exit.PARTIAL, "of another token")
    assert [sink["state"] for sink in listed["sinks"]] == ["of another token"]
    assert (asleep.foreign, asleep.deleted, asleep.lag_events) == (1, 0, 0)
    assert len(registrations(full, "s")) == 1


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_session_that_was_taken_stops_too(station: Station, full: Peer, token: str, restarts: bool) -> None:
    """While it is delivered the events are refused; after a start the session is unknown, and then refused."""
    session = station.session()
    session.add(10)
    exporter = station.exporter(full, token=token)
    await exporter.idle()
    if restarts:
        await exporter.stop()
    give(full, "s", "desktop")
    held, asked = full.ids("s"), len(registrations(full, "s"))
    session.add(5)

    exporter = station.exporter(full, token=token) if restarts else exporter
    await stopped(exporter)
    session.add(5)

    assert await exporter.idle() == Exit.PARTIAL
    assert full.ids("s") == held
    assert len(registrations(full, "s")) - asked == int(restarts)


async def test_a_person_may_have_it_sent_once_it_is_ours(station: Station, full: Peer, token: str) -> None:
    give(full, "s", "desktop")
    session = station.session()
    session.add(10)
    exporter = station.exporter(full, token=token)
    await stopped(exporter)
    still = await exporter.ask("backfill", sessions=["s"], from_start=True)
    give(full, "s", "laptop")

    ours = await exporter.ask("backfill", sessions=["s"], from_start=True)

    assert (still["exit"], ours["exit"]) == (Exit.PARTIAL, Exit.DONE)
    assert full.ids("s") == session.durable_ids()
    assert await exporter.idle() == Exit.DONE


@pytest.mark.parametrize("chosen", [{"sessions": ["s"]}, {"all": True}])
async def test_a_deleted_session_needs_an_administrator_and_the_sink_goes_on(
    station: Station, full: Peer, token: str, chosen: dict[str, object]
) -> None:
    session, other = station.session(), station.session("other")
    session.add(10)
    other.add(10)
    exporter = station.exporter(full, token=token)
    await exporter.idle()
    store_of(full).do(lambda database: write_jobs.forget_session(database, "s", NOW))

    refused = await exporter.ask("backfill", from_start=True, **chosen)
    other.add(5)
    await until(lambda: full.ids("other") == other.durable_ids())
    status = await exporter.sink_status()
    restore_session(store_of(full).path or Path(), "s")
    again = await exporter.ask("backfill", from_start=True, **chosen)

    [row] = [row for row in refused["sessions"] if row["session"] == "s"]
    assert (refused["exit"], row["state"], row["events"]) == (Exit.PARTIAL, "deleted there", 0)
    assert row["why"].endswith("exporter mission-control restore s")
    assert (status["state"], status["deleted"], status["foreign"]) == ("ok", 1, 0)
    assert again["exit"] == Exit.DONE
    assert full.ids("s") == session.durable_ids()
