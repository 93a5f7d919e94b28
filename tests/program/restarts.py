"""A service that is killed and started again while the machine is busy and sessions grow: nothing may be lost."""

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

from tests.program.driver import Machine, Running
from tests.program.session_files import SessionFile

TIMES: Final = 10
_READY_SECONDS: Final = 90
_PAUSE_SECONDS: Final = 0.02
_BUSY: Final = 2
_SESSIONS: Final = 3


@contextmanager
def notify_socket(machine: Machine) -> Iterator[socket.socket]:
    """What systemd would listen on, in a directory of its own: `notify/socket`."""
    directory = machine.root / "notify"
    directory.mkdir(exist_ok=True)
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as listening:
        listening.bind(str(directory / "socket"))
        (directory / "socket").chmod(0o777)
        listening.settimeout(_READY_SECONDS)
        yield listening


def killed_and_started_again(
    machine: Machine,
    start: Callable[[], Running],
    notify: socket.socket,
    *,
    times: int = TIMES,
    settled: Callable[[], None] | None = None,
) -> list[float]:
    """Start, kill when it is ready, `times` times, under load; return the seconds until it was ready each time.

    Sessions are written all the time, new ones unless the machine has some. At the end one more is started, and
    everything must be at the receivers: `settled` says how that is found out where `exporter verify` is not beside it.
    """
    sessions = machine.sessions or [machine.session() for _ in range(_SESSIONS)]
    seconds = list[float]()
    for one in sessions:
        one.write(200)
    with ExitStack() as load:
        for _ in range(_BUSY):
            load.enter_context(_busy())
        load.enter_context(_growing(sessions))
        for _ in range(times):
            begun = time.monotonic()
            running = start()
            wait_until_ready(notify, running)
            seconds.append(time.monotonic() - begun)
            time.sleep(machine.sessions[0].chance.random() / 4)  # when it is killed is chance
            running.kill()
    running = start()
    wait_until_ready(notify, running)
    (settled or machine.assert_delivered)()
    running.stop(signal.SIGTERM)
    return seconds


def wait_until_ready(notify: socket.socket, running: Running) -> None:
    """Wait for what the started program tells systemd; what an earlier one left in the socket is passed over."""
    while not notify.recv(4096).startswith(b"READY=1"):
        assert running.alive, running.text()


@contextmanager
def _busy() -> Iterator[None]:
    process = subprocess.Popen(["nice", sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def _growing(sessions: list[SessionFile]) -> Iterator[None]:
    """Let a thread append to the sessions, in turn, until the end."""
    enough = threading.Event()

    def write() -> None:
        while not enough.wait(_PAUSE_SECONDS):
            for one in sessions:
                one.write(2)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


def command_of(machine: Machine, environment: dict[str, str], words: list[str]) -> Running:
    """Start a command line as a manager does: with these variables and no others."""
    said = machine.root / f"stderr-{len(machine.running)}"
    with said.open("wb") as errors:
        process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
    machine.running.append(Running(process, Path(said)))
    return machine.running[-1]
