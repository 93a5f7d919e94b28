"""Every error a person can see, and the exit status it ends with.

ExporterError
├── UsageError          you: the command line
├── SettingsError       you: the configuration, or a port of it that is in use
├── LockedError         the machine: another exporter holds the state directory
└── StateError          the machine: the state directory cannot be used
"""

from enum import IntEnum
from typing import ClassVar, Final


class Exit(IntEnum):
    """The exit codes that scripts rely on, each with what it means (listed in `exporter --help`)."""

    DONE = 0, "done"
    UNEXPECTED = 1, "unexpected error"
    USAGE = 2, "usage error: unknown command or option, or an invalid value"
    CONFIGURATION = 3, "configuration error: a setting is invalid, or the port is in use"
    PARTIAL = 4, "done in part: something is quarantined or missing, or a check failed"
    REFUSED = 5, "refused by a sink (authentication, policy)"
    UNREACHABLE = 6, "a sink cannot be reached; the data is kept"
    LOCKED = 7, "another exporter holds the lock; with `status --check`: none runs"
    FINDINGS = 8, "findings: `redact test --check` found secrets, `verify` differences"

    meaning: str

    def __new__(cls, code: int, meaning: str = "") -> "Exit":
        member = int.__new__(cls, code)
        member._value_, member.meaning = code, meaning
        return member


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
