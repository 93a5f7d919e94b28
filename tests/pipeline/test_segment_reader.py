"""Segments come in file order, each line is read and redacted once for all sinks, and a changed past is noticed."""

import tracemalloc
from pathlib import Path

import pytest

from exporter.core.delivery.position import START
from tests.pipeline.parts import Parts

pytestmark = pytest.mark.anyio


async def test_segments_follow_each_other_to_the_end(parts: Parts) -> None:
    _, file = parts.session(count=7)

    first = await parts.reader.segment(file, START, limits=(5, 1 << 20))
    assert first is not None
    second = await parts.reader.segment(file, first.end, limits=(5, 1 << 20))
    assert second is not None

    assert first.ids + second.ids == [f"e{number}" for number in range(7)]
    assert (first.start, second.start, second.end.offset) == (START, first.end, file.size)
    assert await parts.reader.segment(file, second.end) is None


async def test_sinks_at_one_place_share_what_was_read(parts: Parts) -> None:
    _, file = parts.session(count=3)

    segments = [await parts.reader.segment(file, START, shared=True) for _ in range(2)]

    assert segments[0] is segments[1] is not None
    assert parts.reader.events_read == 3


async def test_what_is_kept_for_others_is_bounded(own_home: Path) -> None:
    parts = Parts(own_home, cache_bytes=1)
    _, file = parts.session(count=4)

    first = await parts.reader.segment(file, START, shared=True, limits=(2, 1 << 20))
    assert first is not None
    await parts.reader.segment(file, first.end, shared=True, limits=(2, 1 << 20))
    await parts.reader.segment(file, START, shared=True, limits=(2, 1 << 20))

    assert parts.reader.events_read == 6
    await parts.close()


async def test_what_is_kept_takes_no_more_memory_than_it_may_when_events_come_one_by_one(own_home: Path) -> None:
    parts = Parts(own_home, cache_bytes=500_000)
    _, file = parts.session(count=2_000)
    place = START
    tracemalloc.start()
    begun, _ = tracemalloc.get_traced_memory()

    while (segment := await parts.reader.segment(file, place, shared=True, limits=(1, 1 << 20))) is not None:
        place = segment.end

    taken = tracemalloc.get_traced_memory()[0] - begun
    tracemalloc.stop()
    assert parts.reader.events_read == 2_000
    assert taken < 1_500_000
    await parts.close()


async def test_what_is_skipped_is_seen_all_the_same(parts: Parts) -> None:
    _, file = parts.session(count=3)
    seen = set[str]()

    segment = await parts.reader.segment(file, START, skip={"e1"}, seen=seen)

    assert segment is not None
    assert (segment.ids, segment.skipped, seen) == (["e0", "e2"], 1, {"e0", "e1", "e2"})


async def test_a_changed_past_moves_the_generation_on(parts: Parts) -> None:
    written, file = parts.session(count=3)
    segment = await parts.reader.segment(file, START)
    assert segment is not None and parts.reader.check(file, segment.end)

    written.overwrite(*written.make(4, prefix="x"))
    file.refresh(parts.files)
    generation = file.generation

    assert await parts.reader.segment(file, segment.end) is None
    assert file.generation == generation + 1
    assert not parts.reader.check(file, segment.end)


async def test_an_unfinished_line_is_held(parts: Parts) -> None:
    written, file = parts.session(count=1)
    written.append_raw(b'{"id":"e')
    file.refresh(parts.files)

    segment = await parts.reader.segment(file, START)
    assert segment is not None and segment.ids == ["e0"]
    assert await parts.reader.segment(file, segment.end) is None

    assert parts.reader.held_bytes(file, segment.end) == len(b'{"id":"e')
