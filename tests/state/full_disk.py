"""A disk that is full: a small one of our own where we may mount, else a limit on the size of this process's files."""

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DISK_BYTES: Final = 2 << 20


@dataclass
class Disk:
    path: Path
    mounted: bool

    def fill(self) -> None:
        if not self.mounted:
            # Python ignores SIGXFSZ, so that writing beyond the limit is an error like that of a full disk.
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
            return
        try:
            with (self.path / "filling").open("wb", buffering=0) as file:
                while file.write(bytes(4096)):
                    pass
        except OSError:
            pass

    def free(self) -> None:
        if not self.mounted:
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        (self.path / "filling").unlink(missing_ok=True)


@contextmanager
def full_disk(place: Path) -> Iterator[Disk]:
    path = place / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(path)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    disk = Disk(path, mounted)
    try:
        yield disk
    finally:
        disk.free()
        if mounted:
            subprocess.run(["umount", "--lazy", str(path)], check=True)
