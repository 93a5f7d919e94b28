"""The server itself keeps tenants apart, also from a query that forgot to ask for its own rows."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from exporter.missioncontrol.store.port import Database, StoreError
from exporter.missioncontrol.store.postgresql.store import PostgresStore
from exporter.missioncontrol.store.queries import upload_state
from tests.missioncontrol.postgres import Server
from tests.missioncontrol.store_contract import event, known, register, store_events


@pytest.fixture
def both(postgres_server: Server, postgres_url: str) -> Iterator[tuple[PostgresStore, PostgresStore]]:
    """The stores of two tenants with a session of the same id each."""
    there = "(SELECT 1 FROM mission_control.tenants WHERE name = 'other')"
    postgres_server.execute(f"SELECT mission_control.add_tenant('other') WHERE NOT EXISTS {there}", "shared")
    with PostgresStore(postgres_url) as one, PostgresStore(postgres_url, tenant="other") as other:
        for store, content in ((one, "ours"), (other, "theirs")):
            store.do(register("s"))
            store.do(store_events("s", event("e1", content)))
        yield one, other


def test_the_same_id_in_two_tenants_is_two_sessions(both: tuple[PostgresStore, PostgresStore]) -> None:
    def items(database: Database) -> Any:
        return upload_state(database, "s", with_items=True).items

    assert both[0].read_now(items) != both[1].read_now(items)
    assert [store.read_now(known) for store in both] == [["s"], ["s"]]


def test_a_query_that_forgot_its_tenant_reads_and_changes_nothing_of_another(
    both: tuple[PostgresStore, PostgresStore],
) -> None:
    one, other = both
    bodies = "SELECT body FROM events"

    assert [body for (body,) in one.read_now(lambda database: database.execute(bodies).fetchall())] == [
        event("e1", "ours")
    ]
    changed = one.do(lambda database: database.execute("UPDATE events SET body = ?", (b"",)).rowcount)
    deleted = one.do(lambda database: database.execute("DELETE FROM sessions").rowcount)

    assert (changed, deleted) == (1, 1)
    assert other.read_now(lambda database: database.execute(bodies).fetchall()) == [(event("e1", "theirs"),)]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO orphans (tenant, session, key) SELECT n, 1, 1 FROM tenants WHERE name = 'other'",
        "UPDATE sessions SET tenant = (SELECT n FROM tenants WHERE name = 'other')",
        "ALTER TABLE sessions DISABLE ROW LEVEL SECURITY",
        "DROP POLICY own_tenant ON sessions",
        "SELECT * FROM events_0",
        "CREATE TABLE mine (n integer)",
    ],
)
def test_what_leads_out_of_a_tenant_is_refused(both: tuple[PostgresStore, PostgresStore], statement: str) -> None:
    with pytest.raises(StoreError):
        both[0].do(lambda database: database.execute(statement))


@pytest.mark.usefixtures("both")  # a table without rows may be read without a look at its policy
def test_an_unset_tenant_fails(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SET ROLE exporter_receiver")
        with pytest.raises(psycopg.Error, match=r"exporter\.tenant"):
            connection.execute("SELECT * FROM mission_control.sessions")
        connection.rollback()
        connection.execute("SET ROLE exporter_receiver")
        connection.execute("SET LOCAL exporter.tenant = 1")
        connection.commit()
        with pytest.raises(psycopg.Error):  # it was local to the transaction
            connection.execute("SELECT * FROM mission_control.sessions")


def test_every_table_with_a_tenant_has_a_policy_and_every_table_has_a_tenant(
    postgres_server: Server, postgres_url: str
) -> None:
    tables = postgres_server.execute(
        "SELECT relname, relrowsecurity, EXISTS (SELECT 1 FROM pg_policy WHERE polrelid = pg_class.oid),"
        " EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = pg_class.oid AND attname = 'tenant')"
        " FROM pg_class WHERE relnamespace = 'mission_control'::regnamespace"
        " AND relkind IN ('r', 'p') AND NOT relispartition",
        "shared",
    )

    without = {name for name, *protected in tables if not all(protected)}
    assert without == {"tenants", "schema_version", "index_workers"}  # the last says how far workers are, and of nobody
    assert len(tables) == 22
