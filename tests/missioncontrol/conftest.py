"""A receiver in process, with a store that a test may close and open again."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from exporter.core.events.redaction import Masked, Redacted, Refused
from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store

DECLARED = {"Session-Exporter": "0.1.0"}
Opener = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "mission-control.db"


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, store_path: Path) -> Iterator[Store]:
    with Store(":memory:" if request.param == "memory" else store_path) as opened:
        yield opened


@pytest.fixture
def open_client() -> Opener:
    @asynccontextmanager
    async def client(store: Store, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
        headers = options.pop("headers", DECLARED)
        app = create_app(store, **options)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as opened:
            yield opened

    return client


@pytest.fixture
async def client(store: Store, open_client: Opener) -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(store) as opened:
        await opened.post("/agents/sessions", json={"id": "s", "agent_task_id": "s"})
        yield opened


@pytest.fixture
def make_event() -> Callable[..., bytes]:
    def make(id: str, type: str = "tool.x", **fields: Any) -> bytes:
        return json.dumps(
            {"type": type, "data": {}, "id": id, "timestamp": "2026-11-18T10:00:00.000Z", **fields}
        ).encode()

    return make


@pytest.fixture
def make_body() -> Callable[..., bytes]:
    def make(*events: bytes, rewound: list[str] | None = None) -> bytes:
        tail = b"" if rewound is None else b',"rewound":' + json.dumps(rewound).encode()
        return b'{"events":[' + b",".join(events) + b"]" + tail + b"}"

    return make


@pytest.fixture
def redact() -> Callable[[bytes], Redacted]:
    """Masks the word `hunter2` and refuses what says `unreadable`."""

    def apply(line: bytes, /) -> Redacted:
        if b"unreadable" in line:
            return Refused("out_of_time")
        return Masked(line.replace(b"hunter2", b"[masked]"), ("password",)) if b"hunter2" in line else line

    return apply
