"""Nothing below COPILOT_HOME changes, and nothing is connected to but the configured sinks."""

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.program.driver import Machine

AUDIT: Final = """
import json, os, sys

def note(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname"):
        with open(os.environ["AUDIT_FILE"], "a") as file:
            file.write(json.dumps([event, [repr(one) for one in arguments]]) + "\\n")

sys.addaudithook(note)
"""


def fingerprint(directory: Path) -> dict[str, tuple[object, ...]]:
    """Everything about every entry below a directory but when it was last read."""
    entries: dict[str, tuple[object, ...]] = {}
    for path in sorted([directory, *directory.rglob("*")]):
        about = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        entries[str(path)] = (about.st_ino, about.st_mode, about.st_nlink, about.st_uid, about.st_size)
        entries[str(path)] += (about.st_mtime_ns, about.st_ctime_ns, content)
    return entries


def furnish(machine: Machine) -> None:
    """Sessions with everything the CLI keeps beside the events, some of it damaged."""
    for _ in range(3):
        session = machine.session().write(200)
        (session.directory / "workspace.yaml").write_text(f"id: {session.id}\ncwd: /src/project\nname: a title\n")
        (session.directory / "checkpoints").mkdir()
        (session.directory / "checkpoints" / "index.md").write_text("# none\n")
        (session.directory / "inuse.4242.lock").write_text("4242")
    machine.sessions[1].append([b"broken line"])
    machine.sessions[2].append_bytes(b'{"type":"torn')
    (machine.home / "config.json").write_text("{}")


def use(machine: Machine) -> None:
    """Every command that looks at sessions, alone and beside a daemon."""
    identity = machine.sessions[0].id
    commands = ["run --until-idle", "backfill --all", "verify --all --repair", "sessions list", "status"]
    commands += [f"sessions show {identity}", f"sessions tail {identity}", "quarantine list", "doctor"]
    for line in commands:
        machine.exporter(*line.split())
    machine.start()
    assert machine.floor is not None
    for line in commands[1:]:
        machine.exporter(*line.split())
    machine.running[-1].stop()


def test_nothing_below_copilot_home_changes(delivering: Machine) -> None:
    furnish(delivering)
    before = fingerprint(delivering.home)

    use(delivering)

    assert fingerprint(delivering.home) == before
    assert delivering.team is not None
    delivering.team.assert_holds(delivering.sessions[0].id, delivering.sessions[0].durable())


def test_a_read_only_copilot_home_is_enough(machine: Machine) -> None:
    machine.with_floor()
    session = machine.session().write(50)
    for path in (session.path, session.directory, session.directory.parent, machine.home):
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        machine.deliver()
        machine.verify()
    finally:
        for path in (machine.home, session.directory.parent, session.directory):
            path.chmod(0o700)

    assert machine.floor is not None
    assert machine.floor.lines(session.id) == session.durable()


@pytest.mark.parametrize("verb", ["run --until-idle", "backfill --all", "verify --all", "sessions list", "status"])
def test_python_connects_to_the_sink_and_nowhere_else(machine: Machine, verb: str) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    furnish(machine)
    hooks = machine.root / "hooks"
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(AUDIT)
    audit = machine.root / "audit"
    audit.touch()
    machine.environment["PYTHONPATH"] = f"{hooks}:{machine.environment['PYTHONPATH']}"
    machine.environment["AUDIT_FILE"] = str(audit)

    machine.exporter(*verb.split())

    calls = [json.loads(line) for line in audit.read_text().splitlines()]
    sink = f"('127.0.0.1', {counting.port})"
    addresses = {call[1][1] for call in calls if call[0] in ("socket.connect", "socket.sendto", "socket.sendmsg")}
    looked_up = {call[1][0] for call in calls if call[0].startswith("socket.get")}
    internet = {address for address in addresses if address.startswith("(")}
    assert internet <= {sink}
    assert looked_up <= {"'127.0.0.1'", "b'127.0.0.1'"}
    assert internet == {sink} or not verb.startswith(("run", "backfill"))


def _strace() -> list[str]:
    """strace, where it is here and may trace."""
    found = shutil.which("strace")
    if found is None:
        return []
    tried = subprocess.run([found, "-f", "-o", "/dev/null", "true"], capture_output=True, check=False, timeout=90)
    return [found] if tried.returncode == 0 else []


def test_the_process_connects_to_the_sink_and_nowhere_else(machine: Machine) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    furnish(machine)
    trace = machine.root / "trace"
    prefix = [*_strace(), "-f", "-e", "trace=connect,sendto,sendmsg", "-o", str(trace)] if _strace() else []

    ended = machine.exporter("run", "--until-idle", prefix=prefix)

    assert ended.returncode == 4, ended.stderr
    assert counting.count(machine.sessions[0].id) == 200
    if prefix:
        text = trace.read_text()
        ports = re.findall(r"AF_INET6?, sin6?_port=htons\((\d+)\), (?:sin_addr=inet_addr\(\"([^\"]+)\"\))?", text)
        assert set(ports) == {(str(counting.port), "127.0.0.1")}
