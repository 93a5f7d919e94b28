"""Settings as a file gives them, and secrets made up at run time."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from config.load import load
from config.settings import Settings

Configure: TypeAlias = Callable[[str], Settings]


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
