"""Settings as a file gives them, and secrets made up at run time."""

import os
from pathlib import Path
from typing import Protocol

import pytest

from config.load import load
from config.settings import Settings


class Configure(Protocol):
    def __call__(self, text: str = "") -> Settings: ...


@pytest.fixture
def configure(own_home: Path) -> Configure:
    """Returns what makes settings of a text, relative paths in it being those of the test's configuration directory."""
    file = own_home / "config" / "exporter" / "exporter.toml"
    file.parent.mkdir(parents=True)

    def configured(text: str = "") -> Settings:
        file.write_text(text, encoding="utf-8")
        file.chmod(0o600)
        return load(file=file, environ=os.environ, flags={}, fallbacks=False).settings

    return configured
