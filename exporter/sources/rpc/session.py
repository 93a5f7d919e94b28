"""One session of a CLI server, read without attaching to it: recorded events first, then live ones.

What the server does, as measured with 1.0.102, and what follows from it:

- A bare event id is a cursor, but reading from one gives every ephemeral event that the server still has. So what is
  missing is read without ephemeral events, and live reading goes on from the server's own tail.
- The server repeats an agent's `system.message` in every turn; the CLI's file holds it once, and once more after its
  history was rewritten. So does this source; in doubt it stores a duplicate.
- `session.usage_record` is in the file only. It comes with what is read from the file, which is what follows the last
  known event, so that the order is always the file's.
- A compaction removes every `tool.execution_start` before it, and the ephemeral events, from what the server tells. So
  the file is read up to a compaction before anything that is told with it.
- A rewind removes the end of the history: every cursor in it expires, and `session.snapshot_rewind` is ephemeral and
  names no removed event. So the history is read again, and what is stored and not in it any more was rewound.
"""

import asyncio
import hashlib
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from itertools import takewhile
from typing import Final

import msgspec

from exporter.core.events.envelope import REFUSALS, Envelope, Unreadable, decode
from exporter.core.events.tool_calls import CALL_STARTS
from exporter.sources.remote import Callbacks, Counts, SourceEvent
from exporter.sources.rpc.connection import METHOD_NOT_FOUND, AnswerTooLongError, CallError, RpcConnection
from exporter.sources.rpc.messages import BadMessageError, EventPageAnswer, decode_or, line_of, read_page

PAGE_EVENTS: Final = 1000
CALL_SECONDS: Final = 60.0


def is_untold(type: str) -> bool:
    """Tell whether events of a type are in the file and not among what the server tells of a session it has loaded."""
    return type == "session.usage_record" or type.startswith("model.")


class ExpiredError(Exception):
    """The history was rewritten, or a snapshot of the session's file dropped, while it was being read."""


class PageReader:
    """The calls about one session. They raise what `RpcConnection.call` raises, and `BadMessageError`."""

    def __init__(self, session: str, connection: RpcConnection) -> None:
        self._session = session
        self._connection = connection
        self._max = PAGE_EVENTS

    async def events(
        self, cursor: str | None, *, wait_ms: int = 0, durable_only: bool = False, types: Sequence[str] = ()
    ) -> EventPageAnswer:
        """Return what comes after a cursor, or an event's id; `wait_ms` waits for something to come."""
        options: dict[str, object] = {} if cursor is None else {"cursor": cursor}
        if types:
            options["types"] = types
        options.update(waitMs=wait_ms, includeEphemeral=not durable_only, agentScope="all")
        return await self._paged("session.eventLog.read", **options)

    async def active(self, types: Sequence[str] = (), cursor: str | None = None) -> AsyncIterator[bytes]:
        """Yield the durable events after a cursor as the server has them loaded; raises `ExpiredError`."""
        while True:
            page = await self.events(cursor, durable_only=True, types=types)
            if page.expired:
                raise ExpiredError
            for event in page.events:
                yield line_of(event)
            if page.cursor == cursor or not page.hasMore:
                return
            cursor = page.cursor

    async def persisted(self) -> AsyncIterator[bytes]:
        """Yield the lines of the session's file as the server read them at once, loaded or not.

        Raises `ExpiredError` when the server dropped what it had read, and `CallError` when there is no file yet.
        """
        cursor: dict[str, str] = {}
        while True:
            page = await self._paged("sessions.readPersistedEvents", **cursor)
            if page.expired:
                raise ExpiredError
            for event in page.events:
                yield line_of(event)
            if not page.hasMore:
                return
            cursor = {"cursor": page.cursor}

    async def tail(self) -> str:
        """Return the cursor after everything that has happened. Refused when the session is not loaded."""
        result = await self._call("session.eventLog.tail")
        return decode_or(EventPageAnswer(), result, EventPageAnswer).cursor

    async def attach(self) -> None:
        """Have the session's events pushed; leaves no trace in it and accepts no requests."""
        # Refused when the session is not loaded, and then nothing is resumed: resuming would activate it.
        await self.tail()
        await self._call("session.resume", disableResume=True, requestPermission=False, streaming=True)

    async def _paged(self, method: str, **params: object) -> EventPageAnswer:
        """Read a page, of fewer events when it would be longer than a message may be."""
        while True:
            try:
                return read_page(await self._call(method, max=self._max, **params))
            except AnswerTooLongError:
                if self._max == 1:
                    raise
                self._max //= 2

    async def _call(self, method: str, **params: object) -> msgspec.Raw:
        return await self._connection.call(method, CALL_SECONDS, sessionId=self._session, **params)


WAIT_MS: Final = 30_000
AGAIN_SECONDS: Final = 1.0
GATHER_SECONDS: Final = 0.02
QUEUE_EVENTS_MAX: Final = 10_000
QUEUE_BYTES_MAX: Final = 16 << 20
EXPIRED_MAX: Final = 5
AGENTS_MAX: Final = 1024
FILE_READERS_MAX: Final = 4

_REWIND: Final = "session.snapshot_rewind"
_COMPACTION: Final = "session.compaction_complete"
_REWRITES: Final = frozenset((_REWIND, "session.truncation", _COMPACTION))


class State(Enum):
    """The state of a session."""

    CATCHING_UP = "catching up"
    LIVE = "live"
    FULL = "full: the journal has no space"
    COLD = "not loaded in the server"
    TOO_LONG = "an event exceeds the size limit"
    UNREADABLE = "the server's answer cannot be read"
    TOO_OLD = "this CLI version cannot be observed: update it, or follow its files"


@dataclass(frozen=True, slots=True)
class FollowerContext:
    """What the followers of one server share. `push` has events pushed instead of asking for them."""

    callbacks: Callbacks
    counts: Counts
    push: bool
    file_readers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(FILE_READERS_MAX))


class Follower:
    """Follows one session over a connection until it is not loaded any more; `run` may be called again then."""

    def __init__(self, session: str, connection: RpcConnection, shared: FollowerContext, *, live_only: bool) -> None:
        self.session = session
        self.state = State.CATCHING_UP
        self.task: asyncio.Task[None] | None = None
        self._reader = PageReader(session, connection)
        self._callbacks, self._counts = shared.callbacks, shared.counts
        self._push, self._file_readers = shared.push, shared.file_readers
        self._live_only = live_only
        self._cursor: str | None = None
        self._prompts: OrderedDict[str | None, bytes] = OrderedDict()  # of each agent, the last system message
        self._pushed: deque[msgspec.Raw] = deque()
        self._pushed_bytes = 0
        self._overflowed = False
        self._rewound = False
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Follow. Raises `LostError` when the connection is lost."""
        self.state = State.CATCHING_UP
        try:
            await self._follow()
        except CallError as error:
            if error.code == METHOD_NOT_FOUND:  # 1.0.48 is such a one
                self.state = State.TOO_OLD
                return
            # The session is not loaded, or no longer; the rest of its file is still pending.
            if not self._live_only:
                await self._read_cold_file()
            self.state = State.COLD
        except AnswerTooLongError:
            self.state = State.TOO_LONG
        except BadMessageError:
            self.state = State.UNREADABLE

    def push(self, event: msgspec.Raw) -> None:
        """Queue an event that the server pushed; if the queue is full, all of them are read again."""
        if len(self._pushed) >= QUEUE_EVENTS_MAX or self._pushed_bytes > QUEUE_BYTES_MAX:
            self._counts.dropped += len(self._pushed) + 1
            self._pushed.clear()
            self._pushed_bytes = 0
            self._overflowed = True
        else:
            self._pushed.append(event)
            self._pushed_bytes += len(memoryview(event))
        self._wake.set()

    async def _follow(self) -> None:
        if self._push:
            await self._reader.attach()
        await self._catch_up(self._callbacks.mark(self.session))
        if self._push:
            await self._follow_pushed()
        loop = asyncio.get_running_loop()
        while True:
            requested_at = loop.time()
            page = await self._page_after(self._cursor, wait_ms=WAIT_MS)
            if page.expired:
                self._counts.expired += 1
                await self._catch_up(None, expired=True)
                # A server may let every cursor expire; it is not asked more often than one that ignores waitMs.
                await asyncio.sleep(max(0.0, requested_at + AGAIN_SECONDS - loop.time()))
                continue
            await self._deliver(page.events)
            self._cursor = page.cursor
            if self._rewound:  # with it every cursor has expired
                self._counts.expired += 1
                await self._catch_up(None, expired=True)
            if not page.events and loop.time() - requested_at < AGAIN_SECONDS:
                await asyncio.sleep(AGAIN_SECONDS)  # the server ignores waitMs
            elif not page.hasMore:  # deliver at once; gather what follows closely
                await asyncio.sleep(max(0.0, requested_at + GATHER_SECONDS - loop.time()))

    async def _follow_pushed(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._overflowed:
                self._overflowed = False
                await self._catch_up(self._callbacks.mark(self.session))
            events = list(self._pushed)
            self._pushed.clear()
            self._pushed_bytes = 0
            for start in range(0, len(events), PAGE_EVENTS):
                if await self._deliver(events[start : start + PAGE_EVENTS]):
                    raise CallError(0)  # the session has shut down
            if self._rewound:  # with it every cursor has expired
                self._counts.expired += 1
                await self._catch_up(None, expired=True)

    async def _catch_up(self, cursor: str | None, *, expired: bool = False) -> None:
        """Store the durable events after a cursor, then continue at the server's tail."""
        self.state = State.CATCHING_UP
        self._callbacks.missed(self.session)
        self._rewound = False
        for _ in range(EXPIRED_MAX):
            with suppress(ExpiredError):
                if (expired or cursor is None) and not self._live_only:
                    # History was rewritten, is another after a restart, or is new here, with system messages that are
                    # no repetition. Its file first, then what is not in it yet; each from behind the last event that
                    # was taken, so that the order stays that of the history.
                    await self._read_file()
                    cursor = await self._take_out_rewound()
                if await self._read_to_tail(cursor, is_rewritten=expired):
                    self.state = State.LIVE
                    return
            expired = True
            self._counts.expired += 1
        raise BadMessageError("every cursor has expired")

    async def _read_to_tail(self, cursor: str | None, *, is_rewritten: bool) -> bool:
        """Store the events after a cursor; return False if the server does not know the cursor."""
        if is_rewritten:
            self._prompts.clear()
        elif not self._live_only:
            await self._learn_prompts(cursor)
        while True:
            tail = await self._reader.tail()
            # Events between the last page and the tail would be lost if the tail were used alone.
            if self._live_only or (cursor or "").partition("|")[0] == tail.partition("|")[0]:
                self._cursor = tail
                return True
            page = await self._page_after(cursor, durable_only=True)
            if page.expired:
                return False
            await self._deliver(page.events, was_missed=True)
            if page.cursor == cursor and not page.events:
                self._cursor = cursor  # a server that never reaches its own tail
                return True
            cursor = page.cursor

    async def _page_after(self, cursor: str | None, *, wait_ms: int = 0, durable_only: bool = False) -> EventPageAnswer:
        """Read a page; if a compaction took events out of it, store the file up to that, and read on from there."""
        page = await self._reader.events(cursor, wait_ms=wait_ms, durable_only=durable_only)
        if self._live_only or page.expired:
            return page
        try:
            compaction = await self._last_compaction(page)
        except ExpiredError:
            return EventPageAnswer(cursorStatus="expired")
        if compaction is None or not await self._read_file(holding=compaction):
            return page
        return await self._page_after(compaction, durable_only=durable_only)

    async def _last_compaction(self, page: EventPageAnswer) -> str | None:
        """Return the last compaction that is not stored, also one behind the page: the page may lack events, too."""
        last = None
        for event in page.events:
            last = self._unknown_compaction(line_of(event)) or last
        if page.hasMore:
            async for line in self._reader.active([_COMPACTION], page.cursor):
                last = self._unknown_compaction(line) or last
        return last

    def _unknown_compaction(self, line: bytes) -> str | None:
        envelope = decode(line) if _COMPACTION.encode() in line else None
        if not isinstance(envelope, Envelope) or envelope.type != _COMPACTION or envelope.ephemeral:
            return None
        return None if self._callbacks.has_event(self.session, envelope.id) else envelope.id

    async def _learn_prompts(self, cursor: str | None) -> None:
        """Remember the system messages that were stored before the connection was made."""
        if cursor is not None:
            async for envelope in self._known(self._reader.active(["system.message", *_REWRITES])):
                self._is_repeated_prompt(envelope)

    async def _known(self, lines: AsyncIterator[bytes]) -> AsyncIterator[Envelope]:
        """Yield the events that are stored already."""
        async for line in lines:
            envelope = decode(line)
            if isinstance(envelope, Envelope) and self._callbacks.has_event(self.session, envelope.id):
                yield envelope

    async def _take_out_rewound(self) -> str | None:
        """Tell what the history holds, so that what else is stored is taken out; return the last that is kept."""
        types = {id: type async for id, type in _events(self._reader.active())}
        loaded, compactions = list(types), [id for id, type in types.items() if type == _COMPACTION]
        in_file = await self._types_in_file(holding=compactions[-1] if compactions else None)
        if self._callbacks.mark(self.session) is None:
            return None
        if in_file is not None and loaded:  # a server that has loaded nothing yet says nothing of what is gone
            # The file may not be cut yet, so it counts up to the last event that is loaded, with those behind it of
            # types that are never loaded.
            held, in_order = set(loaded), list(in_file)
            end = max((place for place, id in enumerate(in_order, 1) if id in held), default=0)
            untold = takewhile(lambda id: is_untold(in_file[id]), in_order[end:])
            self._callbacks.history(self.session, held.union(in_order[:end], untold))
        return next((id for id in reversed(loaded) if self._callbacks.has_event(self.session, id)), None)

    async def _read_cold_file(self) -> None:
        """Store what the file of a session that is not loaded has; it may have been rewound, or the server killed."""
        mark = self._callbacks.mark(self.session)
        in_file = await self._types_in_file(holding=mark)
        if mark is not None and in_file is not None and mark not in in_file:
            self._callbacks.history(self.session, set(in_file))
        await self._read_file()

    async def _types_in_file(self, *, holding: str | None = None) -> dict[str, str] | None:
        """Return the ids of the session's file in order with their types, None when it cannot be read now.

        The end of a file is written a little later, so one that does not hold the given event yet is read again.
        """
        in_file: dict[str, str] | None = None
        for _ in range(EXPIRED_MAX):
            try:
                async with self._file_readers:
                    in_file = {id: type async for id, type in _events(self._reader.persisted())}
            except ExpiredError:
                continue
            except CallError:
                return None
            if holding is None or holding in in_file:
                break
            await asyncio.sleep(AGAIN_SECONDS)
        return in_file

    async def _read_file(self, *, holding: str | None = None) -> bool:
        """Store the events of the session's file after the last known one; return whether the given one is stored."""
        if holding is not None and holding not in (await self._types_in_file(holding=holding) or ()):
            return False
        for _ in range(EXPIRED_MAX):
            try:
                async with self._file_readers:
                    if await self._read_file_after(await self._last_known(self._reader.persisted())):
                        break
            except ExpiredError:
                continue
            except CallError:  # nothing is written before the first message of a user
                break
        return holding is not None and self._callbacks.has_event(self.session, holding)

    async def _last_known(self, lines: AsyncIterator[bytes]) -> str | None:
        """Return the id of the last of these events that is stored already."""
        last = None
        if self._callbacks.mark(self.session) is not None:
            async for envelope in self._known(lines):
                last = envelope.id
        return last

    async def _read_file_after(self, last: str | None) -> bool:
        """Store the events after the given one, or all; return whether that event was found."""
        is_after = last is None
        page: list[SourceEvent] = []
        async for line in self._reader.persisted():
            envelope = decode(line)
            if is_after:
                page.append(SourceEvent(line, isinstance(envelope, Envelope) and envelope.ephemeral))
                if isinstance(envelope, Envelope):
                    self._is_repeated_prompt(envelope)
            is_after = is_after or envelope.id == last
            if len(page) >= PAGE_EVENTS:
                await self._store_page(page)
                page = []
        await self._store_page(page)
        return is_after

    async def _deliver(self, events: Iterable[msgspec.Raw], *, was_missed: bool = False) -> bool:
        """Store the wanted events that are not stored yet; return whether one of them ends the session.

        What was missed may hold a rewind that left no trace, after which a system message is no repetition.
        """
        in_file: dict[str, str] | None = None
        page: list[SourceEvent] = []
        has_shut_down = False
        for event in events:
            line = line_of(event)
            envelope = decode(line)
            if isinstance(envelope, Unreadable):  # an event for the quarantine, unless only ephemeral ones are wanted
                if not self._live_only:
                    page.append(SourceEvent(line, False))
                continue
            has_shut_down |= envelope.type == "session.shutdown" and envelope.agentId is None
            if self._live_only and envelope.type == CALL_STARTS and not envelope.ephemeral:
                page.append(SourceEvent(line, False))  # it says what the pieces that follow are
            is_known = self._live_only or self._callbacks.has_event(self.session, envelope.id)
            if is_known and not envelope.ephemeral:
                continue
            if self._is_repeated_prompt(envelope):
                if was_missed and in_file is None:
                    await asyncio.sleep(AGAIN_SECONDS)  # the file is written a little later
                    in_file = await self._types_in_file() or {}
                if envelope.id not in (in_file or ()):
                    self._counts.repeats += 1
                    continue
            self._rewound |= envelope.type == _REWIND and not self._live_only
            self._counts.count_type(envelope.type)
            page.append(SourceEvent(line, envelope.ephemeral))
        await self._store_page(page)
        return has_shut_down

    async def _store_page(self, page: Sequence[SourceEvent]) -> None:
        before = self.state
        while page and not await self._callbacks.store(self.session, page):
            self.state = State.FULL
            await asyncio.sleep(AGAIN_SECONDS)
        self.state = before
        self._counts.count_stored(page)

    def _is_repeated_prompt(self, envelope: Envelope) -> bool:
        """Tell whether this is the system message that its agent had last; remember it until history is rewritten."""
        if envelope.type in _REWRITES:
            self._prompts.clear()
        if envelope.type != "system.message" or envelope.ephemeral:
            return False
        try:
            content = msgspec.json.decode(envelope.data, type=dict[str, msgspec.Raw]).get("content", msgspec.Raw())
        except REFUSALS:
            return False
        digest = hashlib.blake2b(content, digest_size=16).digest()
        if self._prompts.get(envelope.agentId) == digest:
            return True
        self._prompts[envelope.agentId] = digest
        if len(self._prompts) > AGENTS_MAX:
            self._prompts.popitem(last=False)
        return False


async def _events(lines: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, str]]:
    async for line in lines:
        envelope = decode(line)
        if isinstance(envelope, Envelope):
            yield envelope.id, envelope.type
