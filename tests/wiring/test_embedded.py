"""The embedded Mission Control as a sink: what it is handed is stored as if it had come over the wire."""

from collections.abc import Iterator

import pytest
from starlette.applications import Starlette

from exporter.core.delivery.verdict import Accepted, Deleted, Later, Missing
from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from exporter.sinks.sink import Registered
from exporter.wiring.sinks.embedded import embedded_sink

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(":memory:") as opened:
        yield opened


@pytest.fixture
def app(store: Store) -> Starlette:
    return create_app(store)


def line(id: str) -> bytes:
    return b'{"type":"tool.x","data":{},"id":"%s","timestamp":"2026-11-18T10:00:00.000Z"}' % id.encode()


async def test_what_is_handed_over_is_stored_and_acknowledged(app: Starlette) -> None:
    sink = embedded_sink(app)
    registered = await sink.register("s", None)
    assert isinstance(registered, Registered)

    sent = await sink.send("s", ["a", "b"], [line("a"), line("b")])
    again = await sink.send("s", ["b", "c"], [line("b"), line("c")], ["a"])

    assert (sent.verdict, sent.trusted, sent.count) == (Accepted(), True, 2)
    assert (again.verdict, again.trusted, again.count) == (Accepted(), True, 2)
    held = await sink.items("s")
    assert isinstance(held, dict)
    assert list(held) == ["b", "c"]


async def test_what_the_receiver_does_not_take_is_named(app: Starlette) -> None:
    sink = embedded_sink(app)
    await sink.register("s", None)

    sent = await sink.send("s", ["a", "torn"], [line("a"), b'{"id":"torn","type":"x"'])

    assert (sent.verdict, sent.rejected, sent.count) == (Accepted(), ("#1",), 1)


async def test_answers_mean_what_they_mean_over_the_wire(app: Starlette, store: Store) -> None:
    sink = embedded_sink(app)
    await sink.register("s", None)
    await app.state.receiver.forget(["s"])

    assert isinstance((await sink.send("never", ["a"], [line("a")])).verdict, Missing)
    assert isinstance((await sink.send("s", ["a"], [line("a")])).verdict, Deleted)


async def test_a_store_that_cannot_be_written_is_tried_again_later(app: Starlette, store: Store) -> None:
    sink = embedded_sink(app)
    await sink.register("s", None)
    store.do(lambda database: database.execute("ALTER TABLE events RENAME TO elsewhere"))

    refused = await sink.send("s", ["a"], [line("a")])
    store.do(lambda database: database.execute("ALTER TABLE elsewhere RENAME TO events"))
    sent = await sink.send("s", ["a"], [line("a")])

    assert refused.verdict == Later("answered 503", 1.0)
    assert (sent.verdict, sent.count) == (Accepted(), 1)


async def test_a_defect_of_the_receiver_is_an_answer_too(app: Starlette, store: Store) -> None:
    sink = embedded_sink(app)
    await sink.register("s", None)
    store.close()

    assert isinstance((await sink.send("s", ["a"], [line("a")])).verdict, Later)
