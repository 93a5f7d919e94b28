"""A CLI server with one session, for programs that run beside the test: it lives on a thread of its own."""

import asyncio
import json
import threading
from typing import Any, Final

from tests.sources.rpc_server import SESSION, MadeUpServer

SECONDS_MAX: Final = 10


class CliServer:
    """Serves until closed; `lines` are the durable events of its session, as a receiver is to have them."""

    def __init__(self) -> None:
        self.made_up = MadeUpServer()
        self.lines: list[bytes] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._do(asyncio.start_server(self.made_up.serve, "127.0.0.1", 0))
        self.url = f"rpc://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def add(self, count: int, *, size: int = 100, **data: Any) -> None:
        """Let so many durable events happen, each about as long as that."""
        events = []
        for number in range(len(self.lines), len(self.lines) + count):
            events.append(event(number, fill="x" * size, **data))
            self.lines.append(json.dumps(events[-1]).encode())
        self._do(self.made_up.add(*events))

    def pass_by(self, *events: dict[str, Any]) -> None:
        """Let ephemeral events happen."""
        self._do(self.made_up.add(*events))

    def tell(self, method: str, **params: Any) -> None:
        """Send a notification."""
        self._loop.call_soon_threadsafe(self.made_up.send, {"method": method, "params": params})

    def hang_up(self) -> None:
        """Break every connection."""
        self._loop.call_soon_threadsafe(self.made_up.hang_up)

    def close(self) -> None:
        """Stop for good."""
        self.hang_up()
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS_MAX)

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS_MAX)


def event(number: int, *, type: str = "user.message", ephemeral: bool = False, **data: Any) -> dict[str, Any]:
    """An event as the CLI numbers them here; the durable ones are a chain."""
    parent = f"e{number - 1}" if number and not ephemeral else None
    body = {"type": type, "data": data, "id": f"{'p' if ephemeral else 'e'}{number}", "parentId": parent}
    body["timestamp"] = "2026-11-18T10:00:00.000Z"
    return {**body, "ephemeral": True} if ephemeral else body


__all__ = ["SESSION", "CliServer", "event"]
