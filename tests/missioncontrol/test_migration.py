"""A store of an earlier version opens with all it held."""

import json
import sqlite3
from hashlib import sha256
from pathlib import Path

import pytest

from exporter.core.events import digest
from exporter.missioncontrol.ingest import write_jobs
from exporter.missioncontrol.ingest.batch import key_of, read_elements, sort_out
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.sqlite import schema
from exporter.missioncontrol.store.store import Store

NOW = "2026-11-18T10:00:00.000Z"


def line(id: str, **fields: object) -> bytes:
    return json.dumps({"type": "user.message", "data": {}, "id": id, "timestamp": NOW, **fields}).encode()


@pytest.fixture
def first_version(store_path: Path) -> list[bytes]:
    """Write a store as the first version did, with one session; return its events."""
    store_path.parent.mkdir(parents=True)
    events = [line(f"e{number}") for number in range(5)]
    with sqlite3.connect(store_path) as database:
        database.execute("PRAGMA page_size = 16384")
        for statement in schema._FIRST:
            database.execute(statement)
        database.execute("PRAGMA user_version = 1")
        held = digest.total((f"e{number}", sha256(raw).digest()) for number, raw in enumerate(events))
        database.execute(
            "INSERT INTO sessions VALUES (1, 's', 's', ?, ?, 5, ?, 'e4', '{\"events\":5}',"
            " '{\"redactions\":{\"2026-11-18\":{\"aws\":2}}}', NULL, 0, 1, 'idle', ?, 's')",
            (NOW, NOW, bytes.fromhex(held), NOW),
        )
        for number, raw in enumerate(events):
            database.execute(
                "INSERT INTO events VALUES (?, 1, 0, ?, ?, 'user.message', ?, NULL, ?, ?)",
                (number + 1, key_of(f"e{number}"), f"e{number}", NOW, sha256(raw).digest(), raw),
            )
    return events


def test_a_store_of_the_first_version_goes_on(store_path: Path, first_version: list[bytes]) -> None:
    with Store(store_path) as store:
        before = store.do(lambda database: queries.events(database, "s", limit=10)).bodies
        late = [line("e0"), line("between", parentId="e0"), line("e1")]
        batch = sort_out(read_elements(b'{"events":[' + b",".join(late) + b"]}"), event_bytes_max=1 << 20)
        stored = store.do(lambda database: write_jobs.store_batch(database, "s", batch, NOW))
        after = store.do(lambda database: queries.events(database, "s", limit=10)).bodies

    assert store.notices == []
    assert before == first_version
    assert (stored.ack.count, stored.ack.last_event_id) == (6, "e4")
    assert after == [first_version[0], late[1], *first_version[1:]]
