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
from pathlib import Path
from typing import Any, Final

import pytest

from tests.program.driver import Machine, Running
from tests.program.floor import Reply
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


@pytest.fixture
def pod(machine: Machine) -> Iterator[Machine]:
    """A machine whose files are of the CLI's user, and whose receiver is on loopback."""
    machine.with_floor().settings |= {"log_format": "json", "linger_seconds": 60}
    machine.environment["EXPORTER_STATE_DIR"] = str(machine.root / "volume" / "state")
    machine.environment["XDG_CACHE_HOME"] = str(machine.root / "cache")
    machine.state = machine.root / "volume" / "state"
    yield machine


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


def sidecar(machine: Machine) -> tuple[Running, int]:
    """An exporter in its own namespaces, and the number that it has here."""
    prefix = [*NAMESPACES, "sh", "-c", MOUNTED, str(machine.home), *AS_CLI]
    running = machine.start(prefix=prefix)
    running.wait_for_word('"ready"')
    children = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children").read_text().split()
    return running, int(children[0])


def events(running: Running) -> list[dict[str, Any]]:
    return [json.loads(line) for line in running.text().splitlines(keepends=True) if line.endswith("\n")]


def test_what_the_cli_writes_in_its_last_second_arrives(pod: Machine) -> None:
    assert pod.floor is not None
    session = pod.session()
    own(pod)
    with cli(session) as process:
        running, number = sidecar(pod)
        pod.floor.wait_for(session.id, 2)
        status = Path(f"/proc/{number}/status").read_text()

        os.kill(number, signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        until(lambda: not running.alive, "the end of the exporter")

    assert "\nNSpid:" in status and status.partition("\nNSpid:")[2].partition("\n")[0].split()[-1] == "1"
    assert not IS_ROOT or f"Uid:\t{UID}\t" in status
    assert pod.floor.lines(session.id) == session.durable() and len(session.durable()) == 7
    named = [one["event"] for one in events(running) if one["event"] not in ("caught_up", "settings_note")]
    assert named == ["started", "ready", "lingering", "stopping", "stopped"]
    assert running.process.returncode == 0


def test_without_lingering_it_stops_following_at_once(pod: Machine) -> None:
    """The control: this is what is lost."""
    assert pod.floor is not None
    pod.settings["linger_seconds"] = 0
    session = pod.session()
    own(pod)
    with cli(session) as process:
        running, number = sidecar(pod)
        pod.floor.wait_for(session.id, 2)

        os.kill(number, signal.SIGTERM)
        until(lambda: not running.alive, "the end of the exporter")
        process.send_signal(signal.SIGTERM)
        process.wait(60)

    assert pod.floor.count(session.id) == 2
    assert len(session.durable()) == 7


def test_a_cli_that_is_killed_holds_it_until_the_time_is_over_and_no_longer(pod: Machine) -> None:
    assert pod.floor is not None
    pod.settings["linger_seconds"] = 4
    session = pod.session()
    own(pod)
    with cli(session) as process:
        running, number = sidecar(pod)
        pod.floor.wait_for(session.id, 2)
        process.kill()

        begun = time.monotonic()
        os.kill(number, signal.SIGTERM)
        until(lambda: not running.alive, "the end of the exporter")

    assert time.monotonic() - begun >= 4  # nobody in its container can tell that the CLI is gone
    assert running.process.returncode == 0


def test_a_receiver_that_is_away_is_awaited_as_long(pod: Machine) -> None:
    assert pod.floor is not None
    session = pod.session()
    own(pod)
    with cli(session) as process:
        running, number = sidecar(pod)
        pod.floor.wait_for(session.id, 2)
        pod.floor.answer = lambda _: Reply(503)

        os.kill(number, signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        until(lambda: any(one["event"] == "sink_waiting" for one in events(running)), "a failure")
        assert running.alive
        pod.floor.answer = lambda _: Reply()
        until(lambda: not running.alive, "the end of the exporter")

    assert pod.floor.lines(session.id) == session.durable()


def test_a_second_signal_ends_it_at_once_and_the_next_start_goes_on(pod: Machine) -> None:
    assert pod.floor is not None
    session = pod.session()
    own(pod)
    with cli(session) as process:
        running, number = sidecar(pod)
        pod.floor.wait_for(session.id, 2)

        os.kill(number, signal.SIGTERM)
        until(lambda: any(one["event"] == "lingering" for one in events(running)), "that it lingers")
        os.kill(number, signal.SIGTERM)
        until(lambda: not running.alive, "the end of the exporter")
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    again, number = sidecar(pod)
    pod.floor.wait_for(session.id, 7)
    os.kill(number, signal.SIGTERM)
    until(lambda: not again.alive, "the end of the next one")

    assert running.process.returncode == 128 + signal.SIGTERM
    assert again.process.returncode == 0  # the session has ended: nothing is awaited
    assert pod.floor.lines(session.id) == session.durable()
    assert pod.floor.repeated() == 0
