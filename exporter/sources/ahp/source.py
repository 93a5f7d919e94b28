"""The source for sessions of an agent host (VS Code's, or any that speaks the Agent Host Protocol); it only observes.

It is one WebSocket per host. `exporter.core.ahp` decides what messages mean. This module has the connection, the clock
and the order of effects: events are stored first, then the checkpoints that cover them.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from exporter.core.ahp.errors import explain_handshake
from exporter.core.ahp.observer import HostObserver
from exporter.core.ahp.session import Hooks
from exporter.core.ahp.subscriptions import Subscriptions, Wanted
from exporter.errors import SettingsError
from exporter.sources.ahp.address import Address
from exporter.sources.ahp.connection import HandshakeError, Socket, open_socket
from exporter.sources.remote import Callbacks, Counts, LostError, Observed, SourceEvent, Want, reconnect_pause

FRAMES_HELD_MAX: Final = 512
CHARACTERS_HELD_MAX: Final = 32 << 20
PAGE_EVENTS: Final = 1000
GATHER_SECONDS: Final = 0.015
TICK_SECONDS: Final = 1.0
AGAIN_SECONDS: Final = 1.0
SAVE_SECONDS: Final = 2.0
PAUSE_SECONDS: Final = (0.5, 60.0)
HOPELESS_SECONDS: Final = 3600.0
_WANTED: Final[dict[Want, Wanted]] = {Want.NOTHING: "nothing", Want.LIVE: "live", Want.ALL: "all"}


class Marks(Protocol):
    """Where the checkpoints of sessions are stored."""

    def load(self, session: str) -> bytes | None: ...
    def save(self, session: str, mark: bytes) -> None: ...


@dataclass(slots=True)
class AhpStatus:
    """What `status` and `doctor` show. `state` is a sentence, with the remedy where there is one."""

    host: str
    state: str = "not started"
    is_connected: bool = False
    version: str = ""
    dialect: str = ""
    connections: int = 0
    sessions: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    notice: str = ""
    counts: Counts = field(default_factory=Counts)
    invalid_frames: int = 0
    restarts: int = 0


class AhpSource:
    """Observes one host until cancelled, over as many connections as it takes.

    `named` are sessions that are observed however long they have been idle. A CLI session whose durable events another
    source delivers (`Callbacks.is_elsewhere`, by the CLI's own id) gives only ephemeral events, under that id.
    `on_telemetry` gets the method and the whole frame of every `otlp/*` notification; without it none are requested.
    """

    def __init__(
        self,
        address: Address,
        callbacks: Callbacks,
        marks: Marks,
        *,
        client: str,
        named: frozenset[str] = frozenset(),
        on_telemetry: Callable[[str, bytes], None] | None = None,
        now: Callable[[], float] = time.time,
        connect: Callable[..., Any] = open_socket,
        pause_seconds: tuple[float, float] | None = None,
    ) -> None:
        self._address = address
        self._callbacks = callbacks
        self._marks = marks
        self._now = now
        self._connect = connect
        self._pause_seconds = pause_seconds or PAUSE_SECONDS
        self._status = AhpStatus(address.shown)
        hooks = Hooks(callbacks.has_event, callbacks.mark, callbacks.is_elsewhere)
        self._subscriptions = Subscriptions(
            hooks, lambda s, changed: _WANTED[callbacks.want(s, changed)], marks.load, named
        )
        self._observer = HostObserver(client, self._subscriptions, on_telemetry)
        self._frames: deque[str | bytes] = deque()
        self._held = 0
        self._came = asyncio.Event()
        self._has_room = asyncio.Event()
        self._saved_at = 0.0
        self._untaken: deque[tuple[str, list[SourceEvent]]] = deque()

    @property
    def status(self) -> AhpStatus:
        """Return the present state; it contains no secret."""
        status, observer = self._status, self._observer
        status.version, status.notice = observer.version, observer.notice
        status.invalid_frames, status.restarts = observer.invalid_frames, observer.restarts
        status.dialect = observer.dialect.name if observer.dialect else ""
        status.sessions = [session.name for session in self._subscriptions.sessions]
        status.problems = dict(self._subscriptions.problems)
        return status

    def observed(self) -> Observed:
        """Return the present state in the form that all sources share."""
        status = self.status
        is_reading = status.is_connected and bool(self._frames or self._untaken or self._observer.has_pending_requests)
        return Observed(
            f"{status.state}; {status.notice}" if status.is_connected and status.notice else status.state,
            status.is_connected,
            status.state in ("not started", "connecting") or is_reading,
            len(status.sessions),
            status.problems,
            status.counts,
        )

    async def run(self) -> None:
        """Connect, observe, and connect again, until cancelled. Raises only what a callback raised."""
        try:
            failures = 0
            while True:
                failures = await self._try(failures)
                self._save(at_once=True)
                await asyncio.sleep(
                    HOPELESS_SECONDS if self._observer.is_hopeless else reconnect_pause(self._pause_seconds, failures)
                )
        finally:
            self._save(at_once=True)

    async def _try(self, failures: int) -> int:
        """Observe over one connection; return the number of consecutive failures."""
        self._status.state = "connecting"
        try:
            await self._observe()
        except LostError as error:
            failures = 0 if self._status.is_connected else failures + 1
            self._status.state = str(error)
        except HandshakeError as error:
            failures += 1
            self._status.state = explain_handshake(error.status)
        except SettingsError as error:
            failures += 1
            self._status.state = f"{error.message}. {error.hint}"
        except OSError as error:
            failures += 1
            self._status.state = f"the host cannot be reached: {error.strerror or 'no connection'}"
        self._status.is_connected = False
        return failures

    async def _observe(self) -> None:
        socket: Socket = await self._connect(self._address)
        self._status.connections += 1
        self._frames.clear()
        self._held = 0
        self._observer.connected(self._now())
        for session in self._subscriptions.sessions:
            self._callbacks.missed(session.name)
        reading = asyncio.create_task(self._read(socket))
        try:
            while True:
                await self._send(socket)
                await self._store()
                if self._observer.failure:
                    raise LostError(self._observer.failure)
                if self._observer.is_ready:
                    self._status.is_connected, self._status.state = True, "following"
                if not self._frames:
                    if reading.done():
                        await reading  # raises why it ended
                    await self._wait(reading)
                if self._frames:  # process frames that arrive close together in one batch
                    await asyncio.sleep(GATHER_SECONDS)
                self._process_frames()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await socket.close()

    async def _wait(self, reading: asyncio.Task[None]) -> None:
        self._came.clear()
        waiting = asyncio.ensure_future(self._came.wait())
        try:
            await asyncio.wait((waiting, reading), timeout=TICK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        self._observer.tick(self._now())

    def _process_frames(self) -> None:
        now = self._now()
        for _ in range(min(len(self._frames), FRAMES_HELD_MAX)):
            frame = self._frames.popleft()
            self._held -= len(frame)
            self._observer.receive(frame, now)
            if self._observer.failure:
                break
        self._has_room.set()

    async def _read(self, socket: Socket) -> None:
        """Read ahead; stop reading only when many frames are held because the journal is slow."""
        while True:
            frame = await socket.receive()
            self._frames.append(frame)
            self._held += len(frame)
            self._came.set()
            while len(self._frames) >= FRAMES_HELD_MAX or self._held > CHARACTERS_HELD_MAX:
                self._has_room.clear()
                await self._has_room.wait()

    async def _send(self, socket: Socket) -> None:
        outgoing, self._observer.outgoing = self._observer.outgoing, []
        for frame in outgoing:
            await socket.send(frame)

    async def _store(self) -> None:
        """Store all new events; events that were not stored are offered again first."""
        for session, lines in self._observer.take(self._now()):
            events = [SourceEvent(line, is_ephemeral) for line, is_ephemeral in lines]
            pages = [events[start : start + PAGE_EVENTS] for start in range(0, len(events), PAGE_EVENTS)]
            self._untaken.extend((session, page) for page in pages)
        while self._untaken:
            await self._offer(*self._untaken[0])
            self._untaken.popleft()
        self._save()
        while self._subscriptions.gone:
            self._callbacks.deleted(self._subscriptions.gone.pop(0))

    async def _offer(self, session: str, page: list[SourceEvent]) -> None:
        before = self._status.state
        while not await self._callbacks.store(session, page):
            self._status.state = "full: the journal has no space"
            await asyncio.sleep(AGAIN_SECONDS)
        self._status.state = before
        ephemeral = sum(event.is_ephemeral for event in page)
        self._status.counts.ephemeral += ephemeral
        self._status.counts.durable += len(page) - ephemeral

    def _save(self, *, at_once: bool = False) -> None:
        """Store the checkpoints now and then; the journal makes up for those not stored."""
        now = self._now()
        if self._untaken:
            return
        if not at_once and 0 <= now - self._saved_at < SAVE_SECONDS:
            return
        self._saved_at = now
        for session, mark in self._subscriptions.save():
            with contextlib.suppress(OSError):
                self._marks.save(session, mark)
