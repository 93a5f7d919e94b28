"""The newest Python that all our packages have wheels for, from Debian's development suite, in a directory of its own.

`python -m tests.packages.newest_python DIR` makes an environment there, with what `make test` needs, and prints its
interpreter. Nothing of that suite is installed: its Python runs with its own C library.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

from deploy.packages.debian_suite import DebianSuite, unpack
from tests.drift.repository import ROOT
from tests.packages.building import PIP

NEWEST: Final = "3.14"
SUITE: Final = "sid"
_LIBRARIES: Final = "usr/lib/x86_64-linux-gnu"


def interpreter(directory: Path) -> Path:
    """Unpack Python and what it needs; return a program that starts it and says of itself that it is this program."""
    root = directory / "root"
    python = f"python{NEWEST}"
    unpack(DebianSuite(SUITE, directory / "suite").packages(python), root)
    libraries = root / _LIBRARIES
    environment = directory / "env"
    (environment / "bin").mkdir(parents=True)
    (environment / "pyvenv.cfg").write_text(
        f"home = {root}/usr/bin\ninclude-system-site-packages = false\nversion = {NEWEST}\n"
    )
    program = environment / "bin/python"
    program.write_text(
        "#!/bin/sh\n"
        f'exec {libraries}/ld-linux-x86-64.so.2 --library-path {libraries} --argv0 "$0" {root}/usr/bin/{python} "$@"\n'
    )
    program.chmod(0o755)
    return program


def environment(directory: Path) -> Path:
    """Return an interpreter beside which everything is installed that runs and tests this tree."""
    program = interpreter(directory)
    for lock in ("requirements.lock", "requirements-dev.lock"):
        options = ["--quiet", "--require-hashes", "--only-binary", ":all:", "-r", str(ROOT / lock)]
        subprocess.run([*PIP, "--python", str(program), "install", *options], check=True)
    return program


if __name__ == "__main__":
    print(environment(Path(sys.argv[1]).absolute()))
