"""What the tests of packages share: the wheel, and environments into which it is installed."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Final

from tests.drift.repository import ROOT, files

PIP: Final = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def build(kind: str, directory: Path, *, root: Path = ROOT, **environment: str) -> Path:
    """Build the wheel (`wheel`) or the source archive (`sdist`) with the locked backend; return the file."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(directory)],
        cwd=root, env={**os.environ, **environment}, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    (built,) = directory.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


def copy_of_the_tree(directory: Path) -> Path:
    """Make another checkout of the files as they are now, with other times and permissions; return it."""
    for path in files():
        target = directory / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        target.chmod(0o600)
        os.utime(target, (10**9, 10**9))
    return directory


def locked_site() -> Path:
    """Return the directory of the locked dependencies, which holds none of our packages."""
    (site,) = (
        path for path in map(Path, sys.path) if path.name == "site-packages" and Path(sys.prefix) in path.parents
    )
    return site


def install_alone(wheel: Path, environment: Path) -> None:
    """Install a wheel and nothing else into a new environment, without any index."""
    venv.create(environment, with_pip=False)
    options = ["--no-deps", "--no-index", "--quiet"]
    subprocess.run([*PIP, "--python", str(environment / "bin/python"), "install", *options, str(wheel)], check=True)


def install_with_locked(wheel: Path, environment: Path) -> None:
    """The same, beside the locked dependencies of this environment, which are linked and not installed again."""
    install_alone(wheel, environment)
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "locked.pth").write_text(f"{locked_site()}\n", encoding="utf-8")
