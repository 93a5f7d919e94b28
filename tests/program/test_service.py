"""`exporter service`: what it writes is what systemd accepts, and what it starts tells the manager how it is."""

import json
import os
import plistlib
import pwd
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import pytest

from exporter.daemon.service_manager import ServiceManager
from exporter.errors import UsageError
from exporter.service import launchd, systemd, windows
from exporter.service.health import problems
from exporter.service.manager import Found, install, manager_of
from exporter.service.plan import Installation, version_in
from exporter.version import VERSION
from exporter.wiring.service import environment_of_account
from tests.cli.program import ROOT
from tests.program.driver import Machine, Running
from tests.program.waiting import until

SECRET: Final = "plum-Orchard-4471-Velvet"
UNPRIVILEGED: Final = (
    "CapabilityBoundingSet", "AmbientCapabilities", "PrivateDevices", "ProtectKernelModules", "ProtectKernelLogs",
    "ProtectClock",
)  # fmt: skip
"""Settings with which a user's manager ends a service in 218/CAPABILITIES."""
STARTS: Final = 10
needs_systemd: Final = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")


def service(machine: Machine, *arguments: str, expected_exit: int = 0, **more: str) -> dict[str, Any]:
    """The document of a `service` command, with the variables of this machine and more."""
    machine.environment.update(more)
    document: dict[str, Any] = machine.json("service", *arguments, expected_exit=expected_exit)
    return document


def unit(machine: Machine) -> Path:
    return machine.root / "config/systemd/user/session-exporter.service"


def environment_file(machine: Machine) -> Path:
    return machine.root / "config/exporter/service.env"


def setting(content: str, name: str) -> str:
    found = re.search(rf"^{name}=(.*)$", content, re.MULTILINE)
    assert found is not None, content
    return found[1]


@pytest.fixture
def installed(machine: Machine) -> Machine:
    """A machine with sessions at a floor receiver, on which the service was installed where no systemd runs."""
    machine.with_floor()
    assert service(machine, "install", "--keep-env")["started"] is False
    return machine


@pytest.fixture
def notify(machine: Machine) -> Iterator[socket.socket]:
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as listening:
        listening.bind(str(machine.root / "notify"))
        listening.settimeout(20)
        yield listening


def test_a_dry_run_prints_each_file_and_changes_nothing(machine: Machine) -> None:
    machine.write_settings()
    before = sorted(machine.root.rglob("*"))

    [file] = service(machine, "install", "--dry-run")["files"]
    text = machine.exporter("service", "install", "--dry-run").stdout

    assert file["path"] == str(unit(machine))
    assert text.startswith(f"# {unit(machine)}\n# written by")
    assert file["content"].strip() in text
    assert sorted(machine.root.rglob("*")) == before


def test_what_is_installed_can_be_installed_again_and_removed_and_marks_stay(installed: Machine) -> None:
    installed.session().write(3)
    installed.deliver()
    first = unit(installed).read_bytes()
    enabled = unit(installed).parent / "default.target.wants" / unit(installed).name
    assert enabled.is_symlink() is bool(shutil.which("systemctl"))
    again = service(installed, "install", "--keep-env")
    status = service(installed, "status")
    removed = service(installed, "uninstall")

    assert again["files"] == removed["removed"] == [str(unit(installed)), str(environment_file(installed))]
    assert version_in(first.decode()) == VERSION == status["version"]
    assert (status["installed"], status["problems"], status["state"]) == (True, [], None)
    assert not unit(installed).exists()
    assert not enabled.is_symlink()
    assert service(installed, "status")["installed"] is False
    assert service(installed, "uninstall")["removed"] == []
    installed.deliver()
    installed.assert_sent_once()


def test_what_somebody_else_wrote_is_not_overwritten_and_not_removed(machine: Machine) -> None:
    unit(machine).parent.mkdir(parents=True)
    unit(machine).write_text("[Service]\nExecStart=/bin/true\n")

    answer = machine.exporter("service", "install")

    assert (answer.returncode, "was not written by this program" in answer.stderr) == (2, True)
    assert service(machine, "uninstall")["removed"] == []
    assert unit(machine).read_text() == "[Service]\nExecStart=/bin/true\n"


def test_beside_a_running_exporter_nothing_is_installed(machine: Machine) -> None:
    running = machine.with_floor().start()
    until(lambda: machine.json("status")["daemon"]["running"], "the exporter")

    answer = machine.exporter("service", "install")

    assert (answer.returncode, f"process {running.process.pid}" in answer.stderr) == (7, True)
    assert not unit(machine).exists()


def test_variables_that_act_here_and_not_there_are_named_and_can_be_kept(machine: Machine) -> None:
    machine.with_floor()
    machine.environment |= {"MY_TEAM_TOKEN": SECRET, "EXPORTER_LOG_LEVEL": "debug", "https_proxy": "http://127.0.0.1:9"}
    said = machine.exporter("service", "install").stderr
    kept = service(machine, "install", "--keep-env")
    file = environment_file(machine)

    assert all(name in said for name in ("MY_TEAM_TOKEN", "EXPORTER_LOG_LEVEL", "https_proxy", "--keep-env"))
    assert SECRET not in said
    assert kept["not_kept"] == []
    assert file.stat().st_mode & 0o777 == 0o600
    assert f'MY_TEAM_TOKEN="{SECRET}"' in file.read_text()
    assert str(file) in setting(unit(machine).read_text(), "EnvironmentFile")


@pytest.mark.parametrize("keeps", [True, False])
def test_a_secret_that_only_the_shell_knows_is_masked_by_a_service_that_keeps_it(machine: Machine, keeps: bool) -> None:
    machine.environment["MY_TEAM_TOKEN"] = SECRET
    session = machine.with_floor().session()
    service(machine, "install", *(["--keep-env"] if keeps else []))
    session.append([session.event(text=f"the walls said {SECRET} to us")])

    running = start_as_manager(machine)
    assert machine.floor is not None
    machine.floor.wait_for(session.id, 1)
    running.stop()

    assert any(SECRET.encode() in line for line in machine.floor.lines(session.id)) is not keeps


def start_as_manager(machine: Machine, **more: str) -> Running:
    """Start the unit's command line as systemd does: without the variables of any shell."""
    content = unit(machine).read_text()
    names = ("PATH", "LANG", "HOME", "PYTHONPATH", *(name for name in machine.environment if name.startswith("XDG_")))
    environment = {name: machine.environment[name] for name in names} | {"PYTHONPATH": str(ROOT)} | more
    if "EnvironmentFile=" in content:
        for line in Path(setting(content, "EnvironmentFile")).read_text().splitlines():
            if not line.startswith("#"):
                name, _, value = line.partition("=")
                [environment[name]] = shlex.split(value)
    said = machine.root / f"stderr-{len(machine.running)}"
    with said.open("wb") as errors:
        words = [word.replace("%%", "%") for word in shlex.split(setting(content, "ExecStart"))]
        process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
    machine.running.append(Running(process, said))
    return machine.running[-1]


def test_it_tells_the_manager_that_it_is_ready_alive_and_stopping(installed: Machine, notify: socket.socket) -> None:
    running = start_as_manager(installed, NOTIFY_SOCKET=str(installed.root / "notify"), WATCHDOG_USEC="400000")
    told = [notify.recv(4096).decode() for _ in range(6)]
    running.stop()
    notify.settimeout(0.5)
    while "STOPPING=1" not in told:
        told.append(notify.recv(4096).decode())

    assert any(one.startswith("READY=1\nSTATUS=following") for one in told)
    assert told.count("WATCHDOG=1") >= 5
    assert running.process.returncode == 0


def test_without_a_watchdog_nothing_is_told_but_the_beginning_and_the_end() -> None:
    environ = {
        "NOTIFY_SOCKET": "@nobody-listens-here",
        "WATCHDOG_USEC": "1000000",
        "WATCHDOG_PID": str(os.getpid() + 1),
    }

    manager = ServiceManager.of(environ)
    manager.tell("READY=1")

    assert environ == {}
    with pytest.raises(StopIteration):
        manager.watch().send(None)


@pytest.mark.slow
def test_killed_and_started_again_ten_times_it_loses_nothing(installed: Machine, notify: socket.socket) -> None:
    session, seconds = installed.session().write(200), []
    for _ in range(STARTS):
        begun = time.monotonic()
        running = start_as_manager(installed, NOTIFY_SOCKET=str(installed.root / "notify"))
        while not notify.recv(4096).startswith(b"READY=1"):
            pass
        seconds.append(time.monotonic() - begun)
        session.write(500)
        running.process.send_signal(signal.SIGKILL)
        running.process.wait()
    running = start_as_manager(installed)

    installed.assert_delivered()
    running.stop()
    print(f"ready after {min(seconds):.2f} to {max(seconds):.2f} s")
    assert min(seconds) < 2


def test_status_and_doctor_know_the_service_and_what_it_lacks(installed: Machine) -> None:
    current = installed.json("status")["service"]
    unit(installed).write_text(
        unit(installed).read_text().replace(f"session-exporter {VERSION}", "session-exporter 0.0.9")
    )
    installed.environment["EXPORTER_LOG_LEVEL"] = "debug"
    text = " ".join(installed.exporter("status").stdout.split())
    checks = installed.json("doctor")["checks"]
    warned = [(one["verdict"], one["detail"], one["remedy"]) for one in checks if one["name"] == "service"]

    assert (current["version"], current["problems"]) == (VERSION, [])
    assert "installed by version 0.0.9" in text
    assert [verdict for verdict, _, _ in warned] == ["warning", "warning"]
    assert "0.0.9" in warned[0][1]
    assert "EXPORTER_LOG_LEVEL" in warned[1][1]
    assert "service install --keep-env" in warned[1][2]


# ── what systemd says of the unit ─────────────────────────────────────────────────────────────────────────────────


@needs_systemd
@pytest.mark.parametrize(("user", "of_many"), [(None, False), ("daemon", False), ("daemon", True)])
def test_systemd_accepts_the_unit(tmp_path: Path, user: str | None, of_many: bool) -> None:
    [file] = systemd.files(replace(example(tmp_path), user=user, of_many=of_many))
    path = tmp_path / file.path.name
    path.write_text(file.content)

    answer = subprocess.run(
        ["systemd-analyze", *([] if user else ["--user"]), "verify", path],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (answer.returncode, answer.stderr) == (0, "")


@needs_systemd
@pytest.mark.parametrize(("of_many", "most"), [(False, 2.0), (True, 2.5)])
def test_the_unit_of_the_system_is_exposed_to_little(tmp_path: Path, of_many: bool, most: float) -> None:
    [file] = systemd.files(replace(example(tmp_path), user="daemon", of_many=of_many))
    path = tmp_path / file.path.name
    path.write_text(file.content)

    answer = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", f"--threshold={int(10 * most)}", path],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    exposure = re.search(r"Overall exposure level for .*: ([0-9.]+)", answer.stdout)

    assert exposure is not None, answer.stderr
    print(exposure[0])
    assert float(exposure[1]) <= most
    assert answer.returncode == 0


def test_the_unit_for_many_homes_reads_what_is_of_others_and_writes_none_of_it(tmp_path: Path) -> None:
    [one], [many] = (systemd.files(replace(example(tmp_path), user="daemon", of_many=each)) for each in (False, True))
    gone = set(one.content.splitlines()) - set(many.content.splitlines())

    assert gone == {"CapabilityBoundingSet=", "AmbientCapabilities=", "PrivateUsers=yes", "ProtectProc=invisible"}
    assert "AmbientCapabilities=CAP_DAC_READ_SEARCH" in many.content
    assert "ProtectHome=read-only" in many.content


def test_the_unit_of_the_user_needs_no_privilege(tmp_path: Path) -> None:
    own, systems = (systemd.files(replace(example(tmp_path), user=user))[0].content for user in (None, "daemon"))

    assert not [name for name in UNPRIVILEGED if f"{name}=" in own]
    assert all(f"{name}=" in systems for name in UNPRIVILEGED)


@pytest.mark.parametrize("user", [None, "daemon"])
def test_a_service_that_reads_environments_is_in_no_user_namespace(tmp_path: Path, user: str | None) -> None:
    usual = replace(example(tmp_path), user=user)
    [before], [after] = (systemd.files(replace(usual, reads_environment=reads)) for reads in (False, True))
    left_out = {line.partition("=")[0] for line in set(before.content.split()) - set(after.content.split())}

    of_system = {"PrivateUsers", "ProtectProc"}
    mounts = {"ProtectSystem", "ProtectHome", "ProtectControlGroups", "ProtectKernelTunables", "PrivateTmp"}
    assert left_out == (of_system if user else mounts | {"ReadWritePaths", "-/srv/cache"})
    assert set(after.content.split()) < set(before.content.split())


def test_the_settings_say_whether_the_service_reads_environments(machine: Machine) -> None:
    machine.write_settings()
    [without] = service(machine, "install", "--dry-run")["files"]
    [reading] = service(machine, "install", "--dry-run", EXPORTER_REDACTION__KNOWN_ENV_OF_CLI="true")["files"]

    assert "ProtectHome=" in without["content"]
    assert "ProtectHome=" not in reading["content"]


def test_words_and_paths_of_any_kind_stay_whole(tmp_path: Path) -> None:
    odd = Path('/srv/50% of "mine" $HOME')
    [file] = systemd.files(replace(example(tmp_path), command=(str(odd / "exporter"), "run"), writes=(odd,)))

    assert setting(file.content, "ExecStart") == '"/srv/50%% of \\"mine\\" $$HOME/exporter" run'
    assert setting(file.content, "ReadWritePaths") == '"-/srv/50%% of \\"mine\\" $HOME"'


def test_a_service_of_the_system_runs_as_the_user_who_called_sudo() -> None:
    account = next(one for one in pwd.getpwall() if one.pw_uid)

    environ = environment_of_account(
        {"SUDO_USER": account.pw_name, "HOME": "/root", "XDG_STATE_HOME": "/x"}, is_system=True
    )

    assert (environ["HOME"], environ["USER"], "XDG_STATE_HOME" in environ) == (account.pw_dir, account.pw_name, False)
    with pytest.raises(UsageError, match="would be root"):
        environment_of_account({"SUDO_USER": "root"}, is_system=True)


def test_what_is_wrong_with_a_service_is_said(tmp_path: Path) -> None:
    one, path = example(tmp_path), tmp_path / "unit"
    path.write_text(systemd.files(one)[0].content)

    assert problems(one, Found("systemd", path, VERSION, "active", 4)) == []
    assert "installed by version 0.0.1" in problems(one, Found("systemd", path, "0.0.1", "active", 4))[0]
    assert "does not run (failed)" in problems(one, Found("systemd", path, VERSION, "failed"))[0]
    moved = replace(one, command=("/elsewhere/exporter", "run"))
    assert "another program than /elsewhere/exporter" in problems(moved, Found("systemd", path, VERSION))[0]


needs_root: Final = pytest.mark.skipif(os.getuid() != 0, reason="needs a second user")


def test_of_variables_that_only_root_can_read_nothing_is_said(tmp_path: Path) -> None:
    one = replace(example(tmp_path), environment=(("A_TOKEN", SECRET),))
    unit, kept = systemd.files(one)
    path = tmp_path / "unit"
    path.write_text(unit.content)
    found = Found("systemd", path, VERSION, "active", 4)

    def missing() -> list[str]:
        said = problems(one, found, lost=["A_TOKEN", "B_TOKEN"])
        return [name for name in ("A_TOKEN", "B_TOKEN") if any(name in line for line in said)]

    absent = missing()
    kept.path.parent.mkdir(parents=True)
    kept.path.write_text(kept.content)
    readable = missing()
    kept.path.chmod(0)
    if os.getuid() == 0:
        os.seteuid(65534)
    try:
        unreadable = missing()
    finally:
        os.seteuid(os.getuid())

    assert (absent, readable, unreadable) == (["A_TOKEN", "B_TOKEN"], ["B_TOKEN"], [])


@needs_root
def test_a_service_of_the_system_leaves_nothing_of_root_in_the_home(tmp_path: Path) -> None:
    account = pwd.getpwnam("daemon")
    one = replace(
        example(tmp_path), user=account.pw_name, environment=(("A_TOKEN", SECRET),),
        writes=(tmp_path / ".local/state/exporter", tmp_path / ".cache/exporter"),
    )  # fmt: skip
    files = systemd.files(one)
    nowhere = replace(manager_of(one, "linux"), files=lambda _: [], asked=("false",), enable=())
    install(one, nowhere)
    made = [path.stat() for path in tmp_path.rglob("*")]

    assert [str(file.path) for file in files[1:]] == ["/etc/session-exporter/service.env"]
    assert "EnvironmentFile=/etc/session-exporter/service.env\n" in files[0].content
    assert {(stat.st_uid, stat.st_gid) for stat in made} == {(account.pw_uid, account.pw_gid)}
    assert len(made) == 5


# ── other managers: their files, not run ──────────────────────────────────────────────────────────────────────────


def test_the_agent_of_launchd_starts_the_same_program(tmp_path: Path) -> None:
    one = replace(example(tmp_path), environment=(("A_TOKEN", "x<&>y"),))
    [file] = manager_of(one, "darwin").files(one)
    agent = plistlib.loads(file.content.encode())

    assert file.path == tmp_path / "Library/LaunchAgents" / f"{launchd.LABEL}.plist"
    assert agent["ProgramArguments"] == list(one.command)
    assert agent["EnvironmentVariables"]["A_TOKEN"] == "x<&>y"
    assert agent["KeepAlive"] == {"SuccessfulExit": False}
    assert version_in(file.content) == VERSION
    assert file.mode == 0o600


def test_the_task_of_windows_starts_the_same_program(tmp_path: Path) -> None:
    one = replace(
        example(tmp_path), command=(r"C:\Program Files\exporter & co\exporter.exe", "run", "--config", r"C:\a b")
    )
    [file] = manager_of(one, "win32").files(one)
    task = ElementTree.fromstring(file.content)
    space = {"t": "http://schemas.microsoft.com/windows/2004/02/mit/task"}

    assert file.path == windows.task_path(one)
    assert task.findtext(".//t:Command", namespaces=space) == one.command[0]
    assert task.findtext(".//t:Arguments", namespaces=space) == r'run --config "C:\a b"'
    assert version_in(file.content) == VERSION


def example(home: Path) -> Installation:
    """An installation whose program is there, as systemd looks for it."""
    python = shutil.which("python3")
    assert python is not None
    return Installation(
        (python, "-m", "exporter", "run"), VERSION, home, home / ".config", (Path("/srv/copilot"),),
        (Path("/srv/state"), Path("/srv/cache")), 1.5,
    )  # fmt: skip


def test_the_dry_run_is_json_that_a_script_can_read(machine: Machine) -> None:
    document = json.loads(machine.exporter("service", "install", "--dry-run", "--json").stdout)

    assert [sorted(file) for file in document["files"]] == [["content", "path"]]
