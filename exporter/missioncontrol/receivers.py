"""The receivers of all tenants of one store: each has its own subscribers, figures and house, and they share limits."""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from exporter.missioncontrol.http.responses import ApiError
from exporter.missioncontrol.receiver import Receiver
from exporter.missioncontrol.store import audit, shares, tenants, tokens
from exporter.missioncontrol.store.port import DEFAULT_TENANT, Database, StoreAway, StoreError
from exporter.missioncontrol.store.shares import Share
from exporter.missioncontrol.store.tokens import Holder

_FIRST_CLEANING_SECONDS, _CLEANING_SECONDS = 60.0, 3600.0
_log: Final = logging.getLogger(__name__)


class Receivers:
    """Finds the receiver of a tenant, which is opened when it is needed first. Only to be used on the event loop."""

    def __init__(self, default: Receiver) -> None:
        self.default = default
        self._open: dict[int, Receiver] = {}
        self._opening = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._is_running = False

    async def find(self, tenant: str) -> Receiver | None:
        """Return the receiver of a tenant, None when there is no such tenant any more."""
        if tenant == DEFAULT_TENANT:
            return self.default
        number = await self.default.store.read(lambda database: tenants.number_of(database, tenant), quick=True)
        if number is None:
            return None
        async with self._opening:
            if number not in self._open:
                store = await asyncio.to_thread(self.default.store.tenant, number)
                self._open[number] = self.default.beside(store, tenant)
                await self._begin(self._open[number])
            return self._open[number]

    async def names(self) -> list[str]:
        """Return the names of all tenants."""
        return [str(one["name"]) for one in await self.default.store.read(tenants.listed)]

    async def holder(self, token: str) -> Holder | None:
        """Return whose token this is, in whichever tenant, or None."""
        tenant = tokens.tenant_in(token)
        receiver = await self.find(tenant) if tenant is not None else None
        return await receiver.find_holder(token) if receiver is not None else None

    async def open_share(self, secret: str) -> tuple[Receiver, Share] | None:
        """Return what a share link shows, and whose it is; None for one that is wrong, revoked or past its time."""
        receiver = await self.find(shares.tenant_in(secret))
        if receiver is None:
            return None
        now = receiver.now()

        def opened(database: Database) -> Share | None:
            share = shares.opened(database, secret, now)
            if share is not None and receiver.audits:
                audit.add(database, now, f"(link {share.n})", "read", share.session)
            return share

        share = await receiver.write(opened)
        return None if share is None else (receiver, share)

    async def hashed_holder(self, tenant: str, hashed: bytes) -> Holder | None:
        """Return who has the token of this hash in a tenant, None once it is not in force."""
        receiver = await self.find(tenant)
        if receiver is None:
            return None
        return await receiver.store.read(lambda database: tokens.hashed_holder(database, hashed, tenant), quick=True)

    async def cookie_key(self) -> bytes:
        """Return with what the cookies of browsers are sealed, the same at every receiver of the store."""
        return await self.default.store.read(tokens.cookie_key, quick=True)

    async def remove(self, tenant: str, who: str | None = None) -> bool:
        """Delete all sessions of a tenant for good, and the tenant; False when there is none that can be removed.

        With `who` it is first noted in the audit log of the default tenant.
        """
        receiver = await self.find(tenant) if tenant != DEFAULT_TENANT else None
        if receiver is None:
            return False
        if who is not None:
            now = self.default.now()
            await self.default.write(lambda database: audit.add(database, now, who, "remove tenant", detail=tenant))
        await receiver.write(lambda database: database.execute("DELETE FROM tokens").rowcount)  # nobody comes in
        first = "SELECT id FROM sessions ORDER BY n LIMIT 100"
        while rows := await receiver.read(lambda database: database.execute(first).fetchall()):
            await receiver.forget([id for (id,) in rows])
        number = await self.default.read(lambda database: tenants.number_of(database, tenant))
        if number is not None:
            await asyncio.to_thread(self.default.store.remove_tenant, number)
            if self._open.pop(number, None) is not None:
                receiver.live.close()
                receiver.eraser.close()
        return True

    async def start(self) -> None:
        """Begin to hear what other receivers tell, and to expire sessions."""
        self._is_running = True
        self._tasks.append(asyncio.create_task(self._keep_house(), name="receiver-house"))
        await self._begin(self.default)

    async def stop(self) -> None:
        """End the streams, the tasks and the threads; the store stays open, it belongs to the caller."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        for receiver in self._open.values():
            receiver.live.close()
            receiver.eraser.close()
        self.default.close()

    def end_streams(self) -> None:
        """End every open stream."""
        for receiver in (*self._open.values(), self.default):
            receiver.live.close()

    async def _begin(self, receiver: Receiver) -> None:
        if self._is_running:
            if receiver.search is not None:
                receiver.search.wake()  # what an earlier run stored and did not index
            with suppress(StoreAway):
                await receiver.eraser.resume()
            self._tasks.append(asyncio.create_task(receiver.hear(), name="receiver-notes"))

    async def _keep_house(self) -> None:
        """Forget sessions that are too old or too many every hour, of all tenants, until cancelled."""
        await asyncio.sleep(_FIRST_CLEANING_SECONDS)
        while True:
            try:
                for tenant in await self.names():
                    if (receiver := await self.find(tenant)) is not None:
                        await receiver.expire()
            except (ApiError, StoreError) as error:  # the next round tries again
                _log.warning("old sessions could not be forgotten", extra={"reason": str(error)})
            await asyncio.sleep(_CLEANING_SECONDS)
