"""A made-up CLI server, for faults that a real one does not have: it answers as a test says."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence, Set
from contextlib import asynccontextmanager
from typing import Any

from exporter.sources.remote import Callbacks, SourceEvent, Want
from exporter.sources.rpc.framing import Framer, frame
from exporter.sources.rpc.source import RpcSource

SESSION = "made-up-session"
WAIT_SECONDS_MAX = 10


class Refusal(Exception):
    """The server answers with an error of this code."""

    def __init__(self, code: int) -> None:
        self.code = code


def event(n: int, *, ephemeral: bool = False, type: str = "user.message", **data: Any) -> dict[str, Any]:
    extra = {"ephemeral": True} if ephemeral else {}
    return {"type": type, "data": data, "id": f"e{n}", "timestamp": "t", "parentId": None, **extra}


class MadeUpServer:
    """Holds one session's `history`, loaded or not; `hooks` replace the answer to a method."""

    def __init__(self) -> None:
        self.history: list[dict[str, Any]] = []
        self.file: list[dict[str, Any]] = []
        self.loaded = True
        self.protocol = 3
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.answers: list[dict[str, Any]] = []
        self.hooks: dict[str, Callable[[dict[str, Any]], Any]] = {}
        self.raw: list[bytes] = []  # sent to the next client instead of any answer
        self.page_max = 1000
        self._writers: list[asyncio.StreamWriter] = []
        self._changed = asyncio.Condition()
        self._changes = 0
        self._forgotten = 0  # cursors up to this number are of before the last compaction
        self._snapshots: dict[str, list[dict[str, Any]]] = {}

    async def add(self, *events: dict[str, Any]) -> None:
        async with self._changed:
            self.history += events
            self._tell()

    async def rewind(self, count: int, *events: dict[str, Any]) -> None:
        """Keep so many events, in the file as well, tell it as the real server does, and go on with others."""
        told = {"type": "session.snapshot_rewind", "data": {}, "id": f"rewind-{count}", "ephemeral": True}
        async with self._changed:
            self.file = [*self.history[:count], *events]
            self.history = [*self.history[:count], {**told, "timestamp": "t", "parentId": None}, *events]
            self._tell()

    async def compact(self, *events: dict[str, Any]) -> None:
        """Add events, the last of which is a compaction: as at the real server, the file alone keeps every start."""
        async with self._changed:
            self.file = [*self.file, *(one for one in events if not one.get("ephemeral"))]
            self._forgotten += len(self.history) + len(events)
            kept = (one for one in (*self.history, *events[:-1]) if not one.get("ephemeral"))
            self.history = [*(one for one in kept if one["type"] != "tool.execution_start"), events[-1]]
            self._tell()

    def _tell(self) -> None:
        self._changes += 1
        self._changed.notify_all()

    def send(self, message: dict[str, Any]) -> None:
        for writer in self._writers:
            writer.write(frame(json.dumps({"jsonrpc": "2.0", **message}).encode()))

    def hang_up(self) -> None:
        for writer in self._writers:
            writer.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        for content in self.raw:
            writer.write(content)
        framer, tasks = Framer(1 << 24), set()
        with contextlib.suppress(OSError):
            while chunk := await reader.read(65536):
                for body in framer.feed(chunk):
                    assert isinstance(body, bytes)
                    message = json.loads(body)
                    if "method" in message:
                        self.calls.append((message["method"], message["params"]))
                        task = asyncio.create_task(self._answer(message, writer))
                        tasks.add(task)
                        task.add_done_callback(tasks.discard)
                    else:
                        self.answers.append(message)
        self._writers.remove(writer)
        for task in list(tasks):
            task.cancel()

    async def _answer(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        try:
            hook = self.hooks.get(message["method"])
            result = hook(message["params"]) if hook else self._result(message["method"], message["params"])
            if asyncio.iscoroutine(result):
                result = await result
            body = {"result": result}
        except Refusal as refusal:
            body = {"error": {"code": refusal.code, "message": "hunter2"}}
        writer.write(frame(json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}).encode()))

    def _result(self, method: str, params: dict[str, Any]) -> Any:
        match method:
            case "connect":
                return {"ok": True, "protocolVersion": self.protocol, "version": "9.9"}
            case "session.list":
                return {"sessions": [{"sessionId": SESSION, "modifiedTime": "now"}, "rubbish", {"sessionId": 7}]}
            case "session.eventLog.tail" if self.loaded:
                return {"cursor": self._cursor(len(self.history))}
            case "session.eventLog.read" if self.loaded:
                return self._read(params)
            case "sessions.readPersistedEvents":
                return self._persisted(params)
            case "session.resume" if self.loaded:
                return {}
            case _:
                raise Refusal(-32603)

    def _cursor(self, count: int) -> str:
        durable = [one["id"] for one in self.history[:count] if not one.get("ephemeral")]
        return f"{durable[-1] if durable else ''}|{self._forgotten + count}"

    async def _read(self, params: dict[str, Any]) -> Any:
        async with self._changed:
            if self._start(params)[0] >= len(self.history) and params.get("waitMs"):
                # Since Python 3.13 a reader that hangs up wakes another one, which is no change.
                seen = self._changes
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(params["waitMs"] / 1000):
                        await self._changed.wait_for(lambda: self._changes != seen)
        start, status = self._start(params)
        end = min(len(self.history), start + min(params["max"], self.page_max))
        events = [
            one
            for one in self.history[start:end]
            if (params.get("includeEphemeral", True) or not one.get("ephemeral"))
            and one["type"] in params.get("types", [one["type"]])
        ]
        return {
            "events": events,
            "cursor": self._cursor(end),
            "hasMore": end < len(self.history),
            "cursorStatus": status,
        }

    def _start(self, params: dict[str, Any]) -> tuple[int, str]:
        """Where a cursor points to, and what is said of it."""
        if "cursor" not in params:
            return 0, "ok"
        id, _, count = params["cursor"].partition("|")
        place = next((n for n, one in enumerate(self.history, 1) if one["id"] == id), 0)
        if place or not id:
            number = int(count or 0) - self._forgotten
            return (number if number > 0 else place), "ok"
        return 0, "expired"

    def _persisted(self, params: dict[str, Any]) -> Any:
        if not self.file:
            raise Refusal(-32603)
        if "cursor" in params and params["cursor"] not in self._snapshots:
            return {"events": [], "cursor": "", "hasMore": False, "cursorStatus": "expired"}
        left = self._snapshots.pop(params["cursor"]) if "cursor" in params else list(self.file)
        count = min(params["max"], self.page_max)
        cursor = f"snapshot-{len(self.calls)}"
        self._snapshots[cursor] = left[count:]
        return {"events": left[:count], "cursor": cursor, "hasMore": len(left) > count, "cursorStatus": "ok"}


class Taker:
    """Takes events as a journal would, and remembers them."""

    def __init__(self) -> None:
        self.durable: list[str] = []
        self.ephemeral: list[str] = []
        self.lines: list[bytes] = []
        self.gone: list[str] = []
        self.rewound: list[str] = []
        self.rewinds = False
        self.want = Want.ALL
        self.fails = False

    def callbacks(self) -> Callbacks:
        return Callbacks(
            self.take,
            lambda _: self.durable[-1] if self.durable else None,
            lambda _, id: id in self.durable,
            lambda *_: self.want,
            self.gone.append,
            history=self.rewind,
        )

    def rewind(self, session: str, history: Set[str]) -> None:
        assert session == SESSION
        if not self.rewinds:
            return
        self.rewound += [id for id in self.durable if id not in history]
        self.durable = [id for id in self.durable if id in history]

    async def take(self, session: str, events: Sequence[SourceEvent]) -> bool:
        assert session == SESSION
        if self.fails:
            raise RuntimeError("the disk is gone")
        for line, is_ephemeral in events:
            assert b"\n" not in line
            self.lines.append(line)
            try:
                id = json.loads(line)["id"]
            except (ValueError, KeyError):
                id = "unreadable"
            (self.ephemeral if is_ephemeral else self.durable).append(id)
        return True


@asynccontextmanager
async def observed(
    server: MadeUpServer,
    taker: Taker,
    *,
    push: bool = False,
    body_bytes_max: int = 1 << 20,
    on_shell: Callable[[str, bytes], None] | None = None,
) -> AsyncIterator[RpcSource]:
    """The source at work on a server."""
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    source = RpcSource(
        lambda: asyncio.open_connection("127.0.0.1", port),
        lambda: "the-token",
        taker.callbacks(),
        push=push,
        on_shell=on_shell,
        body_bytes_max=body_bytes_max,
        pause_seconds=(0.01, 0.05),
    )
    task = asyncio.create_task(source.run())
    try:
        yield source
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        server.hang_up()
        listening.close()


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while not happened():  # noqa: ASYNC110  what is waited for has no event
            await asyncio.sleep(0.005)
