"""Makes sure that a deleted session's text leaves every file: before the answer, or as soon as others let it.

Another program that reads the files (a backup, the sqlite3 shell) keeps the engine from cutting its log. Each try is
short, because writers wait for it; between two tries the store works as always.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from exporter.missioncontrol.store.port import Database, Store, StoreError

_TRIES_SECONDS: Final = 4.0
_PAUSE_SECONDS: Final = 0.25
_LATER_SECONDS: Final = 10.0
_log: Final = logging.getLogger(__name__)


class TextNotErasedError(StoreError):
    """Another program reads the files, so text of a deleted session is still in them; it is tried again."""


class Eraser:
    """Erases what deleted sessions left in a store and its index. Only to be used on the event loop."""

    def __init__(self, store: Store, erase_index: Callable[[], "Future[bool]"]) -> None:
        self._store = store
        self._erase_index = erase_index
        self._later: asyncio.Task[None] | None = None

    async def finish(self) -> None:
        """Return when no file of ours holds text of a deleted session.

        Raises `TextNotErasedError` when another program prevents it for some seconds; then it is tried until it is
        done.
        """
        end = time.monotonic() + _TRIES_SECONDS
        while not await self._erase():
            if time.monotonic() >= end:
                self._try_later()
                raise TextNotErasedError
            await asyncio.sleep(_PAUSE_SECONDS)

    async def is_pending(self, session_ids: list[str]) -> bool:
        """Tell whether all of these sessions are deleted while text of deleted sessions is still to be erased."""

        def read(database: Database) -> bool:
            deleted = "SELECT 1 FROM deleted_sessions WHERE id = ?"
            return database.has_text_to_erase() and all(
                database.execute(deleted, (id,)).fetchone() is not None for id in session_ids
            )

        return await self._store.read(read)

    async def resume(self) -> None:
        """Continue what an earlier run could not finish."""
        if await self._store.read(lambda database: database.has_text_to_erase()):
            self._try_later()

    def close(self) -> None:
        """Stop trying; the store has noted what is left."""
        if self._later is not None:
            self._later.cancel()

    async def _erase(self) -> bool:
        return await asyncio.wrap_future(self._erase_index()) and await asyncio.wrap_future(self._store.erase())

    def _try_later(self) -> None:
        if self._later is None or self._later.done():
            self._later = asyncio.get_running_loop().create_task(self._try_until_done(), name="receiver-forgetting")

    async def _try_until_done(self) -> None:
        while True:
            try:
                if await self._erase():
                    return
            except StoreError as error:  # the next round tries again
                _log.warning("deleted sessions could not be erased", extra={"reason": str(error)})
            await asyncio.sleep(_LATER_SECONDS)
