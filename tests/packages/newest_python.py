"""The newest Python that all our packages have wheels for, from Debian's development suite, in a directory of its own.

`python -m tests.packages.newest_python` makes an environment with what `make test` needs in the user's cache, unless it
is there, and prints its interpreter; nothing where this Python cannot be had. Nothing of that suite is installed: its
Python runs with its own C library.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from deploy.packages.debian_suite import DebianSuite, unpack
from tests.drift.repository import ROOT
from tests.packages.building import PIP
from tests.real.install import directory, locked

NEWEST: Final = "3.14"
SUITE: Final = "sid"
LOCKS: Final = ("requirements.lock", "requirements-dev.lock")
PROGRAM: Final = "env/bin/python"
_LIBRARIES: Final = "usr/lib/x86_64-linux-gnu"


def interpreter(place: Path) -> Path:
    """Unpack Python and what it needs; return a program that starts it and says of itself that it is this program."""
    root = place / "root"
    python = f"python{NEWEST}"
    unpack(DebianSuite(SUITE, place / "suite").packages(python), root)
    libraries = root / _LIBRARIES
    environment = place / "env"
    (environment / "bin").mkdir(parents=True)
    (environment / "pyvenv.cfg").write_text(
        f"home = {root}/usr/bin\ninclude-system-site-packages = false\nversion = {NEWEST}\n"
    )
    program = place / PROGRAM
    program.write_text(
        "#!/bin/sh\n"
        f'exec {libraries}/ld-linux-x86-64.so.2 --library-path {libraries} --argv0 "$0" {root}/usr/bin/{python} "$@"\n'
    )
    program.chmod(0o755)
    return program


def environment(place: Path) -> Path:
    """Return an interpreter beside which everything is installed that runs and tests this tree."""
    program = interpreter(place)
    for lock in LOCKS:
        options = ["--quiet", "--require-hashes", "--only-binary", ":all:", "-r", str(ROOT / lock)]
        subprocess.run([*PIP, "--python", str(program), "install", *options], check=True)
    return program


def kept_environment() -> Path:
    """The same in the user's cache, made anew when what is wanted has changed. Raises `OSError`."""
    root = directory()
    root.mkdir(parents=True, exist_ok=True)
    place, done = root / f"python-{NEWEST}", root / f"python-{NEWEST}.done"
    wanted = "".join((ROOT / name).read_text() for name in LOCKS)
    with locked(root):
        if not done.is_file() or done.read_text() != wanted:
            done.unlink(missing_ok=True)
            shutil.rmtree(place, ignore_errors=True)
            environment(place)
            shutil.rmtree(place / "suite")
            done.write_text(wanted)
    return place / PROGRAM


if __name__ == "__main__":
    try:
        print(kept_environment())
    except OSError as error:
        print(f"make newest: Python {NEWEST} cannot be had here ({error}); nothing is tested with it", file=sys.stderr)
