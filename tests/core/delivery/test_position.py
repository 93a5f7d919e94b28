"""An offset is believed when the bytes before it are those that were there."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.core.delivery.position import START, TAIL_BYTES, Identity, Position, rewritten, tail_hash

A: Final = Identity(1, 10)
B: Final = Identity(1, 11)
OTHER_DISK: Final = Identity(2, 10)

CONTENTS = st.binary(max_size=3 * TAIL_BYTES)


def at(content: bytes, offset: int) -> Position:
    return Position(offset, tail_hash(content[:offset]))


def before(content: bytes, position: Position) -> bytes:
    return content[position.offset - position.tail_length() : position.offset]


@given(CONTENTS, st.data())
def test_the_same_bytes_are_believed_however_many_more_are_given(content: bytes, data: st.DataObject) -> None:
    position = at(content, data.draw(st.integers(0, len(content))))

    assert position.follows(before(content, position))
    assert position.follows(content[: position.offset])


@given(CONTENTS.filter(bool), st.data())
def test_one_changed_byte_before_it_is_seen(content: bytes, data: st.DataObject) -> None:
    position = at(content, data.draw(st.integers(1, len(content))))
    changed = data.draw(st.integers(position.offset - position.tail_length(), position.offset - 1))
    other = content[:changed] + bytes([content[changed] ^ 1]) + content[changed + 1 :]

    assert not position.follows(before(other, position))


@given(CONTENTS.filter(bool), st.data())
def test_a_file_that_became_shorter_is_seen(content: bytes, data: st.DataObject) -> None:
    position = at(content, data.draw(st.integers(1, len(content))))
    shorter = content[: data.draw(st.integers(0, position.tail_length() - 1))]

    assert not position.follows(shorter)


def test_the_start_follows_anything() -> None:
    assert START.follows(b"")
    assert START.follows(b"whatever")
    assert START.tail_length() == 0


@pytest.mark.parametrize(
    "known, size, seen, seen_size, how",
    [
        (None, 0, A, 0, None),
        (None, 0, A, 10, None),
        (A, 100, A, 100, None),
        (A, 100, A, 101, None),
        (A, 150, A, 150, None),
        (A, 0, A, 0, None),
        (A, 100, A, 99, "truncated"),
        (A, 100, A, 0, "truncated"),
        (A, 150, A, 149, "truncated"),
        (A, 100, B, 100, "replaced"),
        (A, 100, B, 50, "replaced"),
        (A, 100, B, 500, "replaced"),
        (A, 0, B, 0, "replaced"),
        (A, 100, OTHER_DISK, 100, "replaced"),
    ],
)
def test_what_happened_to_the_past_of_a_file(
    known: Identity | None, size: int, seen: Identity, seen_size: int, how: str | None
) -> None:
    assert rewritten(known, size, seen, seen_size) == how
