"""What is to be installed, as facts, and the files that a service manager needs for it."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

NAME: Final = "session-exporter"
STOP_MARGIN_SECONDS: Final = 10.0
"""What a manager waits for longer than the exporter needs to stop, before it kills it."""
WATCHDOG_SECONDS: Final = 60
NO_RESTART: Final = (2, 3, 7)
"""Exit codes that another start does not mend: the command line, the configuration, another exporter."""
SYSTEM_ENVIRONMENT: Final = Path("/etc") / NAME / "service.env"
_MARK: Final = 'written by "exporter service install" of session-exporter '
_MARKED: Final = re.compile(re.escape(_MARK) + r"([\w.+-]+)")


@dataclass(frozen=True, slots=True)
class Installation:
    """One exporter as a service. Every path is absolute.

    `command` is the whole command line. `user` is the account of a service of the system, None for one of the user that
    installs it. `reads` are directories that are followed, `writes` those that it must be able to write.
    `environment` are variables to keep for it; they may hold secrets. `reads_environment` says that it reads the
    environments of CLI processes, `of_many` that it follows directories of several people.
    """

    command: tuple[str, ...]
    version: str
    home: Path
    config_home: Path
    reads: tuple[Path, ...]
    writes: tuple[Path, ...]
    stop_seconds: float
    user: str | None = None
    environment: tuple[tuple[str, str], ...] = ()
    reads_environment: bool = False
    of_many: bool = False

    @property
    def mark(self) -> str:
        """The text by which a file is known as ours, with the version that wrote it."""
        return _MARK + self.version

    @property
    def environment_file(self) -> Path:
        """Where the variables that are kept for it stand; what root writes is not in somebody's home."""
        if self.user is not None:
            return SYSTEM_ENVIRONMENT
        return self.config_home / "exporter" / "service.env"


@dataclass(frozen=True, slots=True)
class ServiceFile:
    """One file to write; `mode` is 0o600 where it holds secrets."""

    path: Path
    content: str
    mode: int = 0o644


def version_in(content: str) -> str | None:
    """Return which version wrote a file, None for one that is not ours."""
    found = _MARKED.search(content)
    return found[1] if found else None
