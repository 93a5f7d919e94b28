"""Directories: the home and the XDG directories of the user, from the environment that `load` is given."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from config.given.layer import Given
from config.settings import Settings

_NAME = "exporter"
_SPECIAL = re.compile(r"[*?\[]")


def homes_of(settings: Settings) -> tuple[str, ...]:
    """The directories of the CLI, and the patterns of such, that the settings name."""
    named = settings.copilot_home
    return (named,) if isinstance(named, str) else named


def is_pattern(home: str) -> bool:
    """Whether a directory that is named stands for all that match it: it has a wildcard, and is none itself."""
    return _SPECIAL.search(home) is not None and not os.path.lexists(home)


@dataclass(frozen=True, slots=True)
class Places:
    """Makes paths in settings absolute. The working directory is never used."""

    environ: Mapping[str, str]

    @property
    def home(self) -> str:
        """The home directory, or an empty text if the environment names none."""
        return self.environ.get("HOME", "") or self.environ.get("USERPROFILE", "")

    def default_file(self) -> Path | None:
        """The settings file if no other is named."""
        base = self.xdg("XDG_CONFIG_HOME") or (str(Path(self.home, ".config")) if self.home else "")
        return Path(base, _NAME, f"{_NAME}.toml") if base else None

    def xdg(self, variable: str) -> str:
        """The directory of an XDG variable; one that is relative is ignored, as that standard says."""
        value = self.environ.get(variable, "")
        return value if Path(value).is_absolute() else ""

    def absolute(self, text: str, given: Given) -> str:
        """The path with `~` replaced. A relative one is an error, unless `given` says what it is relative to."""
        if "\0" in text or not text:
            raise given.error(f"expected {given.key} to be a path")
        if text == "~" or text.startswith(("~/", "~\\")):
            if not self.home:
                message = f'{given.key} begins with "~", and the environment has no HOME'
                raise given.error(message, "set HOME or write the whole path")
            return str(Path(self.home, text[2:]))
        if Path(text).is_absolute():
            return str(Path(text))
        if given.relative_to is None or text.startswith("~"):
            raise given.error(f'expected {given.key} to be a whole path or one that begins with "~/", given "{text}"')
        return os.path.normpath(given.relative_to / text)
