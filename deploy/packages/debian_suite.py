"""Packages of a suite of Debian, with what they need, from the mirror that this machine uses. Nothing is installed.

apt checks the signatures of the suite, and the hashes of the packages.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import Final

_KEYRING: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"


class DebianSuite:
    """A suite, such as `trixie` or `sid`, whose lists and packages are kept in `directory`. Raises `OSError`."""

    def __init__(self, name: str, directory: Path) -> None:
        self._directory = directory.absolute()
        for part in ("lists/partial", "cache/archives/partial", "preferences"):
            (self._directory / part).mkdir(parents=True, exist_ok=True)
        (self._directory / "status").touch()
        main, security = _mirrors()
        self._mirrors = [main] if name == "sid" else [main, security]
        lines = [f"deb [signed-by={_KEYRING}] {main} {name} main"]
        if name != "sid":
            lines += [f"deb [signed-by={_KEYRING}] {security} {name}-security main"]
        (self._directory / "sources.list").write_text("\n".join(lines) + "\n")

    def packages(self, *names: str) -> list[Path]:
        """Fetch these packages and what they need; return the files."""
        archives = self._directory / "cache/archives"
        for path in archives.glob("*.deb"):
            path.unlink()
        self._apt("update")
        self._apt("install", "--download-only", "--yes", "--no-install-recommends", *names)
        return sorted(archives.glob("*.deb"))

    def places(self, *names: str) -> list[tuple[str, str]]:
        """Return of each of these packages, and of what they need, its path below a mirror and its SHA-256."""
        self._apt("update")
        printed = self._apt("install", "--print-uris", "--yes", "--no-install-recommends", *names)
        found = re.findall(r"(?m)^'([^']+)' \S+ \d+ SHA256:([0-9a-f]{64})$", printed)
        return [(f"pool/{address.partition('/pool/')[2]}", sha256) for address, sha256 in found]

    def fetch(self, path: str, target: Path) -> Path:
        """Fetch a package from its path below a mirror; the caller looks at its hash. Raises `OSError`."""
        for mirror in self._mirrors:
            options = ["--silent", "--show-error", "--fail", "--location", "--retry", "3", "--output", str(target)]
            if not subprocess.run(["curl", *options, f"{mirror}/{path}"], capture_output=True, check=False).returncode:
                return target
        raise OSError(f"no mirror has {path}: make the lock anew")

    def _apt(self, *words: str) -> str:
        own = self._directory
        options = {
            "Dir::Etc::sourcelist": own / "sources.list", "Dir::Etc::sourceparts": "-",
            "Dir::Etc::preferencesparts": own / "preferences", "Dir::State": own, "Dir::State::lists": own / "lists",
            "Dir::State::status": own / "status", "Dir::Cache": own / "cache", "Debug::NoLocking": "1",
            "APT::Sandbox::User": "root", "Acquire::Languages": "none", "APT::Get::List-Cleanup": "0",
            "Acquire::ForceHash": "SHA256",
        }  # fmt: skip
        given = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        answer = subprocess.run(["apt-get", "-qq", *given, *words], capture_output=True, text=True, check=False)
        if answer.returncode:
            raise OSError(f"apt-get {words[0]} ended with {answer.returncode}: {answer.stderr.strip()}")
        return answer.stdout


def _mirrors() -> tuple[str, str]:
    """Return the mirror of Debian that this machine uses, and the one of its security updates."""
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE) $(ORIGIN)", "Created-By: Packages"],
        capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    sites = [line.split()[0].rstrip("/") for line in listed.stdout.splitlines() if line.endswith(" Debian")]
    main, security = ([one for one in sites if ("security" in one) is wanted] for wanted in (False, True))
    if not main:
        raise OSError("this machine names no mirror of Debian; is it Debian, and was `apt-get update` called?")
    return main[0], security[0] if security else f"{main[0]}-security"


def unpack(packages: list[Path], root: Path) -> None:
    """Write the files of packages below a directory; nothing of theirs is run."""
    root.mkdir(parents=True, exist_ok=True)
    for path in packages:
        subprocess.run(["dpkg-deb", "--extract", path, root], check=True)
