"""The digest of a session's events."""

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from exporter.core.events import digest

pairs = st.dictionaries(st.text(min_size=1, max_size=20).filter(str.isprintable), st.binary(min_size=32, max_size=32))


def test_no_events_have_the_digest_zero() -> None:
    assert digest.total([]) == "0" * 64


def test_one_event_counts_as_the_hash_of_its_id_a_zero_and_the_hash_of_its_bytes() -> None:
    body = sha256(b"{}").digest()

    assert digest.total([("é1", body)]) == sha256("é1".encode() + b"\0" + body).hexdigest()


@given(pairs)
def test_order_does_not_matter(events: dict[str, bytes]) -> None:
    listed = list(events.items())

    assert digest.total(listed) == digest.total(reversed(listed))


@given(pairs, pairs)
def test_what_is_added_can_be_removed(first: dict[str, bytes], second: dict[str, bytes]) -> None:
    before = digest.add(digest.EMPTY, (digest.item(*pair) for pair in first.items()))
    extra = [digest.item(*pair) for pair in second.items()]

    assert digest.remove(digest.add(before, extra), extra) == before


@given(pairs)
def test_the_running_sum_travels_as_text(events: dict[str, bytes]) -> None:
    running = digest.add(digest.EMPTY, (digest.item(*pair) for pair in events.items()))

    assert int(digest.to_hex(running), 16) == running
    assert len(digest.to_hex(running)) == 64
    assert digest.to_hex(running) == digest.total(events.items())


def test_other_bytes_give_another_digest() -> None:
    one, other = sha256(b"1").digest(), sha256(b"2").digest()

    assert digest.total([("a", one)]) != digest.total([("a", other)])
