"""Starts `committing.py` and kills it when the test says so."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


@contextmanager
def running(what: str, path: Path) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.state.committing", what, str(path)],
        cwd=ROOT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def killed_after(what: str, path: Path, lines: int) -> int:
    """The last number it said before kill -9, some time after it has said so many."""
    with running(what, path) as process:
        assert process.stdout is not None
        for _ in range(lines):
            last = process.stdout.readline()
        process.kill()
        said = process.stdout.read().splitlines()
        return int(said[-1] if said else last)
