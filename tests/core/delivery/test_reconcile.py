"""What is skipped, sent and gone when a rewritten file is compared with what a sink has."""

from hypothesis import given
from hypothesis import strategies as st

from exporter.core.delivery.position import Position
from exporter.core.delivery.reconcile import Reconciliation, Walk
from exporter.core.delivery.segment import Segment

IDS = st.lists(st.sampled_from([f"e{number}" for number in range(12)]), unique=True)


@given(known=IDS, quarantined=IDS, parts=st.lists(IDS, max_size=4))
def test_what_is_gone_is_what_the_sink_has_and_no_settled_part_holds(
    known: list[str], quarantined: list[str], parts: list[list[str]]
) -> None:
    walk = Reconciliation(dict.fromkeys(known, b"hash"), quarantined)
    for part in parts:
        walk.settled(part)

    assert walk.gone() == [identity for identity in known if not any(identity in part for part in parts)]


@given(known=IDS, quarantined=IDS)
def test_what_the_sink_has_and_what_is_quarantined_is_not_sent_again(known: list[str], quarantined: list[str]) -> None:
    walk = Reconciliation(dict.fromkeys(known, b"hash"), quarantined)

    assert walk.skip == set(known) | set(quarantined)


def test_before_anything_is_settled_everything_known_counts_as_gone() -> None:
    assert Reconciliation({"a": b"", "b": b""}, ()).gone() == ["a", "b"]


def test_what_was_read_ahead_is_taken_once_and_only_where_it_begins() -> None:
    here, there = Position(10, b"a"), Position(20, b"b")
    segment = Segment(here, there)

    assert Walk(position=there, ahead=segment).take_ahead() is None

    walk = Walk(position=here, ahead=segment)
    assert walk.take_ahead() is segment
    assert walk.take_ahead() is None
