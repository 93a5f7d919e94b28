"""An agent host for the benchmark: a process that has so many sessions, and tells so many actions of the first one.

It speaks the chat dialect (0.9) over a real WebSocket, as much of it as an observer asks for. What it sends is written
before the clock starts, and action number `n` happens at its own time, whether anybody reads or not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from websockets.asyncio.server import ServerConnection, serve

from exporter.core.ahp.drafts import id_of
from tests.bench.generate import corpora
from tests.bench.receiver import REPOSITORY

STEPS_PER_TURN = 20
TURN_CHARACTERS = 10_000
_BURST_SECONDS = 0.005
Json = dict[str, Any]


class AhpPeer:
    """Runs the host as a child process; `begin` starts the clock and returns it."""

    def __init__(self, sessions: int, state_bytes: int, events_per_second: int = 1, seconds: float = 0) -> None:
        arguments = [str(one) for one in (sessions, state_bytes, events_per_second, seconds)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.ahp_peer", *arguments],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        told = self._read()
        self.port: int = told["port"]
        self.last: list[str] = told["last"]  # the id of the last event of each session's turns that have ended
        self.durable: dict[str, int] = told["durable"]  # the action behind each event whose id is known before

    @property
    def url(self) -> str:
        return f"ahp+ws://127.0.0.1:{self.port}/"

    def __enter__(self) -> AhpPeer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait()

    def begin(self) -> float:
        """Let it happen."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        return float(self._read()["began"])

    def _read(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


class _Writer:
    """Turns as a host has them, and as it tells of them."""

    def __init__(self) -> None:
        self._random = random.Random(908)
        self._prose, self._code, self._output, _ = corpora()

    def name(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def turn(self) -> Json:
        """A turn that has ended."""
        parts: list[Json] = []
        while sum(len(json.dumps(part)) for part in parts) < TURN_CHARACTERS:
            call = {**self._call(), "status": "completed", "confirmed": "not-needed", **self._result()}
            parts += [
                {"kind": "markdown", "id": self.name(), "content": self._text(800)},
                {"kind": "toolCall", "toolCall": call},
            ]
        message = {"text": self._text(300), "origin": {"kind": "user"}}
        return {"id": self.name(), "message": message, "responseParts": parts, "state": "complete"}

    def actions(self) -> Iterator[Json]:
        """What a host tells of a turn, as VS Code does; of thirteen actions of a step three make a durable event."""
        turn = {"turnId": self.name()}
        yield {"type": "chat/turnStarted", **turn, "message": {"text": self._text(300)}}
        for _ in range(STEPS_PER_TURN):
            part = self.name()
            yield {"type": "chat/responsePart", **turn, "part": {"kind": "markdown", "id": part, "content": ""}}
            for _ in range(6):
                content = self._text(self._random.randint(4, 60))
                yield {"type": "chat/delta", **turn, "partId": part, "content": content}
            call = self._call()
            named = {**turn, "toolCallId": call["toolCallId"]}
            yield {"type": "chat/toolCallStart", **turn, **call, "toolInput": None}
            for _ in range(2):
                yield {"type": "chat/toolCallDelta", **named, "content": "", "invocationMessage": "Running"}
            yield {
                "type": "chat/toolCallReady",
                **named,
                "invocationMessage": "Run",
                "toolInput": call["toolInput"],
                "confirmed": "not-needed",
            }
            shown = [{"type": "terminal", "resource": f"ahp-terminal:/{part}", "title": "bash"}]
            yield {"type": "chat/toolCallContentChanged", **named, "content": shown}
            yield {"type": "chat/toolCallComplete", **named, "result": self._result()}
        yield {"type": "chat/turnComplete", **turn}

    def _call(self) -> Json:
        given = json.dumps({"command": self._code.text(self._random, 120)})
        return {"toolCallId": f"call_{self.name()}", "toolName": "bash", "displayName": "Bash", "toolInput": given}

    def _result(self) -> Json:
        return {"success": True, "content": [{"type": "text", "text": self._output.text(self._random, 900)}]}

    def _text(self, length: int) -> str:
        return self._prose.text(self._random, length)


def _running(turns: list[Json]) -> Json:
    """Take all turns but the first, and return them as one that runs: the most that an observer has to hold."""
    parts = [part for turn in turns[1:] for part in turn["responseParts"]]
    running = {"id": turns[-1]["id"], "message": turns[-1]["message"], "responseParts": parts}
    del turns[1:]
    return running


class _Host:
    """The sessions, and what is to happen in the first of them; where nothing is, the last turn of each runs."""

    def __init__(self, sessions: int, state_bytes: int, events_per_second: int, seconds: float) -> None:
        writer = _Writer()
        self.states: dict[str, Json] = {}
        self.sessions: list[str] = []
        self.chats: list[str] = []
        self.last: list[str] = []
        for _ in range(sessions):
            name = writer.name()
            session, chat = f"ahp-session:/{name}", f"ahp-chat://default/{name}"
            turns: list[Json] = []
            while len(json.dumps(turns)) < state_bytes:
                turns.append(writer.turn())
            self.sessions.append(session)
            self.chats.append(chat)
            self.states[session] = {"provider": "made-up", "chats": [{"resource": chat}], "defaultChat": chat}
            self.states[chat] = {"turns": turns, "activeTurn": None if seconds else _running(turns)}
            self.last.append(id_of(chat, len(turns) - 1, 0, "end", 0))
        self.rate = events_per_second
        self.frames: list[str] = []
        self.durable: dict[str, int] = {}
        ordinal = len(self.states[self.chats[0]]["turns"]) if sessions else 0
        while len(self.frames) < events_per_second * seconds:
            for action in writer.actions():
                if action["type"] == "chat/toolCallComplete":
                    id = id_of(self.chats[0], ordinal, 0, f"tool complete {action['toolCallId']}", "")
                    self.durable[id] = len(self.frames)
                params = {"channel": self.chats[0], "action": action, "serverSeq": len(self.frames) + 1}
                self.frames.append(json.dumps({"jsonrpc": "2.0", "method": "action", "params": params}))
            ordinal += 1

    def answer(self, method: str, params: Json) -> Json:
        match method:
            case "initialize":
                return {"protocolVersion": "0.9.0", "serverSeq": 0, "snapshots": []}
            case "listSessions":
                now = time.time() * 1000
                return {"items": [{"resource": one, "modifiedAt": now, "status": 8} for one in self.sessions]}
            case "subscribe":
                uri = params["channel"]
                return {"snapshot": {"resource": uri, "state": self.states.get(uri, {}), "fromSeq": 0}}
            case _:
                return {}


async def _serve(host: _Host, connections: set[ServerConnection], connection: ServerConnection) -> None:
    connections.add(connection)
    async for frame in connection:
        asked = json.loads(frame)
        if "id" in asked and "method" in asked:
            result = host.answer(asked["method"], asked["params"])
            await connection.send(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}))
    connections.discard(connection)


async def _tell(host: _Host, connections: set[ServerConnection], began: float) -> None:
    sent = 0
    while sent < len(host.frames):
        due = min(len(host.frames), int((time.monotonic() - began) * host.rate))
        for frame in host.frames[sent:due]:
            for connection in connections:
                await connection.send(frame)
        sent = max(sent, due)
        await asyncio.sleep(_BURST_SECONDS)


async def _run(host: _Host) -> None:
    connections: set[ServerConnection] = set()
    quiet = logging.Logger("quiet", logging.CRITICAL + 1)
    serving = serve(
        lambda one: _serve(host, connections, one), "127.0.0.1", 0, logger=quiet, compression=None, max_queue=None
    )
    async with serving as listening:
        port = next(iter(listening.sockets)).getsockname()[1]
        _say({"port": port, "last": host.last, "durable": host.durable})
        await asyncio.to_thread(sys.stdin.readline)
        began = time.monotonic()
        _say({"began": began})
        await _tell(host, connections, began)
        await asyncio.to_thread(sys.stdin.readline)


def _say(what: Json) -> None:
    print(json.dumps(what), flush=True)


def main() -> None:
    """Says where it is and what it has, then waits for a line on stdin to begin."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, kind in (("sessions", int), ("state_bytes", int), ("events_per_second", int), ("seconds", float)):
        parser.add_argument(name, type=kind)
    given = parser.parse_args()
    asyncio.run(_run(_Host(given.sessions, given.state_bytes, given.events_per_second, given.seconds)))


if __name__ == "__main__":
    main()
