"""The image as a container, by runc, as Kubernetes runs it: read-only root, no capability, an account of its own."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from exporter.version import VERSION

_OWN_NAMESPACES: Final = ("pid", "ipc", "uts", "mount")
"""The network is that of the machine: receivers of the tests are on its loopback."""


class Image:
    """An OCI layout that is unpacked once; each container of it gets a configuration of its own."""

    def __init__(self, layout: Path, directory: Path) -> None:
        self.bundle = directory / "bundle"
        self._directory = directory
        subprocess.run(
            ["umoci", "unpack", "--image", f"{layout}:{VERSION}", str(self.bundle)], check=True, capture_output=True
        )
        self.given: dict[str, Any] = json.loads((self.bundle / "config.json").read_text())

    @property
    def process(self) -> dict[str, Any]:
        """What the image says of its process."""
        process: dict[str, Any] = self.given["process"]
        return process

    def command(
        self, name: str, arguments: Sequence[str], environment: dict[str, str], mounts: dict[Path, tuple[str, str]]
    ) -> list[str]:
        """Return the command line that runs a container; `mounts` are directories here, each with place and options."""
        config = json.loads(json.dumps(self.given))
        entry = self.process["args"][:1]
        config["process"] |= {"args": [*entry, *arguments], "terminal": False, "noNewPrivileges": True}
        config["process"]["env"] += [f"{key}={value}" for key, value in environment.items()]
        config["process"]["capabilities"] = {kind: [] for kind in ("bounding", "effective", "inheritable", "permitted")}
        config["root"] = {"path": str(self.bundle / "rootfs"), "readonly": True}
        config["linux"]["namespaces"] = [{"type": kind} for kind in _OWN_NAMESPACES]
        config["linux"].pop("resources", None)
        config["mounts"] = [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=64k"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]},
            *(
                {"destination": place, "type": "bind", "source": str(path), "options": ["bind", options]}
                for path, (place, options) in mounts.items()
            ),
        ]
        own = self._directory / name
        own.mkdir()
        (own / "config.json").write_text(json.dumps(config))
        return ["runc", "--root", str(self._directory / "runc"), "run", "--no-pivot", "--bundle", str(own), name]

    def run(self, name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a container to its end, with nothing mounted."""
        return subprocess.run(
            self.command(name, arguments, environment, {}), capture_output=True, text=True, check=False, timeout=120
        )

    def kill(self, name: str, signal: str) -> None:
        """Send a signal to the first process of a container."""
        subprocess.run(
            ["runc", "--root", str(self._directory / "runc"), "kill", name, signal], check=True, capture_output=True
        )
