"""Makes the tables of a PostgreSQL database what this version of the program needs, beside receivers that run.

Each version is a file of SQL that is applied in one transaction. Receivers of the version before go on with the new
tables, so that all receivers need not be exchanged at once.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from psycopg import errors

from exporter.errors import StateError
from exporter.missioncontrol.store.port import StoreAway
from exporter.missioncontrol.store.postgresql.connection import (
    INDEX_ROLE,
    RECEIVER_ROLE,
    SCHEMA,
    VERSION,
    Raw,
    connect,
    engine_errors,
)

_FILES: Final = Path(__file__).with_name("schema")
_LOCK: Final = 0x6D63_6D69_6772
_FIRST: Final = "; ".join(
    (
        f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}",
        f"SET LOCAL search_path = {SCHEMA}",
        "CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL, readable_from integer NOT NULL)",
        "INSERT INTO schema_version SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM schema_version)",
    )
)
READABLE_FROM: Final = {1: 1, 2: 1, 3: 2}
"""The oldest version of the program that can use the tables of each version."""


@dataclass(frozen=True, slots=True)
class Migrated:
    """The versions of the tables before and now; the same when nothing was to be done."""

    before: int
    now: int


def migrate(url: str, until: int = VERSION) -> Migrated:
    """Make or update schema, tables, policies and the role of receivers. Raises `StateError`."""
    try:
        with engine_errors(), connect(url) as connection:
            for role in (RECEIVER_ROLE, INDEX_ROLE):
                _make_role(connection, role)
            # The lock goes with the transaction, so it works behind a pooler too.
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock($1)", (_LOCK,))
                return _apply(connection, until)
    except StoreAway as error:
        raise StateError(f"PostgreSQL cannot be reached: {error}.", hint="Check --store and the server.") from error


def _apply(connection: Raw, until: int) -> Migrated:
    connection.execute(_FIRST)
    (before,) = connection.execute("SELECT version FROM schema_version").fetchone() or (0,)
    if before > VERSION:
        raise StateError(
            f"The tables of the PostgreSQL database are of a newer version: {before}, not {VERSION}.",
            hint="Install the newer version of this program.",
        )
    for version in range(before + 1, until + 1):
        connection.execute((_FILES / f"{version:04d}.sql").read_text(encoding="utf-8"))
        connection.execute(
            "UPDATE schema_version SET version = $1, readable_from = $2", (version, READABLE_FROM[version])
        )
    return Migrated(before, max(before, until))


def _make_role(connection: Raw, role: str) -> None:
    """Make the role that receivers or index workers work as, which may not log in, and let this role take it on."""
    try:
        connection.execute(
            f"DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '{role}')"  # noqa: S608  a name
            f" THEN CREATE ROLE {role} NOLOGIN; END IF; END $$"
        )
        connection.execute(
            f"DO $$ BEGIN IF NOT pg_has_role('{role}', 'MEMBER') THEN GRANT {role} TO CURRENT_USER; END IF; END $$"
        )
    except (errors.InsufficientPrivilege, errors.InvalidGrantOperation) as error:
        raise StateError(
            f"The role of this URL may not make or take on the role {role}.",
            hint=f"An administrator executes: CREATE ROLE {role} NOLOGIN; GRANT {role} TO that role.",
        ) from error
    except (errors.UniqueViolation, errors.DuplicateObject):
        pass  # another migration made it at the same moment
