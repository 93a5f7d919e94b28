"""Where files are: the person's home and the XDG directories, from the environment that `load` is given."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from config.errors import ConfigError

_NAME = "exporter"


@dataclass(frozen=True, slots=True)
class Places:
    """Makes the paths that people write absolute. Nothing is looked up in the working directory."""

    environ: Mapping[str, str]

    @property
    def home(self) -> str:
        """The home directory, or an empty text if the environment names none."""
        return self.environ.get("HOME", "") or self.environ.get("USERPROFILE", "")

    def default_file(self) -> Path | None:
        """Where the settings file is when nobody names one."""
        base = self.xdg("XDG_CONFIG_HOME") or (str(Path(self.home, ".config")) if self.home else "")
        return Path(base, _NAME, f"{_NAME}.toml") if base else None

    def xdg(self, variable: str) -> str:
        """The directory of an XDG variable; one that is relative is ignored, as that standard says."""
        value = self.environ.get(variable, "")
        return value if is_absolute(value) else ""

    def absolute(self, text: str, *, relative_to: Path | None, where: str, key: str) -> str:
        """The path with `~` replaced. A relative one is an error unless there is a directory that it is relative to."""
        if "\0" in text or not text:
            raise ConfigError(f"expected {key} to be a path", where=where, key=key)
        if text == "~" or text.startswith(("~/", "~\\")):
            if not self.home:
                raise ConfigError(
                    f'{key} begins with "~", and the environment has no HOME',
                    hint="set HOME or write the whole path",
                    where=where,
                    key=key,
                )
            return str(Path(self.home, text[2:]))
        if is_absolute(text):
            return str(Path(text))
        if relative_to is None or text.startswith("~"):
            raise ConfigError(
                f'expected {key} to be a whole path or one that begins with "~/", given "{text}"', where=where, key=key
            )
        return os.path.normpath(relative_to / text)


def is_absolute(path: str) -> bool:
    """Whether the path says by itself where it leads, on the system this runs on."""
    return Path(path).is_absolute()
