"""Makes the image here, from Debian's packages: `python -m deploy.docker.image lock | build DIRECTORY`.

`lock` resolves the packages of the base anew. `build` fetches those of the lock, makes two bases of them (with pip, and
without), builds the image with buildah, which needs no daemon, and writes it to DIRECTORY as an OCI layout.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.packages.debian_suite import DebianSuite, unpack
from deploy.packages.tree import download_wheels
from exporter.version import VERSION

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
LOCK: Final = HERE / "base.lock"
SUITE: Final = "trixie"
PYTHON: Final = "3.13"
IMAGE: Final = "localhost/session-exporter"
TIME: Final = "1580601600"
_NAMED: Final = ("python3-minimal", "libpython3-stdlib", "libstdc++6", "ca-certificates", "tzdata", "base-files")
_FOR_BUILDING: Final = ("python3-pip-whl",)
_LEFT_OUT: Final = frozenset(
    {
        "debconf", "dpkg", "tar", "openssl", "openssl-provider-legacy", "media-types", "netbase", "readline-common",
        "libreadline8t64", "libncursesw6", "libtinfo6", "libacl1", "libmd0", "libselinux1", "libpcre2-8-0", "mawk",
        "gcc-14-base", "libdb5.3t64", "libdebconfclient0", "sed", "bash", "dash",
    }
)  # fmt: skip
"""What packages ask for to be installed or at a prompt; nothing of theirs is run here."""
_LINKS: Final = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
_UNUSED: Final = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/lintian",
    "usr/share/locale",
    "usr/share/bug",
    "usr/sbin",
)
_ACCOUNT: Final = "exporter:x:10001:10001::/var/lib/exporter:/usr/sbin/nologin"


@dataclass(frozen=True, slots=True)
class Locked:
    """A package of the base: where it is below a mirror of Debian, and its hash."""

    path: str
    sha256: str
    is_for_building: bool

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def read_lock() -> list[Locked]:
    """Return the packages of the lock."""
    rows = [line.split() for line in LOCK.read_text().splitlines() if line and not line.startswith("#")]
    return [Locked(path, sha256, role == "build") for role, path, sha256 in rows]


def write_lock() -> None:
    """Resolve the packages anew, and write the lock."""
    with tempfile.TemporaryDirectory() as directory:
        lines = []
        for path, sha256 in DebianSuite(SUITE, Path(directory)).places(*_NAMED, *_FOR_BUILDING):
            name = path.rpartition("/")[2].partition("_")[0]
            if name not in _LEFT_OUT:
                lines.append(f"{'build' if name in _FOR_BUILDING else 'base'} {path} {sha256}")
    title = f"# Debian {SUITE}: packages of the base of the image. Made by `python -m deploy.docker.image lock`."
    LOCK.write_text("\n".join([title, *sorted(lines)]) + "\n")


def make_roots(directory: Path) -> tuple[Path, Path]:
    """Fetch what the lock names; return the files of the base, and of the base for building."""
    suite, packages = DebianSuite(SUITE, directory / "suite"), dict[Locked, Path]()
    for one in read_lock():
        packages[one] = suite.fetch(one.path, directory / one.name)
        if hashlib.sha256(packages[one].read_bytes()).hexdigest() != one.sha256:
            raise OSError(f"{one.name} is not what base.lock says")
    base, building = directory / "base", directory / "building"
    unpack([path for one, path in packages.items() if not one.is_for_building], base)
    _settle(base)
    shutil.copytree(base, building, symlinks=True)
    unpack([path for one, path in packages.items() if one.is_for_building], building)
    return base, building


def _settle(root: Path) -> None:
    """Do what the scripts of the packages would do, as far as it is needed here."""
    for name, target in _LINKS.items():
        if not (root / name).is_symlink():
            if (root / name).is_dir():
                shutil.copytree(root / name, root / target, symlinks=True, dirs_exist_ok=True)
                shutil.rmtree(root / name)
            (root / name).symlink_to(target)
    for name in _UNUSED:
        shutil.rmtree(root / name, ignore_errors=True)
    authorities = sorted((root / "usr/share/ca-certificates").rglob("*.crt"))
    bundle = root / "etc/ssl/certs/ca-certificates.crt"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    bundle.write_bytes(b"".join(path.read_bytes() for path in authorities))
    (root / "etc/passwd").write_text(f"root:x:0:0:root:/root:/usr/sbin/nologin\n{_ACCOUNT}\n")
    (root / "etc/group").write_text("root:x:0:\nexporter:x:10001:\n")
    for name in ("tmp", "proc", "sys", "dev", "run"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)


def build(directory: Path) -> dict[str, object]:
    """Build the image and write it to `directory/oci`; return its digest and the size of its layers, as sent."""
    if shutil.which("buildah") is None:
        raise OSError("buildah is not here; on Debian: apt-get install buildah")
    for name in ("base", "building", "context"):  # of a build that was cut off
        shutil.rmtree(directory / name, ignore_errors=True)
    base, building = make_roots(directory)
    context = _context(directory / "context")
    store = [f"--root={directory}/store", f"--runroot={directory}/run", "--storage-driver=vfs"]
    digests = {
        name: _image_of(root, f"{IMAGE}-{name}", store) for name, root in (("base", base), ("building", building))
    }
    arguments = {
        "BASE": f"{IMAGE}-base", "BUILD": f"{IMAGE}-building", "BASE_NAME": f"debian:{SUITE}",
        "BASE_DIGEST": digests["base"], "REVISION": _revision(), "VERSION": VERSION,
    }  # fmt: skip
    given = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
    _buildah(
        *store, "build", "--isolation=chroot", "--format=docker", f"--timestamp={TIME}", "--pull-never", *given,
        "--file", str(HERE / "Dockerfile"), "--tag", f"{IMAGE}:{VERSION}", str(context),
    )  # fmt: skip
    layout = directory / "oci"
    _buildah(*store, "push", "--format=oci", f"{IMAGE}:{VERSION}", f"oci:{layout}:{VERSION}")
    return _described(layout)


def _context(context: Path) -> Path:
    """Make the directory that is built: the wheel, the wheels it needs, the list of what runs, and the Dockerfile's."""
    sources = context / "dist/image"
    sources.mkdir(parents=True)
    hatchling = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(sources)]
    subprocess.run(hatchling, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    listed = subprocess.run(
        [sys.executable, "-m", "tests.drift.sbom", "--packed"], cwd=ROOT, check=True, capture_output=True
    )
    (sources / "session-exporter.cdx.json").write_bytes(listed.stdout)
    shutil.copy(LOCK, sources)
    download_wheels(sources / "wheels", python=PYTHON)  # with what pip is told here of indexes and certificates
    for name in ("deploy/packages/requirements.lock", "deploy/docker/install.py"):
        (context / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, context / name)
    return context


def _image_of(root: Path, name: str, store: list[str]) -> str:
    container = _buildah(*store, "from", "--pull-never", "scratch").strip()
    _buildah(*store, "add", "--quiet", container, str(root), "/")
    _buildah(*store, "commit", "--quiet", f"--timestamp={TIME}", "--rm", container, name)
    return _buildah(*store, "images", "--format", "{{.Digest}}", name).strip()


def _buildah(*words: str) -> str:
    environment = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
    answer = subprocess.run(["buildah", *words], capture_output=True, text=True, check=False, env=environment)
    if answer.returncode:
        raise OSError(f"buildah ended with {answer.returncode}: {answer.stderr.strip()[-2000:]}")
    return answer.stdout


def _revision() -> str:
    answer = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return answer.stdout.strip() if re.fullmatch(r"[0-9a-f]{40}\n", answer.stdout) else ""


def _described(layout: Path) -> dict[str, object]:
    [entry] = json.loads((layout / "index.json").read_text())["manifests"]
    manifest = json.loads((layout / "blobs/sha256" / entry["digest"].partition(":")[2]).read_text())
    return {"digest": entry["digest"], "bytes": sum(one["size"] for one in manifest["layers"])}


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["lock"]:
            write_lock()
        case ["build", place]:
            print(json.dumps(build(Path(place).absolute())))  # noqa: T201
        case _:
            sys.exit(__doc__)
