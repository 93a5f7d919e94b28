"""Runs the real command in a directory of its own: a made-up COPILOT_HOME, fresh state, a minimal environment."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench import measure
from tests.bench.generate import EventStream, SessionFile
from tests.bench.receiver import REPOSITORY

READY_TIMEOUT_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Running:
    """A command that has been started; `started` is a `time.monotonic()`."""

    process: subprocess.Popen[bytes]
    started: float
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def stop(self) -> measure.Finished:
        """Asks for the end and returns what it cost."""
        return measure.stop(self.process, self.started)

    def check(self) -> None:
        """Raises with the end of its log when it is gone."""
        if self.process.poll() is not None:
            raise RuntimeError(f"ended with {self.process.returncode}: {self.log.read_text()[-2000:]}")


class Home:
    """Everything one run of the exporter reads and writes; deleted at the end."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.sessions = directory / "copilot" / "session-state"
        self.sessions.mkdir(parents=True)
        self.config = directory / "exporter.toml"
        self.configure(None)

    def configure(self, mission_control_url: str | None) -> None:
        """Writes the configuration file: one Mission Control, or none."""
        lines = [
            f"copilot_home = {json.dumps(str(self.directory / 'copilot'))}",
            f"state_dir = {json.dumps(str(self.directory / 'state'))}",
            f"cache_dir = {json.dumps(str(self.directory / 'cache'))}",
        ]
        if mission_control_url is not None:
            lines += ["[mission_control]", f"url = {json.dumps(mission_control_url)}"]
        self.config.write_text("\n".join(lines) + "\n")

    def forget(self) -> None:
        """Removes the exporter's state, so that the next run starts from nothing."""
        shutil.rmtree(self.directory / "state", ignore_errors=True)

    def add(self, file: SessionFile) -> None:
        """Puts a generated file where the CLI would have written it, without copying it."""
        os.utime(file.path)
        path = self.session_path(file.session_id)
        os.link(file.path, path)
        path.chmod(0o600)

    def session_path(self, session_id: str) -> Path:
        """Makes the session's directory and returns where its events belong."""
        directory = self.sessions / session_id
        directory.mkdir(mode=0o700, exist_ok=True)
        return directory / "events.jsonl"

    def new_session(self, stream: EventStream, events: int) -> Path:
        """Makes a session of `events` events."""
        path = self.session_path(stream.session_id)
        path.write_bytes(b"".join(stream.next_line() for _ in range(events)))
        path.chmod(0o600)
        return path

    def environ(self) -> dict[str, str]:
        """Nothing of the person who runs the bench: their settings and secrets would change what is measured."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.directory), "LANG": "C.UTF-8"}

    def command(self, arguments: Sequence[str]) -> list[str]:
        """The program of this tree, with this home's configuration."""
        return [sys.executable, "-m", "exporter", *arguments, "--config", str(self.config)]

    @contextmanager
    def running(self, *arguments: str, command: Sequence[str] | None = None) -> Iterator[Running]:
        """Starts the command (or another one) here and stops it at the end if it was not stopped before."""
        log = self.directory / f"{arguments[0] if arguments else 'command'}.log"
        with log.open("wb") as output:
            started = time.monotonic()
            process = subprocess.Popen(
                command or self.command(arguments), env=self.environ(), cwd=REPOSITORY, stdout=output, stderr=output
            )
        try:
            yield Running(process, started, log)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()

    def status(self) -> dict[str, object] | None:
        """What the daemon says of itself; None while nobody answers."""
        return self.ask("status")

    def ask(self, what: str) -> dict[str, object] | None:
        """What the daemon answers on its control socket; None while nobody answers."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(READY_TIMEOUT_SECONDS)
            try:
                client.connect(str(self.directory / "state" / "control.sock"))
                client.sendall(json.dumps({"do": what}).encode() + b"\n")
                answer = client.makefile("rb").readline()
            except OSError:
                return None
        found = json.loads(answer).get("result") if answer else None
        return found if isinstance(found, dict) else None

    def follows(self, sessions: int) -> bool:
        """Whether a daemon is there and follows so many sessions."""
        status = self.status()
        sources = status.get("sources") if status else None
        return isinstance(sources, list) and sum(int(source["sessions"]) for source in sources) >= sessions


@contextmanager
def home() -> Iterator[Home]:
    """A fresh home in the directory for temporary files."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as directory:
        yield Home(Path(directory))


@contextmanager
def mission_control(place: Home) -> Iterator[tuple[Running, int]]:
    """Our own receiver with its SQLite store, as `exporter mission-control serve` runs it, and its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with place.running("mission-control", "serve", "--port", str(port)) as server:
        measure.wait_until(lambda: _healthy(server, port), READY_TIMEOUT_SECONDS, "mission-control serve")
        yield server, port


def _healthy(server: Running, port: int) -> bool:
    server.check()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
