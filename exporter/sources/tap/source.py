"""The source for live events of the CLI extension: a Unix socket that taps connect to.

Only ephemeral events and the starts of tool calls are passed on, each at once; durable ones are delivered from the
session file. Events that cannot be delivered are dropped and counted.
"""

import asyncio
import sys
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from exporter.core.events.envelope import REFUSALS, Envelope, decode
from exporter.core.events.lines import LineSplitter, Oversized
from exporter.core.events.tool_calls import CALL_STARTS
from exporter.core.names import SESSION_NAME
from exporter.errors import StateError
from exporter.sources.local_socket import is_same_user, listen, socket_path
from exporter.sources.remote import Callbacks, Counts, SourceEvent, Want

SOCKET_NAME: Final = "tap.sock"
PATH_NAME: Final = "tap.path"
LINE_BYTES_MAX: Final = 8 << 20
TAPS_MAX: Final = 256
RECENT_MAX: Final = 16_384
SESSIONS_SHOWN_MAX: Final = 1000
_CHUNK_BYTES: Final = 1 << 18


class _Line(msgspec.Struct, frozen=True, gc=False):
    """A line of a tap: its session, or an event with the number of events dropped so far."""

    session: str = ""
    dropped: int = 0
    event: msgspec.Raw = msgspec.Raw()


_decode: Final = msgspec.json.Decoder(_Line).decode


@dataclass(slots=True)
class TapStatus:
    """What `status` shows: connected taps, dropped events and unreadable lines."""

    taps: int = 0
    refused_taps: int = 0
    dropped_by_taps: int = 0
    unreadable: int = 0
    durable_ignored: int = 0  # durable events, which the file delivers
    sessions: set[str] = field(default_factory=set)
    counts: Counts = field(default_factory=Counts)


class TapSource:
    """Listens for taps. Needs the state lock, so that a socket that is there is a dead exporter's."""

    def __init__(self, state_dir: Path, callbacks: Callbacks) -> None:
        self.status = TapStatus()
        self._state_dir = state_dir
        self._callbacks = callbacks
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._recent: OrderedDict[tuple[str, str], None] = OrderedDict()

    async def start(self) -> None:
        """Begin to listen. Raises `StateError` where that is not possible."""
        if sys.platform == "win32":
            raise StateError("the tap does not work on Windows yet", hint="remove the source `tap`")
        path = socket_path(self._state_dir, SOCKET_NAME)
        try:
            self._server = await asyncio.start_unix_server(self._serve, sock=listen(path))
        except OSError as error:
            raise StateError(f"cannot create a socket at {path}: {error.strerror}") from error
        if path.parent != self._state_dir:
            (self._state_dir / PATH_NAME).write_text(f"{path}\n", encoding="utf-8")

    async def close(self) -> None:
        """Stop listening and close all connections; taps stay silent until the socket is back."""
        if self._server is not None:
            self._server.close()
            socket_path(self._state_dir, SOCKET_NAME).unlink(missing_ok=True)
            (self._state_dir / PATH_NAME).unlink(missing_ok=True)
        for writer in list(self._writers):
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not is_same_user(writer.get_extra_info("socket")) or len(self._writers) >= TAPS_MAX:
            self.status.refused_taps += 1
            writer.close()
            return
        self._writers.add(writer)
        self.status.taps = len(self._writers)
        splitter, dropped = LineSplitter(0, LINE_BYTES_MAX), 0
        try:
            with suppress(ConnectionError):
                while chunk := await reader.read(_CHUNK_BYTES):
                    dropped = await self._process(splitter.feed(chunk), dropped)
        finally:
            self._writers.discard(writer)
            self.status.taps = len(self._writers)
            writer.close()

    async def _process(self, lines: list[bytes | Oversized], dropped: int) -> int:
        """Deliver the live events of one tap; return the number it has dropped so far."""
        sessions: dict[str, list[SourceEvent]] = {}
        for line in lines:
            parsed = _read(line)
            if parsed is None:
                self.status.unreadable += 1
                continue
            if not bytes(parsed.event):  # the line that names the session
                continue
            if parsed.dropped > dropped:
                self.status.dropped_by_taps += parsed.dropped - dropped
                dropped = parsed.dropped
                await self._deliver(sessions)
                self._callbacks.missed(parsed.session)
            content = bytes(parsed.event)
            envelope = decode(content)
            if not isinstance(envelope, Envelope):
                self.status.unreadable += 1
            elif not envelope.ephemeral:
                self.status.durable_ignored += 1
                if envelope.type == CALL_STARTS:  # it says what the pieces that follow are, earlier than the file does
                    sessions.setdefault(parsed.session, []).append(SourceEvent(content, False))
            elif not self._is_new(parsed.session, envelope.id):
                self.status.counts.repeats += 1
            else:
                self.status.counts.count_type(envelope.type)
                sessions.setdefault(parsed.session, []).append(SourceEvent(content, True))
        await self._deliver(sessions)
        return dropped

    async def _deliver(self, sessions: dict[str, list[SourceEvent]]) -> None:
        """Deliver the events of each session and clear them."""
        for session, events in sessions.items():
            if len(self.status.sessions) < SESSIONS_SHOWN_MAX:
                self.status.sessions.add(session)
            wanted = self._callbacks.want(session, "") is not Want.NOTHING
            if wanted and await self._callbacks.store(session, events):
                self.status.counts.ephemeral += sum(event.is_ephemeral for event in events)
            else:
                self.status.counts.dropped += sum(event.is_ephemeral for event in events)
        sessions.clear()

    def _is_new(self, session: str, id: str) -> bool:
        """Tell whether an event is no recent duplicate: CLI 1.0.102 loads a user's tap and a project's side by side."""
        if (session, id) in self._recent:
            return False
        self._recent[session, id] = None
        if len(self._recent) > RECENT_MAX:
            self._recent.popitem(last=False)
        return True


def _read(line: bytes | Oversized) -> _Line | None:
    if isinstance(line, Oversized):
        return None
    try:
        parsed = _decode(line)
    except REFUSALS:
        return None
    return parsed if SESSION_NAME.fullmatch(parsed.session) else None
