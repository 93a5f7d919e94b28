"""Which sessions a request for history means."""

from exporter.core.delivery.backfill_plan import Unknown, chosen

HERE = {"old": 10.0, "middle": 20.0, "new": 30.0}


def test_all_of_them_without_a_choice() -> None:
    assert chosen(HERE, named=None, since=None) == ["old", "middle", "new"]


def test_those_that_changed_at_or_after_a_time() -> None:
    assert chosen(HERE, named=None, since=20.0) == ["middle", "new"]
    assert chosen(HERE, named=None, since=30.1) == []


def test_the_named_ones_in_the_order_named_each_once_whatever_their_age() -> None:
    assert chosen(HERE, named=["new", "old", "new"], since=None) == ["new", "old"]


def test_a_name_that_is_not_here_is_told() -> None:
    assert chosen(HERE, named=["new", "never"], since=None) == Unknown("never")
