"""Limits of the kernel, names that do not resolve, little memory: with namespaces and limits of the process."""

import resource
import subprocess
import sys
import time
from typing import Any

import pytest

from tests.daemon.exchange import Reply, Request
from tests.daemon.peer import Peer
from tests.daemon.receivers import Full
from tests.faults.conftest import Fact
from tests.program.driver import Machine
from tests.program.session_files import event_id, write_large
from tests.program.waiting import until
from tests.real.cage import Cage

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

MEGABYTE = 1_000_000
WATCHES = 'echo "$0" > "/proc/sys/user/$1" && shift && exec "$@"'
NAMES = 'mount --bind "$0" /etc/hosts && mount --bind "$1" /etc/resolv.conf && shift && exec "$@"'


@pytest.mark.parametrize(("limit", "most"), [("max_inotify_watches", 5), ("max_inotify_instances", 0)])
def test_what_the_kernel_does_not_watch_is_looked_at(machine: Machine, fact: Fact, limit: str, most: int) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    sessions = [machine.session().write(2) for _ in range(40)]
    running = machine.start(prefix=["unshare", "--map-root-user", "sh", "-c", WATCHES, str(most), limit])
    for session in sessions:
        machine.assert_delivered_to_floor(session)
    started = time.monotonic()
    for session in sessions:
        session.write(1)

    for session in sessions:
        machine.assert_delivered_to_floor(session)
    fact(f"{limit} {most}: followed within", f"{time.monotonic() - started:.1f} s")
    fact("lost", 0)
    assert counting.repeated() == 0
    assert running.alive


def test_a_name_that_does_not_resolve_is_looked_up_again(machine: Machine, fact: Fact) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    machine.tables["floor"] |= {"url": f"http://collector.test:{counting.port}/agents", "allow_http": True}
    hosts, resolver = machine.root / "hosts", machine.root / "resolv.conf"
    hosts.write_text("127.0.0.1 localhost\n")
    resolver.write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    session = machine.session().write(200)
    running = machine.start(prefix=["unshare", "--mount", "sh", "-c", NAMES, str(hosts), str(resolver)])
    running.wait_for_word("trying again")
    before = len(counting.posts)

    hosts.write_text("127.0.0.1 localhost collector.test\n")
    started = time.monotonic()
    until(lambda: counting.count(session.id) == 200, "everything at a name that resolves now")

    fact("requests before", before)
    fact("resumed after", f"{time.monotonic() - started:.1f} s")
    fact("lost", 200 - counting.count(session.id))
    assert before == 0
    assert counting.lines(session.id) == session.durable()


def test_a_gigabyte_with_little_memory(machine: Machine, fact: Fact) -> None:
    counting = machine.with_floor(keep_bytes=False).floor
    assert counting is not None
    events = write_large(machine.session(), 1_000 * MEGABYTE)
    limit = 400 * MEGABYTE  # of private memory, stacks of threads and compiled rules included
    started = time.monotonic()
    running = machine.start(prepare=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))
    session = machine.sessions[0].id
    until(lambda: counting.count(session) == events or not running.alive, "a gigabyte", seconds=240)

    resident = running.resident_bytes() / MEGABYTE
    fact("MB resident", round(resident))
    fact("seconds", round(time.monotonic() - started))
    fact("lost", events - counting.count(session))
    fact("twice", counting.repeated())
    assert counting.count(session) == events
    assert counting.repeated() == 0
    assert resident <= 150


FORWARD = """
import socket, sys, threading
host, port = sys.argv[1], int(sys.argv[2])
listener = socket.create_server((host, 80))
def copy(one, other):
    while part := one.recv(65536):
        other.sendall(part)
    other.shutdown(socket.SHUT_WR)
print(flush=True)
while True:
    near, _ = listener.accept()
    far = socket.create_connection(("127.0.0.1", port))
    for pair in ((near, far), (far, near)):
        threading.Thread(target=copy, args=pair, daemon=True).start()
"""
ELSEWHERE = "198.51.100.7"
"""An address that is not loopback, on the loopback device of a network namespace."""


def test_compression_that_is_refused_is_given_up_and_stays_so(machine: Machine, fact: Fact) -> None:
    used: list[str | None] = []

    def answer(request: Request) -> Reply | None:
        if not request.is_events:
            return None
        used.append(request.headers.get("content-encoding"))
        return Reply(415) if used[-1] else None

    with Cage() as cage, Peer(Full(machine.root / "receiver.db"), listener=cage.listen()) as peer:
        peer.script = answer
        here: dict[str, Any] = {"environment": machine.environment, "directory": machine.root}
        assert cage.start(["ip", "address", "add", f"{ELSEWHERE}/32", "dev", "lo"], **here).wait() == 0
        forward = [sys.executable, "-c", FORWARD, ELSEWHERE, str(peer.port)]
        forwarder = cage.start(forward, stdout=subprocess.PIPE, **here)
        assert forwarder.stdout is not None
        forwarder.stdout.readline()
        machine.tables["far"] = {"url": f"http://{ELSEWHERE}/agents", "allow_http": True}
        session = machine.session().write(200)
        cage.start(machine.command("run"), **here)
        until(lambda: len(peer.ids(session.id)) == 200, "what was there at the start")
        session.write(100)
        until(lambda: len(peer.ids(session.id)) == 300, "what came later")
        held = peer.ids(session.id)

    fact("encodings", " ".join(one or "none" for one in used))
    fact("lost", 300 - len(held))
    assert used == ["zstd", "gzip", None, None]
    assert held == [event_id(line) for line in session.durable()]
