"""Commits whose end nobody knows, transactions that meet, partitions, and a server that goes away."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from exporter.errors import StateError
from exporter.missioncontrol.ingest import write_jobs
from exporter.missioncontrol.receiver import Receiver
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.port import Database, StoreAway
from exporter.missioncontrol.store.postgresql.store import PostgresStore
from exporter.missioncontrol.store.retention import Retention
from tests.missioncontrol.postgres import Server
from tests.missioncontrol.store.postgresql.link import Link
from tests.missioncontrol.store_contract import NOW, event, known, register, store_events

ROUNDS = 30
LARGE = "large " * 5000


@pytest.fixture
def link(postgres_url: str) -> Iterator[Link]:
    link = Link(postgres_url)
    yield link
    link.close()


@pytest.fixture
def own_server() -> Iterator[Server]:
    with Server() as server:
        yield server


def items(store: PostgresStore, session: str) -> list[str]:
    held = store.read_now(lambda database: queries.upload_state(database, session, with_items=True))
    assert held.items is not None
    return [id for id, _ in held.items]


def test_a_commit_whose_answer_is_lost_is_repeated_and_stores_nothing_twice(link: Link) -> None:
    with PostgresStore(link.url) as store:
        store.do(register("s"))
        link.lose_commit()

        stored = store.do(store_events("s", event("e1"), event("e2")))

        assert link.lost == 1
        assert (stored.duplicates, stored.ack.count) == (2, 2)
        assert items(store, "s") == ["e1", "e2"]


def test_a_job_whose_backend_is_killed_runs_again(postgres_url: str) -> None:
    tries: list[int] = []

    def job(database: Database) -> None:
        (process,) = database.execute("SELECT pg_backend_pid()").fetchone()
        register("s")(database)
        tries.append(process)
        if len(tries) == 1:
            with psycopg.connect(postgres_url) as other:
                other.execute("SELECT pg_terminate_backend(%s)", (process,))

    with PostgresStore(postgres_url) as store:
        store.do(job)

        assert len(tries) == 2
        assert store.do(known) == ["s"]


def test_two_transactions_that_lock_each_other_both_succeed(postgres_url: str) -> None:
    meet = threading.Barrier(2)
    tries: list[str] = []

    def both(first: str, second: str) -> Callable[[Database], None]:
        def job(database: Database) -> None:
            database.lock_session(first)
            tries.append(first)
            if len(tries) <= 2:
                meet.wait(30)
            database.lock_session(second)
            database.execute("UPDATE sessions SET masked = masked + 1")

        return job

    with PostgresStore(postgres_url) as store:
        for id in ("a", "b"):
            store.do(register(id))
        for answer in [store.submit(both("a", "b")), store.submit(both("b", "a"))]:
            answer.result(60)

        assert len(tries) >= 3
        rows = store.do(lambda database: database.execute("SELECT masked FROM sessions").fetchall())
        assert rows == [(2,), (2,)]


def test_a_large_string_that_one_session_forgets_stays_for_another_that_stores_it_meanwhile(postgres_url: str) -> None:
    with PostgresStore(postgres_url) as store:
        for number in range(ROUNDS):
            shared = f"{LARGE}{number}"
            for id in (f"old{number}", f"new{number}"):
                store.do(register(id))
            store.do(store_events(f"old{number}", event("e1", shared)))
            jobs = [
                store.submit(store_events(f"new{number}", event("e2", shared))),
                store.submit(lambda database, id=f"old{number}": write_jobs.forget_session(database, id, NOW)),  # type: ignore[misc]
            ]
            for answer in jobs:
                answer.result(60)

            body = store.read_now(lambda database, id=f"new{number}": queries.event(database, id, "e2"))  # type: ignore[misc]
            assert body == event("e2", shared)
        for number in range(ROUNDS):
            store.do(lambda database, id=f"new{number}": write_jobs.forget_session(database, id, NOW))  # type: ignore[misc]
        left = "SELECT (SELECT count(*) FROM blobs) + (SELECT count(*) FROM blob_uses)"
        assert store.read_now(lambda database: database.execute(left).fetchone()) == (0,)


def test_the_session_is_locked_from_its_first_statement(postgres_url: str) -> None:
    """What makes a batch exact is that lock: another transaction waits at the session's row."""
    held, go_on = threading.Event(), threading.Event()

    def hold(database: Database) -> None:
        database.lock_session("s")
        held.set()
        assert go_on.wait(60)

    with PostgresStore(postgres_url) as store:
        store.do(register("s"))
        store.do(register("t"))
        holding = store.submit(hold)
        assert held.wait(30)
        waiting = store.submit(store_events("s", event("e1")))

        store.submit(store_events("t", event("e1"))).result(30)
        assert not waiting.done()
        go_on.set()
        holding.result(30)
        assert waiting.result(30).ack.count == 1


@pytest.mark.anyio
async def test_two_receivers_forget_what_is_too_old_together(postgres_url: str) -> None:
    later = datetime.fromisoformat(NOW) + timedelta(days=2)
    with PostgresStore(postgres_url) as one, PostgresStore(postgres_url) as other:
        for number in range(450):
            one.do(register(f"s{number:03}"))
        receivers = [Receiver(store, clock=lambda: later, retention=Retention(days_max=1)) for store in (one, other)]

        forgotten = await asyncio.gather(*(receiver.expire() for receiver in receivers))

        assert one.read_now(known) == []
        assert sum(forgotten) == 450
        deleted = "SELECT count(*) FROM deleted_sessions WHERE reason = 'expired'"
        assert one.read_now(lambda database: database.execute(deleted).fetchone()) == (450,)


def partitions(store: PostgresStore) -> set[str]:
    rows = "SELECT relname FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'events'::regclass"
    return {name for (name,) in store.read_now(lambda database: database.execute(rows).fetchall())}


def test_partitions_are_made_ahead_and_dropped_when_they_are_empty(postgres_server: Server) -> None:
    url = postgres_server.migrated("parts")
    with PostgresStore(url) as store:
        for number in (2040, 6140, 10_230):
            postgres_server.execute(f"SELECT setval('mission_control.session_numbers', {number})", "parts")
            for more in range(12):
                id = f"s{number + more}"
                store.do(register(id))
                store.do(store_events(id, event("e1", LARGE)))
        before = partitions(store)
        store.do(lambda database: write_jobs.forget_session(database, "s2050", NOW))
        for more in range(12):
            id = f"s{6140 + more}"
            store.do(lambda database, id=id: write_jobs.forget_session(database, id, NOW))  # type: ignore[misc]

        store.clean(datetime.now(UTC))

        assert {"events_0", "events_1", "events_2", "events_3", "events_4", "events_5"} <= before
        assert partitions(store) == before - {"events_2", "events_3"}
        assert items(store, "s2049") == ["e1"]


@pytest.mark.fleet
def test_a_server_that_restarts_or_crashes_keeps_what_was_answered(own_server: Server) -> None:
    url = own_server.migrated("mc")
    with PostgresStore(url) as store:
        epoch, changes = store.epoch, store.read_now(lambda database: database.changes())
        ends: tuple[Callable[[], Any], ...] = (own_server.stop, own_server.kill)
        for number, end in enumerate(ends):
            store.do(register(f"s{number}"))
            end()
            with pytest.raises(StoreAway):
                store.do(register("lost"))
            own_server.start()
            while True:
                try:
                    store.do(register(f"later{number}"))
                    break
                except StoreAway:  # for a second after a failure nobody tries to connect
                    continue

        assert store.do(known) == ["later0", "later1", "s0", "s1"]
        assert (store.epoch, store.read_now(lambda database: database.changes())) == (epoch, changes + 4)


@pytest.mark.fleet
def test_a_store_may_be_opened_while_the_server_is_away(own_server: Server) -> None:
    url = own_server.migrated("mc")
    own_server.stop()
    with pytest.raises(StateError, match="cannot be reached"):
        PostgresStore(url)

    with PostgresStore(url, may_be_away=True) as store:
        assert "cannot be reached" in store.notices[0].message
        with pytest.raises(StoreAway):
            store.read_now(known)
        own_server.start()
        while True:
            try:
                assert store.read_now(known) == []
                break
            except StoreAway:
                continue
