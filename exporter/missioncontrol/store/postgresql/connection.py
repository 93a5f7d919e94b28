"""A connection to PostgreSQL that is what a receiver needs, and the engine's errors as those of the port.

The role that owns the tables, or is above all, is left at the beginning of every transaction: with the role of
receivers the server itself keeps tenants apart. What is set is local to the transaction, for poolers.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import Connection, RawCursor, errors, sql
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryDumper

from exporter.errors import StateError
from exporter.missioncontrol.store.port import StoreAway, StoreBusy, StoreDamaged, StoreError, StoreFull
from exporter.missioncontrol.store.postgresql import arrays
from exporter.missioncontrol.store.postgresql.text import loaded

VERSION: Final = 3
"""The version of the tables that this program is written for; `schema/` has a file for each."""
SCHEMA: Final = "mission_control"
RECEIVER_ROLE: Final = "exporter_receiver"
INDEX_ROLE: Final = "exporter_index"

_MIGRATE: Final = "Run: exporter mission-control migrate --store URL"
_GRANT: Final = "Use another role, or have an administrator execute: GRANT {} TO that role."
_CONNECT_SECONDS: Final = 5
_CLASSES: Final[dict[str, type[StoreError]]] = {"08": StoreAway, "57": StoreAway, "53": StoreBusy, "XX": StoreDamaged}
_CODES: Final[dict[str, type[StoreError]]] = {
    "53100": StoreFull,
    "55P03": StoreBusy,  # waited too long for a lock
    "57014": StoreBusy,  # cancelled
    "25P03": StoreAway,  # the server ended a transaction that did nothing
    "25006": StoreAway,  # a replica that only reads
}
_PASSWORD: Final = re.compile(r"(://[^/?#\s]*?):[^@/\s]+@|\b(password=)(?:'(?:[^'\\]|\\.)*'|[^\s&]+)")

Raw: TypeAlias = "Connection[tuple[Any, ...]]"


@dataclass(frozen=True, slots=True)
class Tenant:
    """Whose rows a store works on, and the epoch that they are in."""

    number: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Opened:
    """A connection, and the statements that begin a transaction of a tenant on it."""

    raw: Raw
    tenant: Tenant
    role: str
    behind_pooler: bool

    @property
    def begin(self) -> str:
        """The statements of the tenant that it was opened for."""
        return self.begin_as(self.tenant.number)

    def begin_as(self, tenant: int) -> str:
        """Return the statements of a tenant, by its number."""
        return f"{self.role}; SET LOCAL exporter.tenant = {tenant:d}"


class _TextLoader(Loader):
    format = Format.BINARY

    def load(self, data: Any) -> str:
        return loaded(bytes(data))


def without_password(text: str) -> str:
    """Return a text, such as a URL or an error that names one, without passwords."""
    return _PASSWORD.sub(lambda match: f"{match[1]}:***@" if match[1] else f"{match[2]}***", text)


@contextmanager
def engine_errors() -> Iterator[None]:
    """Raise PostgreSQL's errors as a `StoreError`; a lost connection is `StoreAway`."""
    try:
        yield
    except psycopg.Error as error:
        raise error_of(error) from error


def error_of(error: psycopg.Error) -> StoreError:
    """Return the error of the port for one of the engine."""
    code = error.sqlstate or ""
    kind = _CODES.get(code) or _CLASSES.get(code[:2])
    if kind is None:
        kind = StoreAway if isinstance(error, psycopg.OperationalError) and not code else StoreError
    message = error.diag.message_primary or str(error).strip() or type(error).__name__
    return kind(without_password(" ".join(message.split())))


def connect(url: str) -> Raw:
    """Open a connection as it is. Raises the engine's errors, and `StateError` for a URL that cannot be read."""
    _check_url(url)
    connection: Raw = psycopg.connect(
        url,
        autocommit=True,
        connect_timeout=_CONNECT_SECONDS,
        fallback_application_name="exporter-mission-control",
        keepalives_idle=10,
        keepalives_interval=5,
        keepalives_count=3,
        tcp_user_timeout=20_000,
        cursor_factory=RawCursor,
    )
    for name in ("text", "varchar", "name"):
        connection.adapters.register_loader(name, _TextLoader)
    arrays.register(connection)
    connection.adapters.register_dumper(int, Int8BinaryDumper)  # else a statement has a plan for each size of numbers
    return connection


def _check_url(url: str) -> None:
    """Raise `StateError` for what is no URL, without a part of it: libpq's errors name the part, perhaps a password."""
    try:
        ports = str(conninfo_to_dict(url).get("port") or "")
    except (psycopg.ProgrammingError, UnicodeDecodeError):
        ports = "none"
    if not all(port.isdecimal() for port in ports.split(",") if port):
        hint = "Write it as postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %XX for other letters than a-z and 0-9."
        raise StateError("The URL of the store on PostgreSQL cannot be read.", hint=hint) from None


def open_connection(url: str, tenant: str, role: str = RECEIVER_ROLE) -> Opened:
    """Open a connection for a receiver of a tenant, or with its role for an index worker.

    Raises `StoreAway` when the server cannot be reached, and `StateError` for what does not end by waiting: tables of
    another version, commits that are not durable, and a role that row-level security does not hold.
    """
    with engine_errors():
        connection = connect(url)
        try:
            return _checked(connection, tenant, role)
        except errors.InsufficientPrivilege as error:
            connection.close()
            raise StateError(
                f"PostgreSQL refuses the role of this store's URL: {error_of(error)}.", hint=_GRANT.format(role)
            ) from error
        except BaseException:
            connection.close()
            raise


def _checked(connection: Raw, tenant: str, role: str) -> Opened:
    setting, in_recovery, process, schema, is_free, is_member = (
        connection.execute(
            "SELECT current_setting('synchronous_commit'), pg_is_in_recovery(), pg_backend_pid(),"
            " EXISTS (SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace"
            " WHERE nspname = $1 AND relname = 'schema_version'),"
            " rolsuper OR rolbypassrls"
            " OR EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1 AND pg_has_role(nspowner, 'MEMBER')),"
            " EXISTS (SELECT 1 FROM pg_roles AS own WHERE own.rolname = $2 AND pg_has_role(own.oid, 'MEMBER'))"
            " FROM pg_roles WHERE rolname = current_user",
            (SCHEMA, role),
            binary=True,
        ).fetchone()
        or ()
    )
    if in_recovery:
        raise StoreAway("this PostgreSQL server is a replica that only reads")
    if setting == "off":
        raise StateError(
            "The PostgreSQL server answers a commit before it is durable: synchronous_commit is off.",
            hint="Switch it on for the role or the database of the receivers.",
        )
    if not schema:
        raise StateError("The PostgreSQL database has no tables of a Mission Control yet.", hint=_MIGRATE)
    if not is_member and is_free:
        raise StateError(
            "Row-level security does not hold the role of this store's URL, and the role cannot be left.",
            hint=_GRANT.format(role),
        )
    taken_on = sql.SQL("SET LOCAL ROLE {}; ").format(sql.Identifier(role)).as_string() if is_member else ""
    begin = f"{taken_on}SET LOCAL search_path = {SCHEMA}; SET LOCAL lock_timeout = 20000;"
    begin += " SET LOCAL idle_in_transaction_session_timeout = 60000"
    behind_pooler = _is_behind_pooler(connection, process)
    if behind_pooler:
        connection.prepare_threshold = None
    found = _tenant(connection, begin, tenant)
    return Opened(connection, found, begin, behind_pooler)


def _is_behind_pooler(connection: Raw, process: int) -> bool:
    """Tell whether a pooler stands between, by the number of the process that answers: a pooler says another one."""
    return process != connection.info.backend_pid


def refuse_version(version: int, readable_from: int) -> None:
    """Raise `StateError` for tables that this program cannot use."""
    told = f"The tables of the PostgreSQL database are of {{}} version: {version}, not {VERSION}."
    if version < VERSION:
        raise StateError(told.format("an earlier"), hint=_MIGRATE)
    if readable_from > VERSION:
        raise StateError(told.format("a newer"), hint="Install the newer version of this program.")


def _tenant(connection: Raw, begin: str, name: str) -> Tenant:
    """Return the tenant of this name in tables of a version that this program can use."""
    with connection.transaction():
        connection.execute(begin)
        versions = connection.execute("SELECT version, readable_from FROM schema_version").fetchone() or (0, 0)
        refuse_version(*versions)
        row = connection.execute("SELECT n FROM tenants WHERE name = $1", (name,)).fetchone()
        if row is None:
            raise StateError(f"The store has no tenant {name}.", hint="Choose a tenant that exists.")
        connection.execute(f"SET LOCAL exporter.tenant = {row[0]:d}")
        (epoch,) = connection.execute("SELECT value FROM counters WHERE name = 'epoch'").fetchone() or (0,)
    return Tenant(row[0], epoch)


AGAIN: Final = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.UniqueViolation,
    errors.ForeignKeyViolation,
)
"""What one of two transactions meets that do the same at once; it succeeds when it is run again."""
