"""Through PgBouncer, where each transaction may come to another connection of the server: nobody's tenant is kept."""

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from exporter.missioncontrol.live.notes import Note
from exporter.missioncontrol.store import queries, tenants
from exporter.missioncontrol.store.port import Store
from exporter.missioncontrol.store.postgresql.store import PostgresStore
from tests.missioncontrol.pgbouncer import POOL, PROGRAM, Pooler
from tests.missioncontrol.postgres import Server
from tests.missioncontrol.store_contract import NOW, event, known, register, store_events

ROUNDS = 12
"""More than the five times after which the driver prepares a statement where there is no pooler."""


@pytest.fixture
def pooled(postgres_server: Server) -> Iterator[str]:
    """The address of a database through a pooler."""
    if not Path(PROGRAM).exists():
        pytest.skip(
            "NOT TESTED THROUGH PGBOUNCER: pgbouncer is not here (Debian, Ubuntu: make fleet as root installs it)"
        )
    postgres_server.migrated("pooled")
    with Pooler(postgres_server) as pooler:
        yield pooler.url("pooled")
    postgres_server.execute("DROP DATABASE pooled WITH (FORCE)")


def test_tenants_stay_apart_and_statements_go_on_through_a_pooler(pooled: str, postgres_server: Server) -> None:
    with PostgresStore(pooled) as store:
        teams: dict[str, Store] = {"default": store}
        for name in ("red", "blue"):
            teams[name] = store.tenant(tenants.create(store, name, NOW))
        failed: list[BaseException] = []

        def work(name: str) -> None:
            try:
                for number in range(ROUNDS):
                    teams[name].do(register(f"{name}-{number}"))
                    teams[name].do(store_events(f"{name}-{number}", event("e1", name), event("e2", name)))
                    assert teams[name].read_now(known) == sorted(f"{name}-{n}" for n in range(number + 1))
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(name,)) for name in teams]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert failed == []
        for name, team in teams.items():
            bodies = team.read_now(lambda database, name=name: list(queries.lines(database, f"{name}-3")))  # type: ignore[misc]
            assert bodies == [event("e1", name), event("e2", name)]
        connections = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'pooled'"
        assert postgres_server.execute(connections)[0][0] <= POOL
        with psycopg.connect(pooled, autocommit=True) as raw:  # on the same connections of the server
            for _ in range(POOL):
                left = raw.execute("SELECT current_user, current_setting('exporter.tenant', true)").fetchone()
                assert left in (("owner", None), ("owner", ""))


def test_receivers_hear_each_other_through_a_pooler(pooled: str) -> None:
    heard = threading.Event()

    def hear(note: Note) -> None:
        if note.id == "s":
            heard.set()

    with PostgresStore(pooled) as one, PostgresStore(pooled) as other:
        telling, hearing = one.open_notes(lambda _: None), other.open_notes(hear)
        try:
            telling.tell(Note("session", "s"))
            assert heard.wait(30)
        finally:
            telling.close()
            hearing.close()
