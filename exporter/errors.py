"""Every error a person can see, and the exit status it ends with.

ExporterError
├── UsageError          you: the command line
├── SettingsError       you: the configuration
├── LockedError         the machine: another exporter holds the state directory
└── StateError          the machine: the state directory cannot be used
"""

from enum import IntEnum
from typing import ClassVar, Final


class Exit(IntEnum):
    """The exit codes that scripts rely on (listed in `exporter --help`)."""

    DONE = 0
    UNEXPECTED = 1
    USAGE = 2
    CONFIGURATION = 3
    PARTIAL = 4
    REFUSED = 5
    UNREACHABLE = 6
    LOCKED = 7
    FINDINGS = 8


_FROM_THE_WORST: Final = (Exit.LOCKED, Exit.FINDINGS, Exit.REFUSED, Exit.UNREACHABLE, Exit.PARTIAL, Exit.DONE)


def worst(*ends: Exit) -> Exit:
    """Return the status of a command of which some parts ended so."""
    return min(ends, key=_FROM_THE_WORST.index)


class ExporterError(Exception):
    """Says what failed, where and why (`message`), and what to do (`hint`)."""

    kind: ClassVar[str] = "unexpected"
    exit: ClassVar[Exit] = Exit.UNEXPECTED

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(ExporterError):
    kind = "usage"
    exit = Exit.USAGE


class SettingsError(ExporterError):
    kind = "configuration"
    exit = Exit.CONFIGURATION


class LockedError(ExporterError):
    kind = "locked"
    exit = Exit.LOCKED


class StateError(ExporterError):
    kind = "state"
    exit = Exit.CONFIGURATION
