"""Tells the service manager that started this process how it is: ready, alive, stopping (sd_notify)."""

import asyncio
import os
import socket
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Final

_LOST: Final = (OSError, ValueError)


class ServiceManager:
    """The socket that a manager listens at; where there is none, every call does nothing. No call waits or fails."""

    def __init__(self, address: str = "", watchdog_seconds: float = 0.0) -> None:
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._watchdog_seconds = watchdog_seconds

    @classmethod
    def of(cls, environ: MutableMapping[str, str]) -> "ServiceManager":
        """Take the manager from the environment, and out of it: what this process starts has nothing to tell it."""
        address = environ.pop("NOTIFY_SOCKET", "")
        interval, process = environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", "")
        is_watched = interval.isdigit() and process in ("", str(os.getpid()))
        return cls(address, int(interval) / 1e6 if is_watched else 0.0)

    def tell(self, *facts: str) -> None:
        """Send facts such as `READY=1`."""
        if not self._address:
            return
        with suppress(*_LOST), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.setblocking(False)
            notify.sendto("\n".join(facts).encode(), self._address)

    async def watch(self) -> None:
        """Say twice in each interval of its watchdog that the event loop turns; ends at once where nobody watches."""
        while self._address and self._watchdog_seconds:
            self.tell("WATCHDOG=1")
            await asyncio.sleep(self._watchdog_seconds / 2)
