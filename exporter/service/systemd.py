"""Units of systemd: one of the user, which needs no privilege, or one of the system."""

import re
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Final

from exporter.service.plan import NAME, NO_RESTART, STOP_MARGIN_SECONDS, WATCHDOG_SECONDS, Installation, ServiceFile

UNIT: Final = f"{NAME}.service"
SYSTEM_DIRECTORY: Final = Path("/etc/systemd/system")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:@+,=-]+")
_TEMPORARY: Final = (PurePath("/tmp"), PurePath("/var/tmp"))  # noqa: S108  looked for, nothing is made there
_FOR_EVERYONE: Final = """\
NoNewPrivileges=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictSUIDSGID=yes
RestrictRealtime=yes
RestrictNamespaces=yes
# AF_NETLINK: the kernel is asked which user a connection to the page comes from.
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
SystemCallErrorNumber=EPERM
"""
_MOUNTS: Final = """\
ProtectSystem=strict
ProtectHome=read-only
ProtectControlGroups=yes
ProtectKernelTunables=yes
"""
_NO_CAPABILITY: Final = """\
CapabilityBoundingSet=
AmbientCapabilities=
"""
_FOR_THE_SYSTEM: Final = f"""\
{_NO_CAPABILITY}\
DevicePolicy=closed
PrivateDevices=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
RemoveIPC=yes
KeyringMode=private
"""
_OF_MANY: Final = """\
# The sessions of others are for their eyes only; this reads all files and writes none.
CapabilityBoundingSet=CAP_DAC_READ_SEARCH
AmbientCapabilities=CAP_DAC_READ_SEARCH
"""
_APART: Final = """\
PrivateUsers=yes
ProtectProc=invisible
"""


def unit_path(installation: Installation) -> Path:
    """Return where its unit stands."""
    directory = installation.config_home / "systemd/user" if installation.user is None else SYSTEM_DIRECTORY
    return directory / UNIT


def files(installation: Installation) -> list[ServiceFile]:
    """Return the unit, and the file of variables if some are kept."""
    unit = ServiceFile(unit_path(installation), _unit(installation))
    if not installation.environment:
        return [unit]
    lines = [f"# {installation.mark}", *(f"{name}={_value(text)}" for name, text in installation.environment)]
    return [unit, ServiceFile(installation.environment_file, "\n".join(lines) + "\n", 0o600)]


def _unit(installation: Installation) -> str:
    is_system = installation.user is not None
    kept = f"EnvironmentFile={_escaped(str(installation.environment_file))}\n" if installation.environment else ""
    network = "Wants=network-online.target\nAfter=network-online.target\n" if is_system else ""
    return f"""\
# {installation.mark}
# Run that again after an upgrade. Changes of your own: systemctl {"" if is_system else "--user "}edit {NAME}
[Unit]
Description=session-exporter, which follows Copilot CLI sessions
{network}StartLimitIntervalSec=10min
StartLimitBurst=60

[Service]
Type=notify
NotifyAccess=main
{f"User={installation.user}" + chr(10) if is_system else ""}{kept}ExecStart={" ".join(map(_word, installation.command))}
WatchdogSec={WATCHDOG_SECONDS}
Restart=on-failure
RestartSec=2
RestartPreventExitStatus={" ".join(map(str, NO_RESTART))}
TimeoutStopSec={installation.stop_seconds + STOP_MARGIN_SECONDS:g}
LimitCORE=0
MemoryMax=1G
TasksMax=256
UMask=0077
{_FOR_EVERYONE}{_protection(installation)}
[Install]
WantedBy={"multi-user.target" if is_system else "default.target"}
"""


def _protection(installation: Installation) -> str:
    """Return the settings that keep it from other processes and from files.

    From a user namespace of its own no service can read the environment of a process outside. A user's manager makes
    one for every setting that needs mounts.
    """
    used, is_system = (*installation.reads, *installation.writes), installation.user is not None
    chosen = [_FOR_THE_SYSTEM] if is_system else []
    if is_system and installation.of_many:
        chosen = [_FOR_THE_SYSTEM.replace(_NO_CAPABILITY, ""), _OF_MANY]
    elif is_system and not installation.reads_environment:
        chosen.append(_APART)
    if is_system or not installation.reads_environment:
        private_tmp = "" if any(_is_temporary(path) for path in used) else "PrivateTmp=yes\n"
        chosen += [_MOUNTS, private_tmp, f"ReadWritePaths={_optional(installation.writes)}\n"]
    return "".join(chosen)


def _is_temporary(path: Path) -> bool:
    return any(path.is_relative_to(one) for one in _TEMPORARY)


def _optional(paths: Iterable[Path]) -> str:
    """Write paths that need not be there."""
    return " ".join(_quoted("-" + _escaped(str(path))) for path in dict.fromkeys(paths))


def _word(text: str) -> str:
    """Write one word of a command line, in which $ and % mean something."""
    return _quoted(_escaped(text).replace("$", "$$"))


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _quoted(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _value(text: str) -> str:
    """Write the value of a variable into a file that systemd reads: only in quotes every character is kept."""
    return '"' + re.sub(r'(["\\$`])', r"\\\1", text) + '"'
