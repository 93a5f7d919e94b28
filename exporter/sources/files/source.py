"""The file source: finds every session directory below `session-state` and follows it."""

import asyncio
import os
from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Final

from exporter.core.names import SESSION_NAME
from exporter.sources.files.session_file import EVENTS_NAME, OpenFiles, SessionFile
from exporter.sources.files.watch import Changed, Lost, Watcher

WORKSPACE_NAME: Final = "workspace.yaml"
WATCHED_NAMES: Final = frozenset((EVENTS_NAME, WORKSPACE_NAME))
RESCAN_SECONDS: Final = 30.0


@dataclass(eq=False)
class FileSource:
    """Reports, on the event loop, which session files exist and which may have changed.

    `on_change(file)` is called after `file` was checked: for every session at `start`, then whenever its file or its
    directory changed. A change that the watcher loses is found within `RESCAN_SECONDS`. With `journals` the files are
    the exporter's own journals.
    """

    root: Path
    watcher: Watcher
    files: OpenFiles
    on_change: Callable[[SessionFile], None]
    on_workspace: Callable[[SessionFile], None]
    _: KW_ONLY
    poll_seconds: float
    only: Collection[str] = ()
    journals: bool = False

    def __post_init__(self) -> None:
        self.sessions: dict[str, SessionFile] = {}
        self.watcher_lost = 0
        self._unwatched: set[str] = set()
        self._root_watched = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to watch, and report every session that exists."""
        self.watcher.start(self._deliver)
        self.scan()
        self._tasks = [
            asyncio.create_task(self._every(self.poll_seconds, self._poll)),
            asyncio.create_task(self._every(RESCAN_SECONDS, self.scan)),
        ]

    def close(self) -> None:
        """Stop watching and close every file."""
        for task in self._tasks:
            task.cancel()
        self.watcher.close()
        self.files.close_all()

    async def _every(self, seconds: float, do: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(seconds)
            do()

    def scan(self) -> None:
        """Check every session directory again."""
        root = str(self.root)
        if not self._root_watched:
            self._root_watched = self.watcher.add(root)
        try:
            names = [entry.name for entry in os.scandir(root)]
        except OSError:
            names = []
            self._root_watched = False
        for name in sorted(names, key=self._age_of_new):  # newest first, for users with a long history
            self.notice(name)
        for name in self.sessions.keys() - set(names):
            self._refresh(self.sessions[name])

    def _age_of_new(self, name: str) -> float:
        if name in self.sessions:
            return 0.0
        try:
            return -(self.root / name / EVENTS_NAME).stat().st_mtime
        except OSError:
            return 0.0

    def _poll(self) -> None:
        if not self._root_watched:
            self.scan()
        for name in list(self._unwatched):
            self.notice(name)

    def notice(self, name: str) -> None:
        """Check a name in the root now: a new session directory, one that is back, or a file that has changed."""
        if SESSION_NAME.fullmatch(name) is None or (self.only and name not in self.only):
            return
        file = self.sessions.get(name)
        if file is None or file.gone or name in self._unwatched:
            file = self._watch(name)
        if file is not None:
            self._refresh(file)

    def _watch(self, name: str) -> SessionFile | None:
        """Watch a session's directory if it exists; return its file, None if there never was one."""
        directory = self.root / name
        file = self.sessions.get(name)
        if not os.path.isdir(directory):  # noqa: PTH112 - Path.is_dir raises where access is denied
            self._unwatched.discard(name)
            return file
        if file is None:
            file = self.sessions[name] = SessionFile(name, directory, is_journal=self.journals)
        # The directory is watched before the file is checked, so that no first write is missed between the two.
        if self.watcher.add(str(directory)):
            self._unwatched.discard(name)
        else:
            self._unwatched.add(name)
        self.on_workspace(file)
        return file

    def _refresh(self, file: SessionFile, *, reported: bool = False) -> None:
        """Check a file; a reported change is reported further even if size and time are the same."""
        before = (file.generation, file.size, file.modified, file.gone, file.problem)
        was_new = file.identity is None
        file.refresh(self.files)
        if was_new or reported or before != (file.generation, file.size, file.modified, file.gone, file.problem):
            self.on_change(file)

    def _deliver(self, changes: list[Changed | Lost]) -> None:
        root = str(self.root)
        for change in changes:
            if isinstance(change, Lost):
                self.watcher_lost += 1
                self._root_watched = False
                self._unwatched.update(self.sessions)
                self.scan()
                return
            if change.directory == root:
                if change.name:
                    self.notice(change.name)
                else:
                    self._root_watched = False
                continue
            file = self.sessions.get(Path(change.directory).name)
            if file is None:
                continue
            if change.name == WORKSPACE_NAME:
                self.on_workspace(file)
            elif change.name == EVENTS_NAME:
                self._refresh(file, reported=True)
            elif not change.name:  # no longer watched, though another directory may already be in its place
                self._unwatched.add(file.session)
                self.notice(file.session)
