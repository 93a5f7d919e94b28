"""The source for sessions of an agent host (VS Code's, or any that speaks the Agent Host Protocol); it only observes.

It is one WebSocket per host. `exporter.core.ahp` decides what messages mean. This module has the connection, the clock
and the order of effects: events are stored first, then the checkpoints that cover them.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from exporter.core.ahp.observer import HostObserver
from exporter.core.ahp.session import Hooks
from exporter.core.ahp.subscriptions import Subscriptions
from exporter.sources.ahp.connection import Address, open_socket
from exporter.sources.ahp.marks import AhpMarks
from exporter.sources.remote import Callbacks, LostError, Observed, ServerSource, SourceEvent

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

FRAMES_HELD_MAX: Final = 512
CHARACTERS_HELD_MAX: Final = 32 << 20
PAGE_EVENTS: Final = 1000
GATHER_SECONDS: Final = 0.015
TICK_SECONDS: Final = 1.0
AGAIN_SECONDS: Final = 1.0
SAVE_SECONDS: Final = 2.0
HOPELESS_SECONDS: Final = 3600.0


class AhpSource(ServerSource):
    """Observes one host until cancelled, over as many connections as it takes. `host` is the state of the protocol.

    `named` are sessions that are observed however long they have been idle. A CLI session whose durable events another
    source delivers (`Callbacks.is_elsewhere`, by the CLI's own id) gives only ephemeral events, under that id.
    `on_telemetry` gets the method and the whole frame of every `otlp/*` notification; without it none are requested.
    """

    def __init__(
        self,
        address: Address,
        callbacks: Callbacks,
        marks: AhpMarks,
        *,
        named: frozenset[str] = frozenset(),
        on_telemetry: Callable[[str, bytes], None] | None = None,
        connect: Callable[..., Any] = open_socket,
        pause_seconds: tuple[float, float] | None = None,
    ) -> None:
        super().__init__("host", callbacks, pause_seconds)
        self._address = address
        self._marks = marks
        self._connect = connect
        hooks = Hooks(callbacks.has_event, callbacks.mark, callbacks.is_elsewhere)
        self._subscriptions = Subscriptions(
            hooks, lambda session, changed: callbacks.want(session, changed).value, marks.load, named
        )
        self.host = HostObserver(marks.client(), self._subscriptions, on_telemetry)
        self._frames: deque[str | bytes] = deque()
        self._held = 0
        self._came = asyncio.Event()
        self._has_room = asyncio.Event()
        self._saved_at = 0.0
        self._untaken: deque[tuple[str, list[SourceEvent]]] = deque()

    def observed(self) -> Observed:
        """Return the present state in the form that all sources share."""
        is_reading = bool(self._frames or self._untaken or self.host.has_pending_requests)
        sessions, problems = self._subscriptions.sessions, dict(self._subscriptions.problems)
        return self._report(len(sessions), problems, is_reading=is_reading, notice=self.host.notice)

    def _pause(self, failures: int) -> float:
        return HOPELESS_SECONDS if self.host.is_hopeless else super()._pause(failures)

    async def _observe(self) -> None:
        try:
            async with self._connect(self._address) as connection:
                await self._follow(connection)
        finally:
            self._save(at_once=True)

    async def _follow(self, connection: "ClientConnection") -> None:
        self.connections += 1
        self._frames.clear()
        self._held = 0
        self.host.connected(time.time())
        for session in self._subscriptions.sessions:
            self._callbacks.missed(session.name)
        reading = asyncio.create_task(self._read(connection))
        reading.add_done_callback(lambda _: self._came.set())
        try:
            while True:
                await self._send(connection)
                await self._store()
                if self.host.failure:
                    raise LostError(self.host.failure)
                if self.host.is_ready:
                    self.is_connected, self.state = True, "following"
                if not self._frames:
                    if reading.done():
                        await reading  # raises why it ended
                    await self._wait()
                if self._frames:  # process frames that arrive close together in one batch
                    await asyncio.sleep(GATHER_SECONDS)
                self._process_frames()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _wait(self) -> None:
        """Wait until a frame has come, the connection has ended, or a second has passed."""
        self._came.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TICK_SECONDS):
                await self._came.wait()
        self.host.tick(time.time())

    def _process_frames(self) -> None:
        now = time.time()
        for _ in range(min(len(self._frames), FRAMES_HELD_MAX)):
            frame = self._frames.popleft()
            self._held -= len(frame)
            self.host.receive(frame, now)
            if self.host.failure:
                break
        self._has_room.set()

    async def _read(self, connection: "ClientConnection") -> None:
        """Read ahead; stop reading only when many frames are held because the journal is slow."""
        while True:
            frame = await connection.recv()
            self._frames.append(frame)
            self._held += len(frame)
            self._came.set()
            while len(self._frames) >= FRAMES_HELD_MAX or self._held > CHARACTERS_HELD_MAX:
                self._has_room.clear()
                await self._has_room.wait()

    async def _send(self, connection: "ClientConnection") -> None:
        outgoing, self.host.outgoing = self.host.outgoing, []
        for frame in outgoing:
            await connection.send(frame)

    async def _store(self) -> None:
        """Store all new events; events that were not stored are offered again first."""
        for session, lines in self._subscriptions.take(time.time()):
            events = [SourceEvent(line, is_ephemeral) for line, is_ephemeral in lines]
            pages = [events[start : start + PAGE_EVENTS] for start in range(0, len(events), PAGE_EVENTS)]
            self._untaken.extend((session, page) for page in pages)
        while self._untaken:
            await self._offer(*self._untaken[0])
            self._untaken.popleft()
        self._save(at_once=self._subscriptions.is_urgent)
        while self._subscriptions.gone:
            self._callbacks.deleted(self._subscriptions.gone.pop(0))

    async def _offer(self, session: str, page: list[SourceEvent]) -> None:
        before = self.state
        while not await self._callbacks.store(session, page):
            self.state = "full: the journal has no space"
            await asyncio.sleep(AGAIN_SECONDS)
        self.state = before
        self.counts.count_stored(page)

    def _save(self, *, at_once: bool = False) -> None:
        """Store the checkpoints now and then, and when a turn has ended; the journal makes up for those not stored."""
        now = time.time()
        if self._untaken or (not at_once and 0 <= now - self._saved_at < SAVE_SECONDS):
            return
        self._saved_at = now
        for session, mark in self._subscriptions.save():
            with contextlib.suppress(OSError):
                self._marks.save(session, mark)
