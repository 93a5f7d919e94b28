"""The captures of real sessions that the tests of telemetry are judged by; CI has none, and says so."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.shared import REAL

DIRECTORIES = sorted(path.parent for path in REAL.glob("captures*/*/meta.json"))


def captures(*needed: str) -> list[Any]:
    """The directories of captures that have certain files, as parameters; one that skips when there are none."""
    found = [path for path in DIRECTORIES if all((path / name).exists() for name in needed)]
    if not found:
        return [pytest.param(REAL, marks=pytest.mark.skip(reason=f"there are no captures in {REAL}"))]
    return [pytest.param(path, id=f"{path.parent.name}/{path.name}") for path in found]


def objects(path: Path) -> Iterator[dict[str, Any]]:
    """Every line of a file that holds a JSON object."""
    for line in path.read_bytes().split(b"\n"):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found
