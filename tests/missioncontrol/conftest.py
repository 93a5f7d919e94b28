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
from exporter.missioncontrol.store.port import Store
from exporter.missioncontrol.store.postgresql.store import PostgresStore
from exporter.missioncontrol.store.sqlite.store import SqliteStore
from tests.missioncontrol.postgres import Server, emptied, use_for_machines

DECLARED = {"Session-Exporter": "0.1.0"}
Opener = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves to `make fleet` what needs a PostgreSQL."""
    for item in items:
        if isinstance(item, pytest.Function) and _needs_postgresql(item):
            item.add_marker("fleet")


def _needs_postgresql(item: pytest.Function) -> bool:
    params = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return "postgresql" in params or any("postgres" in name or name == "migrated_url" for name in item.fixturenames)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "mission-control.db"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """One real PostgreSQL for all tests of this process."""
    with Server() as server:
        yield server


@pytest.fixture(scope="session")
def migrated_url(postgres_server: Server) -> str:
    return postgres_server.migrated("shared")


@pytest.fixture
def postgres_url(migrated_url: str) -> str:
    """A database with the tables of a Mission Control and no rows."""
    return emptied(migrated_url)


@pytest.fixture
def postgres_of_the_process(postgres_url: str) -> None:
    """The database of state machines."""
    use_for_machines(postgres_url)


@pytest.fixture(params=["file", "memory", "postgresql"])
def store(request: pytest.FixtureRequest, store_path: Path) -> Iterator[Store]:
    if request.param == "postgresql":
        with PostgresStore(request.getfixturevalue("postgres_url")) as opened:
            yield opened
    else:
        with SqliteStore(":memory:" if request.param == "memory" else store_path) as opened:
            yield opened


@pytest.fixture(params=["file", "postgresql"])
def address(request: pytest.FixtureRequest, store_path: Path) -> str:
    """The address of a store that outlives the process, and that several may have open."""
    return str(request.getfixturevalue("postgres_url") if request.param == "postgresql" else store_path)


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
