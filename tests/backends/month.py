"""Sessions of a month on a machine of their own, and what is in their files: what backends must say."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias
from uuid import NAMESPACE_URL, uuid5

from tests.dashboards.troubled import happenings
from tests.real.cli import wait_until
from tests.real.station import REPOSITORY

_SECONDS_MAX: Final = 300
CROWD: Final = 7_000
"""Small sessions that a host has at once, each of eight events."""
_STEP: Final = timedelta(seconds=5)
_Happened: TypeAlias = tuple[str, dict[str, Any], str | None]


@dataclass(frozen=True, slots=True)
class Host:
    """A directory of the CLI's with sessions, and a state of the exporter's own."""

    directory: Path

    def write(self, name: str, begins: datetime, step: timedelta = _STEP) -> str:
        """Add a session in which whatever a dashboard asks for happens; returns its id."""
        return self._write(name, begins, step, happenings())

    def crowd(self, sessions: int, until: datetime) -> None:
        """Add many small sessions, all of which begin within an hour that ended an hour ago."""
        for number in range(sessions):
            begins = until - timedelta(hours=2) + number * timedelta(hours=1) / sessions
            self._write(f"small {number}", begins, _STEP, _little())

    def _write(self, name: str, begins: datetime, step: timedelta, happened: Iterable[_Happened]) -> str:
        session = str(uuid5(NAMESPACE_URL, f"{self.directory.name}/{name}"))
        file = self._sessions / session / "events.jsonl"
        file.parent.mkdir(parents=True)
        events = list(_events(session, begins, step, happened))
        file.write_text("".join(f"{json.dumps(event)}\n" for event in events), encoding="utf-8")
        # A session at rest is told from one at work by when its file was written.
        written = min(begins + step * (len(events) - 1), now()).timestamp()
        os.utime(file, (written, written))
        return session

    def play(self, name: str) -> str:
        """Add a session that happens now, within a second."""
        return self.write(name, now(), timedelta(milliseconds=20))

    @property
    def _sessions(self) -> Path:
        return self.directory / "copilot" / "session-state"

    def events(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every event of every file, with the session's id."""
        for file in sorted(self._sessions.glob("*/events.jsonl")):
            for line in file.read_text(encoding="utf-8").splitlines():
                yield file.parent.name, json.loads(line)

    def backfill(self, endpoint: str, **more: str) -> str:
        """Deliver history with the installed command, and return its notices; fails unless all was delivered."""
        done = self._run("backfill", "--all", "--sink", "otel", endpoint=endpoint, **more)
        assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
        return done.stderr

    def forget(self) -> None:
        """Lose the exporter's state, so that the next backfill sends everything again."""
        state = self.directory / "state"
        state.rename(self.directory / f"state-of-{len(list(self.directory.iterdir()))}")

    def environment(self, endpoint: str, **more: str) -> dict[str, str]:
        """The variables of a process of the exporter's."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "EXPORTER_"))}
        return {
            **kept,
            "EXPORTER_COPILOT_HOME": str(self.directory / "copilot"),
            "EXPORTER_STATE_DIR": str(self.directory / "state"),
            "EXPORTER_OTEL__ENDPOINT": endpoint,
            **more,
        }

    @contextmanager
    def running(self, endpoint: str, **more: str) -> Iterator[None]:
        """The exporter as a daemon."""
        self._sessions.mkdir(parents=True, exist_ok=True)
        log = self.directory / "said"
        with log.open("ab") as said:
            before = said.tell()
            process = subprocess.Popen(
                [sys.executable, "-m", "exporter", "run"],
                cwd=REPOSITORY,
                env=self.environment(endpoint, **more),
                stdout=said,
                stderr=said,
            )
        try:
            wait_until(lambda: b" ready\n" in log.read_bytes()[before:], "it follows", 60)  # earlier events are history
            yield
            assert process.poll() is None, log.read_text()[-2000:]
        finally:
            process.terminate()
            process.wait(60)

    def _run(self, *arguments: str, endpoint: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "exporter", *arguments],
            cwd=REPOSITORY,
            env=self.environment(endpoint, **more),
            capture_output=True,
            text=True,
            timeout=_SECONDS_MAX,
            check=False,
        )


def month(directory: Path, sessions: int, *, until: datetime, days: int = 27) -> Host:
    """A host with sessions spread over so many days, some of which overlap; the last ended an hour ago."""
    host = Host(directory)
    for number in range(sessions):
        pairs = number // 2 / max(sessions // 2 - 1, 1)
        host.write(str(number), until - timedelta(hours=1) - timedelta(days=days) * (1 - pairs) - number % 2 * _STEP)
    return host


def _little() -> Iterator[_Happened]:
    """A session of one question, which a tool answers."""
    yield "session.start", {"copilotVersion": "1.0.102", "selectedModel": "made-up-model"}, None
    yield "user.message", {"content": "Say it", "interactionId": "one"}, None
    yield "assistant.turn_start", {"turnId": "0", "interactionId": "one"}, None
    yield "tool.execution_start", {"toolCallId": "call", "toolName": "view", "arguments": {}}, None
    yield "tool.execution_complete", {"toolCallId": "call", "success": True, "result": {"content": ""}}, None
    yield "assistant.message", {"model": "made-up-model", "content": "So it is", "toolRequests": []}, None
    yield "assistant.turn_end", {"turnId": "0"}, None
    yield "session.shutdown", {"shutdownType": "routine"}, None


def _events(
    session: str, begins: datetime, step: timedelta, happened: Iterable[_Happened]
) -> Iterator[Mapping[str, Any]]:
    parent = None
    for number, (kind, data, agent) in enumerate(happened):
        identity = str(uuid5(NAMESPACE_URL, f"{session}/{number}"))
        moment = (begins + number * step).astimezone(UTC)
        yield {
            "type": kind,
            "data": data,
            "id": identity,
            "timestamp": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "parentId": parent,
            **({"agentId": agent} if agent else {}),
        }
        parent = identity


@dataclass(frozen=True, slots=True)
class Truth:
    """What was counted in the files, without the program's own reading of them."""

    sessions: int
    kinds: Counter[str]
    tools: Counter[tuple[str, bool]]
    tokens: Counter[str]
    traces: int

    @property
    def events(self) -> int:
        return self.kinds.total()


def counted(*hosts: Host, session: str | None = None) -> Truth:
    """Count what is in the files of some hosts, or of one session there."""
    seen: set[str] = set()
    kinds: Counter[str] = Counter()
    tools: Counter[tuple[str, bool]] = Counter()
    tokens: Counter[str] = Counter()
    traces = 0
    for host in hosts:
        names: dict[str, str] = {}
        traces += _interactions(event for event in host.events() if session in (None, event[0]))
        for of_session, event in host.events():
            if session not in (None, of_session):
                continue
            data = event["data"]
            seen.add(of_session)
            kinds[event["type"]] += 1
            if event["type"] == "tool.execution_start":
                names[of_session + data["toolCallId"]] = data["toolName"]
            if event["type"] == "tool.execution_complete":
                tools[names[of_session + data["toolCallId"]], data["success"]] += 1
            if event["type"] == "session.usage_record":
                tokens.update({name: value for name, value in data["usage"].items() if name.endswith("Tokens")})
    return Truth(len(seen), kinds, tools, tokens, traces)


def _interactions(events: Iterable[tuple[str, dict[str, Any]]]) -> int:
    """How often a person began something, or a notification that a session at rest works on."""
    begun, at_rest, told = 0, set[str](), set[str]()
    for session, event in events:
        kind = event["type"]
        if kind == "user.message" or (kind == "assistant.turn_start" and session in told):
            begun += 1
            at_rest.discard(session)
            told.discard(session)
        elif kind == "assistant.turn_end":
            at_rest.add(session)
        elif kind == "system.notification" and session in at_rest:
            told.add(session)
    return begun


def now() -> datetime:
    """This moment; sessions are dated from it, as stores judge times by their own clock."""
    return datetime.now(UTC)
