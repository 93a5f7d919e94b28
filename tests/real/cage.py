"""A place to run programs in which nothing but loopback exists.

On Linux it is a network namespace (made by `unshare`, as root or in a user namespace); files are shared with the
outside. Where none can be made it is this machine's own loopback, and the programs are told to stay offline.
Every program started here is killed when the cage is closed or the process that made it ends.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

ENTER = Path(__file__).with_name("enter.py")
STOP_SECONDS_MAX = 20
HOLDER_SECONDS_MAX = 20


class Cage:
    """Sockets and programs in one isolated loopback; a context manager, safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._programs: list[subprocess.Popen[bytes]] = []
        self._control: socket.socket | None = None
        self._holder: subprocess.Popen[bytes] | None = None
        self._namespaces: list[str] = []
        unshare = _unshare_command()
        if unshare:
            self._hold(unshare)

    @property
    def isolated(self) -> bool:
        """Whether nothing but loopback can be reached from inside."""
        return self._control is not None

    def listen(self, port: int = 0) -> socket.socket:
        """A listening socket at 127.0.0.1 inside."""
        if self._control:
            return self._ask({"listen": port})
        return socket.create_server(("127.0.0.1", port), backlog=128)

    def connect(self, port: int) -> socket.socket:
        """A connection to a port inside; ConnectionRefusedError while nobody listens there."""
        if self._control:
            return self._ask({"connect": port})
        made = socket.create_connection(("127.0.0.1", port), 10)
        made.settimeout(None)  # a relay would end a connection that is quiet for as long
        return made

    def free_port(self) -> int:
        """A port inside on which nobody listens now."""
        with self.listen() as listener:
            return int(listener.getsockname()[1])

    def start(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: Path,
        stdout: IO[bytes] | int | None = None,
        stderr: IO[bytes] | int | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a program inside, in a session of its own. The thread that calls this must outlive the program."""
        launch = [sys.executable, "-I", "-S", str(ENTER), "run", str(os.getpid()), *self._namespaces, "--", *command]
        program = subprocess.Popen(
            launch,
            env=dict(environment),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        with self._lock:
            self._programs.append(program)
        return program

    def close(self) -> None:
        """Kill what still runs here, with its children, and give the namespace up."""
        for program in self._programs:
            kill(program)
        if self._control and self._holder:
            self._control.close()
            try:
                self._holder.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                kill(self._holder)

    def __enter__(self) -> Cage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _hold(self, unshare: list[str]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(HOLDER_SECONDS_MAX)
        with theirs:
            self._holder = subprocess.Popen(
                [*unshare, sys.executable, "-I", "-S", str(ENTER), "hold", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        if not ours.recv(64):
            raise RuntimeError("the holder of the network namespace ended at once")
        self._control = ours
        links = Path(f"/proc/{self._holder.pid}/ns")
        own = Path("/proc/self/ns")
        kinds = ["user", "net"] if (links / "user").readlink() != (own / "user").readlink() else ["net"]
        self._namespaces = [str(links / kind) for kind in kinds]

    def _ask(self, request: dict[str, int]) -> socket.socket:
        assert self._control
        with self._lock:
            self._control.send(json.dumps(request).encode())
            answer, descriptors, _, _ = socket.recv_fds(self._control, 4096, 1)
        if descriptors:
            return socket.socket(fileno=descriptors[0])
        problem = json.loads(answer)
        raise OSError(problem["errno"], problem["error"])


def stop(program: subprocess.Popen[bytes], seconds_max: float = STOP_SECONDS_MAX) -> int:
    """SIGTERM, then SIGKILL after a while; its return code."""
    if program.poll() is None:
        program.terminate()
        try:
            return program.wait(seconds_max)
        except subprocess.TimeoutExpired:
            kill(program)
    return program.wait()


def kill(program: subprocess.Popen[bytes]) -> None:
    """SIGKILL to the program and to what it started in its session."""
    if program.poll() is None:
        os.killpg(program.pid, signal.SIGKILL)
    program.wait()


def _unshare_command() -> list[str] | None:
    unshare = shutil.which("unshare")
    if sys.platform != "linux" or not unshare:
        return None
    for command in ([unshare, "-n"], [unshare, "-rn"]):
        tried = subprocess.run([*command, "true"], capture_output=True, timeout=HOLDER_SECONDS_MAX, check=False)
        if tried.returncode == 0:
            return command
    return None
