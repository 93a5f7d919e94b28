"""What is in quarantine is there once, whole, on disk, until it is replayed, dropped or old."""

import random
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from exporter.core.delivery.segment import Unsendable
from exporter.state.quarantine import Quarantine, Quarantined, QuarantineFullError
from tests.state.damage import DAMAGE
from tests.state.full_disk import full_disk
from tests.state.killing import killed_after

BEFORE = Path(__file__).parents[1] / "fixtures" / "before"


def bad(offset: int, raw: bytes = b"rubbish", *, identity: str | None = None, reason: str = "not_json") -> Unsendable:
    return Unsendable(offset, raw, len(raw), reason, identity)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "quarantine.db"


def opened(path: Path, *, bytes_max: int = 1 << 20, days_max: int = 30) -> Quarantine:
    return Quarantine(path, bytes_max=bytes_max, days_max=days_max)


@pytest.fixture
def quarantine(path: Path) -> Iterator[Quarantine]:
    with closing(opened(path)) as one:
        yield one


def age(path: Path, days: float) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE quarantine SET since = since - ?", (days * 86_400,))
        database.commit()


def test_an_event_is_kept_with_everything_about_it(quarantine: Quarantine, path: Path) -> None:
    begin = time.time()
    assert quarantine.add("s", "sink", [bad(7, b"\0\xff raw", identity="i", reason="refused_400")], detail="why") == 1
    quarantine.close()

    with closing(opened(path)) as again:
        (kept,) = again.entries()
        assert (kept.session, kept.event, kept.offset, kept.size, kept.sink) == ("s", "i", 7, 6, "sink")
        assert (kept.reason, kept.detail, kept.raw) == ("refused_400", "why", b"\0\xff raw")
        assert begin <= kept.since <= time.time()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_stub_says_how_large_the_event_was(quarantine: Quarantine) -> None:
    quarantine.add("s", None, [Unsendable(0, b"head", 100_000_000, "line_too_long", None)])

    (kept,) = quarantine.entries()
    assert (kept.size, kept.raw, kept.sink) == (100_000_000, b"head", None)


def test_the_same_again_is_not_kept_twice(quarantine: Quarantine) -> None:
    assert quarantine.add("s", None, [bad(0), bad(9)]) == 2
    assert quarantine.add("s", None, [bad(0), bad(9), bad(20)]) == 1
    assert quarantine.count() == 3


@pytest.mark.parametrize(
    "session, sink, other",
    [
        ("t", None, bad(0)),
        ("s", "sink", bad(0)),
        ("s", None, bad(1)),
        ("s", None, bad(0, reason="budget")),
        ("s", None, bad(0, b"garbage")),
        ("s", None, bad(0, b"longer rubbish")),
    ],
    ids=["session", "sink", "place", "reason", "bytes", "length"],
)
def test_another_is_kept_beside_it(quarantine: Quarantine, session: str, sink: str | None, other: Unsendable) -> None:
    """A rewritten file may hold another event at the same place."""
    quarantine.add("s", None, [bad(0)])

    assert quarantine.add(session, sink, [other]) == 1
    assert {kept.raw for kept in quarantine.entries()} == {b"rubbish", other.raw}


def test_at_the_cap_nothing_is_kept_and_nothing_falls_out(path: Path) -> None:
    with closing(opened(path, bytes_max=100)) as quarantine:
        quarantine.add("s", None, [bad(0, b"x" * 60)])
        with pytest.raises(QuarantineFullError):
            quarantine.add("s", None, [bad(100, b"y" * 20), bad(200, b"z" * 30)])

        assert [kept.raw for kept in quarantine.entries()] == [b"x" * 60]
        assert quarantine.add("s", None, [bad(100, b"y" * 40)]) == 1


def test_what_is_there_already_needs_no_room(path: Path) -> None:
    """A crash before the mark, or a session read again, repeats what was kept."""
    with closing(opened(path, bytes_max=100)) as quarantine:
        quarantine.add("s", None, [bad(0, b"x" * 60)])

        assert quarantine.add("s", None, [bad(0, b"x" * 60)]) == 0
        assert quarantine.add("s", None, [bad(0, b"x" * 60), bad(90, b"y" * 40)]) == 1
    with closing(opened(path, bytes_max=50)) as quarantine:
        assert quarantine.add("s", None, [bad(0, b"x" * 60)]) == 0


def test_the_cap_holds_across_a_restart(path: Path) -> None:
    with closing(opened(path, bytes_max=100)) as quarantine:
        quarantine.add("s", None, [bad(0, b"x" * 60)])
    with closing(opened(path, bytes_max=100)) as quarantine, pytest.raises(QuarantineFullError):
        quarantine.add("s", None, [bad(100, b"y" * 60)])


def test_dropping_makes_room(path: Path) -> None:
    with closing(opened(path, bytes_max=100)) as quarantine:
        quarantine.add("s", None, [bad(0, b"x" * 60), bad(90, b"y" * 40)])
        first, second = quarantine.entries()

        assert quarantine.drop([first.number, first.number, 999]) == 1
        assert [kept.number for kept in quarantine.entries()] == [second.number]
        assert quarantine.add("s", None, [bad(200, b"z" * 60)]) == 1


def test_numbers_are_never_given_twice(quarantine: Quarantine) -> None:
    quarantine.add("s", None, [bad(0)])
    (first,) = quarantine.entries()
    quarantine.drop([first.number])
    quarantine.add("s", None, [bad(0)])

    (second,) = quarantine.entries()
    assert second.number > first.number


def test_what_is_old_is_forgotten_and_makes_room(path: Path) -> None:
    with closing(opened(path, bytes_max=100)) as quarantine:
        quarantine.add("s", None, [bad(0, b"x" * 60)])
        age(path, 29)
        assert quarantine.expire() == 0
        age(path, 2)

        assert quarantine.add("s", None, [bad(90, b"y" * 60)]) == 1
        assert [kept.raw for kept in quarantine.entries()] == [b"y" * 60]


def test_a_day_on_the_clock_forgets_nothing(path: Path, quarantine: Quarantine) -> None:
    quarantine.add("s", None, [bad(0)])
    for days in (1, -2):
        age(path, days)

        assert quarantine.expire() == 0


def test_those_for_no_sink_count_for_each(quarantine: Quarantine) -> None:
    quarantine.add("s", None, [bad(0, identity="a"), bad(10)])
    quarantine.add("s", "one", [bad(20, identity="b")])
    quarantine.add("t", "one", [bad(20, identity="c")])

    assert quarantine.ids("s", "one") == {"a", "b"}
    assert quarantine.ids("s", "other") == {"a"}
    assert [quarantine.count(session=session, sink=sink) for session, sink in [("s", "one"), ("s", "other")]] == [3, 2]
    assert (quarantine.count(session="s"), quarantine.count(sink="one"), quarantine.count()) == (3, 4, 4)
    assert [(kept.event, kept.sink, kept.raw) for kept in quarantine.entries_without_sink()] == [
        ("a", None, b""),
        (None, None, b""),
    ]


def test_entries_can_be_asked_for_by_number(quarantine: Quarantine) -> None:
    quarantine.add("s", None, [bad(offset) for offset in range(4)])
    numbers = [kept.number for kept in quarantine.entries()]

    assert [kept.number for kept in quarantine.entries(numbers=[numbers[2], numbers[0], 999])] == [
        numbers[0],
        numbers[2],
    ]
    assert quarantine.entries(numbers=[]) == []


def test_what_was_added_survives_kill_9(path: Path) -> None:
    chance = random.Random(11)
    for _ in range(8):
        said = killed_after("quarantine", path, chance.randrange(1, 20))
        with closing(opened(path)) as quarantine:
            assert quarantine.count() >= said
            assert quarantine.count() % 2 == 0


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_one_that_cannot_be_read_is_set_aside_with_its_bytes(path: Path, damage: Callable[[Path], None]) -> None:
    with closing(opened(path)) as quarantine:
        quarantine.add("s", None, [bad(offset, bytes([offset]) * 1000) for offset in range(60)])
    damage(path)
    with closing(opened(path)) as quarantine:
        assert quarantine.set_aside is not None
        assert quarantine.set_aside.exists()
        assert quarantine.count() == 0
        assert quarantine.add("s", None, [bad(0)]) == 1


def test_damage_that_shows_while_it_runs_is_set_aside(path: Path) -> None:
    with closing(opened(path)) as quarantine:
        quarantine.add("s", None, [bad(offset, bytes([offset]) * 9000) for offset in range(60)])
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        path.write_bytes(path.read_bytes()[:4096] + random.Random(3).randbytes(path.stat().st_size - 4096))
        with pytest.raises(sqlite3.DatabaseError):
            quarantine.add("s", None, [bad(7_000_000 + offset) for offset in range(500)])

        assert quarantine.set_aside is not None
        assert quarantine.add("s", None, [bad(0)]) == 1
        assert quarantine.count() == 1


def test_on_a_full_disk_nothing_is_kept_and_it_is_over_when_there_is_room(tmp_path: Path) -> None:
    with full_disk(tmp_path) as disk, closing(opened(disk.path / "quarantine.db", bytes_max=1 << 30)) as quarantine:
        quarantine.add("s", None, [bad(0)])
        disk.fill()
        with pytest.raises(sqlite3.Error):
            quarantine.add("s", None, [bad(10), bad(20, b"x" * 3_000_000)])
        assert [kept.offset for kept in quarantine.entries()] == [0]
        disk.free()

        assert quarantine.add("s", None, [bad(10), bad(20)]) == 2


def test_a_database_of_the_version_before_is_read_on(path: Path) -> None:
    path.write_bytes(zstandard.decompress((BEFORE / "quarantine.db.zst").read_bytes()))
    with closing(opened(path)) as quarantine:
        assert quarantine.set_aside is None
        assert [replace(kept, since=0) for kept in quarantine.entries()] == [
            Quarantined(1, "first", "e3", 300, 9, "otel", "invalid", "why", 0, b"raw bytes"),
            Quarantined(2, "second", None, 1, 3, None, "out_of_time", "", 0, b"raw"),
        ]
        same = Unsendable(offset=300, raw=b"raw bytes", size=9, reason="invalid", id="e3")
        assert quarantine.add("first", "otel", [same]) == 0


def test_what_is_kept_is_counted_by_its_reason(quarantine: Quarantine) -> None:
    quarantine.add("s", None, [bad(number, bytes([number])) for number in range(2)])
    quarantine.add(
        "t", "one", [bad(9, reason="refused_400"), *(bad(n, bytes([n]), reason="too_large") for n in range(3))]
    )

    assert list(quarantine.by_reason().items()) == [("too_large", 3), ("not_json", 2), ("refused_400", 1)]
