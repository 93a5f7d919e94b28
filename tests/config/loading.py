"""Loads settings in a test as the program does, with everything it reads given by the test."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from config.load import Loaded, load


@dataclass(frozen=True, slots=True)
class Loading:
    """Loads from a file with this text, in the place where it is looked for, and from these variables and flags."""

    home: Path

    @property
    def file(self) -> Path:
        return self.home / ".config/exporter/exporter.toml"

    def __call__(
        self,
        text: str | None = None,
        environ: Mapping[str, str] | None = None,
        flags: Mapping[str, object] | None = None,
        *,
        fallbacks: bool = False,
    ) -> Loaded:
        if text is not None:
            self.file.write_text(text, encoding="utf-8")
            self.file.chmod(0o600)
        variables = {"HOME": str(self.home), **(environ or {})}
        return load(file=None, environ=variables, flags=flags or {}, fallbacks=fallbacks)
