"""Whatever an exporter sends in whatever order, the session reads as the file does."""

import json
import tempfile
from contextlib import closing
from functools import partial
from hashlib import sha256
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from exporter.core.events import digest
from exporter.missioncontrol.ingest import write_jobs
from exporter.missioncontrol.ingest.batch import read_elements, sort_out
from exporter.missioncontrol.ingest.event_order import STEP, Item, arrange, places, thread
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.opening import open_store
from exporter.missioncontrol.store.port import Store
from exporter.missioncontrol.store.sqlite.store import SqliteStore
from tests.missioncontrol.postgres import opened_on_postgres

NOW = "2026-11-18T10:00:00.000Z"


class File(RuleBasedStateMachine):
    """A file grows, is cut and sent in pieces; at any time the rest may be sent, and then both are the same."""

    @initialize(chained=st.booleans())
    def begin(self, chained: bool) -> None:
        self.directory = tempfile.TemporaryDirectory(prefix="xp-order-")
        self.store = self.opened(is_new=True)
        self.lines: list[tuple[str, bytes]] = []
        self.made = 0
        self.chained = chained
        self.store.do(lambda database: write_jobs.register(database, "s", "s", NOW))

    def opened(self, *, is_new: bool = False) -> Store:
        return SqliteStore(Path(self.directory.name) / "store.db")

    def line(self) -> tuple[str, bytes]:
        self.made += 1
        parent = {"parentId": self.lines[-1][0] if self.lines else None} if self.chained else {}
        at = f"2026-11-18T10:{self.made // 60:02}:{self.made % 60:02}.000Z"
        id = f"e{self.made}"
        return id, json.dumps({"type": "user.message", "data": {}, "id": id, "timestamp": at, **parent}).encode()

    def post(self, lines: list[tuple[str, bytes]], rewound: list[str]) -> None:
        body = b'{"events":[' + b",".join(raw for _, raw in lines) + b'],"rewound":' + json.dumps(rewound).encode()
        batch = sort_out(read_elements(body + b"}"), event_bytes_max=1 << 20)
        self.store.do(lambda database: write_jobs.store_batch(database, "s", batch, NOW))

    def shown(self) -> list[str]:
        held = self.store.do(lambda database: queries.upload_state(database, "s", with_items=True))
        assert held.items is not None
        return [id for id, _ in held.items]

    @rule(count=st.integers(1, 6))
    def grow(self, count: int) -> None:
        for _ in range(count):
            self.lines.append(self.line())

    @rule(kept=st.integers(1, 20))
    def rewind(self, kept: int) -> None:
        self.lines = self.lines[:kept]

    @rule(data=st.data())
    def send_any_part(self, data: st.DataObject) -> None:
        if self.chained and self.lines:
            numbers = data.draw(st.sets(st.integers(0, len(self.lines) - 1), max_size=8))
            self.post([self.lines[number] for number in sorted(numbers)], [])

    @rule(data=st.data())
    def send_on(self, data: st.DataObject) -> None:
        """As the daemon does: from somewhere at or before the mark, in order."""
        shown = set(self.shown())
        mark = next((n for n, (id, _) in enumerate(self.lines) if id not in shown), len(self.lines))
        start = data.draw(st.integers(0, mark))
        self.post(self.lines[start : data.draw(st.integers(start, len(self.lines)))], [])

    @rule(data=st.data())
    def send_what_lacks_one_by_one(self, data: st.DataObject) -> None:
        if self.chained:
            lacking = [line for line in self.lines if line[0] not in set(self.shown())]
            for line in data.draw(st.permutations(lacking)):
                self.post([line], [])

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.store = self.opened()

    @rule()
    def settle(self) -> None:
        shown = set(self.shown())
        ids = [id for id, _ in self.lines]
        self.post([line for line in self.lines if line[0] not in shown], sorted(shown - set(ids)))

        held = self.store.do(lambda database: queries.upload_state(database, "s"))
        page = self.store.do(lambda database: queries.events(database, "s", limit=1000))
        assert page.bodies == [raw for _, raw in self.lines]
        assert held.ack.digest == digest.total((id, sha256(raw).digest()) for id, raw in self.lines)
        assert held.ack.last_event_id == (ids[-1] if ids else None)
        assert self.page_by_page() == ids

    def page_by_page(self) -> list[str]:
        seen: list[str] = []
        while True:
            after = seen[-1] if seen else None
            page = self.store.do(partial(queries.events, session_id="s", after=after, limit=3))
            seen += [json.loads(body)["id"] for body in page.bodies]
            if page.next is None:
                return seen

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.settle()
            self.store.close()
            self.directory.cleanup()


class FileOnPostgres(File):
    """The same with a receiver on PostgreSQL."""

    def opened(self, *, is_new: bool = False) -> Store:
        return opened_on_postgres(is_new=is_new)


TestFile = File.TestCase
TestFile.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestFileOnPostgres = pytest.mark.usefixtures("postgres_of_the_process")(FileOnPostgres.TestCase)
TestFileOnPostgres.settings = settings(max_examples=12, stateful_step_count=25, deadline=None)


def test_two_lines_that_the_file_holds_in_another_order_than_that_of_parents_stay_so(address: str) -> None:
    with closing(open_store(address)) as store:
        store.do(lambda database: write_jobs.register(database, "s", "s", NOW))
        for lines in (["a<", "b<a"], ["c<d", "d<b", "e<c"], ["f<e"]):
            told: list[dict[str, object]] = [
                {"type": "x", "data": {}, "id": line[0], "parentId": line[2:] or None, "timestamp": NOW}
                for line in lines
            ]
            batch = sort_out(read_elements(json.dumps({"events": told}).encode()), event_bytes_max=1 << 20)
            store.do(lambda database: write_jobs.store_batch(database, "s", batch, NOW))  # noqa: B023

        held = store.do(lambda database: queries.upload_state(database, "s", with_items=True))
        assert "".join(id for id, _ in held.items or ()) == "abcdef"


def items(text: str) -> list[Item]:
    """`b<a` is an event b with the parent a; the key is the letter."""
    found = []
    for word in text.split():
        name, _, parent = word.partition("<")
        found.append(Item(ord(name), ord(parent) if parent else None, name))
    return found


def names(order: list[Item]) -> str:
    return "".join(chr(item.key) for item in order)


def test_a_part_that_came_late_goes_between_its_neighbours() -> None:
    assert names(arrange(items("a b<a e<d f<e"), items("c<b d<c"), chained=True)) == "abcdef"


def test_what_begins_the_file_goes_before_what_lacks_its_parent() -> None:
    assert names(arrange(items("c<b d<c"), items("a"), chained=True)) == "acd"
    assert names(arrange(items("a c<b d<c"), items("b<a"), chained=True)) == "abcd"


def test_behind_an_event_that_stays_in_quarantine_the_order_is_that_of_time() -> None:
    assert names(arrange(items("a b<a g<f"), items("d<c e<d"), chained=True)) == "abdeg"


def test_without_parents_the_neighbours_in_the_request_decide() -> None:
    assert names(arrange(items("a c e"), items("a b c d"), chained=False)) == "abcde"
    assert names(arrange(items("b"), items("a b"), chained=False)) == "ab"


def test_parents_in_a_circle_lose_nothing() -> None:
    assert names(thread(items("a b<c c<b d<d"))) == "abcd"


def test_places_are_given_between_and_anew_when_there_is_no_room() -> None:
    assert places([STEP, None, None, 2 * STEP, None]) == [
        STEP, STEP + STEP // 3, STEP + 2 * STEP // 3, 2 * STEP, 3 * STEP,
    ]  # fmt: skip
    assert places([5, None, 6]) is None
    assert places([6, 5]) is None
    assert places([0, 0, None]) is None
