"""One directory with the program and all that it needs: what the Debian package and the single file are made of."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
LOCK: Final = HERE / "requirements.lock"
TIME: Final = 1580601600
"""The time of every file in a package, as a wheel has it, so that the same sources give the same bytes."""
_PLATFORMS: Final = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")


def make_tree(wheel: Path, target: Path, *, python: str, machine: str = "x86_64") -> Path:
    """Install the wheel and what the lock names, as wheels with these hashes, for this Python on Linux."""
    pip = [*_pip("install", python, machine), "--no-compile", "--target", str(target)]
    subprocess.run([*pip, "--require-hashes", "-r", str(LOCK)], check=True)
    shutil.rmtree(target / "bin", ignore_errors=True)
    subprocess.run([*pip, "--no-index", str(wheel)], check=True)
    for path in (target / "bin", target / "share", *target.glob("*.dist-info/direct_url.json")):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for path in sorted(target.rglob("*")):
        if not path.is_dir():
            path.chmod(0o644)
        os.utime(path, (TIME, TIME))
    return target


def download_wheels(target: Path, *, python: str, machine: str = "x86_64") -> None:
    """Download the wheels that the lock names into a directory."""
    pip = [*_pip("download", python, machine), "--dest", str(target)]
    subprocess.run([*pip, "--require-hashes", "-r", str(LOCK)], check=True)


def _pip(what: str, python: str, machine: str) -> list[str]:
    chosen = [word for one in _PLATFORMS for word in ("--platform", f"{one}_{machine}")]
    return [
        sys.executable, "-m", "pip", "--disable-pip-version-check", what, "--quiet", "--no-deps",
        "--only-binary", ":all:", "--python-version", python, *chosen,
    ]  # fmt: skip
