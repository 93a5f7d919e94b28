"""Lines of keys in TOML, and values written as TOML."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.given.toml import Place, key_lines, written

DOCUMENT = r'''# a comment with = and [x]
port = 1 # port = 2
text = """
[not.a.table]
a \""" = 1
"""
raw = \'\'\'
key = 2
""" \'\'\'
more = """one""""" # two quotes belong to the text
quotes = """"a"" b"""
"quoted key" = 'it is = not [ a key'
"\u0061b" = 1
a . b.c = [ # a comment ]
  1,
  { x = 1, "y z" = [2, 3] }, # }
  "]",
]
when = 1979-05-27 07:32:00 # a date with a space
[mission_control]
url = "x"
[ mission_control . 'team' ] # comment
url = "y"
[[redaction.allow]]
value = "v"
[redaction.allow.inner]
deep = true
[[redaction.allow]]

regex = "r"
[[redaction.allow.sub]]
one = 1
[[redaction.allow.sub]]
one = 2
[otel]
headers = { a = "}", b = "#" }
'''.replace("\\'", "'")

EXPECTED: list[tuple[Place, int]] = [
    (("port",), 2),
    (("text",), 3),
    (("raw",), 7),
    (("more",), 10),
    (("quotes",), 11),
    (("quoted key",), 12),
    (("ab",), 13),
    (("a",), 14),
    (("a", "b", "c"), 14),
    (("a", "b", "c", 0), 15),
    (("a", "b", "c", 1, "x"), 16),
    (("a", "b", "c", 1, "y z", 1), 16),
    (("a", "b", "c", 2), 17),
    (("when",), 19),
    (("mission_control",), 20),
    (("mission_control", "url"), 21),
    (("mission_control", "team"), 22),
    (("mission_control", "team", "url"), 23),
    (("redaction",), 24),
    (("redaction", "allow"), 24),
    (("redaction", "allow", 0), 24),
    (("redaction", "allow", 0, "value"), 25),
    (("redaction", "allow", 0, "inner", "deep"), 27),
    (("redaction", "allow", 1), 28),
    (("redaction", "allow", 1, "regex"), 30),
    (("redaction", "allow", 1, "sub", 0, "one"), 32),
    (("redaction", "allow", 1, "sub", 1, "one"), 34),
    (("otel", "headers"), 36),
    (("otel", "headers", "b"), 36),
]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(("place", "line"), EXPECTED)
def test_a_key_is_found_on_its_line(place: Place, line: int, line_end: str) -> None:
    found = key_lines(DOCUMENT.replace("\n", line_end))

    assert found[place] == line


def test_every_key_of_the_document_is_found_and_nothing_else() -> None:
    assert set(key_lines(DOCUMENT)) == set(_places(tomllib.loads(DOCUMENT), ()))


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment", "a=1", "[a]", "[[a]]"])
def test_a_small_document_has_the_places_that_tomllib_finds(text: str) -> None:
    assert set(key_lines(text)) == set(_places(tomllib.loads(text), ()))


KEYS = st.text(max_size=6) | st.sampled_from(["url", "a.b", 'a"b', "a'b", "a#b", "a=b", "[a]", "\n"])
SCALARS = (
    st.text(max_size=20)
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    SCALARS,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(KEYS, values, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_what_is_written_reads_back_the_same(value: object) -> None:
    assert tomllib.loads(f"value = {written(value)}")["value"] == value


@given(st.lists(st.tuples(KEYS, VALUES, st.integers(0, 2)), unique_by=lambda entry: entry[0], max_size=6))
def test_every_place_of_any_document_has_the_line_it_was_written_on(entries: list[tuple[str, Any, int]]) -> None:
    lines: list[str] = []
    at: dict[str, int] = {}
    for key, value, gap in entries:
        lines += ["# comment = 1"] * gap
        lines.append(f"{written(key)} = {written(value)}")
        at[key] = len(lines)
    text = "\n".join(lines)

    found = key_lines(text)

    assert set(found) == set(_places(tomllib.loads(text), ()))
    assert all(line == at[str(place[0])] for place, line in found.items())


def test_a_value_that_no_setting_holds_is_not_written() -> None:
    with pytest.raises(TypeError):
        written(None)


def _places(value: object, place: Place) -> list[Place]:
    """Every place in a document, by walking over what tomllib makes of it."""
    inside: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        inside = list(value.items())
    elif isinstance(value, list):
        inside = list(enumerate(value))
    return [found for key, held in inside for found in [(*place, key), *_places(held, (*place, key))]]
