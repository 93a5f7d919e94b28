"""A home directory of the test's own, and settings loaded from it."""

from pathlib import Path

import pytest

from tests.config.loading import Loading


@pytest.fixture
def loading(tmp_path: Path) -> Loading:
    home = tmp_path / "home"
    (home / ".config" / "exporter").mkdir(parents=True)
    return Loading(home)
