"""The way of planted sessions through the installed command: to every kind of sink, and into everything people see."""

import re
import shutil
import socket
import sqlite3
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

import httpx
import zstandard

from tests.otel.receiver import Receiver
from tests.planted.sessions import CANARY
from tests.program.driver import Machine
from tests.program.floor import Floor, Reply
from tests.program.waiting import until

_SECONDS_MAX: Final = 600
_PAGES: Final = ("/", "/feed", "/health", "/metrics", "/api/v1/sessions", "/api/v1/exporters", "/api/v1/notifications",
                 "/api/v1/redactions?by=rule", "/api/v1/redactions?by=day,rule")  # fmt: skip
_PAGES_OF_SESSION: Final = ("/sessions/{}", "/sessions/{}?all=1", "/sessions/{}/waterfall", "/sessions/{}/forget",
                            "/sessions/{}/export.md", "/sessions/{}/export.html", "/sessions/{}/export.jsonl",
                            "/api/v1/sessions/{}", "/api/v1/sessions/{}/tree", "/api/v1/sessions/{}/trace",
                            "/agents/sessions/{}?ids=1")  # fmt: skip
_COMMANDS: Final = ("status --json", "sessions list --json", "sessions list", "quarantine list --json", "verify --all",
                    "redact report --json", "config show --origin", "doctor")  # fmt: skip
_COMMANDS_OF_SESSION: Final = ("sessions show {} --json", "redact preview --session {} --diff", "sessions tail {}")
_WORDS: Final = re.compile(r"[0-9a-z]{8,}")


class _Keeping(Floor):
    """A floor receiver that keeps every body."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        super().__init__()

    def take(self, session: str, body: bytes, run: int) -> Reply:
        self.bodies.append(body)
        return super().take(session, body, run)


class WrittenSession(Protocol):
    """A session that can be written where the CLI does."""

    id: str

    def write(self, home: Path) -> None:
        """Write it below the CLI's directory."""


class Road:
    """A machine with these sessions, whose exporter has delivered everything once `deliver` returns."""

    def __init__(self, sessions: Sequence[WrittenSession]) -> None:
        self.sessions = sessions
        self._root = Path(tempfile.mkdtemp(prefix="xl-")).resolve()
        self.machine = Machine(self._root)
        for session in sessions:
            session.write(self.machine.home)
        self.floor = self.machine.floor = _Keeping()
        self.machine.tables["floor"] = {"url": self.floor.url, "token": "floor-token-of-the-tests"}
        self.machine.settings |= {"log_level": "debug", "port": _free_port()}
        self.archive = self.machine.with_archive(seal_seconds=0.2)
        self.telemetry = Receiver()
        self.machine.environment |= {
            "EXPORTER_OTEL__ENDPOINT": self.telemetry.url,
            "EXPORTER_OTEL__HISTORY_DAYS": "36500",
            "EXPORTER_OTEL__CONTENT": "redacted",
            "EXPORTER_OTEL__HEALTH": "true",
        }
        self.page = f"http://127.0.0.1:{self.machine.settings['port']}"

    def __enter__(self) -> "Road":
        return self

    def __exit__(self, *_: object) -> None:
        self.machine.close()
        self.telemetry.close()
        shutil.rmtree(self._root, ignore_errors=True)

    def deliver(self) -> None:
        """Deliver everything, with a page; nothing may be in quarantine, where events are as they were."""
        self.machine.start("up", "--no-open")
        until(self._is_delivered, "every event at every sink", seconds=_SECONDS_MAX)
        assert self.machine.json("quarantine", "list")["quarantined"] == []

    def _is_delivered(self) -> bool:
        answer = self.machine.exporter("status", "--json")
        if answer.returncode != 0:
            return False
        sinks = httpx.Response(200, content=answer.stdout).json()["sinks"]
        return len(sinks) == 6 and all(one["lag_events"] == 0 and one["state"] == "ok" for one in sinks)

    def places(self) -> Iterator[tuple[str, bytes]]:
        """Yield everything that left, that is shown and that is kept, by place; the exporter is stopped on the way."""
        yield "floor", b"\n".join(self.floor.bodies)
        for signal in ("traces", "logs", "metrics"):
            yield f"otel {signal}", b"".join(one.body for one in self.telemetry.requests if one.signal == signal)
        yield from self._said()
        with httpx.Client(base_url=self.page, timeout=120) as client:
            yield from self._shown(client)
        self.machine.running[-1].stop()
        yield "log", self.machine.running[-1].said.read_bytes()
        for path in self.archive.rglob("*"):
            if path.is_file():
                body = path.read_bytes()
                yield f"archive {path.suffix}", zstandard.decompress(body) if path.suffix == ".zst" else body
        yield "state", b"\n".join(path.read_bytes() for path in self.machine.state.rglob("*") if path.is_file())
        yield "words", "\n".join(self.words()).encode()

    def _said(self) -> Iterator[tuple[str, bytes]]:
        bundle = self._root / "report.zip"
        lines = [*_COMMANDS, f"doctor --bundle {bundle}"]
        lines += [line.format(self.sessions[0].id) for line in _COMMANDS_OF_SESSION]
        for line in lines:
            answer = self.machine.exporter(*line.split())
            yield (
                f"command {line.split()[0]} {line.split()[1]}" if " " in line else line,
                (answer.stdout + answer.stderr).encode(),
            )
        with zipfile.ZipFile(bundle) as opened:
            yield "bundle", b"".join(opened.read(name) for name in opened.namelist())

    def _shown(self, client: httpx.Client) -> Iterator[tuple[str, bytes]]:
        for path in _PAGES:
            yield f"page {path}", _body(client, path)
        for session in self.sessions:
            for path in _PAGES_OF_SESSION:
                yield f"page {path}", _body(client, path.format(session.id))
            after: str | None = ""
            while after is not None:
                answer = client.get(f"/api/v1/sessions/{session.id}/events?limit=500&about=1{after}").raise_for_status()
                yield "page events", answer.content
                following = answer.json()["next"]
                after = f"&after={following}" if following else None
        yield "page search", _body(client, f"/api/v1/search?q={CANARY.replace(' ', '+')}")

    def words(self) -> set[str]:
        """Return the words of the index of the store, in lower case."""
        found: set[str] = set()
        with sqlite3.connect(self.machine.state / "mission_control-search.db") as index:
            parts = [name for (name,) in index.execute("SELECT name FROM sqlite_master WHERE sql LIKE '%fts5(text%'")]
            for part in parts:
                index.execute(f"CREATE VIRTUAL TABLE temp.words_{part} USING fts5vocab(main, {part}, row)")
                found |= {word for (word,) in index.execute(f"SELECT term FROM temp.words_{part}")}
        return found


def words_of(needles: Sequence[str]) -> set[str]:
    """Return the long words that the index would have of these values."""
    words = (word for needle in needles for word in _WORDS.findall(needle.lower()))
    return {word for word in words if not word.isalpha()}


def _body(client: httpx.Client, path: str) -> bytes:
    answer = client.get(path)
    assert answer.status_code == 200, (path, answer.status_code, answer.text[:500])
    return answer.content


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
