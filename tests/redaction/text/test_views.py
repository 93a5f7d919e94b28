"""A place in a view leads back to the whole of what it came from, however many layers lie between."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redaction.text.views import (
    HIDDEN_GATES,
    PERCENT_GATES,
    View,
    percent_revealed,
    plain,
    revealed,
    snapped,
    unescaped,
)


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\\"), max_size=20), min_size=3, max_size=3
    ),
    st.integers(1, 3),
)
def test_part_of_an_unescaped_text_is_where_its_encoding_is(parts: list[str], depth: int) -> None:
    texts = [part or "x" for part in parts]
    raw = ["", "", ""]
    for place, text in enumerate(texts):
        raw[place] = text
        for _ in range(depth):
            raw[place] = json.dumps(raw[place], ensure_ascii=False)[1:-1]
    *_, view = unescaped("".join(raw).encode(), depth)
    lengths = [len(text.encode()) for text in texts]

    assert view.data == "".join(texts).encode()
    span = view.origin(lengths[0], lengths[0] + lengths[1])
    assert span == (len(raw[0].encode()), len((raw[0] + raw[1]).encode()))


def test_colours_are_taken_out_and_kept_in_the_span() -> None:
    for escape in (b"\x1b", rb"\u001b", rb"\\u001b", rb"\x1b", rb"\033", rb"\e"):
        line = b"a %b[1mse%b[0mcret b" % (escape, escape)
        view = revealed(line)

        assert view.data == b"a secret b"
        assert line[slice(*view.origin(2, 8))] == b"se%b[0mcret" % escape


def test_characters_spelt_as_numbers_are_resolved() -> None:
    line = rb"a \u0073\\u0065cret b"
    view = revealed(line)

    assert view.data == b"a secret b"
    assert line[slice(*view.origin(2, 8))] == rb"\u0073\\u0065cret"


def test_no_escape_is_cut_in_two() -> None:
    data = rb"ab\ncd\\ef\u0041gh"

    assert snapped(data, 3, 6) == (2, 6)
    assert snapped(data[2:], 1, 4) == (0, 4)
    assert snapped(data, 4, 7) == (4, 6)
    assert snapped(data, 4, 8) == (4, 8)
    assert snapped(data, 13, 18) == (10, 18)


def test_codes_and_escaped_slashes_are_resolved_and_kept_in_the_span() -> None:
    line = rb"a%3Dse%25%32cret\/b \/ %zz"
    view = percent_revealed(line)

    assert view.data.startswith(b"a=se")
    assert b"cret/b" in view.data
    assert view.data.endswith(rb"\/ %zz")
    start = view.data.index(b"cret/b")
    assert line[slice(*view.origin(start, start + 6))] == rb"cret\/b"
    assert line[slice(*view.origin(1, 2))] == b"%3D"


def test_a_part_of_a_view_begins_and_ends_within_what_was_copied() -> None:
    view = View(b"abcdefgh", [(2, 4, b"X"), (4, 5, b""), (6, 8, b"YZ")])

    assert view.data == b"abXfYZ"
    assert [view.origin(at, at + 1) for at in range(6)] == [(0, 1), (1, 2), (2, 4), (5, 6), (6, 8), (6, 8)]
    assert view.origin(0, 6) == (0, 8)
    assert view.origin(1, 4) == (1, 6)


def test_an_owner_knows_a_secret_without_escapes_and_colours() -> None:
    assert plain(b"se cret") == b"se cret"
    assert plain(rb"se\u0063r\"et") == b'secr"et'
    assert plain(b"se\x1b[1mcret\x1b[0m") == b"secret"


def test_as_many_levels_are_taken_off_as_asked_for_and_there_are() -> None:
    assert [view.data for view in unescaped(b"abc", 3)] == [b"abc"]
    assert [view.data for view in unescaped(rb"a\\\nb", 3)] == [rb"a\\\nb", b"a\\\nb", b"a\nb"]
    assert [view.data for view in unescaped(rb"a\\nb", 1)] == [rb"a\\nb", rb"a\nb"]
    assert [view.data for view in unescaped(rb"\b\f\r\t\q", 1)][1] == b"\b\f\r\tq"


@pytest.mark.parametrize("gates", [HIDDEN_GATES, PERCENT_GATES])
def test_a_gate_of_a_view_is_an_expression(gates: tuple[str, ...]) -> None:
    lines = [rb"\u001b[1m", rb"\u0041", b"\x1b]0;t", rb"\x1b[1m", rb"\033[0m", rb"\e[0m"]
    if gates is PERCENT_GATES:
        lines = [b"a%3Db", b"a%22b", b"%252Fx", rb"abcd\/efgh", rb"1\/abcd"]
    for line in lines:
        assert any(re.search(gate.encode(), line) for gate in gates), line
    assert not any(re.search(gate.encode(), b"a % b / c \\ d [e]") for gate in gates)
