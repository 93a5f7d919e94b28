"""Makes sure that a deleted session's text leaves every file: before the answer, or as soon as others let it.

Another program that reads the store (a backup, the sqlite3 shell) keeps SQLite from cutting its log. Each try is short,
because who writes waits for it; between two of them the store works as always.
"""

import asyncio
import logging
import sqlite3
import time
from typing import Final

from exporter.missioncontrol.http.responses import ApiError
from exporter.missioncontrol.http.store_errors import translated
from exporter.missioncontrol.search.search import SearchIndex
from exporter.missioncontrol.store.sqlite.erase import pending
from exporter.missioncontrol.store.store import Store

_TRIES_SECONDS: Final = 4.0
_PAUSE_SECONDS: Final = 0.25
_LATER_SECONDS: Final = 10.0
_log: Final = logging.getLogger(__name__)


class Eraser:
    """What is still to be done for deleted sessions of one store. Only to be used on the event loop."""

    def __init__(self, store: Store, search: SearchIndex) -> None:
        self._store = store
        self._search = search
        self._later: asyncio.Task[None] | None = None

    async def finish(self) -> None:
        """Return when no file of ours holds a text of a deleted session.

        Raises `ApiError` when another program does not let it within some seconds; then it is tried until it is done.
        """
        end = time.monotonic() + _TRIES_SECONDS
        while not await self._is_done_now():
            if time.monotonic() >= end:
                self._try_later()
                raise ApiError(
                    503,
                    "text_still_in_log",
                    "The session is deleted and shown no more, but its text is still in the store's log, because"
                    " another program reads the store.",
                    hint="End that program (a backup, a sqlite3 shell). It is tried again until it is done;"
                    " the same DELETE tells whether it is.",
                    headers={"Retry-After": "10"},
                )
            await asyncio.sleep(_PAUSE_SECONDS)

    async def is_left_of(self, session_ids: list[str]) -> bool:
        """Tell whether all of these are deleted while something of deleted sessions is still to be finished."""
        return await self._store.read(lambda database: pending.is_left_of(database, session_ids))

    async def resume(self) -> None:
        """Go on with what an earlier run could not finish."""
        if await self._store.read(pending.is_left):
            self._try_later()

    def close(self) -> None:
        """Stop trying; what is left is noted in the store."""
        if self._later is not None:
            self._later.cancel()

    async def _is_done_now(self) -> bool:
        with translated():
            return await self._is_done()

    async def _is_done(self) -> bool:
        if not await asyncio.wrap_future(self._search.forget([])):
            return False
        return await asyncio.wrap_future(self._store.erase())

    def _try_later(self) -> None:
        if self._later is None or self._later.done():
            self._later = asyncio.get_running_loop().create_task(self._try_until_done(), name="receiver-forgetting")

    async def _try_until_done(self) -> None:
        while True:
            try:
                if await self._is_done():
                    return
            except sqlite3.Error as error:  # the next round tries again
                _log.warning("deleted sessions could not be erased", extra={"reason": str(error)})
            await asyncio.sleep(_LATER_SECONDS)
