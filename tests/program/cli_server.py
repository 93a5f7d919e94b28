"""A CLI server with one session, for programs that run beside the test: it lives on a thread of its own."""

import asyncio
import json
import threading
from typing import Any, Final

from tests.sources.rpc.server import SESSION, MadeUpServer, Refusal

SECONDS_MAX: Final = 60


class CliServer:
    """Serves until closed; `lines` are the durable events of its session, as a receiver is to have them."""

    def __init__(self) -> None:
        self.made_up = MadeUpServer()
        self.lines: list[bytes] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._port = 0
        self.listen_again()
        self.url = f"rpc://127.0.0.1:{self._port}"

    def listen_again(self) -> None:
        """Listen, at the same port as before."""
        self._server = self._do(asyncio.start_server(self.made_up.serve, "127.0.0.1", self._port))
        self._port = self._server.sockets[0].getsockname()[1]

    def stop_listening(self) -> None:
        """Let nobody connect any more."""
        self._loop.call_soon_threadsafe(self._server.close)

    def refuse(self, method: str, code: int) -> None:
        """Answer a method with an error."""

        def refused(_: dict[str, Any]) -> Any:
            raise Refusal(code)

        self.made_up.hooks[method] = refused

    def accept(self, method: str) -> None:
        """Answer a method as it should be."""
        del self.made_up.hooks[method]

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
        self.stop_listening()
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
