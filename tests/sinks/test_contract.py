"""The contract of `contract.py`, kept by every kind of sink that is registered."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.applications import Starlette

from config.settings import Archive, MissionControl, Otel
from exporter.core.delivery.verdict import Accepted
from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.http.server import serve_http
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.session_row import DeletedSessionError, UnknownSessionError
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from exporter.sinks.sink import Capabilities, Sent, Sink
from exporter.wiring.sinks.archive import KIND as ARCHIVE
from exporter.wiring.sinks.embedded import KIND as EMBEDDED
from exporter.wiring.sinks.mission_control import KIND as MISSION_CONTROL
from exporter.wiring.sinks.otlp import KIND as OTLP
from otel.model import LogRecord
from otel.names import Content
from tests.daemon.telemetry import attributes_of
from tests.otel.bodies import log_bytes
from tests.otel.receiver import Receiver
from tests.sinks.contract import FarSide, SinkContract, parts

_NO_ANSWER_ABOUT_WHAT_IS_HELD = "an OTLP endpoint says nothing of what it holds"
_NO_SESSIONS = "an OTLP endpoint knows no sessions"


@dataclass
class OurReceiver(FarSide):
    """The project's own Mission Control."""

    sink: Sink
    app: Starlette
    store: Store
    stop: Any

    async def held(self, session: str) -> list[str]:
        page = partial(queries.events, session_id=session, after=None, limit=5_000)
        try:
            bodies = self.store.do(page).bodies
        except (UnknownSessionError, DeletedSessionError):
            return []
        return [msgspec.json.decode(body)["id"] for body in bodies]

    async def leave(self) -> None:
        await self.stop()

    async def delete(self, session: str) -> None:
        await self.app.state.receiver.forget([session])

    def bad(self) -> tuple[str, bytes]:
        return "#1", b'{"id":7,"data":{}}'


class TestMissionControl(SinkContract):
    section = "mission_control"
    lacks = {
        "inspects": "it is somewhere else, and says itself what it holds",
        "gathers": "a page shows every event at once",
    }
    odd_names = ("s.1_A-b:@+", "x" * 100)

    @asynccontextmanager
    async def behind(self, directory: Path) -> AsyncIterator[FarSide]:
        with Store(directory / "receiver.db") as store:
            app = create_app(store)
            server = await serve_http(app, "127.0.0.1", 0, explicit_port=True)
            settings = MissionControl(url=f"{server.url}/agents", timeout_seconds=5.0)
            [built] = MISSION_CONTROL.build("default", settings, parts())
            yield OurReceiver(built.sink, app, store, server.stop)
            await server.stop()


class TestEmbedded(SinkContract):
    section = ""
    lacks = {
        "inspects": "it says itself what it holds, as over the wire",
        "gathers": "a page shows every event at once",
    }
    odd_names = ("s.1_A-b:@+", "x" * 100)

    @asynccontextmanager
    async def behind(self, directory: Path) -> AsyncIterator[FarSide]:
        with Store(directory / "receiver.db") as store:
            app = create_app(store)
            [built] = EMBEDDED.build("", None, parts(app))

            async def close() -> None:
                store.close()

            yield OurReceiver(built.sink, app, store, close)


@dataclass
class Endpoint(FarSide):
    """An OTLP endpoint that takes log records."""

    sink: Sink
    receiver: Receiver

    async def held(self, session: str) -> list[str]:
        told = [attributes_of(record) for record in self.receiver.logs()]
        return [one["event.id"] for one in told if one["gen_ai.conversation.id"] == session]

    async def leave(self) -> None:
        self.receiver.close()

    def lines(self, ids: Sequence[str]) -> list[bytes]:
        return [self._record(identity) for identity in ids]

    def _record(self, identity: str) -> bytes:
        session = next((one for one in (re.fullmatch(r"in (.*)|(s\d)-\d", identity),) if one), None)
        name = (session[1] or session[2]) if session else "s"
        return log_bytes(LogRecord(1, identity, "user.message", 9, None, name), Content.METADATA, "cli", 2)


class _Otlp(SinkContract):
    section = "otel"
    lacks = {
        "acknowledges": _NO_ANSWER_ABOUT_WHAT_IS_HELD,
        "holds": _NO_ANSWER_ABOUT_WHAT_IS_HELD,
        "knows duplicates": "that is the backend's to do, by the ids of spans and points",
        "hides": _NO_ANSWER_ABOUT_WHAT_IS_HELD,
        "rejects": "an OTLP endpoint says how many records it rejects, not which (tests/daemon/test_otlp_answers.py)",
        "remembers deletions": _NO_SESSIONS,
        "inspects": _NO_ANSWER_ABOUT_WHAT_IS_HELD,
        "gathers": "a backend shows every record at once",
        "reports": _NO_SESSIONS,
    }

    @asynccontextmanager
    async def endpoint(self, protocol: Any) -> AsyncIterator[FarSide]:
        with Receiver(with_grpc=protocol == "grpc") as receiver:
            url = receiver.grpc_url if protocol == "grpc" else receiver.url
            settings = Otel(endpoint=url, protocol=protocol, signals=("logs",), timeout_seconds=5.0)
            [built] = OTLP.build("default", settings, parts())
            yield Endpoint(built.sink, receiver)


class TestOtlpOverHttp(_Otlp):
    def behind(self, directory: Path) -> AbstractAsyncContextManager[FarSide]:
        return self.endpoint("http/protobuf")


class TestOtlpOverGrpc(_Otlp):
    def behind(self, directory: Path) -> AbstractAsyncContextManager[FarSide]:
        return self.endpoint("grpc")


@dataclass
class Directory(FarSide):
    """An archive in a directory, read again as by somebody else."""

    sink: Sink
    root: Path

    async def held(self, session: str) -> list[str]:
        [another] = ARCHIVE.build("default", Archive(url=self.root.as_uri()), parts())
        found = await another.sink.items(session)
        await another.sink.close()
        assert isinstance(found, dict)
        return list(found)

    async def leave(self) -> None:
        (self.root).rename(self.root.with_name("elsewhere"))
        self.root.write_bytes(b"")

    async def delete(self, session: str) -> None:
        assert await self.sink.forget(session)


class TestArchive(SinkContract):
    section = "archive"
    lacks = {
        "rejects": "whatever passed the redactor is kept as it is",
        "reports": "nobody reads them in a directory",
    }

    @asynccontextmanager
    async def behind(self, directory: Path) -> AsyncIterator[FarSide]:
        root = directory / "archive"
        [built] = ARCHIVE.build("default", Archive(url=root.as_uri()), parts())
        assert not root.exists(), "nothing is written before it is asked to be"
        yield Directory(built.sink, root)


def test_a_part_that_is_renamed_is_noticed() -> None:
    broken = type("Broken", (TestArchive,), {"lacks": {**TestArchive.lacks, "no such part": "a reason of some length"}})

    with pytest.raises(AssertionError):
        broken().test_every_part_is_there_or_has_a_reason_why_not()


async def _takes_and_drops(*_: Any, **__: Any) -> Sent:
    return Sent(Accepted(), count=2)


async def _holds_nothing(*_: Any) -> dict[str, bytes]:
    return {}


async def _raises(*_: Any, **__: Any) -> Sent:
    raise OSError("no space")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("spoilt", "by", "test"),
    [
        ("send", _takes_and_drops, "test_what_is_accepted_is_there_in_order"),
        ("send", _takes_and_drops, "test_a_registration_says_what_is_held"),
        ("items", _holds_nothing, "test_what_it_holds_is_told_with_the_hash_of_each"),
        ("items", _holds_nothing, "test_what_is_rewound_is_hidden_and_may_come_back"),
        ("send", _takes_and_drops, "test_what_is_sent_twice_does_no_harm"),
        ("send", _takes_and_drops, "test_sessions_at_once_do_not_mix"),
        ("send", _raises, "test_one_that_is_away_is_tried_later_and_raises_nothing"),
        ("capabilities", Capabilities(ack=True), "test_what_it_lacks_is_what_it_says_of_itself"),
    ],
)
async def test_a_sink_that_breaks_the_contract_fails(tmp_path: Path, spoilt: str, by: Any, test: str) -> None:
    suite = TestArchive()
    async with suite.behind(tmp_path) as far:
        setattr(far.sink, spoilt, by)
        with pytest.raises((AssertionError, OSError)):
            await getattr(suite, test)(far)
        await far.sink.close()
