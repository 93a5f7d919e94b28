"""The service manager of this machine: writes its files, runs its commands, and says what it knows of the service."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from exporter.errors import ExporterError, UsageError
from exporter.service import launchd, systemd, windows
from exporter.service.plan import Installation, ServiceFile, version_in

if sys.platform != "win32":
    import pwd

_COMMAND_SECONDS: Final = 60.0
_UNANSWERED: Final = (OSError, subprocess.TimeoutExpired)

Command = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manager:
    """The commands of a service manager. `asked` ends with 0 where it runs and answers this user.

    `enable` is run where it does not: what it needs to begin the service by itself the next time.
    `state` prints one word, `process` the id of the running process.
    """

    name: str
    files: Callable[[Installation], list[ServiceFile]]
    asked: Command
    begin: tuple[Command, ...]
    enable: tuple[Command, ...]
    end: tuple[Command, ...]
    restart: Command
    state: Command
    process: Command
    logs: Command
    remark: str = ""


def manager_of(installation: Installation, platform: str = sys.platform) -> Manager:
    """Return the manager of a platform, for this installation."""
    if platform == "darwin":
        return _launchd(installation)
    if platform == "win32":
        return _windows(installation)
    return _systemd(installation)


def _systemd(installation: Installation) -> Manager:
    user = () if installation.user is not None else ("--user",)
    systemctl, unit = ("systemctl", *user), systemd.UNIT
    shown = (*systemctl, "show", "--value", unit, "--property")
    return Manager(
        "systemd",
        systemd.files,
        asked=(*systemctl, "show", "--property=Version"),
        begin=((*systemctl, "daemon-reload"), (*systemctl, "enable", unit), (*systemctl, "restart", unit)),
        enable=((*systemctl, "enable", unit),),
        end=((*systemctl, "disable", "--now", unit),),
        restart=(*systemctl, "restart", unit),
        state=(*shown, "ActiveState"),
        process=(*shown, "MainPID"),
        logs=("journalctl", *user, "--unit", unit, "--lines", "100"),
        remark="" if installation.user else "it stops when you sign out, unless you run once: loginctl enable-linger",
    )


def _launchd(installation: Installation) -> Manager:
    domain = f"gui/{os.getuid()}" if sys.platform != "win32" else ""
    path, target = str(launchd.agent_path(installation)), f"{domain}/{launchd.LABEL}"
    return Manager(
        "launchd",
        launchd.files,
        asked=("launchctl", "print", domain),
        begin=(("launchctl", "bootstrap", domain, path), ("launchctl", "kickstart", "-k", target)),
        enable=(),
        end=(("launchctl", "bootout", target),),
        restart=("launchctl", "kickstart", "-k", target),
        state=("launchctl", "print", target),
        process=("launchctl", "print", target),
        logs=("tail", "-n", "100", str(installation.home / "Library/Logs/session-exporter.log")),
        remark="the agent of launchd was never run by us: tell us what you see",
    )


def _windows(installation: Installation) -> Manager:
    path = str(windows.task_path(installation))
    task = ("/TN", windows.TASK)
    return Manager(
        "Windows task scheduler",
        windows.files,
        asked=("schtasks", "/Query"),
        begin=(("schtasks", "/Create", *task, "/XML", path, "/F"), ("schtasks", "/Run", *task)),
        enable=(),
        end=(("schtasks", "/End", *task), ("schtasks", "/Delete", *task, "/F")),
        restart=("schtasks", "/Run", *task),
        state=("schtasks", "/Query", *task, "/FO", "LIST"),
        process=("schtasks", "/Query", *task, "/FO", "LIST"),
        logs=("schtasks", "/Query", *task, "/V", "/FO", "LIST"),
        remark="the task of Windows was never run by us: tell us what you see",
    )


@dataclass(frozen=True, slots=True)
class Found:
    """What is there of the service: `version` wrote its files, None when it is not installed.

    `state` is the manager's word, empty where the manager does not answer; `pid` is 0 when it does not run.
    """

    manager: str
    path: Path
    version: str | None
    state: str = ""
    pid: int = 0

    @property
    def text(self) -> str:
        """Say it in one line."""
        if self.version is None:
            return "not installed"
        process = f", process {self.pid}" if self.pid else ""
        return f"installed by version {self.version}, {self.state or f'{self.manager} does not answer'}{process}"

    def document(self) -> dict[str, Any]:
        """Return the same for scripts."""
        return {
            "manager": self.manager,
            "path": str(self.path),
            "installed": self.version is not None,
            "version": self.version,
            "state": self.state or None,
            "pid": self.pid or None,
        }


def look(installation: Installation, manager: Manager) -> Found:
    """Return what is there; asks the manager only where its file is."""
    path = manager.files(installation)[0].path
    version = _version(path)
    if version is None or not _succeeds(manager.asked):
        return Found(manager.name, path, version)
    state, process = (_output(one) for one in (manager.state, manager.process))
    return Found(manager.name, path, version, state.strip().lower(), int(process) if process.strip().isdigit() else 0)


def install(installation: Installation, manager: Manager) -> bool:
    """Write the files, over those of an earlier installation, and start; return whether the manager started it.

    Raises `UsageError` for a file that is not ours, and changes nothing then. Where the manager does not answer, as in
    the making of an image, the service begins with the next start of the manager.
    """
    files = manager.files(installation)
    for one in files:
        if one.path.exists() and _version(one.path) is None:
            raise UsageError(f"{one.path} was not written by this program", hint="move it away, then install again")
    for directory in installation.writes:  # below a home that is read-only for the service
        _make(directory, installation.user)
    for one in files:
        _write(one)
    if _succeeds(manager.asked):
        for command in manager.begin:
            _run(command)
        return True
    for command in manager.enable:
        with suppress(*_UNANSWERED):
            _ended(command, offline=True)
    return False


def uninstall(installation: Installation, manager: Manager) -> list[Path]:
    """Stop it and remove our files; return those that were there. Marks and settings stay."""
    environment = ServiceFile(installation.environment_file, "")
    ours = [one.path for one in (*manager.files(installation), environment) if _version(one.path) is not None]
    if not ours:
        return []
    is_answered = _succeeds(manager.asked)
    for command in manager.end:
        with suppress(*_UNANSWERED):
            _ended(command, offline=not is_answered)
    for path in dict.fromkeys(ours):
        path.unlink()
    if installation.user is not None:
        with suppress(OSError):  # it is not there, or has files that are not ours
            installation.environment_file.parent.rmdir()
    if is_answered and manager.name == "systemd":
        _run(manager.begin[0])
    return list(dict.fromkeys(ours))


def restart(manager: Manager) -> None:
    """Stop and start it; raises `ExporterError` with the manager's own words."""
    _run(manager.restart)


def logs(manager: Manager) -> int:
    """Show its last lines, on our own output; return the exit code of the program that shows them."""
    try:
        return subprocess.run(manager.logs, check=False).returncode  # noqa: S603  a command of our own
    except OSError as error:
        raise _failed(manager.logs, error.strerror or "") from None


def _write(file: ServiceFile) -> None:
    file.path.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.path.with_name(f".{file.path.name}.new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, file.mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as target:
        target.write(file.content)
    temporary.replace(file.path)


def _make(directory: Path, account: str | None) -> None:
    """Make a directory and those above it that are missing, for the account that the service runs as."""
    missing = [one for one in (directory, *directory.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700)
        if account is not None and sys.platform != "win32":
            shutil.chown(one, account, pwd.getpwnam(account).pw_gid)


def _version(path: Path) -> str | None:
    try:
        return version_in(path.read_text("utf-8", "replace"))
    except OSError:
        return None


def _ended(command: Command, *, offline: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a command of the manager; `offline` has systemd change its links although it does not run."""
    extra = {"SYSTEMD_OFFLINE": "1"} if offline else {}
    return subprocess.run(  # noqa: S603  commands of our own
        command, env={**os.environ, **extra}, capture_output=True, check=False, text=True, timeout=_COMMAND_SECONDS
    )


def _succeeds(command: Command) -> bool:
    with suppress(*_UNANSWERED):
        return _ended(command).returncode == 0
    return False


def _output(command: Command) -> str:
    with suppress(*_UNANSWERED):
        return _ended(command).stdout
    return ""


def _run(command: Command) -> None:
    try:
        ended = _ended(command)
    except _UNANSWERED as error:
        raise _failed(command, str(error)) from None
    if ended.returncode:
        raise _failed(command, ended.stderr.strip())


def _failed(command: Command, why: str) -> ExporterError:
    return ExporterError(f"`{' '.join(command)}` failed: {why}", hint="run it yourself; what is installed stays")
