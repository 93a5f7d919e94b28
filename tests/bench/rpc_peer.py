"""A CLI server for the benchmark: a process that has one session, in which so many events a second happen.

It speaks what an observer asks for and no more. What it sends is written before the clock starts, and event number `n`
happens at its own time, whether anybody asks or not: an observer that is too slow falls behind.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any

from exporter.sources.rpc.framing import Framer, frame
from tests.bench.generate import Corpus, EventStream, corpora
from tests.bench.receiver import REPOSITORY

PAGE_EVENTS_MAX = 1000
_SHARES = {
    "assistant.streaming_delta": 35,
    "assistant.message_delta": 20,
    "session.background_tasks_changed": 15,
    "assistant.tool_call_delta": 12,
    "tool.shell_output": 8,
    "session.usage_info": 10,
}


class RpcPeer:
    """Runs the server as a child process; `begin` starts the clock and returns it."""

    def __init__(self, events_per_second: int, seconds: float, ephemeral_share: float) -> None:
        arguments = [str(events_per_second), str(seconds), str(ephemeral_share)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.rpc_peer", *arguments],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        told = self._read()
        self.port: int = told["port"]
        self.session_id: str = told["session"]
        self.durable: dict[str, int] = told["durable"]  # the number of each durable event

    def __enter__(self) -> RpcPeer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait()

    def begin(self) -> float:
        """Let it happen; event 0 is there already, the others follow at their times after the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        return float(self._read()["began"])

    def _read(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


class _Passing:
    """What passes, by type as often as in the captures: texts of many pieces, progress, and much without a text."""

    def __init__(self) -> None:
        self._random = random.Random(906)
        self._prose, self._code, self._output, _ = corpora()
        self._texts = dict.fromkeys(("message", "call", "shell"), ("", 0, ""))
        self._count = 0

    def next_line(self) -> bytes:
        self._count += 1
        data: dict[str, object]
        kind = self._random.choices(list(_SHARES), list(_SHARES.values()))[0]
        match kind:
            case "assistant.message_delta":
                id, piece, begins = self._piece("message", self._prose)
                if begins:
                    kind, data = "assistant.message_start", {"messageId": id}
                else:
                    data = {"messageId": id, "deltaContent": piece}
            case "assistant.tool_call_delta":
                id, piece, _ = self._piece("call", self._code)
                data = {"toolCallId": id, "toolName": "bash", "toolType": "function", "inputDelta": piece}
            case "tool.shell_output":
                id, piece, begins = self._piece("shell", self._output)
                data = {"toolCallId": id, "stream": "stdout", "text": piece, "sequence": 0 if begins else self._count}
            case "assistant.streaming_delta":
                data = {"totalResponseSizeBytes": self._count}
            case "session.usage_info":
                data = {"tokenLimit": 128_000, "currentTokens": self._count % 128_000, "messagesLength": 12}
            case _:
                data = {}
        id = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        event = {"type": kind, "data": data, "ephemeral": True, "id": id, "timestamp": "2026-11-18T10:06:21.351Z"}
        return json.dumps({**event, "parentId": id}, separators=(",", ":")).encode()

    def _piece(self, name: str, corpus: Corpus) -> tuple[str, str, bool]:
        """A few words of the text at hand; a new text when that one is over."""
        id, place, text = self._texts[name]
        if begins := place >= len(text):
            id, place = f"{name}-{self._count}", 0
            text = json.loads(f'"{corpus.text(self._random, 1500)}"')
        length = self._random.randint(4, 60)
        self._texts[name] = id, place + length, text
        return id, text[place : place + length], begins


class _Session:
    """The events, and how many of them have happened."""

    def __init__(self, events_per_second: int, seconds: float, ephemeral_share: float) -> None:
        self.stream, passing, chance = EventStream(905, ephemeral_share=0), _Passing(), random.Random(907)
        self.lines = [
            passing.next_line() if number and chance.random() < ephemeral_share else self.stream.next_line().rstrip()
            for number in range(round(events_per_second * seconds) + 1)
        ]
        ids = [json.loads(line)["id"] for line in self.lines]
        self.numbers = {id: number for number, id in enumerate(ids)}
        durable = set(self.stream.durable_ids)
        self.is_ephemeral = [id not in durable for id in ids]
        self.began: float | None = None
        self._rate = events_per_second

    def happened(self) -> int:
        if self.began is None:
            return 1
        return min(len(self.lines), 2 + int((time.monotonic() - self.began) * self._rate))

    def answer(self, method: str, params: dict[str, Any]) -> bytes:
        match method:
            case "connect":
                return b'{"ok":true,"protocolVersion":3,"version":"1.0.102"}'
            case "session.list":
                return json.dumps({"sessions": [{"sessionId": self.stream.session_id}]}).encode()
            case "session.eventLog.tail":
                return b'{"cursor":"%s"}' % self._cursor(self.happened())
            case "session.eventLog.read":
                return self._page(params)
            case _:
                return b""

    def start_of(self, params: dict[str, Any]) -> int:
        id, _, number = str(params.get("cursor", "|0")).partition("|")
        return int(number) if number else self.numbers[id] + 1

    def _page(self, params: dict[str, Any]) -> bytes:
        start = self.start_of(params)
        end = min(self.happened(), start + min(int(params["max"]), PAGE_EVENTS_MAX))
        wanted = range(start, end)
        if not params.get("includeEphemeral", True):
            wanted = [number for number in wanted if not self.is_ephemeral[number]]  # type: ignore[assignment]
        if "types" in params:
            wanted = []  # type: ignore[assignment]  # this session has none of those that are asked for by their type
        return b'{"events":[%s],"cursor":"%s","hasMore":false,"cursorStatus":"ok"}' % (
            b",".join(map(self.lines.__getitem__, wanted)),
            self._cursor(end),
        )

    def _cursor(self, end: int) -> bytes:
        last = next((number for number in range(end - 1, -1, -1) if not self.is_ephemeral[number]), 0)
        return b"%s|%d" % (json.loads(self.lines[last])["id"].encode(), end)


async def _serve(session: _Session, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    framer, tasks = Framer(1 << 20), set()
    with suppress(OSError):
        while chunk := await reader.read(1 << 16):
            for body in framer.feed(chunk):
                assert isinstance(body, bytes)
                task = asyncio.create_task(_answer(session, json.loads(body), writer))
                tasks.add(task)
                task.add_done_callback(tasks.discard)


async def _answer(session: _Session, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
    method, params = message["method"], message["params"]
    end = time.monotonic() + params.get("waitMs", 0) / 1000
    if method == "session.eventLog.read":
        while session.start_of(params) >= session.happened() and time.monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.001)  # events happen by the clock
    result = session.answer(method, params)
    answer = b'"result":' + result if result else b'"error":{"code":-32603,"message":""}'
    writer.write(frame(b'{"jsonrpc":"2.0","id":%d,%s}' % (message["id"], answer)))
    await writer.drain()


async def _run(session: _Session) -> None:
    server = await asyncio.start_server(lambda *streams: _serve(session, *streams), "127.0.0.1", 0)
    durable = {id: number for id, number in session.numbers.items() if not session.is_ephemeral[number]}
    _say({"port": server.sockets[0].getsockname()[1], "session": session.stream.session_id, "durable": durable})
    await asyncio.to_thread(sys.stdin.readline)
    session.began = time.monotonic()
    _say({"began": session.began})
    await asyncio.to_thread(sys.stdin.readline)


def _say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


def main() -> None:
    """Says where it is and what it has, then waits for a line on stdin to begin."""
    parser = argparse.ArgumentParser(description=__doc__)
    kinds: dict[str, Callable[[str], Any]] = {"events_per_second": int, "seconds": float, "ephemeral_share": float}
    for name, kind in kinds.items():
        parser.add_argument(name, type=kind)
    given = parser.parse_args()
    asyncio.run(_run(_Session(given.events_per_second, given.seconds, given.ephemeral_share)))


if __name__ == "__main__":
    main()
