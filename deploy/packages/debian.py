"""The Debian package, made with dpkg-deb: `python -m deploy.packages.debian WHEEL DIRECTORY [PYTHON]`.

It holds all that the program needs, as Debian has not all of it, for one minor version of Debian's Python (3.11 is that
of Debian 12, 3.13 that of Debian 13). The units are those of `exporter service install`, without what only it knows.
"""

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from deploy.packages.tree import TIME, make_tree
from exporter.service import systemd
from exporter.service.plan import Installation
from exporter.version import VERSION

HERE: Final = Path(__file__).parent / "debian_files"
ROOT: Final = Path(__file__).parents[2]
SETTINGS: Final = Path("/etc/session-exporter/exporter.toml")
STATE: Final = Path("/var/lib/session-exporter")
CACHE: Final = Path("/var/cache/session-exporter")
_LIBRARY: Final = "usr/lib/session-exporter"
_MAINTAINER: Final = "session-exporter <maintainers@session-exporter.invalid>"
_STOP_SECONDS: Final = 60.0
_HOME: Final = Path("/HOME-OF-THE-USER")
_OF_MANY_HOMES: Final = """\
# Reads the homes of other users, and nothing else that its own account could not.
DynamicUser=yes
AmbientCapabilities=CAP_DAC_READ_SEARCH
CapabilityBoundingSet=CAP_DAC_READ_SEARCH
StateDirectory=session-exporter
CacheDirectory=session-exporter
Environment=XDG_CACHE_HOME=/var/cache
"""
_LAUNCHER: Final = """\
#!/usr/bin/python3 -I
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib/session-exporter"))
from exporter.__main__ import main

sys.exit(main())
"""


def units() -> dict[str, str]:
    """Return the unit of the system, for every home of a machine, and that of each user, by their paths."""
    system = Installation(
        ("/usr/bin/exporter", "run", "--config", str(SETTINGS), "--state-dir", str(STATE)), VERSION, Path("/"),
        Path("/etc"), reads=(Path("/home"),), writes=(), stop_seconds=_STOP_SECONDS, user="session-exporter",
    )  # fmt: skip
    own = Installation(
        ("/usr/bin/exporter", "run"), VERSION, _HOME, _HOME / ".config", reads=(_HOME / ".copilot",),
        writes=(_HOME / ".local/state/exporter", _HOME / ".cache/exporter"), stop_seconds=_STOP_SECONDS,
    )  # fmt: skip
    return {
        "usr/lib/systemd/system/session-exporter.service": _of_package(_of_many_homes(_text(system))),
        "usr/lib/systemd/user/session-exporter.service": _of_package(_text(own).replace(str(_HOME), "%h")),
    }


def _text(installation: Installation) -> str:
    [file] = systemd.files(installation)
    return file.content


def _of_many_homes(unit: str) -> str:
    left_out = (
        "User=",
        "CapabilityBoundingSet=",
        "AmbientCapabilities=",
        "PrivateUsers=",
        "ProtectProc=",
        "ReadWritePaths=",
    )
    lines = [line for line in unit.splitlines() if not line.startswith(left_out)]
    at = lines.index("Type=notify")
    condition = [f"ConditionPathExists={SETTINGS}", ""]
    start = next(n for n, line in enumerate(lines) if line == "[Service]")
    lines[at:at] = _OF_MANY_HOMES.splitlines()
    lines[start - 1 : start] = condition
    return "\n".join(lines) + "\n"


def _of_package(unit: str) -> str:
    """Leave out the lines that say who wrote it: `exporter service` keeps away from what is not its own."""
    return unit.partition("\n[Unit]\n")[1].lstrip() + unit.partition("\n[Unit]\n")[2]


def make_package(wheel: Path, directory: Path, *, python: str, tree: Path | None = None) -> Path:
    """Write the package into a directory and return it; `tree` is what `make_tree` made for this Python, if it did."""
    with tempfile.TemporaryDirectory() as made:
        root = Path(made, "root")
        _lay_out(root, tree or make_tree(wheel, Path(made, "tree"), python=python))
        _control(root, python)
        for path in (root, *root.rglob("*")):
            if path.is_dir():
                path.chmod(0o755)
        file = directory / f"session-exporter_{VERSION}_py{python.replace('.', '')}_amd64.deb"
        command = ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(root), str(file)]
        subprocess.run(
            command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": str(TIME)}, stdout=subprocess.DEVNULL
        )
    return file


def _lay_out(root: Path, tree: Path) -> None:
    shutil.copytree(tree, root / _LIBRARY)
    share, documents = root / "usr/share", root / "usr/share/doc/session-exporter"
    shutil.copytree(Path(__file__).parent / "share", share, dirs_exist_ok=True)
    (share / "zsh/site-functions").rename(share / "zsh/vendor-completions")
    manual = share / "man/man1/exporter.1"
    _packed(manual.with_suffix(".1.gz"), manual.read_bytes())
    manual.unlink()
    (documents / "examples").mkdir(parents=True)
    shutil.copy(ROOT / "config/exporter.example.toml", documents / "examples/exporter.toml")
    shutil.copy(HERE / "copyright", documents / "copyright")
    shutil.copytree(HERE / "overrides", share / "lintian/overrides")
    change = (
        f"session-exporter ({VERSION}) unstable; urgency=medium\n\n  * See the changelog of the project.\n\n"
        f" -- {_MAINTAINER}  Sun, 02 Feb 2020 00:00:00 +0000\n"
    )
    _packed(documents / "changelog.gz", change.encode())
    launcher = root / "usr/bin/exporter"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(_LAUNCHER)
    launcher.chmod(0o755)
    for name, text in units().items():
        path = root / name
        path.parent.mkdir(parents=True)
        path.write_text(text)


def _packed(path: Path, content: bytes) -> None:
    path.write_bytes(gzip.compress(content, 9, mtime=0))


def _control(root: Path, python: str) -> None:
    control = root / "DEBIAN"
    control.mkdir()
    major, minor = python.split(".")
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
    fields = (
        (HERE / "control")
        .read_text()
        .format(version=VERSION, maintainer=_MAINTAINER, size=size, python=python, next=f"{major}.{int(minor) + 1}")
    )
    (control / "control").write_text(fields)
    for name in ("postinst", "prerm", "postrm"):
        shutil.copy(HERE / name, control / name)
        (control / name).chmod(0o755)
    files = sorted(path for path in (root / "usr").rglob("*") if path.is_file())
    sums = [f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in files]  # noqa: S324
    (control / "md5sums").write_text("".join(sums))


def main(wheel: str, directory: str, python: str = "3.11") -> None:
    """Make the package of a wheel."""
    print(make_package(Path(wheel), Path(directory), python=python))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
