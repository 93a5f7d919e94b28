"""Live messages for subscribers: each has a bounded queue, and a slow one loses the oldest messages first."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import msgspec

_QUEUE_LENGTH_MAX: Final = 256
_QUEUE_BYTES_MAX: Final = 8 << 20
_SUBSCRIBERS_MAX: Final = 256
_BEAT_SECONDS: Final = 15.0


class TooManySubscribersError(Exception):
    """No further stream is served until another one closes."""


@dataclass(slots=True, eq=False)
class Subscriber:
    """One open stream."""

    session_id: str | None
    waiting: deque[bytes] = field(default_factory=deque)
    size_bytes: int = 0
    dropped: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, message: bytes) -> None:
        """Queue a message, dropping the oldest ones when the queue is full."""
        self.waiting.append(message)
        self.size_bytes += len(message)
        while len(self.waiting) > _QUEUE_LENGTH_MAX or (self.size_bytes > _QUEUE_BYTES_MAX and len(self.waiting) > 1):
            self.size_bytes -= len(self.waiting.popleft())
            self.dropped += 1
        self.arrived.set()


class LiveSubscriptions:
    """Publishes messages to all subscribers. Only to be used on the event loop."""

    def __init__(self) -> None:
        self._subscribers: set[Subscriber] = set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._subscribers)

    def has(self, session_id: str) -> bool:
        """Tell whether anybody would get a message of this session."""
        return bool(self._of(session_id))

    def close(self) -> None:
        """End every open stream."""
        self._closed = True
        for subscriber in self._subscribers:
            subscriber.arrived.set()

    def publish_events(self, session_id: str, events: list[bytes], *, ephemeral: bool) -> None:
        """Publish events, exactly as stored or, when ephemeral, as they came."""
        if events and (subscribers := self._of(session_id)):
            head = b'{"session":%s,"ephemeral":%s,"events":[' % (
                msgspec.json.encode(session_id),
                b"true" if ephemeral else b"false",
            )
            _put(subscribers, _message(b"events", head + b",".join(events) + b"]}"))

    def publish_session(self, session_id: str, *, deleted: bool = False) -> None:
        """Publish that a session changed; the change is not in the message."""
        if subscribers := self._of(session_id):
            _put(subscribers, _message(b"session", msgspec.json.encode({"session": session_id, "deleted": deleted})))

    def publish_exporter(self, exporter_id: str) -> None:
        """Publish to subscribers of all sessions that an exporter reported on itself."""
        subscribers = [subscriber for subscriber in self._subscribers if subscriber.session_id is None]
        _put(subscribers, _message(b"exporter", msgspec.json.encode({"exporter": exporter_id})))

    @contextmanager
    def subscribe(self, session_id: str | None) -> Iterator[Subscriber]:
        """Receive the messages of one session, or with None of all, while the context is open."""
        if len(self._subscribers) >= _SUBSCRIBERS_MAX:
            raise TooManySubscribersError
        subscriber = Subscriber(session_id)
        self._subscribers.add(subscriber)
        try:
            yield subscriber
        finally:
            self._subscribers.discard(subscriber)

    async def messages(self, session_id: str | None) -> AsyncIterator[bytes]:
        """Yield server-sent events until the reader goes away or `close` is called."""
        with self.subscribe(session_id) as subscriber:
            yield b": open\n\n"
            while not self._closed:
                try:
                    async with asyncio.timeout(_BEAT_SECONDS):
                        await subscriber.arrived.wait()
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                subscriber.arrived.clear()
                if subscriber.dropped:
                    yield _message(b"dropped", msgspec.json.encode({"messages": subscriber.dropped}))
                    subscriber.dropped = 0
                while subscriber.waiting:
                    message = subscriber.waiting.popleft()
                    subscriber.size_bytes -= len(message)
                    yield message

    def _of(self, session_id: str) -> list[Subscriber]:
        return [subscriber for subscriber in self._subscribers if subscriber.session_id in (None, session_id)]


def _put(subscribers: list[Subscriber], message: bytes) -> None:
    for subscriber in subscribers:
        subscriber.put(message)


def _message(name: bytes, data: bytes) -> bytes:
    """Frame one message; whitespace between JSON tokens may hold line ends, which the framing needs for itself."""
    lines = data.replace(b"\r", b"\n").split(b"\n")
    return b"event: " + name + b"\n" + b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"
