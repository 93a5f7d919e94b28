"""Install the real Copilot CLI, from the npm registry, into a cache directory.

`python -m tests.real.install [--old]` prints where the programs are. A second run only looks at files, so it works
offline. Each part is built beside its place and renamed into it, under a lock: an interrupted install leaves nothing
half-made, and two runs at once do the work once.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

NEW = "1.0.102"
OLD = "1.0.48"
NODE = "24"
INSTALL_SECONDS_MAX = 600
NPM_OPTIONS = ("--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error", "--prefer-offline")


class InstallError(Exception):
    """The CLI cannot be installed here; the message says what to do."""


def directory() -> Path:
    """Where the programs are kept: $EXPORTER_REAL_DIR, else `exporter-real` in the user's cache."""
    named = os.environ.get("EXPORTER_REAL_DIR")
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(named or f"{cache}/exporter-real").expanduser().resolve()


def command(version: str = NEW) -> list[str]:
    """The command line that starts this version, which is installed first if it is missing."""
    root = directory()
    root.mkdir(parents=True, exist_ok=True)
    with locked(root):
        if version == NEW:
            return [str(part(root / f"cli-{NEW}", _native_binary, _install_new))]
        node = part(root / f"node-{NODE}", _node_binary, _install_node)
        return [str(node), str(part(root / f"cli-{OLD}", _old_script, _install_old))]


def unpack_cache(version: str) -> Path:
    """The XDG_CACHE_HOME in which this version unpacks itself, shared by all runs because that takes a second."""
    return directory() / f"unpacked-{version}"


def part(place: Path, find: Callable[[Path], Path | None], build: Callable[[Path], None]) -> Path:
    """Return what `find` finds in a place, which `build` makes first, beside it, if it is not there."""
    present = find(place)
    if present:
        return present
    beside = Path(tempfile.mkdtemp(prefix=".building-", dir=place.parent))
    try:
        build(beside)
        if not find(beside):
            raise InstallError(f"npm gave no {place.name} that runs on this platform ({sys.platform})")
        beside.chmod(0o755)
        shutil.rmtree(place, ignore_errors=True)
        beside.rename(place)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    found = find(place)
    assert found
    return found


def _native_binary(place: Path) -> Path | None:
    binaries = sorted((place / "node_modules/@github").glob("copilot-*/copilot*"))
    return next((binary for binary in binaries if os.access(binary, os.X_OK)), None)


def _node_binary(place: Path) -> Path | None:
    # npm's `node` package is a stub that copies the binary of a platform package when its install script runs.
    # Scripts are off here, so the platform package is used as it is.
    binaries = sorted((place / "node_modules").glob("node*/bin/node"))
    return next((binary for binary in binaries if os.access(binary, os.X_OK)), None)


def _old_script(place: Path) -> Path | None:
    script = place / "package/index.js"
    return script if script.exists() else None


def _install_new(place: Path) -> None:
    npm_install(place, f"@github/copilot@{NEW}")


def _install_node(place: Path) -> None:
    npm_install(place, f"node@{NODE}")
    if not _node_binary(place):
        npm_install(place, f"{_node_platform_package()}@{NODE}")


def _install_old(place: Path) -> None:
    # Packed, not installed: its dependencies are bundled, so one archive is all it needs.
    _npm(place, "pack", f"@github/copilot@{OLD}")
    (archive,) = place.glob("*.tgz")
    with tarfile.open(archive) as opened:
        opened.extractall(place, filter="data")
    archive.unlink()


def _node_platform_package() -> str:
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(os.uname().machine.lower(), os.uname().machine)
    return f"node-{sys.platform}-{machine}"


def npm_install(place: Path, package: str) -> None:
    """Install a package and what it needs below a place, without running anything of theirs."""
    (place / "package.json").write_text('{"private": true}\n')
    _npm(place, "install", "--ignore-scripts", package)


def _npm(place: Path, *arguments: str) -> None:
    npm = shutil.which("npm")
    if not npm:
        raise InstallError("npm is not here: install it (Debian, Ubuntu: apt-get install npm)")
    done = subprocess.run(
        [npm, *arguments, *NPM_OPTIONS],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=INSTALL_SECONDS_MAX,
        check=False,
    )
    if done.returncode:
        raise InstallError(f"npm {' '.join(arguments)} failed ({done.returncode}):\n{done.stdout[-2000:]}")


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Let one process at a time build below a directory."""
    with (root / ".install.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Install what was asked for and print one line per program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", action="store_true", help=f"also {OLD}, and the Node {NODE} it needs")
    wanted = [NEW, OLD] if parser.parse_args().old else [NEW]
    try:
        for version in wanted:
            print(version, *command(version))
    except InstallError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
