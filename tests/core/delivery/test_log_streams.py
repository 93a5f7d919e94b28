"""The streams of log records: few, each of one hour at a time, whatever overlaps."""

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from exporter.core.delivery.log_streams import STREAMS, LogStreams, hour_of

_AT_ONCE: Final = 16
_SHORT: Final = 12


def test_an_hour_is_an_hour() -> None:
    assert [hour_of(seconds) for seconds in (0.0, 3_599.9, 3_600.0, 86_400.0)] == [0, 0, 1, 24]


def test_sessions_of_the_same_hours_share_their_streams() -> None:
    streams = LogStreams()

    first, second = streams.take("a", 10, 12), streams.take("b", 11, 13)

    assert first is not None
    assert second is not None
    assert len(set(first.values())) == 3
    assert {hour: second[hour] for hour in (11, 12)} == {hour: first[hour] for hour in (11, 12)}


def test_a_stream_moves_on_only_when_nobody_writes_to_its_hour() -> None:
    streams = LogStreams()
    held = streams.take("a", 0, _SHORT - 1)
    assert held is not None

    assert streams.take("b", 5, _SHORT) is None
    streams.done("a")

    moved = streams.take("b", 5, _SHORT)
    assert moved is not None
    assert moved[_SHORT] == held[0]


def test_a_long_session_has_a_stream_for_itself() -> None:
    streams = LogStreams()

    long, short = streams.take("long", 0, 100), streams.take("short", 0, 1)

    assert long is not None
    assert short is not None
    assert len(long) == 1
    assert not set(long.values()) & set(short.values())


def test_a_long_session_that_finds_no_stream_of_its_own_waits_for_another_one() -> None:
    streams = LogStreams()
    long = [streams.take(f"long {number}", 0, 100) for number in range(STREAMS - _SHORT)]
    assert len({tuple(each.values()) for each in long if each is not None}) == STREAMS - _SHORT

    assert streams.take("one more", 0, 100) is None
    streams.done("long 1")

    assert streams.take("one more", 100, 200) == {100: (long[1] or {})[0]}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, _SHORT - 1), st.booleans()), min_size=1, max_size=60))
def test_no_stream_goes_back_by_more_than_its_hour(plan: list[tuple[int, int, bool]]) -> None:
    """Sessions begin one after the other, up to sixteen at once; each writes to any of its hours until it is done."""
    streams, under_way, newest, begins = LogStreams(), list[tuple[str, dict[int, int]]](), dict[int, int](), 0
    for number, (after, lasts, ends_early) in enumerate(plan):
        begins += after
        name = f"s{number}"
        if len(under_way) >= _AT_ONCE:
            streams.done(under_way.pop(0)[0])
        while (found := streams.take(name, begins, begins + lasts)) is None:
            assert under_way, "it waits for nobody"
            streams.done(under_way.pop(0)[0])
        under_way.append((name, found))
        for _, hours in under_way:
            for hour, stream in hours.items():
                assert newest.get(stream, 0) <= hour
        for hour, stream in found.items():
            newest[stream] = max(newest.get(stream, 0), hour)
        if ends_early:
            streams.done(under_way.pop(0)[0])
    assert set(newest) <= set(range(STREAMS))
