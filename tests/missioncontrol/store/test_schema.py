"""A store of the version before is taken over with all it has; one of any other version is refused and kept.

`tests/fixtures/before` holds files that the program wrote before its migrations became one schema, and the answers
that it gave from them.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import zstandard

from exporter.core.notice import NoticeName
from exporter.errors import StateError
from exporter.missioncontrol.ingest import write_jobs
from exporter.missioncontrol.ingest.batch import read_elements, sort_out
from exporter.missioncontrol.store import tenants, tokens
from exporter.missioncontrol.store.ownership import owner_of, uploading
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.session_row import ForeignSessionError
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from tests.missioncontrol.conftest import Opener

BEFORE: Final = Path(__file__).parents[2] / "fixtures" / "before"
NOW: Final = "2026-11-18T10:00:00.000Z"


@pytest.fixture
def before(store_path: Path) -> Path:
    store_path.parent.mkdir(parents=True)
    store_path.write_bytes(zstandard.decompress((BEFORE / "mission-control.db.zst").read_bytes()))
    return store_path


def schema_of(path: Path) -> dict[str, Any]:
    """Return the columns of every table, and the definition of every index."""
    with closing(sqlite3.connect(path)) as database:
        found = database.execute("SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        return {
            name: database.execute(f"PRAGMA table_info({name})").fetchall() if kind == "table" else sql
            for name, kind, sql in found
        } | {"version": database.execute("PRAGMA user_version").fetchone()}


@pytest.mark.anyio
async def test_a_store_of_the_version_before_answers_as_it_did(before: Path, open_client: Opener) -> None:
    answers: dict[str, Any] = json.loads((BEFORE / "answers.json").read_text(encoding="utf-8"))
    with Store(before) as store:
        async with open_client(store) as client:
            found = {path: (await client.get(path)).json() for path in answers}
            large: httpx.Response = await client.get("/api/v1/sessions/first/events/e5")
            gone = await client.get("/api/v1/sessions/gone")

        assert [one.name for one in store.notices] == [NoticeName.STORE_KEPT]
        assert store.do(tokens.any_in_force)
    for answer in found.values():
        for newer in ("deletes", "installations"):
            answer.get("capabilities", {}).pop(newer, None)
        for newer in ("epoch", "changes"):
            answer.get("ack", {}).pop(newer, None)
    for exporter in found["/api/v1/exporters"]["exporters"]:
        assert exporter.pop("settings") is None
    assert found == answers
    assert large.json()["data"]["result"]["content"] == "long " * 5000
    assert gone.status_code == 410


def test_a_store_of_the_version_before_goes_on(before: Path) -> None:
    with Store(before) as store:
        late = b'{"type":"user.message","id":"b1","timestamp":"2026-11-18T10:00:01.000Z","data":{}}'
        batch = sort_out(read_elements(b'{"events":[' + late + b"]}"), event_bytes_max=1 << 20)
        stored = store.do(lambda database: write_jobs.store_batch(database, "second", batch, NOW))
        rows = store.do(
            lambda database: database.execute("SELECT n, id FROM events WHERE session = 2 ORDER BY place, n").fetchall()
        )

    assert (stored.ack.count, stored.ack.last_event_id) == (3, "b3")
    # Twelve rows were there, of which the deleted session had the last but one: no number is given out twice.
    assert rows == [(14, "b1"), (10, "b2"), (11, "b3")]


def test_the_sessions_of_the_version_before_are_nobodys_until_somebody_uploads(before: Path) -> None:
    laptop, desktop = (tokens.Holder(name, "upload", name.encode()) for name in ("laptop", "desktop"))
    batch = sort_out(read_elements(b'{"events":[]}'), event_bytes_max=1 << 20)

    def upload(database: Database) -> int:
        return write_jobs.store_batch(database, "second", batch, NOW).ack.count

    with Store(before) as store:
        owner = store.do(lambda database: owner_of(database, "second"))
        count = store.do(uploading("second", laptop, upload))
    with Store(before) as store, pytest.raises(ForeignSessionError):
        store.do(uploading("second", desktop, upload))

    assert (owner, count) == (None, 2)


def test_a_new_store_has_the_tables_of_one_that_was_taken_over(before: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.db"
    for path in (new, before):
        with Store(path):
            pass

    assert schema_of(new) == schema_of(before)


@pytest.mark.parametrize(("version", "age"), [(1, "an earlier"), (9, "an earlier"), (14, "a newer")])
def test_a_store_of_another_version_is_refused_by_name_and_kept(before: Path, version: int, age: str) -> None:
    with closing(sqlite3.connect(before)) as database:
        database.execute(f"PRAGMA user_version = {version}")
        database.commit()
    bytes_before = before.read_bytes()

    with pytest.raises(StateError, match=f"{age} version of this program: schema {version}, not 13") as raised:
        Store(before)

    assert raised.value.hint
    assert before.read_bytes() == bytes_before
    assert [path.name for path in before.parent.iterdir() if path.suffix == ".db"] == [before.name]


ADMIN, LAPTOP = "xmc_YaXmlLIcbeuy0s0ib9ivp0jlr3n8O8Js6R79bmlPbFY", "xmc_xEkWuGdYcdPaHHrmYviCnsDWayhXfK7ngEx0QTW3_mE"
"""Tokens of the store in mission-control-12.db.zst; they open nothing else."""


@pytest.fixture
def version_12(store_path: Path) -> Path:
    store_path.parent.mkdir(parents=True)
    store_path.write_bytes(zstandard.decompress((BEFORE / "mission-control-12.db.zst").read_bytes()))
    return store_path


@pytest.mark.anyio
async def test_a_store_without_tenants_is_that_of_the_default_one(version_12: Path, open_client: Opener) -> None:
    with Store(version_12) as store:
        async with open_client(store, headers={"Authorization": f"Bearer {ADMIN}"}) as client:
            listed = (await client.get("/api/v1/sessions")).json()["sessions"]
            gone = await client.get("/api/v1/sessions/gone")
        names = store.do(tenants.listed)
        held = {one["name"]: (one["scope"], bool(one["revoked"])) for one in store.do(tokens.listed)}
        holder = store.do(lambda database: tokens.holder(database, LAPTOP))
        other = store.tenant(tenants.create(store, "other", NOW))

        assert {(one["id"], one["events"]) for one in listed} == {("first", 3), ("second", 3)}
        assert gone.status_code == 410
        assert [one["name"] for one in names] == ["default"]
        assert held == {
            "admin": ("all", False),
            "reader": ("read", False),
            "laptop": ("upload", False),
            "gone": ("all", True),
        }
        assert holder is not None
        assert (holder.scope, holder.tenant) == ("upload", "default")
        assert other.do(lambda database: database.execute("SELECT count(*) FROM sessions").fetchone()) == (0,)
        assert len(store.do(tokens.redaction_key)) == 32
        assert store.do(tokens.redaction_key) != other.do(tokens.redaction_key)
    assert version_12.with_name(version_12.name + ".schema-12.backup").exists()
