"""The program under test beside the real CLI: a receiver and `exporter run`, as processes of their own in the cage."""

from __future__ import annotations

import hashlib
import http.client
import json
import subprocess
import sys
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import msgspec

from tests.real.cage import Cage, kill, stop
from tests.real.cli import Copilot, TookTooLong, wait_until
from tests.real.rpc import Upload

REPOSITORY = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "exporter")
# Made up, and put together at run time so that no scanner trips on this file.
RECEIVER_TOKEN = "made-up" + "-receiver-" + "credential"
START_SECONDS_MAX = 30
COMMAND_SECONDS_MAX = 60
ARRIVAL_SECONDS_MAX = 20


class _Page(msgspec.Struct):
    events: list[msgspec.Raw]
    next: str | None = None


class _Items(msgspec.Struct):
    items: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Line:
    """A durable event as it is on disk, or as it was stored."""

    event_id: str
    data: bytes


class Receiver:
    """`exporter mission-control serve`, with a store of its own and a token."""

    def __init__(self, cage: Cage, directory: Path) -> None:
        directory.mkdir(parents=True)
        self.directory = directory
        self.port = cage.free_port()
        self.url = f"http://127.0.0.1:{self.port}/agents"
        self._cage = cage
        self._output = directory / "output"
        token_file = directory / "token"
        token_file.write_text(RECEIVER_TOKEN)
        token_file.chmod(0o600)
        arguments = ["mission-control", "serve", "--port", str(self.port), "--token-file", str(token_file)]
        with self._output.open("wb") as sink:
            self._program = cage.start(
                [*PROGRAM, *arguments],
                environment=environment(directory),
                directory=directory,
                stdout=sink,
                stderr=subprocess.STDOUT,
            )
        wait_until(self._ready, f"the receiver: {self._output}", START_SECONDS_MAX)

    def upload(self, account_port: int) -> Upload:
        """What makes the CLI's own uploader send here."""
        return Upload(self.url, RECEIVER_TOKEN, account_port)

    def session_ids(self) -> set[str]:
        """The sessions that are stored here."""
        document = json.loads(self._get("/api/v1/sessions?limit=500"))
        assert document["next"] is None
        return {str(session["id"]) for session in document["sessions"]}

    def event_ids(self, session_id: str) -> list[str]:
        """The ids of a session's stored events, in stored order; none when it is not known here."""
        try:
            body = self._get(f"/agents/sessions/{session_id}?ids=1")
        except LookupError:
            return []
        return [event_id for event_id, _ in msgspec.json.decode(body, type=_Items).items]

    def events(self, session_id: str) -> list[Line]:
        """A session's stored events as a reader gets them, bytes untouched."""
        found: list[Line] = []
        after = ""
        while True:
            body = self._get(f"/api/v1/sessions/{session_id}/events?limit=200{after}")
            page = msgspec.json.decode(body, type=_Page)
            found += [Line(json.loads(bytes(raw))["id"], bytes(raw)) for raw in page.events]
            if not page.next:
                return found
            after = f"&after={quote(page.next)}"

    def close(self) -> None:
        """Stop the receiver."""
        stop(self._program)

    def _ready(self) -> bool:
        if self._program.poll() is not None:
            raise RuntimeError(f"the receiver ended: {self._output.read_text()[-2000:]}")
        with suppress(ConnectionError):
            self._get("/healthz")
            return True
        return False

    def _get(self, path: str) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=COMMAND_SECONDS_MAX)
        connection.sock = self._cage.connect(self.port)
        connection.request("GET", path, headers={"Authorization": f"Bearer {RECEIVER_TOKEN}"})
        response = connection.getresponse()
        body = response.read()
        connection.close()
        if response.status == 404:
            raise LookupError(path)
        if response.status != 200:
            raise RuntimeError(f"GET {path}: {response.status} {body[:500]!r}")
        return body


class Station:
    """One version of the CLI, followed by `exporter run` into a receiver, from before its first session on."""

    def __init__(self, copilot: Copilot, directory: Path) -> None:
        self.copilot = copilot
        self.directory = directory
        self._closing = ExitStack()
        directory.mkdir(parents=True)
        self.receiver = Receiver(copilot.cage, directory / "receiver")
        self._closing.callback(self.receiver.close)
        self._output = directory / "exporter.output"
        self._program = self._follow()

    def arrived(self, session_id: str) -> list[Line]:
        """What the receiver holds of a session, once that has the ids of the file, or after a while anyway."""
        try:
            wait_until(lambda: self._is_level(session_id), session_id, ARRIVAL_SECONDS_MAX)
        except TookTooLong:
            print(self._output.read_text()[-3000:])  # pytest shows it beside the comparison that fails next
        return self.receiver.events(session_id) if self.receiver.event_ids(session_id) else []

    def recorded(self, session_id: str) -> list[Line]:
        """The durable events of a session's file."""
        return durable_events(self.copilot.sessions() / session_id / "events.jsonl")

    def session_ids(self) -> set[str]:
        """The sessions that have a file."""
        return {log.parent.name for log in self.copilot.sessions().glob("*/events.jsonl")}

    def command(self, *arguments: str, state: Path | None = None) -> subprocess.CompletedProcess[bytes]:
        """Run a command of the program to its end, by default on the daemon's state directory."""
        program = self._start(*arguments, state=state or self.directory / "state", stdout=subprocess.PIPE)
        stdout, _ = program.communicate(timeout=COMMAND_SECONDS_MAX)
        return subprocess.CompletedProcess(arguments, program.returncode, stdout)

    def kill_and_follow_again(self) -> None:
        """SIGKILL to the daemon, then another one on the same state."""
        kill(self._program)
        self._program = self._follow()

    def close(self) -> None:
        """Stop the daemon, then the receiver."""
        self._closing.close()

    def _follow(self) -> subprocess.Popen[bytes]:
        with self._output.open("ab") as sink:
            program = self._start("run", state=self.directory / "state", stdout=sink)
        self._closing.callback(stop, program)
        return program

    def _is_level(self, session_id: str) -> bool:
        return self.receiver.event_ids(session_id) == [line.event_id for line in self.recorded(session_id)]

    def _start(self, *arguments: str, state: Path, stdout: object) -> subprocess.Popen[bytes]:
        settings = {
            "EXPORTER_STATE_DIR": str(state),
            "EXPORTER_COPILOT_HOME": str(self.copilot.home),
            "EXPORTER_MISSION_CONTROL__URL": self.receiver.url,
            "EXPORTER_MISSION_CONTROL__TOKEN": RECEIVER_TOKEN,
        }
        return self.copilot.cage.start(
            [*PROGRAM, *arguments],
            environment={**environment(self.directory), **settings},
            directory=self.directory,
            stdout=stdout,  # type: ignore[arg-type]  # a file or subprocess.PIPE, as Popen takes them
            stderr=subprocess.STDOUT,
        )


def environment(directory: Path) -> dict[str, str]:
    """A clean environment for our own program, with every directory of its own below this one."""
    places = {f"XDG_{name}_HOME": str(directory / name.lower()) for name in ("CONFIG", "STATE", "CACHE")}
    path = "/usr/local/bin:/usr/bin:/bin"
    return {"HOME": str(directory), "PATH": path, "PYTHONPATH": str(REPOSITORY), "NO_COLOR": "1", **places}


def durable_events(log: Path) -> list[Line]:
    """The events of a log that are to be delivered, read in the plainest way."""
    lines = [line for line in log.read_bytes().split(b"\n") if line.strip()]
    events = [(json.loads(line), line) for line in lines]
    return [Line(event["id"], line) for event, line in events if event.get("ephemeral") is not True]


def fingerprint(root: Path) -> dict[str, tuple[int, int, int, str]]:
    """Mode, size, time of change and content hash of everything below a directory."""
    found: dict[str, tuple[int, int, int, str]] = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(root))] = (status.st_mode, status.st_size, status.st_mtime_ns, digest)
    return found
