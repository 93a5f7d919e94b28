"""A place in a view leads back to the whole of what it came from, however many layers lie between."""

import json

from hypothesis import given
from hypothesis import strategies as st

from redaction.text.views import revealed, snapped, unescaped


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
    assert snapped(data, 4, 7) == (4, 6)
    assert snapped(data, 4, 8) == (4, 8)
    assert snapped(data, 13, 18) == (10, 18)
