"""The agent of launchd, on macOS. Its file is tested; it was not run on a Mac."""

import plistlib
from pathlib import Path
from typing import Any, Final

from exporter.service.plan import NAME, STOP_MARGIN_SECONDS, Installation, ServiceFile

LABEL: Final = f"io.github.{NAME}"


def agent_path(installation: Installation) -> Path:
    """Return where its agent stands."""
    return installation.home / "Library/LaunchAgents" / f"{LABEL}.plist"


def files(installation: Installation) -> list[ServiceFile]:
    """Return the agent; it is for this user alone where it holds variables."""
    agent: dict[str, Any] = {
        "Label": LABEL,
        "ProgramArguments": list(installation.command),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 5,
        "ExitTimeOut": int(installation.stop_seconds + STOP_MARGIN_SECONDS),
        "ProcessType": "Background",
        "Umask": 0o077,
        "StandardErrorPath": str(installation.home / "Library/Logs" / f"{NAME}.log"),
        "EnvironmentVariables": {"EXPORTER_SERVICE_MARK": installation.mark, **dict(installation.environment)},
    }
    content = plistlib.dumps(agent, sort_keys=False).decode()
    return [ServiceFile(agent_path(installation), content, 0o600 if installation.environment else 0o644)]
