"""A place in a view leads back to the whole of what it came from, however many layers lie between."""

import json

from hypothesis import given
from hypothesis import strategies as st

from redaction.views import layers, plain, snap, without_escapes


@given(st.lists(st.text(max_size=20), min_size=3, max_size=3), st.integers(1, 3))
def test_part_of_a_decoded_text_is_where_its_encoding_is(parts: list[str], depth: int) -> None:
    texts = [part or "x" for part in parts]
    raw = ["", "", ""]
    for place, text in enumerate(texts):
        raw[place] = text
        for _ in range(depth):
            raw[place] = json.dumps(raw[place], ensure_ascii=False)[1:-1]
    view = plain("".join(raw))
    for _ in range(depth):
        view = without_escapes(view)
    start, end = len(texts[0]), len(texts[0]) + len(texts[1])

    assert view.text == "".join(texts)
    assert view.origin(start, end) == (len(raw[0]), len(raw[0]) + len(raw[1]))


def test_colours_are_taken_out_and_kept_in_the_span() -> None:
    view = plain("a \x1b[1mse\x1b[0mcret b")
    bare = next(layer for layer in layers(view) if "secret" in layer.text)

    assert view.text[slice(*bare.origin(2, 8))] == "se\x1b[0mcret"


def test_no_escape_is_cut_in_two() -> None:
    text = r"ab\ncd\\ef\u0041gh"

    assert snap(text, 3, 6) == (2, 6)
    assert snap(text, 4, 7) == (4, 6)
    assert snap(text, 4, 8) == (4, 8)
    assert snap(text, 13, 18) == (10, 18)
