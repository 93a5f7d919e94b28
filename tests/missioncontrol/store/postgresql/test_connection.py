"""What a receiver refuses to work on, and that no error says a password."""

from collections.abc import Callable, Iterator

import pytest

from exporter.errors import StateError
from exporter.missioncontrol.store.postgresql.connection import open_connection, without_password
from exporter.missioncontrol.store.postgresql.store import PostgresStore
from tests.missioncontrol.postgres import PASSWORD, Server
from tests.missioncontrol.store_contract import known, register


@pytest.fixture(scope="module")
def url(postgres_server: Server) -> str:
    return postgres_server.migrated("checked")


@pytest.fixture
def execute(postgres_server: Server, url: str) -> Iterator[Callable[[str], object]]:
    """Executes SQL in the database of these tests as the owner of the server."""
    yield lambda statement: postgres_server.execute(statement, "checked")
    reset = ("ALTER DATABASE checked RESET synchronous_commit", "DROP ROLE IF EXISTS guest")
    for statement in (*reset, "UPDATE mission_control.schema_version SET version = 3, readable_from = 2"):
        postgres_server.execute(statement, "checked")


def test_a_database_without_tables_is_refused_with_the_command(postgres_server: Server) -> None:
    with pytest.raises(StateError, match="no tables") as raised:
        PostgresStore(postgres_server.new_database("empty"))

    assert "exporter mission-control migrate --store" in raised.value.hint


@pytest.mark.parametrize(
    ("version", "readable_from", "says"), [(2, 1, "an earlier version: 2, not 3"), (5, 4, "a newer version: 5, not 3")]
)
def test_tables_of_another_version_are_refused(
    url: str, execute: Callable[[str], object], version: int, readable_from: int, says: str
) -> None:
    execute(f"UPDATE mission_control.schema_version SET version = {version}, readable_from = {readable_from}")

    with pytest.raises(StateError, match=says) as raised:
        PostgresStore(url)

    assert raised.value.hint


def test_the_version_after_this_one_is_used_where_it_can_be(url: str, execute: Callable[[str], object]) -> None:
    execute("UPDATE mission_control.schema_version SET version = 4, readable_from = 3")

    with PostgresStore(url) as store:
        assert store.do(known) == []


def test_commits_that_are_not_durable_are_refused(url: str, execute: Callable[[str], object]) -> None:
    execute("ALTER DATABASE checked SET synchronous_commit = off")

    with pytest.raises(StateError, match="synchronous_commit is off"):
        PostgresStore(url)


@pytest.mark.parametrize("power", ["SUPERUSER", "BYPASSRLS", "IN ROLE owner"])
def test_a_role_above_row_level_security_is_left(
    postgres_server: Server, execute: Callable[[str], object], power: str
) -> None:
    execute(f"CREATE ROLE guest LOGIN PASSWORD 'x' {power}")
    execute("GRANT exporter_receiver TO guest")

    opened = open_connection(postgres_server.url("checked", "guest", "x"), "default")
    with opened.raw as raw, raw.transaction():
        raw.execute(opened.begin)
        assert raw.execute("SELECT current_user").fetchone() == ("exporter_receiver",)


def test_a_role_that_bypasses_row_level_security_and_cannot_be_left_is_refused(
    postgres_server: Server, execute: Callable[[str], object]
) -> None:
    execute("CREATE ROLE guest LOGIN PASSWORD 'x' BYPASSRLS")

    with pytest.raises(StateError, match="Row-level security does not hold") as raised:
        open_connection(postgres_server.url("checked", "guest", "x"), "default")

    assert "GRANT exporter_receiver" in raised.value.hint


def test_a_role_that_may_only_do_what_receivers_do_is_enough(
    postgres_server: Server, execute: Callable[[str], object]
) -> None:
    execute("CREATE ROLE guest LOGIN PASSWORD 'x' IN ROLE exporter_receiver")

    with PostgresStore(postgres_server.url("checked", "guest", "x")) as store:
        store.do(register("s"))
        assert store.read_now(known) == ["s"]


def test_a_tenant_that_is_not_there_is_refused(url: str) -> None:
    with pytest.raises(StateError, match="no tenant nobody"):
        PostgresStore(url, tenant="nobody")


def test_an_error_says_no_password(postgres_server: Server) -> None:
    with pytest.raises(StateError, match="password authentication failed") as raised:
        PostgresStore(postgres_server.url(password="wrong-secret"))

    assert "wrong-secret" not in str(raised.value)
    assert PASSWORD not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://mc:p%40ss@db/mc?sslmode=require", "postgresql://mc:***@db/mc?sslmode=require"),
        ("postgresql://db/mc?user=mc&password=hidden&port=1", "postgresql://db/mc?user=mc&password=***&port=1"),
        ("host=db password='hid den' port=1", "host=db password=*** port=1"),
        ("postgresql://mc@db/mc", "postgresql://mc@db/mc"),
    ],
)
def test_passwords_are_left_out_of_what_is_printed(text: str, shown: str) -> None:
    assert without_password(text) == shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://mc:hid%den@127.0.0.1/mc",
        "postgresql://mc:hid%zz@127.0.0.1/mc",
        "postgresql://127.0.0.1:hidden/den@db/mc",
        "postgresql://mc:hidden@[::1/mc",
        "postgresql://db/mc?hidden=1",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_without_a_part_of_it(url: str) -> None:
    with pytest.raises(StateError, match="cannot be read") as raised:
        open_connection(url, "default")

    assert "hid" not in f"{raised.value} {raised.value.hint}"
