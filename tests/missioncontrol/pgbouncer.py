"""A real PgBouncer of the tests' own in transaction pooling, on loopback before the PostgreSQL of the tests."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Final, Self

import psycopg

from tests.missioncontrol.postgres import PASSWORD, Server, free_port

PROGRAM: Final = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
POOL: Final = 2
"""How many connections of the server all clients share."""
_NOBODY: Final = 65_534
_START_SECONDS: Final = 30.0


class Pooler:
    """A running PgBouncer; like the server it refuses root, so it runs as an unprivileged user where the tests do."""

    def __init__(self, server: Server) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="xp-pgb-"))
        self.port = free_port()
        settings = self._home / "pgbouncer.ini"
        settings.write_text(
            "[databases]\n"
            f"* = host=127.0.0.1 port={server.port} user=owner password='{PASSWORD}'\n"
            "[pgbouncer]\nlisten_addr = 127.0.0.1\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n"
            f"listen_port = {self.port}\ndefault_pool_size = {POOL}\nmax_client_conn = 100\n"
        )
        user: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
            for path in (self._home, settings):
                os.chown(path, _NOBODY, _NOBODY)
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen([PROGRAM, str(settings)], stdout=log, stderr=log, cwd="/", **user)
        end = time.monotonic() + _START_SECONDS
        while True:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None and time.monotonic() < end, (self._home / "log").read_text()
                time.sleep(0.02)

    def url(self, database: str) -> str:
        """Return the address of a database through the pooler."""
        return f"postgresql://owner@127.0.0.1:{self.port}/{database}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait(_START_SECONDS)
        shutil.rmtree(self._home, ignore_errors=True)
