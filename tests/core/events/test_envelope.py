"""Events are found wherever a JSON reader would find them, and what is none is named."""

import json
from collections.abc import Callable
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.core.events.envelope import (
    ID_LENGTH_MAX,
    Envelope,
    Piece,
    Unreadable,
    decode,
    is_utf8,
    pieces,
    read_object,
    usable_id,
)
from tests.core.events.test_json_scanner import mutated_json
from tests.core.made_events import event, is_strict_json
from tests.core.timing import grows_with_size

E1: Final = event("one")
E2: Final = event("two", parent="one")


def line(**fields: object) -> bytes:
    return json.dumps({"type": "t", "data": {}, "id": "i", "timestamp": "2026", "parentId": None} | fields).encode()


def read(text: bytes) -> Envelope:
    envelope = decode(text)
    assert isinstance(envelope, Envelope)
    return envelope


def found(text: bytes) -> list[str]:
    """The ids of the events in a line, and the reasons of what is none."""
    return [
        piece.envelope.reason if isinstance(piece.envelope, Unreadable) else piece.envelope.id for piece in pieces(text)
    ]


def test_the_fields_of_an_event_are_read_and_its_data_is_left_as_it_is() -> None:
    text = (
        b'{"type":"t","data":{"a": 1e400,"a":2},"id":"i","timestamp":"s","parentId":"p","agentId":"a","ephemeral":true}'
    )

    assert read(text) == Envelope("i", "t", "s", "p", "a", True, msgspec.Raw(b'{"a": 1e400,"a":2}'))


@pytest.mark.parametrize(
    "identity", [None, "", "x" * (ID_LENGTH_MAX + 1), 7, 1.5, True, [], {}, "\ud800", "a\udfff"], ids=repr
)
def test_an_id_that_cannot_be_a_key_is_no_id(identity: object) -> None:
    assert decode(line(id=identity)) == Unreadable("bad_id")


def test_an_event_without_an_id_says_so() -> None:
    assert decode(b'{"type":"t"}') == Unreadable("no_id")


@pytest.mark.parametrize("identity", ["x", "x" * ID_LENGTH_MAX, "\u20ac", "a b", "\0", "\U0001f600", "../../etc"])
def test_any_other_text_is_an_id(identity: str) -> None:
    assert read(line(id=identity)).id == identity
    assert read(json.dumps({"id": identity}, ensure_ascii=False).encode()).id == identity


@pytest.mark.parametrize("flag", [None, 1, 0, "true", "", [], {}, [True], 1.0], ids=repr)
def test_only_true_makes_an_event_ephemeral(flag: object) -> None:
    assert read(line(ephemeral=flag)).ephemeral is False


@pytest.mark.parametrize("text", [b'{"id":"i","ephemeral":true}', b'{"id":"i","data":"\\ud800","ephemeral" : true }'])
def test_true_is_true_on_both_paths(text: bytes) -> None:
    assert read(text).ephemeral is True


def test_an_ephemeral_flag_inside_the_data_says_nothing() -> None:
    assert read(line(data={"ephemeral": True})).ephemeral is False
    assert read(line(data={"ephemeral": True, "x": "\ud800"})).ephemeral is False


@pytest.mark.parametrize("name", ["type", "timestamp"])
@pytest.mark.parametrize("value", [None, 1, True, [], {}, 1e300], ids=repr)
def test_a_text_of_another_kind_reads_as_absent(name: str, value: object) -> None:
    assert getattr(read(line(**{name: value})), name) == ""


@pytest.mark.parametrize("name", ["parentId", "agentId"])
@pytest.mark.parametrize("value", [1, True, [], {}, "\ud800"], ids=repr)
def test_a_reference_of_another_kind_reads_as_none(name: str, value: object) -> None:
    envelope = read(line(**{name: value}))

    assert getattr(envelope, name) is None or value == "\ud800"


def test_an_event_of_nothing_but_an_id_is_an_event() -> None:
    assert read(b'{"id":"i"}') == Envelope("i")
    assert read(b'{"id":"i","x":"\\udead"}') == Envelope("i")


def test_of_a_repeated_field_the_last_counts_on_both_paths() -> None:
    text = b'{"id":"a","ephemeral":true,"id":"b","ephemeral":false,"data":%s}'

    for data in (b"1", b'"\\ud800"'):
        assert (read(text % data).id, read(text % data).ephemeral) == ("b", False)


@pytest.mark.parametrize("data", [b"1", b'"\\ud800"'], ids=["plain", "for the scanner"])
def test_an_escaped_key_is_the_same_key(data: bytes) -> None:
    text = b'{"\\u0069d":"i","\\u0065phemeral":true,"data":%s}' % data

    assert (read(text).id, read(text).ephemeral) == ("i", True)


@pytest.mark.parametrize(
    "data",
    [
        '"\\ud800"',
        '"\\udc00\\ud800"',
        "[" * 5000 + "]" * 5000,
        "9223372036854775809",
        "1e400",
        '{"a":1,"a":2}',
        '"\u2028"',
    ],
    ids=["high surrogate", "swapped pair", "deep", "2^63+1", "1e400", "twice", "U+2028"],
)
def test_what_some_readers_refuse_is_an_event_all_the_same(data: str) -> None:
    envelope = read(event("odd", data=data))

    assert (envelope.id, envelope.type, bytes(envelope.data)) == ("odd", "user.message", data.encode())


def test_9_900_levels_of_depth_are_read() -> None:
    assert read(event("deep", data="[" * 9_900 + "]" * 9_900)).id == "deep"


def test_what_is_deeper_than_anything_real_is_no_event() -> None:
    assert decode(event("deep", data="[" * 100_000 + "]" * 100_000)) == Unreadable("not_json")


def test_of_an_object_that_nests_too_deep_the_outer_levels_are_read() -> None:
    level: object = read_object(b'{"n":1,"x":' * 5_000 + b"{}" + b"}" * 5_000)
    numbers = []
    while isinstance(level, dict):
        numbers.append(level["n"])
        level = level["x"]

    assert (numbers, level) == ([1, 1, 1, 1], None)


def test_a_string_of_a_megabyte_is_read_on_both_paths() -> None:
    for more in ("", "\\ud800"):
        assert read(event("long", data=f'"{"x" * 1_000_000}{more}"')).id == "long"


@pytest.mark.parametrize("text", [b"", b" ", b"\t\r", b"null", b"1", b'"x"', b"[]", b"x", b"{", b'{"id":"i"', b"}"])
def test_what_is_no_object_is_unreadable(text: bytes) -> None:
    assert isinstance(decode(text), Unreadable)


@pytest.mark.parametrize("text", [b"\xff", b'{"id":"\xe2\x82"}', b'{"id":"i","x":"\xed\xa0\x80"}', E1 + b"\xc0\x80"])
def test_what_is_not_utf8_is_unreadable_as_a_whole(text: bytes) -> None:
    assert not is_utf8(text)
    assert decode(text) == Unreadable("not_utf8")
    assert pieces(text) == [Piece(0, text, Unreadable("not_utf8"))]


def test_two_events_in_one_line_are_no_single_event() -> None:
    assert decode(E1 + E2) == Unreadable("not_json")


@pytest.mark.parametrize("between", [b"", b" ", b"\r", b"\t \r"])
def test_glued_events_are_both_found_where_they_are(between: bytes) -> None:
    text = E1 + between + E2

    assert [(piece.start, piece.raw) for piece in pieces(text)] == [(0, E1), (len(E1) + len(between), E2)]


@pytest.mark.parametrize("cut", [1, 2, 9, 15, 20, 40, 80, len(E1) - 1])
def test_an_event_behind_a_torn_one_is_found(cut: int) -> None:
    text = E1[:cut] + E2

    assert [(piece.start, piece.raw) for piece in pieces(text)] == [(0, E1[:cut]), (cut, E2)]
    assert found(text) == ["not_json", "two"]


def test_events_on_both_sides_of_rubbish_are_found() -> None:
    assert found(E1 + b"}}garbage{" + E2 + b"\0\0\0" + E2) == ["one", "not_json", "two", "nul_bytes", "two"]


@pytest.mark.parametrize("before", [1, 512, 4096])
def test_an_event_behind_nul_bytes_is_found(before: int) -> None:
    assert found(b"\0" * before + E1) == ["nul_bytes", "one"]


def test_nul_bytes_alone_are_named() -> None:
    assert pieces(b"\0" * 4096) == [Piece(0, b"\0" * 4096, Unreadable("nul_bytes"))]


@pytest.mark.parametrize("blocks", [1, 70, 5000])
def test_an_event_behind_a_torn_one_full_of_typed_blocks_is_found(blocks: int) -> None:
    """The answers of tools are lists of objects that begin as events do."""
    content = ",".join(['{"type":"text","text":"x"}'] * blocks)
    torn = event("torn", data=f'{{"content":[{content}]}}')[:-40]

    assert found(torn + E2) == ["not_json", "two"]


def test_an_event_inside_an_event_is_not_taken_out_of_it() -> None:
    whole = event("outer", data=f'{{"inner":{E1.decode()}}}')

    assert found(whole) == ["outer"]
    assert found(E2 + whole) == ["two", "outer"]


def test_an_event_inside_a_torn_event_is_not_taken_for_one_of_the_file() -> None:
    torn = event("outer", data=f'{{"inner":[{E1.decode()},1]}}')[:-30]

    assert found(torn) == ["not_json"]
    assert found(torn + E2) == ["not_json", "two"]


PIECES: Final = st.sampled_from(
    [
        E1,
        E2,
        E1[:30],
        E2[:-1],
        b"\0\0",
        b"{",
        b"}",
        b"rubbish",
        b'"',
        b" ",
        b"\r",
        b'{"type":"',
        b'{"id":7}',
        b'{"x":1}',
    ]
)


@given(st.lists(PIECES, max_size=8).map(b"".join))
def test_every_byte_but_whitespace_is_in_one_piece(text: bytes) -> None:
    position = 0
    for piece in pieces(text):
        assert text[position : piece.start].strip(b" \t\r\n") == b""
        assert text[piece.start : piece.start + len(piece.raw)] == piece.raw
        assert isinstance(piece.envelope, Unreadable) or is_strict_json(piece.raw)
        position = piece.start + len(piece.raw)

    assert text[position:].strip(b" \t\r\n") == b""


@given(mutated_json())
def test_whatever_is_decoded_is_json(value: bytes) -> None:
    """Or a receiver would refuse the whole batch."""
    text = b'{"id":"i","data":' + value + b"}"
    if isinstance(decode(text), Envelope):
        assert is_strict_json(text)


@given(mutated_json())
def test_an_event_with_json_for_its_data_is_decoded(value: bytes) -> None:
    text = b'{"id":"i","data":' + value + b',"id":"i","ephemeral":false}'
    if is_utf8(text) and is_strict_json(text):
        assert read(text).id == "i"


@given(st.binary(max_size=60))
def test_no_bytes_make_it_raise(text: bytes) -> None:
    decode(text)
    pieces(text)


@given(st.text())
def test_an_id_is_usable_when_it_can_be_stored(text: str) -> None:
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        encoded = b""

    assert usable_id(text) == (len(encoded) > 0 and len(text) <= ID_LENGTH_MAX)


def nested(size: int) -> bytes:
    """Every candidate is read to the end of the line before it turns out not to be whole."""
    candidates = b'{"type":"","a":' * 200
    return b"x" + candidates + b"[" + b"0," * ((size - len(candidates)) // 2)


HOSTILE: Final[dict[str, Callable[[int], bytes]]] = {
    "starts of events": lambda size: b'{"type":"' * (size // 9),
    "rubbish and starts of events": lambda size: b'x{"type":"",' * (size // 12),
    "quotes": lambda size: b'"' * size,
    "backslashes": lambda size: b'{"type":"' + b"\\" * size,
    "objects that are no events": lambda size: b"x" + b'{"type":""}' * (size // 11),
    "objects in an array": lambda size: b"[" + b'{"type":""},' * (size // 12),
    "events and rubbish": lambda size: (E1 + b"x") * (size // (len(E1) + 1)),
    "starts within starts": nested,
    "nul bytes": lambda size: b"\0" * size,
    "empty objects": lambda size: b"{}" * (size // 2),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_time_grows_with_the_size_and_not_faster(kind: str) -> None:
    assert grows_with_size(pieces, HOSTILE[kind], 40_000)
