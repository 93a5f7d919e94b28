"""Run inside the cage's network namespace: `hold` keeps it and hands out sockets made in it, `run` starts a program.

Stands alone (started as a script, before anything of ours can be imported) and needs nothing but Linux and Python.
A socket belongs to the namespace it was made in, whoever uses it: that is how a process outside can serve and reach
the programs inside without any relay.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import sys

PR_SET_PDEATHSIG = 1
SIOCGIFFLAGS, SIOCSIFFLAGS = 0x8913, 0x8914
INTERFACE_UP_AND_RUNNING = 0x1 | 0x40


def hold(control_descriptor: int) -> None:
    """Bring loopback up, then answer requests for sockets until the other side closes the control socket."""
    die_with_parent()
    bring_loopback_up()
    with socket.socket(fileno=control_descriptor) as control:
        control.send(b"{}")
        while request := control.recv(4096):
            try:
                made = make_socket(json.loads(request))
            except OSError as error:
                control.send(json.dumps({"error": str(error), "errno": error.errno}).encode())
                continue
            with made:
                socket.send_fds(control, [b"{}"], [made.fileno()])


def make_socket(request: dict[str, int]) -> socket.socket:
    """`{"listen": port}` (0 picks one) or `{"connect": port}`, on 127.0.0.1."""
    made = socket.socket()
    if "connect" in request:
        made.settimeout(10)
        made.connect(("127.0.0.1", request["connect"]))
        made.settimeout(None)
        return made
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("127.0.0.1", request["listen"]))
    made.listen(128)
    return made


def bring_loopback_up() -> None:
    """A new namespace has loopback, but down."""
    with socket.socket() as handle:
        request = struct.pack("16sH14s", b"lo", 0, b"")
        flags = struct.unpack("16sH14s", fcntl.ioctl(handle, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(handle, SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", flags | INTERFACE_UP_AND_RUNNING, b""))


def run(parent: int, namespaces: list[str], command: list[str]) -> None:
    """Become `command` in these namespaces, to be killed when the process `parent` ends."""
    library = ctypes.CDLL(None, use_errno=True)
    for path in namespaces:
        if library.setns(os.open(path, os.O_RDONLY | os.O_CLOEXEC), 0):
            raise OSError(ctypes.get_errno(), f"cannot enter {path}")
    # After setns: a change of credentials clears the parent-death signal.
    die_with_parent()
    if os.getppid() != parent:
        raise SystemExit("the process that started this one is gone")
    os.execvpe(command[0], command, os.environ)


def die_with_parent() -> None:
    """Linux kills us when the thread that started us ends; elsewhere the caller's own clean-up has to do."""
    library = ctypes.CDLL(None)
    if hasattr(library, "prctl"):
        library.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


if __name__ == "__main__":
    if sys.argv[1] == "hold":
        hold(int(sys.argv[2]))
    else:
        split = sys.argv.index("--")
        run(int(sys.argv[2]), sys.argv[3:split], sys.argv[split + 1 :])
