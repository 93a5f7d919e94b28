"""Whatever is sent in whatever order, with repeats, rewinds and restarts: the store holds what the model says.

The order in which events are shown is the matter of `test_ordering`.
"""

import json
import tempfile
from hashlib import sha256
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from exporter.core.events import digest
from exporter.core.events.envelope import Envelope, decode
from exporter.core.events.summary import Summary
from exporter.missioncontrol.ingest import write_jobs
from exporter.missioncontrol.ingest.batch import read_elements, sort_out
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.port import Store
from exporter.missioncontrol.store.session_row import SessionAck
from exporter.missioncontrol.store.sqlite.store import SqliteStore
from tests.missioncontrol.postgres import opened_on_postgres

NOW = "2026-11-18T10:01:00.000Z"
SESSIONS = ("one", "two")
TYPES = ("user.message", "assistant.turn_end", "session.usage_record", "session.shutdown", "tool.x")
ids = st.sampled_from([f"e{number}" for number in range(12)] + ["ü", "e\u2028"])
events = st.tuples(ids, st.sampled_from(TYPES), st.integers(0, 2), st.booleans())


def line(id: str, type: str, version: int, ephemeral: bool) -> bytes:
    data = {"usage": {"inputTokens": 10 + version}, "content": f"text {version}"}
    envelope = {"type": type, "data": data, "id": id, "timestamp": f"2026-11-18T10:00:0{version}.000Z"}
    return json.dumps(envelope | ({"ephemeral": True} if ephemeral else {}), ensure_ascii=False).encode()


class Deliveries(RuleBasedStateMachine):
    """The model is a dictionary per session of the bytes that are shown."""

    @initialize()
    def begin(self) -> None:
        self.directory = tempfile.TemporaryDirectory(prefix="xp-model-")
        self.store = self.opened(is_new=True)
        self.shown: dict[str, dict[str, bytes]] = {id: {} for id in SESSIONS}
        for id in SESSIONS:
            self.register(id)

    def opened(self, *, is_new: bool = False) -> Store:
        return SqliteStore(Path(self.directory.name) / "store.db")

    def register(self, id: str) -> SessionAck:
        return self.store.do(lambda database: write_jobs.register(database, id, id, NOW))

    @rule(session=st.sampled_from(SESSIONS), sent=st.lists(events, max_size=8), rewound=st.lists(ids, max_size=4))
    def post(self, session: str, sent: list[tuple[str, str, int, bool]], rewound: list[str]) -> None:
        lines = [line(*event) for event in sent]
        body = b'{"events":[' + b",".join(lines) + b'],"rewound":' + json.dumps(rewound).encode() + b"}"
        shown = self.shown[session]
        before = set(shown)

        batch = sort_out(read_elements(body), event_bytes_max=1 << 20)
        stored = self.store.do(lambda database: write_jobs.store_batch(database, session, batch, NOW))

        for id in rewound:
            shown.pop(id, None)
        for (id, _, _, ephemeral), raw in zip(sent, lines, strict=True):
            if not ephemeral:
                shown.setdefault(id, raw)
        assert {event.envelope.id for event in stored.new} >= set(shown) - before
        assert len(stored.new) + stored.duplicates == sum(not ephemeral for *_, ephemeral in sent)
        assert stored.ack.count == len(shown)

    @rule(session=st.sampled_from(SESSIONS))
    def register_again(self, session: str) -> None:
        assert self.register(session).count == len(self.shown[session])

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.store = self.opened()

    @rule(session=st.sampled_from(SESSIONS))
    def forget_and_restore(self, session: str) -> None:
        self.store.do(lambda database: write_jobs.forget_session(database, session, NOW))
        self.store.do(lambda database: write_jobs.register(database, session, session, NOW, restore=True))
        self.shown[session] = {}

    @invariant()
    def holds_what_the_model_says(self) -> None:
        if not hasattr(self, "store"):
            return
        for session, shown in self.shown.items():
            self.compare(session, shown)

    def compare(self, session: str, shown: dict[str, bytes]) -> None:
        held = self.store.do(lambda database: queries.upload_state(database, session, with_items=True))
        page = self.store.do(lambda database: queries.events(database, session, limit=1000))
        hashes = [(id, sha256(raw).digest()) for id, raw in shown.items()]
        assert sorted(page.bodies) == sorted(shown.values())
        assert held.items is not None
        assert sorted(held.items) == sorted((id, hashed.hex()) for id, hashed in hashes)
        last = held.items[-1][0] if shown else None
        assert held.ack == SessionAck(len(shown), digest.total(hashes), last)
        self.compare_summary(session, page.bodies)

    def compare_summary(self, session: str, bodies: list[bytes]) -> None:
        told = Summary()
        for body in bodies:
            envelope = decode(body)
            assert isinstance(envelope, Envelope)
            told.add(envelope)
        got = self.store.do(lambda database: queries.session(database, session))
        assert (got["events"], got["state"], got["title"]) == (told.events, told.state, told.title)
        assert (got["tokens"], got["started"]) == (told.tokens(), told.started)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.directory.cleanup()


class DeliveriesOnPostgres(Deliveries):
    """The same with a receiver on PostgreSQL."""

    def opened(self, *, is_new: bool = False) -> Store:
        return opened_on_postgres(is_new=is_new)


TestDeliveries = Deliveries.TestCase
TestDeliveries.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
TestDeliveriesOnPostgres = pytest.mark.usefixtures("postgres_of_the_process")(DeliveriesOnPostgres.TestCase)
TestDeliveriesOnPostgres.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)
