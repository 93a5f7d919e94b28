"""Opens the store that an address names: a file for SQLite, or a database of PostgreSQL."""

from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from exporter.errors import ExporterError, UsageError
from exporter.files import open_regular
from exporter.missioncontrol.store.port import Store
from exporter.missioncontrol.store.sqlite.database import VERSION as SQLITE_SCHEMA
from exporter.missioncontrol.store.sqlite.store import SqliteStore

__all__ = [
    "SQLITE_SCHEMA",
    "address_in",
    "file_of",
    "has_password",
    "is_postgres",
    "open_store",
    "require_fleet",
    "store_path",
]

_POSTGRES: Final = ("postgresql", "postgres")
_URL_BYTES_MAX: Final = 65_536


class MissingExtraError(ExporterError):
    """What only some need is not installed."""


def open_store(address: str | Path, *, may_be_away: bool = False) -> Store:
    """Open the store of an address: a path, sqlite:///PATH, or postgresql://…

    With `may_be_away` a PostgreSQL server that cannot be reached is no error: what needs it fails until it can be.
    """
    address = str(address)
    if not is_postgres(address):
        return SqliteStore(store_path(address))
    require_fleet()
    from exporter.missioncontrol.store.postgresql.store import PostgresStore

    return PostgresStore(address, may_be_away=may_be_away)


def is_postgres(address: str) -> bool:
    """Tell whether an address is one of PostgreSQL."""
    scheme, separator, _ = address.partition("://")
    return bool(separator) and scheme.lower() in _POSTGRES


def has_password(address: str) -> bool:
    """Tell whether a URL says a password."""
    if not is_postgres(address):
        return False
    url = urlsplit(address)
    return bool(url.password) or "password" in parse_qs(url.query)


def store_path(address: str) -> Path:
    """Return the file that a path or sqlite:///PATH names."""
    scheme, separator, rest = address.partition("://")
    if not separator:
        return Path(address)
    if is_postgres(address):
        hint = "a database of PostgreSQL is copied by its own programs, such as pg_basebackup and pg_dump"
        raise UsageError(
            "This is for the file of a store on SQLite, and --store names a database of PostgreSQL", hint=hint
        )
    if scheme != "sqlite":
        hint = "give a path, sqlite:///PATH, or postgresql://HOST/DATABASE"
        raise UsageError(f"--store {scheme}: is not a store this receiver knows", hint=hint)
    return Path(rest)


def file_of(address: str) -> Path:
    """Return the file of a store that is one, as an absolute path; raises `UsageError` for PostgreSQL."""
    if is_postgres(address):
        raise UsageError("the store is a database of PostgreSQL", hint="use its own tools: pg_dump and pg_restore")
    return store_path(address).absolute()


def address_in(file: Path) -> str:
    """Return the address that a file holds, and nothing else."""
    try:
        with open_regular(file) as opened:
            address = opened.read(_URL_BYTES_MAX).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The file of receiver.store_file, {file}, cannot be read: {error}") from error
    if not address:
        raise UsageError(f"The file of receiver.store_file, {file}, is empty", hint="put the URL of the store in it")
    return address


def require_fleet() -> None:
    """Raise `MissingExtraError` when the driver of PostgreSQL is not installed."""
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            f"A store on PostgreSQL needs the extra `fleet`, which is not installed: {error}.",
            hint="Install it: pip install 'session-exporter[fleet]'",
        ) from error
