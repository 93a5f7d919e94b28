"""The directories of the CLI that are followed: one, several, or all that match a pattern."""

import glob
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

if sys.platform != "win32":
    import pwd

SESSIONS: Final = "session-state"


@dataclass(frozen=True, slots=True)
class Homes:
    """The directories that the settings name, `literal` ones and patterns; some may not be there yet."""

    literal: tuple[str, ...]
    patterns: tuple[str, ...] = ()

    @property
    def are_many(self) -> bool:
        """Whether these may be directories of several people."""
        return len(self.literal) > 1 or bool(self.patterns)

    def found(self) -> list[Path]:
        """Return the directories that match now, each once, and the literal ones in any case.

        Where nobody can look, as in a home that is closed to us, there may be one: it is returned too.
        """
        matching = (path for one in self.patterns for path in sorted({*glob.glob(one), *_behind_closed(one)}))  # noqa: PTH207  absolute ones
        paths = dict.fromkeys(map(Path, (*self.literal, *matching)))
        seen: dict[tuple[int, int] | Path, Path] = {}
        for path in paths:
            seen.setdefault(_identity(path), path)
        return list(seen.values())

    def roots(self) -> list[Path]:
        """Return where the sessions of each of them are."""
        return [home / SESSIONS for home in self.found()]

    @property
    def text(self) -> str:
        """Name them in one line."""
        return ", ".join((*self.literal, *self.patterns))


def _behind_closed(pattern: str) -> Iterator[str]:
    """Yield what a pattern may match in directories that cannot be entered."""
    above, _, name = pattern.rpartition(os.sep)
    if glob.has_magic(name):
        return
    for directory in glob.glob(above):  # noqa: PTH207
        try:
            os.stat(os.path.join(directory, "."))  # noqa: PTH116, PTH118  Path leaves the dot out
        except PermissionError:
            yield f"{directory}{os.sep}{name}"
        except OSError:
            continue


def _identity(path: Path) -> tuple[int, int] | Path:
    try:
        facts = path.stat()
    except OSError:
        return path
    return facts.st_dev, facts.st_ino


@cache
def login_name(uid: int | None) -> str | None:
    """Return the name of an account, its number where it has none, None where nobody is known."""
    if uid is None or sys.platform == "win32":
        return None
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
