"""The feed of a sink that takes the events themselves."""

import pytest

from exporter.core.delivery.batches import BatchLimits
from exporter.core.delivery.position import Mark
from exporter.core.delivery.reconcile import Reconciliation, Walk
from exporter.core.delivery.segment import EVENTS_MAX
from exporter.pipeline.feed import EventFeed
from tests.pipeline.parts import LIMITS, Parts

pytestmark = pytest.mark.anyio


async def test_it_gives_what_stands_at_the_walk_and_behind_a_segment(parts: Parts) -> None:
    _, file = parts.session(count=5)
    feed, walk, limits = EventFeed(parts.reader), Walk(file.generation), BatchLimits(2, 1 << 20, 1 << 20)

    first = await feed.next(file, walk, None, limits)
    assert first is not None
    ahead = await feed.next(file, walk, first, limits)
    assert ahead is not None
    walk.advance(first)

    assert (first.ids, ahead.ids) == (["e0", "e1"], ["e2", "e3"])
    assert (await feed.next(file, walk, None, limits) or first).ids == ahead.ids
    assert await feed.ending(file, walk) is None


async def test_a_shared_feed_reads_what_every_sink_takes(parts: Parts) -> None:
    """Else a sink that takes more would have segments of its own."""
    _, file = parts.session(count=EVENTS_MAX + 3)
    feed, small = EventFeed(parts.reader), BatchLimits(2, 1 << 20, 1 << 20)
    feed.shared = True

    segments = [await feed.next(file, Walk(file.generation), None, small) for _ in range(2)]

    assert segments[0] is segments[1]
    assert segments[0] is not None
    assert len(segments[0].ids) == EVENTS_MAX


async def test_what_the_sink_has_is_passed_over_and_seen(parts: Parts) -> None:
    _, file = parts.session(count=3)
    compared = Reconciliation({"e0": b"", "gone": b""}, ["e2"])
    walk = Walk(file.generation, reconciliation=compared, skip=compared.skip)

    segment = await EventFeed(parts.reader).next(file, walk, None, LIMITS)
    assert segment is not None
    walk.advance(segment)

    assert segment.ids == ["e1"]
    assert segment.seen == {"e0", "e1", "e2"}
    assert compared.gone() == ["gone"]


async def test_what_it_means_to_the_sink(parts: Parts) -> None:
    _, file = parts.session(count=3)
    feed = EventFeed(parts.reader)
    segment = await feed.next(file, Walk(file.generation), None, LIMITS)
    assert segment is not None

    assert feed.taken(segment, ["e0", "e1"]) == (2, "e1")
    assert feed.taken(segment, []) == (0, None)
    assert feed.holds_events
    assert feed.known({"e0": b""}) == {}
    assert feed.skip(lambda: {"e0"}) is None
    assert feed.stream("s", Mark(remote_id="r")) == "r"
    assert feed.stream("s", None) is None
    assert (feed.sums.counts, feed.sums.settled, list(feed.sums.streams), list(feed.sums.of(segment))) == (
        False,
        True,
        [],
        [],
    )
