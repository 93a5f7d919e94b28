"""Reading one session's events from a CLI server, page by page."""

from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from exporter.core.events.envelope import REFUSALS
from exporter.sources.rpc.connection import AnswerTooLongError, RpcConnection
from exporter.sources.rpc.messages import EventPageAnswer, line_of, read_page

PAGE_EVENTS: Final = 1000
CALL_SECONDS: Final = 60.0


class ExpiredError(Exception):
    """A snapshot of the session's file was dropped while it was being read."""


class PageReader:
    """The calls about one session. They raise what `RpcConnection.call` raises, and `BadMessageError`."""

    def __init__(self, session: str, connection: RpcConnection) -> None:
        self._session = session
        self._connection = connection
        self._max = PAGE_EVENTS

    async def events(
        self,
        cursor: str | None,
        *,
        wait_ms: int = 0,
        durable_only: bool = False,
        types: list[str] | None = None,
    ) -> EventPageAnswer:
        """Return what comes after a cursor, or an event's id; `wait_ms` waits for something to come."""
        return await self._paged(
            "session.eventLog.read",
            **({} if cursor is None else {"cursor": cursor}),
            **({} if types is None else {"types": types}),
            waitMs=wait_ms,
            includeEphemeral=not durable_only,
            agentScope="all",
        )

    async def active(self, types: list[str] | None = None) -> AsyncIterator[bytes]:
        """Yield the durable events of the history as the server has it loaded."""
        cursor: str | None = None
        while True:
            page = await self.events(cursor, durable_only=True, types=types)
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
        try:
            cursor = msgspec.json.decode(result, type=dict[str, Any]).get("cursor", "")
        except REFUSALS:
            return ""
        return cursor if isinstance(cursor, str) else ""

    async def attach(self) -> None:
        """Have the session's events pushed; leaves no trace in it, and asks to be asked nothing."""
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
