"""Drives the installed command: a machine with sessions, settings and receivers, and the exporter's processes on it."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.cli.program import ROOT, command
from tests.program.floor import Floor
from tests.program.session_files import SessionFile, event_id
from tests.program.team import Team
from tests.program.waiting import until
from tests.queued import Stopwatch
from tests.shared import CACHE_HOME

TIMEOUT_SECONDS: Final = 90
MARK_SECONDS: Final = 5


class Running:
    """An exporter that runs in the background."""

    def __init__(self, process: subprocess.Popen[bytes], said: Path) -> None:
        self.process = process
        self.said = said

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self.process.kill()
        self.process.wait(TIMEOUT_SECONDS)

    def stop(self, with_signal: signal.Signals = signal.SIGTERM) -> float:
        """Ask it to end; returns the seconds that took."""
        self.process.send_signal(with_signal)
        return self.ended(f"after {with_signal.name}")

    def ended(self, why: str = "") -> float:
        """Wait for its end; returns the seconds that took, without those for which it had no processor."""
        watch = Stopwatch(self.process.pid)

        def is_over() -> bool:
            watch.look()
            return self.process.poll() is not None

        until(is_over, f"the exporter's end {why}")
        return watch.seconds()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def resident_bytes(self) -> int:
        """The most memory it has had in use so far."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024

    def wait_for_word(self, word: str) -> None:
        """Wait until it has said this; fail with what it said instead when it ends before that."""
        until(lambda: word in self.text() or not self.alive, f"{word!r}, after {self.text()!r}")
        assert word in self.text(), self.text()

    def text(self) -> str:
        """What it has said on stderr so far."""
        return self.said.read_text(errors="replace")


class Machine:
    """A home with sessions, a configuration, and everything that was started here; `close` ends all of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "copilot"
        (self.home / "session-state").mkdir(parents=True)
        self.homes: list[str] = []
        self.state = root / "state" / "exporter"
        self.settings: dict[str, Any] = {"give_up_seconds": 20}
        self.tables: dict[str, dict[str, Any]] = {}
        self.archive: dict[str, Any] = {}
        self.plain_tables: dict[str, dict[str, Any]] = {}
        self.team: Team | None = None
        self.floor: Floor | None = None
        self.sessions: list[SessionFile] = []
        self.running: list[Running] = []
        self.program = command()
        self.environment = {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(root),
            "PYTHONPATH": str(ROOT),
            "XDG_RUNTIME_DIR": str(root / "runtime"),
            **{f"XDG_{name}_HOME": str(root / name.lower()) for name in ("CONFIG", "STATE", "DATA")},
            "XDG_CACHE_HOME": CACHE_HOME,
        }
        (root / "runtime").mkdir(mode=0o700)

    # ── what is here ──────────────────────────────────────────────────────────────────────────────────────────────
    def with_team(self, host: str = "127.0.0.1") -> "Machine":
        """Deliver to the real receiver, which listens at this address."""
        self.team = Team(self.root / "team", self.environment, host=host)
        self.tables["team"] = {"url": self.team.url, "token_file": str(self.team.token_file)}
        return self

    def with_floor(self, *, keep_bytes: bool = True) -> "Machine":
        """Deliver to a receiver that speaks the floor of the wire, counts, and can fail."""
        self.floor = Floor(keep_bytes=keep_bytes)
        self.tables["floor"] = {"url": self.floor.url, "token": "floor-token-of-the-tests"}
        return self

    def with_archive(self, **changes: Any) -> Path:
        """Keep an archive; returns its directory."""
        directory = self.root / "archive"
        self.archive = {"url": directory.as_uri(), **changes}
        return directory

    def session(self) -> SessionFile:
        """A new session directory without a file."""
        return self.planned_session().create()

    def planned_session(self) -> SessionFile:
        """A session whose directory does not exist yet."""
        session = SessionFile(self.home, seed=len(self.sessions))
        self.sessions.append(session)
        return session

    def write_settings(self) -> Path:
        """Write the configuration file as it is to be now."""
        lines = [
            f"copilot_home = {json.dumps(self.homes or str(self.home))}",
            f"state_dir = {json.dumps(str(self.state))}",
        ]
        lines += [f"{key} = {json.dumps(value)}" for key, value in self.settings.items()]
        for name, table in self.tables.items():
            lines.append(f"[mission_control.{name}]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in table.items()]
        if self.archive:
            lines.append("[archive]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in self.archive.items()]
        for name, table in self.plain_tables.items():
            lines.append(f"[{name}]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in table.items()]
        path = self.root / "exporter.toml"
        path.write_text("\n".join(lines) + "\n")
        return path

    # ── the command ───────────────────────────────────────────────────────────────────────────────────────────────
    def command(self, *arguments: str) -> list[str]:
        """The command line with this machine's configuration."""
        return [*self.program, *arguments, "--config", str(self.write_settings())]

    def exporter(
        self,
        *arguments: str,
        prefix: Sequence[str] = (),
        prepare: Callable[[], object] | None = None,
        timeout: float = TIMEOUT_SECONDS,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [*prefix, *self.command(*arguments)],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=timeout,
            check=False,
            preexec_fn=prepare,
        )

    def start(
        self, *arguments: str, prefix: Sequence[str] = (), prepare: Callable[[], object] | None = None
    ) -> Running:
        """Start a command, `run` when none is named, and leave it running."""
        said = self.root / f"stderr-{len(self.running)}"
        with said.open("wb") as errors:
            process = subprocess.Popen(
                [*prefix, *self.command(*(arguments or ("run",)))],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                preexec_fn=prepare,  # noqa: PLW1509  see above
            )
        self.running.append(Running(process, said))
        return self.running[-1]

    def deliver(self, expected_exit: int = 0) -> None:
        """`run --until-idle`, which must end as expected."""
        answer = self.exporter("run", "--until-idle")
        assert answer.returncode == expected_exit, answer.stderr

    def json(self, *arguments: str, expected_exit: int = 0) -> Any:
        """The document that a command prints with --json."""
        answer = self.exporter(*arguments, "--json")
        assert answer.returncode == expected_exit, answer.stdout + answer.stderr
        return json.loads(answer.stdout)

    # ── what must hold ────────────────────────────────────────────────────────────────────────────────────────────
    def verify(self) -> None:
        """`verify --all` says equal, and of a receiver that cannot be asked that it accepted everything."""
        answer = self.exporter("verify", "--all", "--json")
        # A mark follows its answer by a moment, so a running exporter may be asked between the two.
        end = time.monotonic() + MARK_SECONDS
        while answer.returncode == 8 and any(one.alive for one in self.running) and time.monotonic() < end:
            answer = self.exporter("verify", "--all", "--json")
        rows = json.loads(answer.stdout)["sessions"]
        unknown = [one for one in rows if one["verdict"] == "unknown"]
        assert answer.returncode == (4 if unknown else 0), answer.stdout + answer.stderr
        assert all(one["equal"] or one in unknown for one in rows), answer.stdout
        assert not any(one["missing"] or one["extra"] for one in unknown), answer.stdout

    def assert_delivered(self, expected: Mapping[SessionFile, Sequence[bytes]] | None = None) -> None:
        """Wait for, then compare, every session at every receiver; `expected` overrides what the files hold."""
        wanted = {one: one.durable() for one in self.sessions if one.path.is_file() and one.path.stat().st_size}
        for session, lines in {**wanted, **(expected or {})}.items():
            if self.team is not None:
                self.team.wait_for(session.id, lines)
            if self.team is not None and lines:
                self.team.assert_holds(session.id, lines)
            if self.floor is not None:
                ids = [event_id(line) for line in lines]
                self.floor.wait_for(session.id, ids)
                stored = set(self.floor.lines(session.id))
                assert not self.floor.keep_bytes or stored.issuperset(lines), f"{session.id} differs at the floor"
        self.verify()

    def assert_delivered_to_floor(self, session: SessionFile) -> None:
        """Wait for a session's whole lines at the floor receiver, and compare."""
        assert self.floor is not None
        whole = session.durable()
        self.floor.wait_for(session.id, [event_id(line) for line in whole])
        assert self.floor.lines(session.id) == whole

    def assert_sent_once(self) -> None:
        """No receiver was sent any event a second time."""
        assert self.floor is None or self.floor.repeated() == 0
        assert self.team is None or self.team.duplicates() == 0

    def quarantined(self) -> list[tuple[str, int, str | None]]:
        """What is in quarantine, by place: reason, offset and id."""
        entries = self.json("quarantine", "list")["quarantined"]
        return sorted(((one["reason"], one["offset"], one["event"]) for one in entries), key=lambda one: one[1])

    def close(self) -> None:
        """End everything that was started here."""
        for running in self.running:
            if running.alive:
                running.kill()
        if self.floor is not None:
            self.floor.close()
        if self.team is not None:
            self.team.close()


@contextmanager
def new_machine() -> Iterator[Machine]:
    """A machine in a directory of its own, short enough in its path for a control socket; all is gone at the end."""
    root = Path(tempfile.mkdtemp(prefix="xm-")).resolve()
    machine = Machine(root)
    try:
        yield machine
    finally:
        machine.close()
        shutil.rmtree(root, ignore_errors=True)
