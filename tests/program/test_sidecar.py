"""An exporter beside the CLI, as in a pod: process 1 of its own namespaces, the CLI's directory read-only.

All get SIGTERM at the same moment. What the CLI writes in its last second arrives.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.program.driver import Machine, Running
from tests.program.floor import Floor, Reply
from tests.program.session_files import SessionFile
from tests.program.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux" or shutil.which("unshare") is None, reason="namespaces"),
]
IS_ROOT: Final = os.geteuid() == 0
UID: Final = 12_345
NAMESPACES: Final = (
    *("unshare", "--pid", "--fork", "--mount", "--mount-proc", "--kill-child"),
    *(() if IS_ROOT else ("--user", "--map-current-user")),
)
MOUNTED: Final = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
AS_CLI: Final = ("setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups") if IS_ROOT else ()
CLI: Final = """
import json, os, pathlib, signal, sys, time
directory, lines = pathlib.Path(sys.argv[1]), sys.stdin.buffer.read().splitlines()
lock = directory / f"inuse.{os.getpid()}.lock"
lock.touch()
with open(directory / "events.jsonl", "ab", buffering=0) as file:
    def end(*_):
        for line in lines[2:]:
            time.sleep(0.12)
            file.write(line + b"\\n")
        lock.unlink()
        sys.exit(0)
    signal.signal(signal.SIGTERM, end)
    for line in lines[:2]:
        file.write(line + b"\\n")
    print("open", flush=True)
    while True:
        signal.pause()
"""


def own(machine: Machine) -> None:
    """Give everything on this machine to the user of the CLI; others may not look into its directory."""
    (machine.root / "volume").mkdir(exist_ok=True)
    machine.write_settings()
    if IS_ROOT:
        machine.root.chmod(0o755)
        for path in (machine.root, *machine.root.rglob("*")):
            os.chown(path, UID, UID)
    machine.home.chmod(0o700)


def cli(session: SessionFile) -> "subprocess.Popen[bytes]":
    """A CLI with a session open, which writes five events more when it is asked to end, within .6 s."""
    lines = [session.event() for _ in range(6)] + [session.event(type="session.shutdown", data={})]
    process = subprocess.Popen(
        [*AS_CLI, sys.executable, "-c", CLI, str(session.directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"\n".join(lines))
    process.stdin.close()
    assert process.stdout.readline() == b"open\n"
    return process


@dataclass(slots=True)
class Pod:
    """A session that is open, and the exporter beside it, which has delivered two events; `number` is its own here."""

    machine: Machine
    floor: Floor
    session: SessionFile
    cli: "subprocess.Popen[bytes]"
    running: Running
    number: int

    def stop(self, *whom: str) -> None:
        """Ask the exporter or the CLI to end, kill the CLI, or wait until one of them has ended, in this order."""
        for one in whom:
            match one:
                case "exporter":
                    os.kill(self.number, signal.SIGTERM)
                case "exporter ends":
                    until(lambda: not self.running.alive, "the end of the exporter")
                case "cli":
                    self.cli.send_signal(signal.SIGTERM)
                case "cli ends":
                    self.cli.wait(60)
                case "cli dies":
                    self.cli.kill()

    def named(self) -> list[str]:
        """The names of the lines of the exporter's log."""
        lines = [json.loads(one) for one in self.running.text().splitlines(keepends=True) if one.endswith("\n")]
        return [str(one["event"]) for one in lines]

    def wait_for(self, name: str) -> None:
        until(lambda: name in self.named(), f"the line {name}")


def sidecar(machine: Machine) -> tuple[Running, int]:
    """An exporter in its own namespaces, and the number that it has here."""
    prefix = [*NAMESPACES, "sh", "-c", MOUNTED, str(machine.home), *AS_CLI]
    running = machine.start(prefix=prefix)
    running.wait_for_word('"ready"')
    children = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children").read_text().split()
    return running, int(children[0])


@contextmanager
def opened(machine: Machine, linger_seconds: float = 60) -> Iterator[Pod]:
    """A machine whose files are of the CLI's user and whose receiver is on loopback, with a session and an exporter."""
    machine.with_floor().settings |= {"log_format": "json", "linger_seconds": linger_seconds}
    machine.environment["EXPORTER_STATE_DIR"] = str(machine.root / "volume" / "state")
    machine.environment["XDG_CACHE_HOME"] = str(machine.root / "cache")
    machine.state = machine.root / "volume" / "state"
    session = machine.session()
    own(machine)
    with cli(session) as process:
        running, number = sidecar(machine)
        assert machine.floor is not None
        machine.floor.wait_for(session.id, 2)
        yield Pod(machine, machine.floor, session, process, running, number)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a pod ends, how many of the seven events arrive, and how long the exporter stays at least."""

    linger_seconds: float
    stopped: tuple[str, ...]
    arrive: int
    lines: tuple[str, ...]
    seconds_min: float = 0


_LINGERED: Final = ("started", "ready", "lingering", "stopping", "stopped")
ENDINGS: Final = {
    "all are asked at once": Ending(60, ("exporter", "cli", "exporter ends"), 7, _LINGERED),
    "the control, without lingering": Ending(
        0, ("exporter", "exporter ends", "cli", "cli ends"), 2, ("started", "ready", "stopping", "stopped")
    ),
    # Nobody in the container of the exporter can tell that the CLI is gone.
    "a CLI that was killed": Ending(4, ("cli dies", "exporter", "exporter ends"), 2, _LINGERED, seconds_min=4),
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_what_the_cli_writes_in_its_last_second_arrives_if_it_lingers(machine: Machine, ending: Ending) -> None:
    with opened(machine, ending.linger_seconds) as pod:
        status = Path(f"/proc/{pod.number}/status").read_text()
        begun = time.monotonic()
        pod.stop(*ending.stopped)

    assert time.monotonic() - begun >= ending.seconds_min
    assert status.partition("\nNSpid:")[2].partition("\n")[0].split()[-1] == "1"
    assert not IS_ROOT or f"Uid:\t{UID}\t" in status
    assert pod.floor.lines(pod.session.id) == pod.session.durable()[: ending.arrive]
    assert [one for one in pod.named() if one not in ("caught_up", "settings_note")] == list(ending.lines)
    assert pod.running.process.returncode == 0
    assert len(pod.session.durable()) == 7 or pod.cli.returncode == -signal.SIGKILL


def test_a_receiver_that_is_away_is_awaited_as_long(machine: Machine) -> None:
    with opened(machine) as pod:
        pod.floor.answer = lambda _: Reply(503)
        pod.stop("exporter", "cli", "cli ends")
        pod.wait_for("sink_waiting")
        assert pod.running.alive
        pod.floor.answer = lambda _: Reply()
        pod.stop("exporter ends")

    assert pod.floor.lines(pod.session.id) == pod.session.durable()


def test_a_second_signal_ends_it_at_once_and_the_next_start_goes_on(machine: Machine) -> None:
    with opened(machine) as pod:
        pod.stop("exporter")
        pod.wait_for("lingering")
        pod.stop("exporter", "exporter ends", "cli", "cli ends")
    again, number = sidecar(machine)
    pod.floor.wait_for(pod.session.id, 7)
    os.kill(number, signal.SIGTERM)
    until(lambda: not again.alive, "the end of the next one")

    assert pod.running.process.returncode == 128 + signal.SIGTERM
    assert again.process.returncode == 0  # the session has ended: nothing is awaited
    assert pod.floor.lines(pod.session.id) == pod.session.durable()
    assert pod.floor.repeated() == 0
