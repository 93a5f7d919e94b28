"""Runs the real program in a process of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

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


@contextmanager
def up(
    *arguments: str, stop_with: signal.Signals = signal.SIGTERM
) -> "Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]":
    """A running `exporter up` and what it said when it was ready; it has ended after the block."""
    line = command("up", "--no-open", "--json", *arguments)
    program = subprocess.Popen(
        line, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
    )
    try:
        assert program.stdout is not None
        said = (json.loads(line) for line in program.stdout)  # such as that there is no directory of the CLI yet
        yield program, next(one["ready"] for one in said if "ready" in one)
    finally:
        program.send_signal(stop_with)
        program.communicate(timeout=TIMEOUT_SECONDS)
