"""The store on its own: durability, damage, newer schemas, and jobs that fail."""

import sqlite3
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from exporter.errors import StateError
from exporter.missioncontrol.ingest import write_jobs
from exporter.missioncontrol.receiver import Receiver
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.port import Database, StoreError
from exporter.missioncontrol.store.retention import Retention
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store

pytestmark = pytest.mark.anyio


def register(store: Store, id: str) -> None:
    store.do(lambda database: write_jobs.register(database, id, id, "2026-01-01T00:00:00.000Z"))


def known(store: Store) -> list[str]:
    page, _ = store.do(lambda database: queries.sessions(database, limit=100))
    return sorted(session["id"] for session in page)


def test_files_are_private(store_path: Path) -> None:
    with Store(store_path) as store:
        register(store, "s")

        modes = {stat.S_IMODE(path.stat().st_mode) for path in store_path.parent.iterdir()}

    assert modes == {0o600}
    assert stat.S_IMODE(store_path.parent.stat().st_mode) == 0o700


def test_what_was_answered_is_there_after_opening_again(store_path: Path) -> None:
    with Store(store_path) as store:
        register(store, "s")

    with Store(store_path) as store:
        assert known(store) == ["s"]
        assert store.notices == []


def test_commits_are_synced(store_path: Path) -> None:
    with Store(store_path) as store:
        settings = store.do(
            lambda database: [
                database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode")
            ]
        )

    assert settings == [2, "wal"]


@pytest.mark.parametrize(
    "damage", [b"", b"\0" * 100_000, b"this is no database at all" * 400], ids=["empty", "zeros", "text"]
)
def test_a_damaged_file_is_set_aside_and_a_new_one_begun(store_path: Path, damage: bytes) -> None:
    for name in ("first", "second"):
        with Store(store_path) as store:
            register(store, name)
        store_path.write_bytes(damage)

    with Store(store_path) as store:
        register(store, "third")
        found, notices = known(store), store.notices

    aside = sorted(path.name for path in store_path.parent.glob("*.corrupt-?"))
    assert found == ["third"]
    if damage:
        assert aside == ["mission-control.db.corrupt-1", "mission-control.db.corrupt-2"]
        assert "set aside as mission-control.db.corrupt-2" in notices[0].message


@pytest.mark.parametrize(("days", "stays"), [(1, False), (3, True), (None, True)])
async def test_a_store_that_was_set_aside_goes_when_all_in_it_is_past_its_time(
    store_path: Path, days: int | None, stays: bool
) -> None:
    with Store(store_path) as store:
        aside = store_path.with_name(f"{store_path.name}.corrupt-1")
        aside.write_text("what was forgotten since")
        written = datetime.fromtimestamp(aside.stat().st_mtime, UTC)

        await Receiver(store, clock=lambda: written + timedelta(days=2), retention=Retention(days_max=days)).expire()

        assert aside.exists() is stays


def test_a_file_cut_short_is_set_aside(store_path: Path) -> None:
    with Store(store_path) as store:
        for number in range(500):
            register(store, f"s{number}")
    whole = store_path.read_bytes()
    store_path.write_bytes(whole[: len(whole) // 2])

    with Store(store_path) as store:
        assert known(store) == []
        assert len(store.notices) == 1


def test_a_store_of_a_newer_version_is_left_alone(store_path: Path) -> None:
    with Store(store_path):
        pass
    with sqlite3.connect(store_path) as database:
        database.execute("PRAGMA user_version = 99")
    before = store_path.read_bytes()

    with pytest.raises(StateError, match="newer version"):
        Store(store_path)

    assert store_path.read_bytes() == before


def test_a_place_that_cannot_be_written_is_an_error_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StateError) as raised:
        Store(tmp_path / "file" / "store.db")

    assert raised.value.hint


def test_a_job_that_fails_undoes_only_itself(store: Store) -> None:
    def half(database: Database) -> None:
        write_jobs.register(database, "half", "half", "2026-01-01T00:00:00.000Z")
        raise ValueError("in the middle")

    first = store.submit(lambda database: write_jobs.register(database, "a", "a", "2026-01-01T00:00:00.000Z"))
    failed = store.submit(half)
    last = store.submit(lambda database: write_jobs.register(database, "b", "b", "2026-01-01T00:00:00.000Z"))

    assert isinstance(failed.exception(), ValueError)
    assert (first.result().count, last.result().count) == (0, 0)
    assert known(store) == ["a", "b"]


def test_closing_finishes_what_was_handed_in(store_path: Path) -> None:
    store = Store(store_path)
    ids = [f"s{number:03}" for number in range(200)]
    for id in ids:
        store.submit(lambda database, id=id: write_jobs.register(database, id, id, "now"))  # type: ignore[misc]
    store.close()
    store.close()

    with Store(store_path) as again:
        page, _ = again.do(lambda database: queries.sessions(database, limit=1000))
    assert sorted(session["id"] for session in page) == ids
    with pytest.raises(RuntimeError):
        store.submit(known)  # type: ignore[arg-type]


async def test_a_read_sees_every_answered_write(store: Store) -> None:
    for number in range(20):
        id = f"s{number}"
        await store.write(lambda database, id=id: write_jobs.register(database, id, id, "now"))  # type: ignore[misc]

        assert (await store.read(lambda database, id=id: queries.upload_state(database, id))).task_id == id  # type: ignore[misc]


async def test_a_read_cannot_write(store_path: Path) -> None:
    with Store(store_path) as store, pytest.raises(StoreError, match="readonly"):
        await store.read(lambda database: write_jobs.register(database, "s", "s", "now"))
