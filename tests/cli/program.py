"""Runs the real program in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
TIMEOUT_SECONDS: Final = 60


def command(*arguments: str) -> list[str]:
    """The command line of `exporter` with these arguments."""
    return [sys.executable, "-m", "exporter", *arguments]


def environment(**more: str) -> dict[str, str]:
    """The test's own environment, with the tree under test importable from anywhere."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def exporter(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Runs `exporter` and returns what it said, as text."""
    return subprocess.run(
        command(*arguments),
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
