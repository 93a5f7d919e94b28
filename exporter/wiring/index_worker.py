"""An index worker behind its port: it answers which events may match, and says whether it is up to date."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

import msgspec

from exporter.daemon.metrics_listener import Asked, Listening, Told, listening
from exporter.errors import UsageError
from exporter.missioncontrol.search.index import Term
from exporter.missioncontrol.search.remote import FoundNumbers
from exporter.missioncontrol.search.worker import IndexWorker
from exporter.missioncontrol.store.opening import is_postgres, require_fleet
from exporter.missioncontrol.store.port import StoreError


@asynccontextmanager
async def serving(store: str, directory: Path, host: str, port: int, *, token: str) -> AsyncIterator[str]:
    """Run a worker with its files in this directory while in the block; yield its address."""
    if not is_postgres(store):
        raise UsageError("A store in a file has its index beside it.", hint="give --store postgresql://HOST/DATABASE")
    require_fleet()
    worker = IndexWorker(store, directory)
    pages = {
        "/search": lambda asked: _search(worker, asked),
        "/healthz": lambda _: Told(HTTPStatus.OK, b"ok\n"),
        "/readyz": lambda _: _ready(worker),
    }
    where = Listening(
        host=host, port=port, token=lambda: token, open_pages=frozenset(("/healthz",)), name="mission-control index"
    )
    async with listening(where, pages) as bound:
        worker.start()
        try:
            yield f"http://{f'[{host}]' if ':' in host else host}:{bound}"
        finally:
            await asyncio.to_thread(worker.close)


def _ready(worker: IndexWorker) -> Told:
    if worker.ready.is_set():
        return Told(HTTPStatus.OK, b"ok\n")
    return Told(HTTPStatus.SERVICE_UNAVAILABLE, b"the index is being built, or PostgreSQL is away\n")


def _search(worker: IndexWorker, asked: Asked) -> Told:
    """Answer with numbers; while the index is being built too, with those that are in by then."""
    try:
        tenant, below = int(asked.query["tenant"]), int(asked.query["below"])
        terms = msgspec.json.decode(asked.query["terms"], type=tuple[Term, ...])
        found = worker.find(tenant, terms, below)
    except (KeyError, ValueError, msgspec.MsgspecError):
        return Told(HTTPStatus.BAD_REQUEST, b"give tenant, below and terms\n")
    except StoreError:
        return Told(HTTPStatus.SERVICE_UNAVAILABLE, b"the index cannot be read\n")
    return Told(HTTPStatus.OK, msgspec.json.encode(FoundNumbers(*found)), "application/json")
