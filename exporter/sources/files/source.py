"""The file source: finds every session directory below `session-state`, of one home or of many, and follows it."""

import asyncio
import os
from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from exporter.core.names import SESSION_NAME
from exporter.core.notice import Level, NoticeName
from exporter.sources.files.session_file import EVENTS_NAME, OpenFiles, SessionFile
from exporter.sources.files.watch import Changed, Lost, Watcher

WORKSPACE_NAME: Final = "workspace.yaml"
WATCHED_NAMES: Final = frozenset((EVENTS_NAME, WORKSPACE_NAME))
RESCAN_SECONDS: Final = 30.0


HOMES_SECONDS: Final = 5.0


class Tell(Protocol):
    """Says something about the source."""

    def __call__(
        self, name: NoticeName, level: Level, message: str, session: str | None, /, **fields: object
    ) -> None: ...


def _say_nothing(*_: object, **__: object) -> None:
    return None


@dataclass(slots=True)
class _Root:
    """A directory that holds session directories; `is_told` says that it was said that it cannot be read."""

    path: Path
    is_watched: bool = False
    is_there: bool = False
    is_told: bool = False


@dataclass(eq=False)
class FileSource:
    """Reports, on the event loop, which session files exist and which may have changed.

    `on_change(file)` is called after `file` was checked: for every session at `start`, then whenever its file or its
    directory changed. A change that the watcher loses is found within `RESCAN_SECONDS`. With `journals` the files are
    the exporter's own journals. `find_roots` returns the directories that hold session directories; what it returns
    later is taken in within `HOMES_SECONDS`. A session id that a second root has too is not followed there: see
    `doubles`. `tell` is told what cannot be read, once.
    """

    find_roots: Callable[[], list[Path]]
    watcher: Watcher
    files: OpenFiles
    on_change: Callable[[SessionFile], None]
    on_workspace: Callable[[SessionFile], None]
    _: KW_ONLY
    poll_seconds: float
    only: Collection[str] = ()
    journals: bool = False
    tell: Tell = _say_nothing

    def __post_init__(self) -> None:
        self.sessions: dict[str, SessionFile] = {}
        self.watcher_lost = 0
        self._unwatched: set[str] = set()
        self.doubles: dict[str, tuple[Path, Path]] = {}
        """Sessions that are in two roots: the directory that is followed, and one that is not."""
        self._roots: dict[str, _Root] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to watch, and report every session that exists."""
        self.watcher.start(self._deliver)
        self.scan()
        if not self.journals and not any(root.is_there for root in self._roots.values()):
            text = "no directory of the CLI is there yet; it is waited for"
            self.tell(NoticeName.HOME_MISSING, Level.INFO, text, None)
        self._tasks = [
            asyncio.create_task(self._every(self.poll_seconds, self._poll)),
            asyncio.create_task(self._every(HOMES_SECONDS, self._look_for_homes)),
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
        """Check every session directory again, and look for further roots."""
        self._look_for_homes(scan=False)
        seen = {name for root in list(self._roots.values()) for name in self._scan(root)}
        for name in self.sessions.keys() - seen:
            self._refresh(self.sessions[name])

    def _look_for_homes(self, *, scan: bool = True) -> None:
        for path in self.find_roots():
            if str(path) not in self._roots:
                root = self._roots[str(path)] = _Root(path)
                if scan:
                    self.tell(
                        NoticeName.HOME_FOUND, Level.INFO, "a directory of the CLI was found", None, path=str(path)
                    )
                    self._scan(root)

    def _scan(self, root: "_Root") -> list[str]:
        """Check every session directory of a root; return their names."""
        if not root.is_watched:
            root.is_watched = self.watcher.add(str(root.path))
        try:
            names = [entry.name for entry in os.scandir(root.path)]
        except OSError as error:
            root.is_watched = root.is_there = False
            if isinstance(error, PermissionError) and not root.is_told:
                root.is_told = True
                text = "a directory of the CLI cannot be read"
                self.tell(
                    NoticeName.HOME_UNREADABLE, Level.WARNING, text, None, path=str(root.path), why=error.strerror
                )
            return []
        root.is_there, root.is_told = True, False
        for name in sorted(names, key=partial(self._age_of_new, root)):  # newest first, for users with a long history
            self._notice(name, root)
        return names

    def _age_of_new(self, root: "_Root", name: str) -> float:
        if name in self.sessions:
            return 0.0
        try:
            return -(root.path / name / EVENTS_NAME).stat().st_mtime
        except OSError:
            return 0.0

    def _poll(self) -> None:
        for root in self._roots.values():
            if not root.is_watched:
                self._scan(root)
        for name in list(self._unwatched):
            self.notice(name)

    def notice(self, name: str) -> None:
        """Check a name now: a new session directory, one that is back, or a file that has changed."""
        for root in self._roots.values():
            self._notice(name, root)

    def _notice(self, name: str, root: "_Root") -> None:
        if SESSION_NAME.fullmatch(name) is None or (self.only and name not in self.only):
            return
        file = self.sessions.get(name)
        if file is not None and self._is_elsewhere(file, root):
            return
        if file is None or file.gone or name in self._unwatched:
            file = self._watch(name, root)
        if file is not None:
            self._refresh(file)

    def _is_elsewhere(self, file: SessionFile, root: "_Root") -> bool:
        """Tell whether a session is followed in another root; what this one has of it is not delivered twice."""
        if len(self._roots) == 1 or file.is_journal is not self.journals or file.directory.parent == root.path:
            return False
        second = root.path / file.session
        if not os.path.exists(second / EVENTS_NAME):  # noqa: PTH110  Path raises for a closed directory
            return True
        if file.gone:
            self._move(file, second)
            return False
        if file.session not in self.doubles:
            self.doubles[file.session] = (file.directory, second)
            text, paths = (
                "a session is in two directories of the CLI; it is followed in the first",
                (file.directory, second),
            )
            fields = {"followed": str(paths[0]), "not_followed": str(paths[1])}
            self.tell(NoticeName.SESSION_IN_TWO_HOMES, Level.WARNING, text, file.session, **fields)
        return True

    def _move(self, file: SessionFile, directory: Path) -> None:
        """Follow a session where it is now."""
        other = SessionFile(file.session, directory, is_journal=self.journals)
        other.refresh(self.files)
        file.become(other, self.files)
        self.doubles.pop(file.session, None)
        self._unwatched.add(file.session)
        self.on_change(file)

    def _watch(self, name: str, root: "_Root") -> SessionFile | None:
        """Watch a session's directory if it exists; return its file, None if there never was one."""
        directory = root.path / name
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
        for change in changes:
            if isinstance(change, Lost):
                self.watcher_lost += 1
                for root in self._roots.values():
                    root.is_watched = False
                self._unwatched.update(self.sessions)
                self.scan()
                return
            if (of := self._roots.get(change.directory)) is not None:
                if change.name:
                    self._notice(change.name, of)
                else:
                    of.is_watched = False
                continue
            file = self.sessions.get(Path(change.directory).name)
            if file is None or str(file.directory) != change.directory:
                continue
            if change.name == WORKSPACE_NAME:
                self.on_workspace(file)
            elif change.name == EVENTS_NAME:
                self._refresh(file, reported=True)
            elif not change.name:  # no longer watched, though another directory may already be in its place
                self._unwatched.add(file.session)
                self.notice(file.session)
