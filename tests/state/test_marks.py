"""A mark and what led to it are one thing, whatever happens to the process, the disk or the file."""

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.core.delivery.position import DELETED_THERE, START, Identity, Mark, Position, tail_hash
from exporter.state.marks import MarkStore, StoreDamagedError, StoreUnwritableError
from tests.state.damage import DAMAGE
from tests.state.full_disk import full_disk
from tests.state.killing import killed_after


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def store(path: Path) -> Iterator[MarkStore]:
    with closing(MarkStore(path)) as opened:
        yield opened


FULL_MARK = Mark("last", Position(2**40, tail_hash(b"x")), Identity(2**31, 2**62), "remote", DELETED_THERE, 5)


@pytest.mark.parametrize("mark", [Mark(), FULL_MARK])
def test_a_mark_comes_back_as_it_was(store: MarkStore, path: Path, mark: Mark) -> None:
    sink = store.sink_id("one", "http://one")
    assert store.commit("s", sink, mark, [], [], {}) == mark
    store.close()

    with closing(MarkStore(path)) as again:
        assert again.mark("s", sink) == mark
        assert again.marks(sink) == {"s": mark}
        assert again.mark("other", sink) is None


def test_sinks_are_told_apart_by_name_and_address(store: MarkStore) -> None:
    ids = [store.sink_id(name, url) for name, url in [("a", "x"), ("a", "y"), ("b", "x"), ("a", "x")]]

    assert len(set(ids)) == 3
    assert ids[0] == ids[3]


def test_sinks_and_sessions_have_marks_of_their_own(store: MarkStore) -> None:
    one, other = store.sink_id("a", "x"), store.sink_id("b", "x")
    store.commit("s", one, Mark("1"), ["1"], [bytes(32)], {("d", "r"): 1})
    store.commit("t", one, Mark("2"), ["2"], [bytes(32)], {})

    assert (store.mark("s", other), store.delivered("s", other), store.masked("s", other)) == (None, {}, {})
    assert store.marks(one) == {"s": Mark("1", delivered=1), "t": Mark("2", delivered=1)}


def test_delivered_ids_add_up_in_order_with_the_first_hash_of_each(store: MarkStore) -> None:
    sink = store.sink_id("a", "x")
    mark = store.commit("s", sink, Mark(), ["b", "a"], [b"1" * 32, b"2" * 32], {})
    mark = store.commit("s", sink, mark, ["\u20ac\0", "b"], [b"3" * 32, b"4" * 32], {})

    assert list(store.delivered("s", sink).items()) == [("b", b"1" * 32), ("a", b"2" * 32), ("\u20ac\0", b"3" * 32)]
    assert mark.delivered == 4


def test_delivered_ids_can_be_replaced(store: MarkStore) -> None:
    sink = store.sink_id("a", "x")
    store.commit("s", sink, Mark(), ["a", "b"], [b"1" * 32, b"2" * 32], {})
    wanted = {"c": b"3" * 32, "d": b"4" * 16}

    assert store.replace_delivered("s", sink, Mark("c"), wanted) == Mark("c", delivered=2)
    assert store.delivered("s", sink) == wanted
    store.replace_delivered("s", sink, Mark(), {})
    assert store.delivered("s", sink) == {}


@given(st.lists(st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=5), max_size=4), max_size=4))
def test_any_ids_come_back(batches: list[list[str]]) -> None:
    with TemporaryDirectory() as directory, closing(MarkStore(Path(directory) / "state.db")) as store:
        sink, mark = store.sink_id("a", "x"), Mark()
        for batch in batches:
            mark = store.commit("s", sink, mark, batch, [bytes([number]) * 16 for number in range(len(batch))], {})

        assert list(store.delivered("s", sink)) == list(dict.fromkeys(one for batch in batches for one in batch))


def test_masked_secrets_are_counted_by_day_and_rule(store: MarkStore) -> None:
    sink = store.sink_id("a", "x")
    for _ in range(2):
        store.commit("s", sink, Mark(), [], [], {("mon", "aws"): 2, ("tue", "aws"): 1, ("tue", "jwt"): 1})

    assert store.masked("s", sink) == {"mon": {"aws": 4}, "tue": {"aws": 2, "jwt": 2}}


def test_a_small_fact_is_remembered(store: MarkStore) -> None:
    assert store.fact("exporter_id") is None
    store.remember("exporter_id", "one")
    store.remember("exporter_id", "two")
    assert store.fact("exporter_id") == "two"


def test_a_mark_and_its_ids_are_one_thing_under_kill_9(path: Path) -> None:
    """Killed at thirty random moments, among them in the middle of a commit."""
    chance = random.Random(20261118)
    for _ in range(30):
        said = killed_after("marks", path, chance.randrange(1, 40))
        with closing(MarkStore(path)) as store:
            sink = store.sink_id("one", "http://one")
            mark, delivered = store.mark("session", sink), store.delivered("session", sink)

            assert store.set_aside is None
            assert mark is not None
            assert mark.position.offset >= said
            assert list(delivered) == [str(number + 1) for number in range(mark.position.offset)]
            assert (mark.delivered, mark.last_id) == (len(delivered), str(len(delivered)))
            assert store.masked("session", sink) == {"day": {"rule": len(delivered)}}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_store_that_cannot_be_read_begins_anew(path: Path, damage: Callable[[Path], None]) -> None:
    with closing(MarkStore(path)) as store:
        sink = store.sink_id("a", "x")
        for number in range(300):
            store.commit(f"s{number}", sink, Mark(), [f"{number}" * 40], [bytes(32)], {})
    damage(path)

    with closing(MarkStore(path)) as store:
        assert store.set_aside is not None
        assert store.marks(store.sink_id("a", "x")) == {}
        store.commit("s", 1, Mark("new"), ["i"], [bytes(32)], {})
        assert store.mark("s", 1) == Mark("new", delivered=1)


def test_damage_that_shows_while_it_runs_begins_a_new_epoch(path: Path) -> None:
    with closing(MarkStore(path)) as store:
        sink = store.sink_id("a", "x")
        for number in range(3000):
            store.commit(f"s{number}", sink, Mark(), [], [], {})
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        content = path.read_bytes()
        path.write_bytes(content[:4096] + random.Random(3).randbytes(len(content) - 4096))
        with pytest.raises(StoreDamagedError) as damaged:
            for number in range(3000):
                store.mark(f"s{number}", sink)
            store.commit("s", sink, Mark(), ["x"], [bytes(32)], {})

        assert damaged.value.path is not None
        assert damaged.value.path.exists()
        assert store.epoch == 1
        sink = store.sink_id("a", "x")
        assert store.commit("s", sink, Mark("1"), ["1"], [bytes(32)], {}) == Mark("1", delivered=1)
        assert store.delivered("s", sink) == {"1": bytes(32)}


@pytest.mark.parametrize("seed", range(20))
def test_a_few_changed_bytes_are_damage_or_nothing(path: Path, seed: int) -> None:
    """What is read may be wrong, and the receiver is asked then; what nothing may be is an error nobody expects."""
    with closing(MarkStore(path)) as store:
        sink = store.sink_id("a", "x")
        for number in range(60):
            store.commit(f"s{number % 7}", sink, Mark(), [f"{number}" * 9], [bytes(32)], {("d", "r"): 1})
    chance, content = random.Random(seed), bytearray(path.read_bytes())
    for _ in range(40):
        content[chance.randrange(100, len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)

    with closing(MarkStore(path)) as store:
        for session in [f"s{number}" for number in range(7)]:
            try:
                store.mark(session, 1)
                store.marks(1)
                store.masked(session, 1)
                store.delivered(session, 1)
                store.commit(session, store.sink_id("a", "x"), Mark(), ["new"], [bytes(32)], {})
            except StoreDamagedError:
                assert store.epoch == 1


def test_a_full_disk_changes_nothing_and_is_over_when_there_is_room(tmp_path: Path) -> None:
    with full_disk(tmp_path) as disk, closing(MarkStore(disk.path / "state.db")) as store:
        sink = store.sink_id("a", "x")
        mark = store.commit("s", sink, Mark("1"), ["1"], [bytes(32)], {})
        disk.fill()
        with pytest.raises(StoreUnwritableError):
            for _ in range(400):
                store.commit("s", sink, Mark("2"), ["2" * 9000], [bytes(32)], {("d", "r"): 1})
        before = store.mark("s", sink)
        ids = len(store.delivered("s", sink))
        disk.free()
        after = store.commit("s", sink, Mark("3", START, delivered=1), ["3"], [bytes(32)], {})

        assert before is not None
        assert before.last_id in (mark.last_id, "2")
        assert ids in (1, 2)
        assert after.last_id == "3"
        assert store.epoch == 0
        assert "3" in store.delivered("s", sink)
