"""The file source: every session directory below `session-state`, found at once and followed for good."""

import asyncio
import os
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from exporter.sources.files.session_file import EVENTS_NAME, OpenFiles, SessionFile
from exporter.sources.files.watch import Changed, Lost, Watcher

WORKSPACE_NAME: Final = "workspace.yaml"
WATCHED_NAMES: Final = frozenset((EVENTS_NAME, WORKSPACE_NAME))
# Names the CLI gives its sessions are UUIDs; a name with a dot is a lock, a backup or a temporary file.
_SESSION_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
RESCAN_SECONDS: Final = 30.0


class FileSource:
    """Reports, on the event loop, which session files exist and which may have changed.

    `on_change(file)` is called after `file` was looked at again: for every session at `start`, then whenever its
    file or its directory changed. Nothing is missed for longer than `RESCAN_SECONDS`, whatever the watcher loses.
    With `journals` the files are journals of ours.
    """

    def __init__(
        self,
        root: Path,
        watcher: Watcher,
        files: OpenFiles,
        on_change: Callable[[SessionFile], None],
        on_workspace: Callable[[SessionFile], None],
        *,
        poll_seconds: float,
        only: Iterable[str] = (),
        journals: bool = False,
    ) -> None:
        self.sessions: dict[str, SessionFile] = {}
        self.watcher_lost = 0
        self._root = root
        self._watcher = watcher
        self._files = files
        self._on_change = on_change
        self._on_workspace = on_workspace
        self._poll_seconds = poll_seconds
        self._only = frozenset(only)
        self._journals = journals
        self._unwatched: set[str] = set()
        self._root_watched = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to watch, and report every session that is there."""
        self._watcher.start(self._deliver)
        self.scan()
        self._tasks = [
            asyncio.create_task(self._every(self._poll_seconds, self._poll)),
            asyncio.create_task(self._every(RESCAN_SECONDS, self.scan)),
        ]

    def close(self) -> None:
        """Stop watching and close every file."""
        for task in self._tasks:
            task.cancel()
        self._watcher.close()
        self._files.close_all()

    async def _every(self, seconds: float, do: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(seconds)
            do()

    def notice(self, session: str) -> None:
        """Check a session now, because the writer of its file says so."""
        self._look(session)

    def scan(self) -> None:
        """Look at every session directory again."""
        root = str(self._root)
        if not self._root_watched:
            self._root_watched = self._watcher.add(root)
        try:
            names = [entry.name for entry in os.scandir(root)]
        except OSError:
            names = []
            self._root_watched = False
        for name in sorted(names, key=self._age_of_new):  # newest first, for users with a long history
            self._look(name)
        for name in self.sessions.keys() - set(names):
            self._refresh(self.sessions[name])

    def _age_of_new(self, name: str) -> float:
        if name in self.sessions:
            return 0.0
        try:
            return -(self._root / name / EVENTS_NAME).stat().st_mtime
        except OSError:
            return 0.0

    def _poll(self) -> None:
        if not self._root_watched:
            self.scan()
        for name in list(self._unwatched):
            self._look(name)

    def _look(self, name: str) -> None:
        """Take notice of a name in the root: a new session directory, or one that is back."""
        if _SESSION_NAME.fullmatch(name) is None or (self._only and name not in self._only):
            return
        file = self.sessions.get(name)
        if file is None or file.gone or name in self._unwatched:
            file = self._watch(name)
        if file is not None:
            self._refresh(file)

    def _watch(self, name: str) -> SessionFile | None:
        """Watch a session's directory if it is there; return its file, None when there is none and never was."""
        directory = self._root / name
        file = self.sessions.get(name)
        try:
            is_there = stat.S_ISDIR(directory.stat().st_mode)
        except OSError:
            is_there = False
        if not is_there:
            self._unwatched.discard(name)
            return file
        if file is None:
            file = self.sessions[name] = SessionFile(name, directory, is_journal=self._journals)
        # The directory is watched before the file is looked at, so that no first write falls between the two.
        if self._watcher.add(str(directory)):
            self._unwatched.discard(name)
        else:
            self._unwatched.add(name)
        self._on_workspace(file)
        return file

    def _refresh(self, file: SessionFile, *, reported: bool = False) -> None:
        """Check a file; a reported change is passed on even if size and time are the same."""
        before = (file.generation, file.size, file.modified, file.gone, file.problem)
        was_new = file.identity is None
        file.refresh(self._files)
        if was_new or reported or before != (file.generation, file.size, file.modified, file.gone, file.problem):
            self._on_change(file)

    def _deliver(self, changes: list[Changed | Lost]) -> None:
        root = str(self._root)
        for change in changes:
            if isinstance(change, Lost):
                self.watcher_lost += 1
                self._root_watched = False
                self._unwatched.update(self.sessions)
                self.scan()
                return
            if change.directory == root:
                if change.name:
                    self._look(change.name)
                else:
                    self._root_watched = False
                continue
            file = self.sessions.get(Path(change.directory).name)
            if file is None:
                continue
            if change.name == WORKSPACE_NAME:
                self._on_workspace(file)
            elif change.name == EVENTS_NAME:
                self._refresh(file, reported=True)
            elif not change.name:  # not watched any more, though another directory may stand in its place already
                self._unwatched.add(file.session)
                self._look(file.session)
