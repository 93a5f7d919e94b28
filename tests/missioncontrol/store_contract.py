"""What every engine behind `exporter.missioncontrol.store.port` must do. A subclass gives the fixture `open_store`.

Each test opens its own store. `outlives` says whether a store that is opened again has what was stored before, and
whether two that are open at once are the same.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, ClassVar

import pytest

from exporter.missioncontrol.ingest import write_jobs
from exporter.missioncontrol.ingest.batch import Elements, sort_out
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.port import Database, Job, Store, StoreError, Table
from exporter.missioncontrol.store.session_row import load, save

NOW = "2026-11-18T10:00:00.000Z"
OpenStore = Callable[[], Store]
TABLES: tuple[Table, ...] = ("events", "sessions")


class Refused(Exception):
    """What a job of these tests raises."""


def register(id: str) -> Job[Any]:
    return lambda database: write_jobs.register(database, id, id, NOW)


def known(database: Database) -> list[str]:
    return [id for (id,) in database.execute("SELECT id FROM sessions ORDER BY id")]


def event(id: str, content: str = "") -> bytes:
    return b'{"type":"user.message","id":"%s","timestamp":"%s","data":{"content":"%s"}}' % (
        id.encode(),
        NOW.encode(),
        content.encode(),
    )


def store_events(id: str, *events: bytes) -> Job[Any]:
    batch = sort_out(Elements(list(events), []), event_bytes_max=1 << 20)
    return lambda database: write_jobs.store_batch(database, id, batch, NOW)


def together(store: Store, *jobs: Job[Any]) -> list[Future[Any]]:
    """Submit the jobs while the store is kept from committing, so that they are waiting at the same time."""
    go_on = threading.Event()
    first = store.submit(lambda _: go_on.wait(10))
    answers = [store.submit(job) for job in jobs]
    go_on.set()
    first.result(10)
    return answers


class StoreContract:
    """The tests; pytest collects them in subclasses."""

    outlives: ClassVar[bool] = True
    keeps_epoch: ClassVar[bool] = False
    """Whether a store that is opened again is in the same epoch, because the engine runs by itself."""

    def test_a_read_sees_what_was_written_and_answered(self, open_store: OpenStore) -> None:
        with open_store() as store:
            ack = store.do(register("s"))

            assert ack.count == 0
            assert store.read_now(known) == ["s"]

    def test_a_job_that_fails_changes_nothing_and_raises_its_own_error(self, open_store: OpenStore) -> None:
        def fail(database: Database) -> None:
            register("half")(database)
            raise Refused

        with open_store() as store:
            store.do(register("s"))
            with pytest.raises(Refused):
                store.do(fail)

            assert store.do(known) == ["s"]

    def test_of_jobs_that_commit_together_only_the_failing_one_is_rolled_back(self, open_store: OpenStore) -> None:
        def fail(database: Database) -> None:
            register("failed")(database)
            raise Refused

        with open_store() as store:
            before, failed, after = together(store, register("before"), fail, register("after"))

            assert isinstance(failed.exception(10), Refused)
            assert (before.exception(10), after.exception(10)) == (None, None)
            assert store.do(known) == ["after", "before"]

    def test_what_the_engine_refuses_is_an_error_of_the_port(self, open_store: OpenStore) -> None:
        def collide(database: Database) -> None:
            register("new")(database)
            database.execute("INSERT INTO deleted_sessions (id, deleted_at) VALUES (?, ?)", ("s", NOW))
            database.execute("INSERT INTO deleted_sessions (id, deleted_at) VALUES (?, ?)", ("s", NOW))

        with open_store() as store:
            with pytest.raises(StoreError):
                store.do(lambda database: database.execute("SELECT * FROM no_such_table").fetchall())
            with pytest.raises(StoreError):
                store.do(collide)

            assert store.do(known) == []

    def test_a_commit_is_told_once_and_a_failure_is_not(self, open_store: OpenStore) -> None:
        def fail(_: Database) -> None:
            raise Refused

        with open_store() as store:
            commits: list[list[str]] = []
            store.do(register("s"))
            store.after_commit.append(lambda: commits.append(["told"]))
            with pytest.raises(Refused):
                store.do(fail)
            assert commits == []

            store.do(register("t"))
            store.do(known)

            assert commits

    def test_closing_waits_for_a_read_of_another_thread(self, open_store: OpenStore) -> None:
        begun, go_on = threading.Event(), threading.Event()

        def slow(database: Database) -> list[str]:
            begun.set()
            assert go_on.wait(30)
            return known(database)

        store = open_store()
        store.do(register("s"))
        with ThreadPoolExecutor(2) as threads:
            read = threads.submit(store.read_now, slow)
            assert begun.wait(30)
            closed = threads.submit(store.close)
            assert not wait([closed], 0.1).done
            go_on.set()

            assert read.result(30) == ["s"]
            closed.result(30)

    def test_a_closed_store_refuses_every_job(self, open_store: OpenStore) -> None:
        store = open_store()
        store.close()

        for run in (store.do, store.read_now):
            with pytest.raises(RuntimeError, match="closed"):
                run(known)

    def test_everyone_who_asked_is_told_before_it_closes(self, open_store: OpenStore) -> None:
        told: list[object] = []
        with open_store() as store:
            store.do(register("s"))
            store.before_close += [lambda: told.append(store.read_now(known)), lambda: told.append("second")]

        assert told == [["s"], "second"]

    @pytest.mark.parametrize("count", [0, 1, 333, 334, 5000])
    def test_every_row_is_inserted_once(self, open_store: OpenStore, count: int) -> None:
        rows = [(number % 7, number) for number in range(count)]

        def insert(database: Database) -> list[Any]:
            database.insert("orphans", "session, key", rows)
            database.insert("orphans", "session, key", rows, unless_there=True)
            return database.execute("SELECT session, key FROM orphans ORDER BY key").fetchall()

        with open_store() as store:
            assert store.do(insert) == rows

    def test_inserting_what_is_there_is_an_error_that_changes_nothing(self, open_store: OpenStore) -> None:
        with open_store() as store:
            store.do(lambda database: database.insert("orphans", "session, key", [(1, 1)]))
            with pytest.raises(StoreError):
                store.do(lambda database: database.insert("orphans", "session, key", [(2, 2), (1, 1)]))

            assert store.do(lambda database: database.execute("SELECT session FROM orphans").fetchall()) == [(1,)]

    def test_a_change_says_how_many_rows_it_changed(self, open_store: OpenStore) -> None:
        with open_store() as store:
            for id in ("a", "b"):
                store.do(register(id))

            changed = store.do(lambda database: database.execute("UPDATE sessions SET masked = 1").rowcount)

            assert changed == 2

    @pytest.mark.parametrize("table", TABLES)
    def test_numbers_are_allocated_in_a_row_and_never_twice(self, open_store: OpenStore, table: Table) -> None:
        with open_store() as store:
            given = [store.do(lambda database: database.allocate(table, 3)) for _ in range(2)]
            given += [future.result(10) for future in together(store, *[lambda d: d.allocate(table, 3)] * 20)]

            every = [number + more for number in given for more in range(3)]
            assert len(set(every)) == len(every)
            assert min(every) > 0

    def test_the_numbers_of_deleted_rows_are_not_allocated_again(self, open_store: OpenStore) -> None:
        def newest(store: Store, session: str) -> tuple[int, int]:
            store.do(register(session))
            store.do(store_events(session, event("e1"), event("e2")))
            row: tuple[int, int] = store.do(
                lambda database: database.execute("SELECT max(n), max(session) FROM events").fetchone()
            )
            store.do(lambda database: write_jobs.forget_session(database, session, NOW))
            return row

        with open_store() as store:
            events, session = newest(store, "first")
            later, after = newest(store, "second")
            assert later >= events + 2
            assert after >= session + 1
        if self.outlives:
            with open_store() as store:
                last, behind = newest(store, "third")
                assert last >= later + 2
                assert behind >= after + 1

    def test_an_accepted_change_is_counted_and_a_failed_or_repeated_one_is_not(self, open_store: OpenStore) -> None:
        def fail(database: Database) -> None:
            register("half")(database)
            raise Refused

        def changes(store: Store) -> int:
            return store.read_now(lambda database: database.changes())

        with open_store() as store:
            assert changes(store) == 0
            store.do(register("s"))
            store.do(register("s"))
            assert changes(store) == 1
            with pytest.raises(Refused):
                store.do(fail)
            told = [store.do(store_events("s", event("e1"))).changes for _ in range(2)]
            assert told == [2, 2]
            store.do(lambda database: write_jobs.forget_session(database, "s", NOW))
            assert changes(store) == 3
            epoch = store.epoch
        if self.outlives:
            with open_store() as store:
                assert (changes(store), store.epoch == epoch) == (3, self.keeps_epoch)

    def test_the_numbers_of_a_job_that_failed_are_not_needed(self, open_store: OpenStore) -> None:
        def fail(database: Database) -> None:
            database.allocate("events", 100)
            raise Refused

        with open_store() as store:
            with pytest.raises(Refused):
                store.do(fail)
            store.do(register("s"))
            store.do(store_events("s", event("e1")))

            assert store.do(queries.newest_event) > 0

    def test_jobs_of_one_session_do_not_overtake_each_other(self, open_store: OpenStore) -> None:
        def add(database: Database) -> None:
            session = load(database, "s")
            session.count += 1
            save(database, session, NOW, "stored_at")

        with open_store() as store, open_store() as second:
            other = second if self.outlives else store
            store.do(register("s"))
            answers: list[Future[None]] = []
            threads = [
                threading.Thread(target=lambda one=one: answers.extend(one.submit(add) for _ in range(50)))
                for one in (store, other)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for answer in answers:
                answer.result(30)

            assert store.do(lambda database: load(database, "s").count) == 100

    @pytest.mark.parametrize(
        ("word", "found"), [("one%two", True), ("one_two", False), ("e%t", True), ("o%o", False), ("ONE", False)]
    )
    def test_contained_text_is_compared_letter_by_letter(self, open_store: OpenStore, word: str, found: bool) -> None:
        def search(database: Database) -> bool:
            condition = database.contains("haystack")
            return database.execute(f"SELECT 1 FROM sessions WHERE {condition}", (word,)).fetchone() is not None

        with open_store() as store:
            store.do(register("s"))
            store.do(lambda database: database.execute("UPDATE sessions SET haystack = ?", ("an one%two",)))

            assert store.do(search) is found

    def test_bytes_come_back_as_they_were(self, open_store: OpenStore) -> None:
        odd = [event("nul", "a\\u0000b"), event("raw", "a\0b"), event("half", "\\ud800"), event("wide", "\U0001f600")]
        with open_store() as store:
            store.do(register("s"))
            store.do(
                lambda database: database.insert(
                    "blobs", "sha256, body", [(bytes([number]) * 32, body) for number, body in enumerate(odd)]
                )
            )

            rows = store.read_now(
                lambda database: database.execute("SELECT body FROM blobs ORDER BY sha256").fetchall()
            )

            assert [bytes(body) for (body,) in rows] == odd

    def test_deleted_text_is_noted_until_it_is_erased(self, open_store: OpenStore) -> None:
        with open_store() as store:
            store.do(register("s"))
            store.do(store_events("s", event("e1", "forgotten")))
            store.do(lambda database: write_jobs.forget_session(database, "s", NOW))
            assert store.erase().result(10)

            assert not store.do(lambda database: database.has_text_to_erase())

    def test_used_bytes_grow_with_what_is_stored(self, open_store: OpenStore) -> None:
        with open_store() as store:
            store.do(register("s"))
            before = store.do(lambda database: database.used_bytes())

            store.do(store_events("s", *[event(f"e{number}", "x" * 10_000) for number in range(100)]))

            assert store.do(lambda database: database.used_bytes()) > before + 900_000

    def test_closing_finishes_what_was_submitted_and_refuses_more(self, open_store: OpenStore) -> None:
        with open_store() as store:
            answers = [store.submit(register(f"s{number}")) for number in range(20)]
        store.close()

        assert all(answer.result(0) for answer in answers)
        with pytest.raises(RuntimeError):
            store.submit(known)
        if self.outlives:
            with open_store() as store:
                assert len(store.do(known)) == 20
