"""The scanner reads what a strict JSON reader reads, says where it is, and never takes more than linear time."""

import json
import time
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exporter.core.events.json_scanner import (
    DEPTH_MAX,
    STEPS_MAX,
    NotJsonError,
    elements,
    is_deeper,
    members,
    scan_string,
    scan_value,
    skip_whitespace,
)
from tests.core.made_events import is_strict_json, strict_json
from tests.core.timing import grows_with_size

TEXTS: Final = st.text(st.characters(codec="utf-8"), max_size=8)
VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
INSERTED: Final = st.sampled_from(
    [bytes([character]) for character in b'"\\{}[],:0-.e+ \t\n\r\0\x1f\x0b\x7f']
) | st.sampled_from(
    ["\\u", "\\ud800", "\\u00e9", "true", "NaN", "Infinity", "01", "1e400", "//", "\u2028", "\xa0", "\ufeff"]
).map(str.encode)


@st.composite
def mutated_json(draw: st.DrawFn) -> bytes:
    value = draw(VALUES)
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1]))).encode()
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        cut = draw(st.integers(0, 2))
        text = text[:at] + draw(INSERTED | st.just(b"")) + text[at + cut :]
    return text


def is_scanned(text: bytes) -> bool:
    try:
        return skip_whitespace(text, scan_value(text, skip_whitespace(text, 0))) == len(text)
    except NotJsonError:
        return False


def is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(mutated_json())
@example(b'"\\ud800"')
@example(b"-")
@example(b"[1,]")
@example(b'{"a":1,}')
@example(b'{"a":1 "b":2}')
@example(b"1e400")
@example(b"")
def test_it_accepts_exactly_what_a_strict_reader_accepts(text: bytes) -> None:
    # Whether the bytes are UTF-8 is asked before the scanner is.
    if is_utf8(text):
        assert is_scanned(text) == is_strict_json(text)


@given(VALUES, st.binary(max_size=4), st.binary(max_size=4))
def test_a_value_ends_where_it_ends_whatever_stands_around_it(value: object, before: bytes, after: bytes) -> None:
    text = json.dumps(value).encode()
    if text[-1:].isdigit():
        after = b"," + after  # a number goes on for as long as it can

    assert scan_value(before + text + after, len(before)) == len(before) + len(text)


@given(st.dictionaries(TEXTS, VALUES, max_size=5), st.sampled_from([None, 0, 2]))
def test_members_are_the_keys_with_the_span_of_their_value(value: dict[str, Any], indent: int | None) -> None:
    text = b"xx" + json.dumps(value, indent=indent).encode()

    found, end = members(text, 2)

    assert end == len(text)
    assert {json.loads(b'"%s"' % key): json.loads(text[start:stop]) for key, (start, stop) in found.items()} == value


@given(st.lists(VALUES, max_size=5), st.sampled_from([None, 0, 2]))
def test_elements_are_the_spans_of_an_array(value: list[Any], indent: int | None) -> None:
    text = b"x" + json.dumps(value, indent=indent).encode()

    spans, end = elements(text, 1)

    assert end == len(text)
    assert [json.loads(text[start:stop]) for start, stop in spans] == value


def test_of_a_repeated_key_the_last_value_counts() -> None:
    text = b'{"a":1,"b":2,"a":[3]}'

    found, _ = members(text)

    assert {key: text[slice(*span)] for key, span in found.items()} == {b"a": b"[3]", b"b": b"2"}


@pytest.mark.parametrize("text", [b"", b"[", b"1", b'{"a"', b'{"a":', b'{"a":1', b'{"a":1,', b'{"a":1,}', b"{1:2}"])
def test_members_of_what_is_no_object_are_refused(text: bytes) -> None:
    with pytest.raises(NotJsonError):
        members(text)


@pytest.mark.parametrize("text", [b"", b"{", b"1", b"[", b"[1", b"[1,", b"[1,]", b"[,]", b"[1 2]"])
def test_elements_of_what_is_no_array_are_refused(text: bytes) -> None:
    with pytest.raises(NotJsonError):
        elements(text, 0)


def test_the_error_names_the_byte_that_breaks_the_value() -> None:
    with pytest.raises(NotJsonError) as error:
        scan_value(b'{"a":[1,2,x]}')

    assert error.value.position == 10


@pytest.mark.parametrize("escape", ['\\"', "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t", "\\u0000", "\\uDFFF"])
def test_every_escape_of_json_is_part_of_a_string(escape: str) -> None:
    text = f'"a{escape}b"'.encode()

    assert scan_string(text, 0) == len(text)


@pytest.mark.parametrize("escape", ["\\", "\\x", "\\u", "\\u12", "\\u12g4", "\\'", "\\\n"])
def test_any_other_escape_is_refused(escape: str) -> None:
    with pytest.raises(NotJsonError):
        scan_string(f'"a{escape}"'.encode(), 0)


@pytest.mark.parametrize("character", range(0x20))
def test_a_bare_control_character_in_a_string_is_refused(character: int) -> None:
    with pytest.raises(NotJsonError):
        scan_string(b'"' + bytes([character]) + b'"', 0)


@pytest.mark.parametrize("opening, closing", [(b"[", b"]"), (b'{"a":', b"}")])
def test_depth_costs_no_stack(opening: bytes, closing: bytes) -> None:
    text = opening * 9_900 + b"1" + closing * 9_900

    assert scan_value(text) == len(text)
    with pytest.raises(NotJsonError):
        scan_value(text[:-1])


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[1,{"b":2,"a":'])
def test_it_stops_where_it_is_deeper_than_anything_real(opening: bytes) -> None:
    with pytest.raises(NotJsonError) as error:
        scan_value(opening * 1_000_000)

    assert error.value.position <= len(opening) * (DEPTH_MAX + 1)


@pytest.mark.parametrize(
    "part", [b"[[[[]]]],", b"[[[[1],1],1],1],", b'{"a":{"b":{"c":{}}}},', b"[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,[[]]],"]
)
def test_it_stops_where_there_is_more_to_do_than_in_anything_real(part: bytes) -> None:
    text = b"[" + part * (30_000_000 // len(part)) + b"1]"

    began = time.process_time()
    with pytest.raises(NotJsonError):
        scan_value(text)

    assert time.process_time() - began < 3


def test_keys_are_limited_as_well() -> None:
    with pytest.raises(NotJsonError):
        members(b'{"":1' + b',"":1' * STEPS_MAX + b"}")


@given(mutated_json(), st.sampled_from([b"[[%s]]", b'{"a":[1,%s,{"b":{}}],"c":[[]]}', b'[{"a":{"b":%s}},%s]']))
def test_it_accepts_the_same_at_any_depth(text: bytes, around: bytes) -> None:
    whole = around.replace(b"%s", text)

    if is_utf8(whole):
        assert is_scanned(whole) == is_strict_json(whole)


@pytest.mark.parametrize(
    "content", [b"x" * 1_000_000, b"\\\\" * 500_000, b'\\"' * 500_000, "\u20ac".encode() * 333_333]
)
def test_a_string_of_a_megabyte_is_one_value(content: bytes) -> None:
    text = b'"' + content + b'"'

    assert scan_value(text) == len(text)
    assert isinstance(strict_json(text), str)


HOSTILE: Final[dict[str, Callable[[int], bytes]]] = {
    "quotes": lambda size: b'"' * size,
    "open string": lambda size: b'"' + b"x" * size,
    "open string of backslashes": lambda size: b'"' + b"\\" * size,
    "open string of escapes": lambda size: b'"' + b"\\u0041" * (size // 6),
    "digits": lambda size: b"1" * size + b"x",
    "fraction": lambda size: b"0." + b"1" * size + b"e",
    "whitespace": lambda size: b"[" + b" " * size,
    "open arrays": lambda size: b"[" * size,
    "open objects": lambda size: b'{"a":' * (size // 5),
    "zeros": lambda size: b"[" + b"0," * (size // 2),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_time_grows_with_the_size_and_not_faster(kind: str) -> None:
    assert grows_with_size(is_scanned, HOSTILE[kind], 120_000)


def depth_of(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


@given(VALUES, st.integers(0, 8))
def test_how_deep_a_value_nests_is_told(value: object, levels: int) -> None:
    assert is_deeper(json.dumps(value).encode(), levels) == (depth_of(value) > levels)


@pytest.mark.parametrize("level", [b"[%s]", b'{"x":%s}', b' [ "[[{" , %s ] ', b'{"\\\\":0,"\\"[":%s}'])
@pytest.mark.parametrize("levels", [500, DEPTH_MAX])
def test_a_level_more_is_deeper(level: bytes, levels: int) -> None:
    before, after = level.split(b"%s")

    assert not is_deeper(before * levels + b"1" + after * levels, levels)
    assert is_deeper(before * (levels + 1) + b"1" + after * (levels + 1), levels)


@pytest.mark.parametrize("text", [b'"' + b"[" * 9_000 + b'"', b"[" + b"[]," * 9_000 + b"[]]", b"]" * 9_000])
def test_brackets_of_texts_and_beside_each_other_are_no_depth(text: bytes) -> None:
    assert not is_deeper(text, 500)
