"""The RPC source on a thread of its own, with a journal behind it, beside a real server that a test drives."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from exporter.core.agents.registry import AgentRegistry, EventOwner
from exporter.core.events.envelope import Envelope, decode
from exporter.sources.journals import Journals
from exporter.sources.remote import Callbacks, SourceEvent, Want
from exporter.sources.rpc.session import State
from exporter.sources.rpc.source import RpcSource
from tests.real.cli import wait_until

FOLLOW_SECONDS_MAX = 30
JOURNAL_BYTES_MAX = 64 << 20


class Observer:
    """Follows every session of the server that `connect` reaches; a context manager."""

    def __init__(
        self,
        root: Path,
        connect: Callable[[], socket.socket],
        *,
        token: str | None = None,
        push: bool = False,
        want: Want = Want.ALL,
        page_events: int | None = None,
    ) -> None:
        self.root = root
        self.token = token
        self.ephemeral: list[dict[str, Any]] = []
        self.pages: list[int] = []
        self.places: list[EventOwner] = []
        self.gone: list[str] = []
        self.full = False
        self._agents = AgentRegistry()
        self._journals = Journals(root, JOURNAL_BYTES_MAX)
        self._connect = connect
        self._want = want
        callbacks = Callbacks(
            self._take, self._journals.mark, self._journals.known, lambda *_: self._want, self.gone.append
        )
        self.source = RpcSource(self._open, lambda: self.token, callbacks, push=push, pause_seconds=(0.1, 0.5))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def lines(self, session_id: str) -> list[dict[str, Any]]:
        """What the journal of a session holds."""
        path = self.root / session_id / "events.jsonl"
        written = path.read_bytes() if path.exists() else b""
        return [json.loads(line) for line in written[: written.rfind(b"\n") + 1].splitlines()]

    def ids(self, session_id: str) -> list[str]:
        return [event["id"] for event in self.lines(session_id)]

    def wait_live(self, session_id: str) -> None:
        wait_until(lambda: self.source.sessions.get(session_id) is State.LIVE, "a live session", FOLLOW_SECONDS_MAX)

    def wait_state(self, word: str) -> None:
        wait_until(lambda: word in self.source.state, f"the state {word!r}", FOLLOW_SECONDS_MAX)

    def wait_for(self, session_id: str, ids: Callable[[], Sequence[str]]) -> None:
        """Wait until a journal holds all of these."""
        wait_until(lambda: set(ids()) <= set(self.ids(session_id)), "the journal to hold it", FOLLOW_SECONDS_MAX)

    def __enter__(self) -> Observer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(10)
        self._journals.close()

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(sock=self._connect())

    async def _take(self, session_id: str, events: Sequence[SourceEvent]) -> bool:
        if self.full:
            return False
        self._agents.add(session_id)
        durable = []
        for line, is_ephemeral in events:
            envelope = decode(line)
            assert isinstance(envelope, Envelope), envelope
            self.places.append(self._agents.attribute(session_id, envelope))
            if is_ephemeral:
                self.ephemeral.append(json.loads(line))
            else:
                durable.append((envelope.id, line))
        self.pages.append(len(events))
        return self._journals.append(session_id, durable)

    def _run(self) -> None:
        self._task = self._loop.create_task(self.source.run())
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        finally:
            self._loop.close()
