"""Tables of the version before are updated while receivers of that version work on them, and they go on."""

from collections.abc import Iterator

import psycopg
import pytest

from exporter.missioncontrol.store import tenants, tokens
from exporter.missioncontrol.store.postgresql.migrate import Migrated, migrate
from exporter.missioncontrol.store.postgresql.store import PostgresStore
from tests.missioncontrol.postgres import Server
from tests.missioncontrol.store_contract import NOW, event, known, register, store_events

BEGIN = "SET LOCAL ROLE exporter_receiver; SET LOCAL search_path = mission_control; SET LOCAL exporter.tenant = 1"
# What version 2 of the program executes for a new session, its count of changes, a token, and to look a token up.
OF_VERSION_2 = (
    "INSERT INTO sessions (n, id, task_id, registered, count, digest, summary, masked, revision, state, last_activity,"
    " haystack, owner) VALUES"
    " (nextval('session_numbers'), '{0}', 't', 'now', 0, '\\x00', '{{}}', 0, 0, 'idle', 'now', '', '')",
    "INSERT INTO changes (part, value) VALUES (1, 1)"
    " ON CONFLICT (tenant, part) DO UPDATE SET value = changes.value + 1",
    "INSERT INTO tokens (name, hash, scope, created) VALUES ('{0}', '{0}', 'read', 'now')",
    "SELECT hash, name, coalesce(role, scope) FROM tokens WHERE revoked IS NULL",
    "SELECT value FROM counters WHERE name = 'epoch'",
)


@pytest.fixture
def url(postgres_server: Server) -> Iterator[str]:
    url = postgres_server.new_database("version_2")
    assert migrate(url, until=2) == Migrated(0, 2)
    yield url
    postgres_server.execute("DROP DATABASE version_2 WITH (FORCE)")


def work(connection: "psycopg.Connection[tuple[object, ...]]", name: str) -> dict[object, object]:
    """Do what a receiver of version 2 does; return the scope that it takes each token for."""
    with connection.transaction():
        connection.execute(BEGIN)
        for statement in OF_VERSION_2[:3]:
            connection.execute(statement.format(name).encode())
        found = {name: scope for _, name, scope in connection.execute(OF_VERSION_2[3].encode())}
        assert connection.execute(OF_VERSION_2[4].encode()).fetchone() is not None
        return found


def test_receivers_of_the_version_before_work_on_while_tables_are_updated_and_afterwards(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as before:
        work(before, "old")
        with psycopg.connect(url, autocommit=True) as other, other.transaction():
            other.execute(BEGIN.encode())  # a transaction of a receiver is open meanwhile
            other.execute("SELECT value FROM counters")
            assert migrate(url) == Migrated(2, 3)
        with PostgresStore(url) as store:
            assert store.read_now(known) == ["old"]
            store.do(register("new"))
            store.do(store_events("new", event("e1")))
            store.do(lambda database: tokens.create(database, "auditor", NOW, scope="auditor"))
            store.tenant(tenants.create(store, "other", NOW)).do(register("hidden"))

            scopes = work(before, "still")

            assert sorted(store.read_now(known)) == ["new", "old", "still"]
            assert scopes == {"old": "read", "auditor": "auditor", "still": "read"}
