"""Receivers that stand behind a scripted peer: one at the floor of the wire, and the project's own."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import httpx

from exporter.core.names import STORE_HEADER
from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.session_row import DeletedSessionError, UnknownSessionError
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from tests.daemon.exchange import Request


class Behind(Protocol):
    """A receiver that stands behind the script."""

    async def answer(self, request: Request) -> tuple[int, dict[str, str], bytes]: ...

    def held(self, session: str) -> list[tuple[str, bytes]]: ...

    def close(self) -> None: ...


class Floor:
    """A receiver that offers nothing above the floor, and calls every session by a name of its own."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, bytes]] = {}
        self.remote_ids: dict[str, str] = {}

    async def answer(self, request: Request) -> tuple[int, dict[str, str], bytes]:
        path = request.path.removeprefix("/agents")
        if request.method == "POST" and path == "/sessions":
            session = request.json()["id"]
            remote = self.remote_ids.setdefault(session, f"remote-{session}")
            self.events.setdefault(remote, {})
            return 200, {}, json.dumps({"id": remote, "task_id": f"task-{session}"}).encode()
        remote = path.split("/")[2].partition("?")[0]
        if remote not in self.events:
            return 404, {}, b"{}"
        if request.is_events:
            for event in request.json()["events"]:
                self.events[remote].setdefault(event["id"], json.dumps(event).encode())
            return 200, {}, b""
        return 200, {}, json.dumps({"id": remote}).encode()

    def held(self, session: str) -> list[tuple[str, bytes]]:
        return list(self.events.get(self.remote_ids.get(session, ""), {}).items())

    def forget(self, session: str) -> None:
        """Lose a session, as a receiver does whose database was reset."""
        self.events.pop(self.remote_ids.pop(session), None)

    def close(self) -> None:
        pass


class Full:
    """The receiver of this project with every capability; `change` may alter what it answers to a registration."""

    def __init__(self, path: Path, change: Callable[[dict[str, Any]], None] | None = None) -> None:
        self.path = path
        self.change = change
        self.open()

    def open(self) -> None:
        """Open the store, again after `close`: a restart of the receiver."""
        self.store = Store(self.path)
        self._client = httpx.AsyncClient(transport=httpx.ASGITransport(create_app(self.store)))

    async def answer(self, request: Request) -> tuple[int, dict[str, str], bytes]:
        headers = {name: value for name, value in request.headers.items() if name not in ("host", "content-length")}
        answer = await self._client.request(
            request.method, f"http://127.0.0.1{request.path}", headers=headers, content=request.body or None
        )
        body = answer.content
        if self.change is not None and answer.status_code == 200 and not request.is_events:
            changed = answer.json()
            if "capabilities" in changed:
                self.change(changed)
                body = json.dumps(changed).encode()
        return answer.status_code, {one: answer.headers[one] for one in (STORE_HEADER,) if one in answer.headers}, body

    def held(self, session: str) -> list[tuple[str, bytes]]:
        """Return what is shown of a session, in order: ids and exact bytes."""
        found: list[tuple[str, bytes]] = []
        page = queries.EventPage([], None, [])
        while not found or page.next is not None:
            try:
                page = self.store.do(partial(queries.events, session_id=session, after=page.next, limit=500))
            except (UnknownSessionError, DeletedSessionError):
                return []
            if not page.bodies:
                break
            found += [(json.loads(body)["id"], body) for body in page.bodies]
        return found

    def close(self) -> None:
        self.store.close()
