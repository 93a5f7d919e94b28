"""One connection to the CLI's JSON-RPC server: our requests, its notifications, and its requests, which are refused.

A server may ask any client to run a tool, to permit something, to answer a question. Only the owner may decide
those: `tool.call` gets the standard refusal of an unknown tool, everything else "method not found".
"""

import asyncio
import contextlib
import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from exporter.sources.remote import LostError
from exporter.sources.rpc.framing import Framer, FramingError, TooLong, frame
from exporter.sources.rpc.messages import BadMessageError, Fault, Message, decode_or, read_message

METHOD_NOT_FOUND: Final = -32601
REQUESTS: Final = ("tool.call", "permission.request", "userInput.request", "hooks.invoke")
"""The requests that servers are known to send; all are refused."""
_CHUNK_BYTES: Final = 1 << 18
_CALL_SECONDS: Final = 30.0
_DRAIN_SECONDS: Final = 30.0
_TOOL_NAME_MAX: Final = 256
_REFUSAL: Final = "Tool '{}' is not supported by this client instance."
_ID: Final = re.compile(rb'"id"\s*:\s*(\d{1,18})\b')

Notified = Callable[[str, msgspec.Raw], None]


class CallError(Exception):
    """The server refused a request."""

    def __init__(self, code: int) -> None:
        super().__init__(f"error {code}")
        self.code = code


class AnswerTooLongError(Exception):
    """The answer to a request was longer than a message may be, and was skipped."""


class RpcConnection:
    """Sends requests and receives messages.

    Responses arrive while `run` is running; when it ends, every pending and every later call raises `LostError`.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        on_notification: Notified,
        on_request: Callable[[str], None],
        *,
        body_bytes_max: int,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._on_notification = on_notification
        self._on_request = on_request
        self._framer = Framer(body_bytes_max)
        self._waiting: dict[int, asyncio.Future[msgspec.Raw]] = {}
        self._last_id = 0
        self._lost: str | None = None

    async def call(self, method: str, seconds: float = _CALL_SECONDS, **params: object) -> msgspec.Raw:
        """Return the result. Raises `CallError`, `AnswerTooLongError`, `LostError`; no answer in time is a loss."""
        if self._lost is not None:
            raise LostError(self._lost)
        self._last_id += 1
        number = self._last_id
        future: asyncio.Future[msgspec.Raw] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError:
            self._lose(f"no answer within {seconds:.0f} s")
            raise LostError(f"no answer within {seconds:.0f} s") from None
        finally:
            self._waiting.pop(number, None)

    async def run(self) -> None:
        """Read until the connection ends; then raise `LostError`."""
        try:
            while self._lost is None:
                chunk = await self._reader.read(_CHUNK_BYTES)
                if not chunk:
                    raise LostError("the server closed the connection")
                for message in self._framer.feed(chunk):
                    self._take(message)
                async with asyncio.timeout(_DRAIN_SECONDS):
                    await self._writer.drain()
            raise LostError(self._lost)
        except LostError as error:
            self._lose(str(error))
            raise
        except (FramingError, BadMessageError) as error:
            why = f"the server does not speak the CLI's JSON-RPC: {error}"
        except (OSError, TimeoutError):
            why = "the connection broke"
        self._lose(why)
        raise LostError(self._lost)

    def close(self) -> None:
        """Close the connection; this does not affect the session."""
        self._lose("closed")

    def _lose(self, why: str) -> None:
        if self._lost is None:
            self._lost = why
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.close()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(LostError(self._lost))

    def _send(self, message: dict[str, Any]) -> None:
        self._writer.write(frame(msgspec.json.encode(message)))

    def _take(self, body: bytes | TooLong) -> None:
        if isinstance(body, TooLong):
            self._skip(body)
            return
        message = read_message(body)
        if message.method:
            if bytes(message.id) in (b"", b"null"):
                self._on_notification(message.method, message.params)
            else:
                self._answer(message)
            return
        future = self._waiting.get(_number(message.id))
        if future is None or future.done():
            return
        if bytes(message.error) not in (b"", b"null"):
            future.set_exception(CallError(decode_or(Fault(), message.error, Fault).code))
        else:
            future.set_result(message.result)

    def _skip(self, body: TooLong) -> None:
        """Fail the call whose response was skipped; if its id is unreadable, fail all pending calls."""
        found = _ID.search(body.head)
        named = self._waiting.get(int(found[1])) if found else None
        for future in [named] if named is not None else list(self._waiting.values()):
            if not future.done():
                future.set_exception(AnswerTooLongError())

    def _answer(self, message: Message) -> None:
        self._on_request(message.method)
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message.id}
        if message.method == "tool.call":
            name = decode_or({}, message.params, dict[str, Any]).get("toolName")
            text = _REFUSAL.format(name[:_TOOL_NAME_MAX] if isinstance(name, str) else "")
            result = {"textResultForLlm": text, "resultType": "failure", "error": text, "toolTelemetry": {}}
            answer["result"] = {"result": result}
        else:
            answer["error"] = {"code": METHOD_NOT_FOUND, "message": "this client only observes"}
        self._send(answer)


def _number(id: msgspec.Raw) -> int:
    text = bytes(id)
    return int(text) if text.isdigit() and len(text) < 19 else 0
