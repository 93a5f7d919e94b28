"""Room for what journals are still to hold: space is given back behind the slowest mark, and of what is deleted."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from exporter.pipeline.lane import Lane
from exporter.sources.files.session_file import SessionFile
from exporter.sources.files.source import FileSource
from exporter.sources.journals import Journals

if TYPE_CHECKING:
    from exporter.daemon.daemon import Daemon


class JournalCleanup:
    """The room of all journals. `has_journal` tells whether a session is followed by its journal."""

    def __init__(
        self, daemon: "Daemon", journals: Journals, files: FileSource, has_journal: Callable[[str], bool]
    ) -> None:
        self._daemon = daemon
        self._journals = journals
        self._files = files
        self._has_journal = has_journal
        self._deleted: set[str] = set()

    def deleted(self, session: str) -> None:
        """Note that a session was deleted: its journal goes once every sink has it."""
        self._deleted.add(session)

    def make(self) -> None:
        """Remove the journals of deleted sessions that every sink has, and cut the others when room is wanted."""
        for session in list(self._deleted):
            file = self._files.sessions[session] if self._has_journal(session) else None
            if file is not None and self._needed_from(file) < file.size:
                continue
            if file is not None:
                self._journals.remove(session)
            self._deleted.discard(session)
        if not self._journals.needs_cleanup:
            return
        for session, file in list(self._files.sessions.items()):
            needed_from = 0 if file.gone else self._needed_from(file)
            if needed_from and self._journals.cut(session, needed_from):
                file.begins = self._journals.begins(session)

    def _needed_from(self, file: SessionFile) -> int:
        """Return the offset before which no sink needs anything of a journal any more."""
        lanes = [run.lanes.get(file.session) for run in self._daemon.runs]
        return min((0 if lane is None else _needs_from(lane, file) for lane in lanes), default=0)


def _needs_from(lane: Lane, file: SessionFile) -> int:
    if lane.stopped:
        return file.size
    return lane.mark.position.offset if lane.mark.identity == file.identity is not None else 0
