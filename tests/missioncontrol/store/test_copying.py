"""A store is copied into one of the same or the other engine, and is for everybody the store that it was."""

from pathlib import Path

import pytest

from exporter.errors import UsageError
from exporter.missioncontrol.ingest import write_jobs
from exporter.missioncontrol.store import audit, queries, tenants, tokens
from exporter.missioncontrol.store.agent_tree import tree
from exporter.missioncontrol.store.copying import Copied, CopyDiffersError, copy
from exporter.missioncontrol.store.opening import open_store
from exporter.missioncontrol.store.port import Database, Store
from exporter.missioncontrol.store.session_row import DeletedSessionError
from tests.missioncontrol.ingest.test_agent_attribution import STORY, post
from tests.missioncontrol.store_contract import NOW, event, register, store_events

LARGE = "long\\u0000 \U0010ffff " * 3000


@pytest.fixture
def filled(tmp_path: Path) -> str:
    return fill(str(tmp_path / "from.db"))


def fill(address: str) -> str:
    with open_store(address) as store:
        post(store, "story", STORY.lines)
        store.do(register("odd"))
        store.do(store_events("odd", *[event(f"e{number}", f"{number} {LARGE}") for number in range(600)]))
        store.do(store_events("odd", event("same", f"0 {LARGE}")))
        post(store, "odd", [event("e3", "again")], ("e3", "e4"))
        store.do(register("gone"))
        store.do(lambda database: write_jobs.forget_session(database, "gone", NOW))
        store.do(lambda database: write_jobs.report_exporter(database, "x", {"version": "1"}, NOW, tokens.OWNER))
    return address


def facts(store: Store) -> list[object]:
    """What everybody asks, but for numbers of rows."""

    def read(database: Database) -> list[object]:
        told: list[object] = [queries.identity(database), queries.exporters(database), queries.totals(database)]
        for id in ("story", "odd"):
            state = queries.upload_state(database, id, with_items=True)
            told += [state.ack, state.items, queries.session(database, id), tree(database, id)]
            told.append(queries.events(database, id, limit=10_000).bodies)
        return told

    return store.read_now(read)


@pytest.mark.parametrize("way", ["to PostgreSQL", "and back"])
def test_a_copy_is_the_store_that_it_was(filled: str, postgres_url: str, tmp_path: Path, way: str) -> None:
    target = postgres_url
    with open_store(filled) as source:
        token = source.do(lambda database: tokens.create(database, "anna", NOW))
        before, epoch = facts(source), source.epoch
        with open_store(target) as empty:
            done = copy(source, empty)
    if way == "and back":
        target = str(tmp_path / "back.db")
        with open_store(postgres_url) as source, open_store(target) as empty:
            copy(source, empty)

    with open_store(target) as copied:
        assert facts(copied) == before
        assert copied.epoch != epoch
        assert copied.read_now(lambda database: tokens.holder(database, token)) is not None
        with pytest.raises(DeletedSessionError):
            copied.do(register("gone"))
        assert copied.do(store_events("odd", event("e3", "again"), event("new"))).duplicates == 1
    assert done == Copied(2, len(STORY.lines) + 600)


def test_a_store_that_has_something_is_not_copied_into(filled: str, postgres_url: str) -> None:
    with open_store(filled) as source, open_store(postgres_url) as target:
        target.do(register("s"))
        with pytest.raises(UsageError, match="not empty"):
            copy(source, target)

        assert target.read_now(lambda database: queries.totals(database).events) == 0


def test_a_copy_that_differs_is_said_to(filled: str, postgres_url: str) -> None:
    """The disk of the source returns other bytes than were stored."""
    with open_store(filled) as source:
        source.do(
            lambda database: database.execute("UPDATE events SET body = ? WHERE id = 'same'", (event("same", "x"),))
        )
        with open_store(postgres_url) as target, pytest.raises(CopyDiffersError, match="odd"):
            copy(source, target)


@pytest.mark.parametrize("chosen", [None, "red"])
def test_tenants_are_copied_each_into_its_own(filled: str, postgres_url: str, chosen: str | None) -> None:
    with open_store(filled) as source, open_store(postgres_url) as target:
        red = source.tenant(tenants.create(source, "red", NOW))
        tenants.create(source, "blue", NOW)
        red.do(register("odd"))
        red.do(store_events("odd", event("only", LARGE)))
        token = red.do(lambda database: tokens.create(database, "a", NOW, scope="auditor", tenant="red"))
        red.do(lambda database: audit.add(database, NOW, "a", "read", "odd"))

        done = copy(source, target, chosen)

        copied = tenants.store_of(target, "red")
        holder = copied.read_now(lambda database: tokens.holder(database, token))
        noted, _ = copied.read_now(lambda database: audit.entries(database, limit=5))
        assert holder is not None
        assert (holder.scope, [one["who"] for one in noted]) == ("auditor", ["a"])
        assert copied.read_now(tokens.redaction_key) == red.read_now(tokens.redaction_key)
        assert [one["name"] for one in target.read_now(tenants.listed)] == (
            ["default", "red", "blue"] if chosen is None else ["default", "red"]
        )
        assert done == (Copied(3, len(STORY.lines) + 601) if chosen is None else Copied(1, 1))
        with pytest.raises(tenants.TenantError):
            copy(source, target, "nobody")
