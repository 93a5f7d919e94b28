"""The program as a person starts it, with a home of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "exporter"]
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\S*")
STOP_SECONDS_MAX = 20


def environment(home: Path) -> dict[str, str]:
    """The variables with which everything of the program is in this directory."""
    places = {f"XDG_{name}_HOME": str(home / name) for name in ("STATE", "CACHE", "CONFIG", "DATA")}
    own = {"EXPORTER_STATE_DIR": str(home / "state"), "COPILOT_HOME": str(home / "copilot")}
    return {**os.environ, **places, **own}


@contextmanager
def running(environment: dict[str, str], *arguments: str, tells_users: bool = True) -> Iterator[str]:
    """Run the program and yield the address that it prints; without `tells_users` as where no /proc is."""
    command = [*COMMAND, *arguments]
    if not tells_users:
        if shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
            pytest.skip("this machine does not let a process have mounts of its own")
        command = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh", *command]
    started = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    try:
        found = None
        while found is None:
            line = started.stdout.readline()
            assert line, "it ended without an address"
            found = ADDRESS.search(line)
        yield found[0]
    finally:
        started.send_signal(signal.SIGINT)
        started.wait(STOP_SECONDS_MAX)
