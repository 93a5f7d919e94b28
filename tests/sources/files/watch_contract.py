"""What the contract suite of the watchers needs: one of each kind, and a receiver that waits for facts."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeAlias

from exporter.sources.files.inotify import InotifyWatcher
from exporter.sources.files.native_watch import NativeWatcher
from exporter.sources.files.watch import Changed, Lost, PollingWatcher, Report, Watcher, best_watcher

PATIENCE_SECONDS: Final = 30.0

Make: TypeAlias = Callable[[str, frozenset[str] | None], Watcher]

MAKERS: Final[dict[str, Make]] = {
    "inotify": lambda root, names: InotifyWatcher(names),
    "polling": lambda root, names: PollingWatcher(0.02, names),
    "foreign": NativeWatcher,
    "best": lambda root, names: best_watcher(root, 0.02, names),
}


class Receiver:
    """Keeps what a watcher delivers, and waits until something is true of it."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.batches = 0
        self._arrived = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def deliver(self, reports: list[Report]) -> None:
        assert asyncio.get_running_loop() is self._loop
        assert reports
        self.reports.extend(reports)
        self.batches += 1
        self._arrived.set()

    async def until(self, fact: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not fact():
                self._arrived.clear()
                await self._arrived.wait()

    async def has(self, directory: Path, name: str) -> None:
        await self.until(lambda: Changed(str(directory), name) in self.reports)

    def forget(self) -> None:
        self.reports.clear()

    def names_in(self, directory: Path) -> set[str]:
        return {
            report.name for report in self.reports if isinstance(report, Changed) and report.directory == str(directory)
        }

    @property
    def lost(self) -> bool:
        return Lost() in self.reports


@asynccontextmanager
async def watching(watcher: Watcher) -> AsyncIterator[Receiver]:
    receiver = Receiver()
    watcher.start(receiver.deliver)
    try:
        yield receiver
    finally:
        watcher.close()


def append(path: Path, content: bytes) -> None:
    """Writes as the CLI does: opened, appended with one write, closed."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)


def replace(path: Path, content: bytes) -> None:
    """Writes a new file and renames it over the old one."""
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(content)
    new.rename(path)
