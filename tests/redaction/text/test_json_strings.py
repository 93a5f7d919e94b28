"""The strings of a line of JSON: where they are, and of which member each is the value."""

import pytest

from redaction.text.json_strings import strings

LINE = b'{"a": "one", "b" : ["two", "three"], "c": {"d":"four", "e\\"f": "five"}, "g": [["six"], {}], "h": "seven"}'
KEYS = {"one": b"a", "two": None, "three": None, "four": b"d", "five": b'e\\"f', "six": None, "seven": b"h"}


def _of(*texts: str) -> list[tuple[bytes, bytes | None]]:
    spans = [(LINE.index(text.encode()), LINE.index(text.encode()) + len(text)) for text in texts]
    return [(LINE[string.start : end], string.key) for string, end, _ in strings(LINE, spans)]


def test_a_string_has_the_key_of_which_it_is_the_value_itself() -> None:
    assert _of(*KEYS) == [(text.encode(), key) for text, key in KEYS.items()]


@pytest.mark.parametrize("text", KEYS)
def test_the_key_is_the_same_when_only_this_string_is_asked_for(text: str) -> None:
    assert _of(text) == [(text.encode(), KEYS[text])]


def test_the_key_is_found_far_before_and_behind_an_escaped_quote() -> None:
    line = b'{"a": "x \\" ' + b"y" * 2000 + b' here"}'
    at = line.index(b"here")

    assert [(string.start, string.key) for string, _, _ in strings(line, [(at, at + 4)])] == [(7, b"a")]
