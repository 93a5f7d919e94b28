"""Installs what the image holds, in its build stage: `python3 install.py SOURCES TARGET`. Needs pip and no shell.

SOURCES has one wheel of the program, `requirements.lock`, and the list of what runs.
"""

import compileall
import importlib.util
import os
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

_LAUNCHER: Final = """\
#!{python}
import sys
sys.path[0] = "{library}"
from exporter.__main__ import main
sys.exit(main())
"""
_WHEELS: Final = Path("/usr/share/python-wheels")
"""Where Debian keeps pip as a wheel, which can be run."""


def install(sources: Path, target: Path) -> None:
    """Install into `target`: `lib`, `bin/exporter`, `sbom`, and an empty `home`."""
    pip = [sys.executable, "-m", "pip"]
    environment = dict(os.environ)
    if importlib.util.find_spec("pip") is None:
        [wheel] = _WHEELS.glob("pip-*.whl")
        environment["PYTHONPATH"] = str(wheel)
    library = target / "lib"
    options = ["install", "--quiet", "--no-cache-dir", "--no-compile", "--no-deps", "--only-binary", ":all:"]
    if (found := sources / "wheels").is_dir():  # the build has no way to an index
        options += ["--no-index", "--find-links", str(found)]
    common = [*pip, *options, "--target", str(library)]
    subprocess.run([*common, "--require-hashes", "-r", str(sources / "requirements.lock")], check=True, env=environment)
    [program] = sources.glob("session_exporter-*.whl")
    shutil.rmtree(library / "bin", ignore_errors=True)
    subprocess.run([*common, str(program)], check=True, env=environment)
    for path in (library / "bin", library / "share"):
        shutil.rmtree(path, ignore_errors=True)
    # A read-only image can write no bytecode. It is not looked at again whether the sources are newer.
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(library, quiet=2, invalidation_mode=mode)
    launcher = target / "bin/exporter"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(_LAUNCHER.format(python=sys.executable, library=library), encoding="utf-8")
    launcher.chmod(0o755)
    (target / "home").mkdir()  # becomes the home of the image's account, of which it can write
    (target / "sbom").mkdir()
    for path in (*sources.glob("*.cdx.json"), *sources.glob("base.lock")):
        shutil.copy(path, target / "sbom")


if __name__ == "__main__":
    install(Path(sys.argv[1]), Path(sys.argv[2]))
