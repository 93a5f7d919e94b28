"""A private home with sessions and settings, and the program's processes on it, with the clock and the chance pinned.

Every output holds paths and ports, so that both are the same for every checkout: the home is always rebuilt in the same
directory, and receivers listen on fixed ports. A lock keeps two runs apart.
"""

import fcntl
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from tests.golden.captures import Capture

NOW: Final = 1_795_089_600
"""The time of day in every process: 2026-11-19 12:00:00 UTC."""
PINNED: Final = Path(__file__).resolve().parent / "pinned"
KEY: Final = bytes(range(32))
_TIMEOUT_SECONDS: Final = 120
_READY_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Work:
    """Where a run works: the checkout that it drives, its own directory, and its first port of ten."""

    checkout: Path
    root: Path
    port: int

    @property
    def cache(self) -> Path:
        """The compiled rules of this checkout."""
        return self.root / "cache"


@contextmanager
def working(checkout: Path, root: Path, port: int) -> Iterator[Work]:
    """An empty directory at `root`, locked until the block ends."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for one in root.iterdir():
            if one.is_dir():
                shutil.rmtree(one)
        yield Work(checkout.resolve(), root, port)


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command gave."""

    code: int
    out: bytes
    err: bytes
    USAGE: ClassVar[int] = 2


class Machine:
    """One home. `name` is its directory below the work directory; it begins empty unless it is `kept`."""

    def __init__(self, work: Work, name: str, *, kept: bool = False) -> None:
        self.work, self.root = work, work.root / name
        self.copilot, self.state = self.root / "copilot", self.root / "state"
        self.settings = self.root / "exporter.toml"
        if not kept:
            shutil.rmtree(self.root, ignore_errors=True)
            (self.copilot / "session-state").mkdir(parents=True)
            (self.root / "runtime").mkdir(mode=0o700)
            self.state.mkdir(mode=0o700)
            key = self.state / "redaction.key"
            key.write_bytes(KEY)
            key.chmod(0o600)
            self.configure("")

    def configure(self, text: str, *, give_up_seconds: int = 5) -> None:
        """Write the settings; `text` holds the tables of sinks."""
        head = (
            f"copilot_home = {json.dumps(str(self.copilot))}\nstate_dir = {json.dumps(str(self.state))}\n"
            f"history_days = 36500\ngive_up_seconds = {give_up_seconds}\nport = {self.work.port}\n"
            'host_name = "golden"\n'
        )
        self.settings.write_text(head + text)

    def add(self, captures: Iterable[Capture]) -> None:
        """Put sessions there; some were written to a minute ago, the others two days ago."""
        for number, capture in enumerate(captures):
            directory = self.copilot / "session-state" / capture.id
            directory.mkdir(mode=0o700)
            if capture.workspace is not None:
                (directory / "workspace.yaml").write_bytes(capture.workspace)
            self.write_session(capture.id, capture.content, age=60 + number if number % 2 else 2 * 86_400 + number)

    def write_session(self, session: str, content: bytes, *, age: int, append: bool = False) -> None:
        """Write a session's file, as it was last changed so many seconds ago."""
        path = self.copilot / "session-state" / session / "events.jsonl"
        path.parent.mkdir(exist_ok=True)
        with path.open("ab" if append else "wb") as file:
            file.write(content)
        os.utime(path, (NOW - age, NOW - age))

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a process: nothing of ours but the path."""
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "HOME": str(self.root),
            "GOLDEN_NOW": str(NOW),
            "PYTHONPATH": f"{PINNED}{os.pathsep}{self.work.checkout}",
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "XDG_RUNTIME_DIR": str(self.root / "runtime"),
            "XDG_CACHE_HOME": str(self.work.cache),
            **{f"XDG_{name}_HOME": str(self.root / name.lower()) for name in ("CONFIG", "STATE", "DATA")},
            **more,
        }

    def _line(self, arguments: Iterable[str]) -> list[str]:
        return [sys.executable, "-m", "exporter", *arguments, "--config", str(self.settings)]

    def exporter(self, *arguments: str, given: bytes = b"", variables: Mapping[str, str] | None = None) -> Ended:
        """Run a command to its end, on one core, so that no helper process takes part in it."""
        done = subprocess.run(
            self._line(arguments),
            env=self.environment(GOLDEN_ONE_CORE="1", **(variables or {})),
            cwd=self.work.checkout,
            input=given,
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def running(self, *arguments: str) -> "Iterator[subprocess.Popen[bytes]]":
        """A command that runs during the block."""
        with (self.root / "said").open("ab") as said, subprocess.Popen(
            self._line(arguments),
            env=self.environment(),
            cwd=self.work.checkout,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        ) as process:  # fmt: skip
            try:
                yield process
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(_TIMEOUT_SECONDS)

    @contextmanager
    def serving(self, store: Path, port: int, *more: str) -> Iterator[int]:
        """A Mission Control alone, on this store; the port once it answers."""
        with self.running("mission-control", "serve", "--store", str(store), "--port", str(port), *more) as process:
            wait_for_port(port, process, self.root / "said")
            yield port


def wait_for_port(port: int, process: "subprocess.Popen[bytes]", said: Path) -> None:
    """Return when something listens; raise with what the process said when it ends before that."""
    end = time.monotonic() + _READY_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise RuntimeError(f"nothing listens on {port}: {said.read_text(errors='replace')}")


def toml_table(name: str, table: Mapping[str, Any]) -> str:
    """A table of settings as TOML; JSON's texts, numbers and lists are TOML too."""
    return "\n".join([f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items()), "", ""])


class Client:
    """HTTP to a receiver over one connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS)

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """One request: the status, the headers in lower case and the body of its answer."""
        for again in (False, True):
            try:
                self._connection.request(method, path, body=body, headers=dict(headers or {}))
                answer = self._connection.getresponse()
                return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
            except (http.client.HTTPException, ConnectionError):
                self._connection.close()
                if again:
                    raise
        raise AssertionError

    def close(self) -> None:
        """Hang up."""
        self._connection.close()
