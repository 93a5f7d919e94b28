"""Run sessions of the real CLI (`copilot -p`) into a COPILOT_HOME, against the scripted model, inside a cage."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.real import install
from tests.real.cage import Cage, kill, stop
from tests.real.model import MODEL
from tests.real.scripts import prompt

SESSION_SECONDS_MAX = 90
INHERITED = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR")


class TookTooLong(Exception):
    """What was waited for did not happen in time."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the CLI that has ended: 0 is a clean end, -9 a kill."""

    session_id: str
    directory: Path
    return_code: int
    output: str

    @property
    def events(self) -> Path:
        """The session's log."""
        return self.directory / "events.jsonl"


@dataclass(frozen=True, slots=True)
class Interruption:
    """Send this signal once the session's log holds these bytes."""

    when: bytes
    signal: signal.Signals = signal.SIGKILL


@dataclass(frozen=True, slots=True)
class Copilot:
    """The CLI of one version with one COPILOT_HOME. Its runs may be at the same time, from several threads.

    With a file for it, the CLI writes its own telemetry there, texts included.
    """

    cage: Cage
    model_port: int
    home: Path
    scratch: Path
    version: str = install.NEW
    telemetry: Path | None = None

    def environment(self, user_home: Path) -> dict[str, str]:
        """A clean environment: of the caller's only the path and the locale."""
        kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
        told = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}
        return {
            **kept,
            **({**told, "COPILOT_OTEL_FILE_EXPORTER_PATH": str(self.telemetry)} if self.telemetry else {}),
            "HOME": str(user_home),
            "COPILOT_HOME": str(self.home),
            "XDG_CACHE_HOME": str(install.unpack_cache(self.version)),
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_OFFLINE": "true",
            "COPILOT_MODEL": MODEL,
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_BASE_URL": self.model_url,
            "TERM": "dumb",
        }

    @property
    def model_url(self) -> str:
        """The scripted model's API."""
        return f"http://127.0.0.1:{self.model_port}/v1"

    def working_directory(self) -> Path:
        """A new directory to work in, which is how a session that was just started is told from others."""
        self.scratch.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="work-", dir=self.scratch))

    def play(self, scenario: str, *, resume: str | None = None, interruption: Interruption | None = None) -> Run:
        """Run one session, or one more run of a session, to its end or interruption."""
        work = self.working_directory()
        user_home = work / ".user"
        user_home.mkdir()
        if scenario == "instr":
            write_instructions(work)
        arguments = ["-p", prompt(scenario, work), "--allow-all-tools", *([f"--resume={resume}"] if resume else [])]
        output = work.with_suffix(".output")
        with output.open("wb") as sink:
            program = self.cage.start(
                [*install.command(self.version), *arguments],
                environment=self.environment(user_home),
                directory=work,
                stdout=sink,
                stderr=subprocess.STDOUT,
            )
        try:
            if interruption:
                self._interrupt(program, interruption, work, resume)
            return_code = program.wait(SESSION_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            kill(program)
            raise TookTooLong(f"{self.version} {scenario}: {output.read_text(errors='replace')[-2000:]}") from None
        directory = self.sessions() / resume if resume else self.session_in(work)
        if directory is None:
            raise RuntimeError(f"no session was made ({return_code}): {output.read_text(errors='replace')[-2000:]}")
        return Run(directory.name, directory, return_code, output.read_text(errors="replace"))

    def sessions(self) -> Path:
        """Where the sessions are kept."""
        return self.home / "session-state"

    def session_in(self, work: Path) -> Path | None:
        """The session that works in this directory, once it can be seen."""
        line = f"cwd: {work}"
        for metadata in self.sessions().glob("*/workspace.yaml"):
            if line in metadata.read_text().splitlines():
                return metadata.parent
        return None

    def _interrupt(
        self, program: subprocess.Popen[bytes], interruption: Interruption, work: Path, resume: str | None
    ) -> None:
        known = self.sessions() / resume / "events.jsonl" if resume else None
        start = known.stat().st_size if known else 0

        def reached() -> bool:
            directory = self.sessions() / resume if resume else self.session_in(work)
            log = directory / "events.jsonl" if directory else None
            return bool(log and log.exists() and interruption.when in log.read_bytes()[start:])

        wait_until(reached, f"{interruption.when!r} in the log", SESSION_SECONDS_MAX)
        if interruption.signal is signal.SIGTERM:
            stop(program)
        else:
            program.send_signal(interruption.signal)


def wait_until(happened: Callable[[], bool], what: str, seconds_max: float) -> None:
    """Return as soon as it is so; TookTooLong after a while. An answer that lacks what is asked for means "not yet"."""
    deadline = time.monotonic() + seconds_max
    lacks: Exception | None = None
    while True:
        try:
            if happened():
                return
        except (LookupError, ValueError) as error:
            lacks = error
        if time.monotonic() > deadline:
            raise TookTooLong(what) from lacks
        time.sleep(0.02)


def write_instructions(work: Path) -> None:
    """Make `work` a repository in which reading ledger/entry.py makes the CLI find instruction files."""
    subprocess.run(["git", "init", "--quiet", str(work)], check=True, timeout=20)
    rules = work / ".github/instructions/python.instructions.md"
    files = {
        work / "AGENTS.md": "Keep it short.\n",
        work / "ledger/AGENTS.md": "Amounts are whole cents.\n",
        work / "ledger/entry.py": "amount = 250\n",
        rules: "---\napplyTo: '**/*.py'\n---\nAnnotate types.\n",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
