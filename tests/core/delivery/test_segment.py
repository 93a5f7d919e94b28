"""Segments, put one behind the other, are the durable events of the file: all, once, in order."""

from dataclasses import dataclass
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.core.delivery.position import START, Position
from exporter.core.delivery.segment import BYTES_MAX, EVENTS_MAX, Segment, SegmentBuilder, Unsendable
from exporter.core.events.envelope import ID_LENGTH_MAX
from exporter.core.events.lines import LineSplitter, Oversized
from exporter.core.events.redaction import Masked, Redacted, Refused
from tests.core.made_events import event

LINE_MAX: Final = 2_000_000


def clean(line: bytes) -> Redacted:
    return line


def redact(line: bytes) -> Redacted:
    """Masks what is secret and refuses what is poison."""
    if b"poison" in line:
        return Refused("budget")
    return Masked(line.replace(b"secret", b"******"), ("made-up",)) if b"secret" in line else line


def lines_of(content: bytes, position: Position = START, line_max: int = LINE_MAX) -> list[bytes | Oversized]:
    return LineSplitter(position.offset, line_max).feed(content[position.offset :])


def build(content: bytes, position: Position = START, **options: Any) -> Segment:
    """One segment of a content, from a position."""
    builder = SegmentBuilder(position, redact, **options)
    lines, index = lines_of(content, position), 0
    while index < len(lines) and not builder.full:
        index = builder.take(lines, index, len(lines))
    return builder.finish(content[: builder.offset])


def segments(
    content: bytes, position: Position = START, *, slice_lines: int = 32, ascii_known: bool = False
) -> list[Segment]:
    """All of a content, cut as the road does."""
    found: list[Segment] = []
    lines, index = lines_of(content, position), 0
    is_ascii = ascii_known and content.isascii()
    while index < len(lines):
        builder, before = SegmentBuilder(position, redact), index
        while index < len(lines) and not builder.full:
            index = builder.take(lines, index, min(len(lines), index + slice_lines), is_ascii=is_ascii)
        assert index > before
        found.append(builder.finish(content[: builder.offset]))
        position = found[-1].end
    return found


@dataclass(frozen=True)
class Part:
    """Some bytes of a file, and what has to come of them."""

    raw: bytes
    durable: tuple[bytes, ...] = ()
    unsendable: tuple[bytes, ...] = ()


def parts(number: int) -> list[Part]:
    """Every kind of line, with ids of its own."""
    plain = event(f"plain-{number}", data='{"text":"h\u00e9\u2028"}')
    second = event(f"second-{number}")
    odd = event(f"odd-{number}", data='"\\ud800"')
    secret = event(f"secret-{number}")
    poison = event(f"poison-{number}")
    large = event(f"large-{number}", data='"' + "x" * 400_000 + '"')
    hidden = event(f"hidden-{number}", ephemeral=True)
    return [
        Part(plain + b"\n", (plain,)),
        Part(b" \t" + plain + b"\r\n", (plain,)),
        Part(plain + second + b"\n", (plain, second)),
        Part(plain[:40] + second + b"\n", (second,), (plain[:40],)),
        Part(odd + b"\n", (odd,)),
        Part(secret + b"\n", (secret.replace(b"secret", b"******"),)),
        Part(poison + b"\n", (), (poison,)),
        Part(large + b"\n", (large,)),
        Part(hidden + b"\n"),
        Part(hidden + second + hidden + b"\n", (second,)),
        Part(b"\n \r\n"),
        Part(b"rubbish\n", (), (b"rubbish",)),
        Part(b"\0" * 300 + plain + b"\n", (plain,), (b"\0" * 300,)),
        Part(b'{"id":7}\n', (), (b'{"id":7}',)),
        Part(b"\xff\n", (), (b"\xff",)),
    ]


KINDS: Final = len(parts(0))


@st.composite
def files(draw: st.DrawFn) -> list[Part]:
    """A file as its parts: some of each kind, or many of one."""
    runs = draw(st.lists(st.tuples(st.integers(0, KINDS - 1), st.sampled_from([1, 1, 1, 2, 400])), max_size=10))
    kinds = [kind for kind, times in runs for _ in range(4 if kind == 7 and times > 4 else times)]
    return [parts(number)[kind] for number, kind in enumerate(kinds)]


@settings(max_examples=60)
@given(files(), st.sampled_from([b"", b"torn", b"\0\0", event("torn")]), st.sampled_from([1, 7, 32]), st.data())
def test_segments_are_the_file(file: list[Part], torn: bytes, slice_lines: int, data: st.DataObject) -> None:
    content = b"".join(part.raw for part in file) + torn
    whole = len(content) - len(torn)

    found = segments(content, slice_lines=slice_lines, ascii_known=data.draw(st.booleans()))

    assert [line for one in found for line in one.lines] == [line for part in file for line in part.durable]
    assert [one.raw for each in found for one in each.unsendable] == [raw for part in file for raw in part.unsendable]
    assert all(len(one.ids) == len(one.lines) == len(one.offsets) for one in found)
    edges = [START, *(one.end for one in found)]
    assert [one.start for one in found] == edges[:-1]
    assert edges[-1].offset == whole
    assert all(edge.follows(content[: edge.offset]) for edge in edges)
    for one in found:
        assert len(one.ids) <= EVENTS_MAX
        assert one.size <= BYTES_MAX + 1 or len(one.ids) == 1
        for line, offset in zip(one.lines, one.offsets, strict=True):
            assert one.start.offset <= offset < one.end.offset
            assert content[offset:].lstrip(b" \t")[: len(line)].replace(b"secret", b"******") == line
        for unsendable in one.unsendable:
            assert content[unsendable.offset :].startswith(unsendable.raw)

    if found:  # a sink that was killed goes on from any mark
        kept = data.draw(st.integers(0, len(found) - 1))
        again = segments(content, found[kept].end, slice_lines=slice_lines)
        assert [one.lines for one in again] == [one.lines for one in found[kept + 1 :]]


def test_a_segment_ends_at_its_number_of_events() -> None:
    content = b"".join(event(str(number)) + b"\n" for number in range(EVENTS_MAX + 1))

    assert [len(one.ids) for one in segments(content)] == [EVENTS_MAX, 1]


@pytest.mark.parametrize("limits", [{"events_max": 2}, {"bytes_max": 2 * len(event("0")) + 2}], ids=["events", "bytes"])
def test_a_segment_at_its_limit_takes_nothing_more(limits: dict[str, Any]) -> None:
    """Not even what it has room for: a line without an event."""
    content = event("0") + b"\n" + event("1") + b"\n"

    assert build(content + b"\n" + b"rubbish\n", **limits).end.offset == len(content)


def test_glued_events_stay_in_one_segment() -> None:
    """A position is the end of a line."""
    content = b"".join(event(str(number)) + b"\n" for number in range(EVENTS_MAX - 1)) + event("a") + event("b") + b"\n"

    assert [len(one.ids) for one in segments(content)] == [EVENTS_MAX - 1, 2]
    assert [len(one.ids) for one in segments(event("a") * (EVENTS_MAX + 1) + b"\n")] == [EVENTS_MAX + 1]


def test_a_segment_ends_before_the_event_that_does_not_fit() -> None:
    content = b"".join(event(str(number), data='"' + "x" * 300_000 + '"') + b"\n" for number in range(4))

    assert [one.ids for one in segments(content)] == [["0", "1", "2"], ["3"]]


def test_an_event_larger_than_a_segment_is_one_alone() -> None:
    huge = event("huge", data='"' + "x" * BYTES_MAX + '"')

    found = segments(event("a") + b"\n" + huge + b"\n" + event("b") + b"\n")

    assert [one.ids for one in found] == [["a"], ["huge"], ["b"]]


def test_limits_of_a_receiver_are_its_own() -> None:
    content = b"".join(event(str(number)) + b"\n" for number in range(9))

    assert build(content, events_max=4).ids == ["0", "1", "2", "3"]
    assert build(content, bytes_max=2 * len(event("0")) + 2).ids == ["0", "1"]


@pytest.mark.parametrize("rubbish", [b"x" * 9_000, b"\0" * 9_000, b"x"], ids=["text", "nul bytes", "short"])
def test_a_file_of_rubbish_is_not_held_at_once(rubbish: bytes) -> None:
    """A segment is held in memory, whatever is in it."""
    content = (rubbish + b"\n") * 1200

    found = segments(content)

    assert sum(len(one.unsendable) for one in found) == 1200
    for one in found:
        assert len(one.unsendable) <= EVENTS_MAX
        assert sum(len(each.raw) for each in one.unsendable) <= BYTES_MAX + len(rubbish)


def test_a_run_of_ephemeral_events_is_not_held_at_once() -> None:
    content = b"".join(event(str(number), ephemeral=True) + b"\n" for number in range(1200))

    assert len(build(content, keep_live=True).live) <= EVENTS_MAX


def test_a_line_too_long_is_named_with_its_place_and_head() -> None:
    content = event("a") + b"\n" + b"x" * 100 + b"\n" + event("b") + b"\n"
    builder = SegmentBuilder(START, clean)
    lines: list[bytes | Oversized] = [event("a"), Oversized(len(event("a")) + 1, 100, b"xx"), event("b")]
    index = 0
    while index < len(lines):
        index = builder.take(lines, index, len(lines))
    segment = builder.finish(content)

    assert segment.ids == ["a", "b"]
    assert segment.unsendable == [Unsendable(len(event("a")) + 1, b"xx", 100, "line_too_long", None)]
    assert "xx" not in repr(segment.unsendable)  # what a log may show
    assert segment.end.offset == len(content)
    assert segment.offsets[1] == len(content) - len(event("b")) - 1


def test_what_the_redactor_refuses_is_unsendable_as_it_was_read() -> None:
    segment = build(event("a") + b"\n" + event("b", data='"poison"') + b"\n")

    assert segment.ids == ["a"]
    raw = event("b", data='"poison"')
    assert segment.unsendable == [Unsendable(len(event("a")) + 1, raw, len(raw), "budget", "b")]


def test_events_stand_in_their_order_each_with_its_line_and_place() -> None:
    raw = [event("a"), event("b", data='"secret"'), event("c"), event("d", data='"secret"')]

    segment = build(b"".join(line + b"\n" for line in raw))

    assert segment.ids == ["a", "b", "c", "d"]
    assert segment.lines == [line.replace(b"secret", b"******") for line in raw]
    assert segment.offsets == [sum(len(one) + 1 for one in raw[:at]) for at in range(4)]
    assert segment.size == sum(map(len, segment.lines)) + 4


def test_what_was_masked_is_counted_by_day_and_rule() -> None:
    segment = build(b"".join(event(str(number), data='"secret"') + b"\n" for number in range(3)))

    assert segment.masked == {("2026-11-18", "made-up"): 3}
    assert b"secret" not in b"".join(segment.lines)


@pytest.mark.parametrize("name", ["id", "type", "timestamp"])
def test_an_ephemeral_event_is_never_a_line(name: str) -> None:
    key = name.encode()
    odd = event("x", ephemeral=True).replace(b'"%s":"' % key, b'"%s":7,"%s":"' % (key, key))
    content = event("a") + b"\n" + odd + b"\n" + event("b", data='{"ephemeral":true}') + b"\n"

    segment = build(content)

    assert segment.ids == ["a", "b"]
    assert segment.ephemeral == 1
    assert segment.live == []


def test_live_events_are_redacted_and_those_refused_are_not_shown() -> None:
    shown = [
        event(str(number), data=f'"{text}"', ephemeral=True) for number, text in enumerate(["x", "secret", "poison"])
    ]

    segment = build(b"\n".join(shown) + b"\n", keep_live=True)

    assert segment.live == [shown[0], shown[1].replace(b"secret", b"******")]
    assert (segment.lines, segment.ephemeral, segment.unsendable) == ([], 3, [])


@pytest.mark.parametrize("is_noted", [False, True])
def test_what_a_sink_has_is_passed_over_without_being_redacted(is_noted: bool) -> None:
    seen = set[str]() if is_noted else None
    redacted: list[bytes] = []

    def watch(line: bytes) -> Redacted:
        redacted.append(line)
        return line

    content = b"".join(event(name, ephemeral=name == "e") + b"\n" for name in "abec")
    builder = SegmentBuilder(START, watch, skip={"a", "c"}, seen=seen)
    lines, index = lines_of(content), 0
    while index < len(lines):
        index = builder.take(lines, index, len(lines))
    segment = builder.finish(content)

    assert (segment.ids, segment.skipped) == (["b"], 2)
    assert seen == ({"a", "b", "c"} if is_noted else None)
    assert redacted == [event("b")]
    assert segment.end.offset == len(content)


def test_ids_are_noted_where_nothing_is_passed_over() -> None:
    seen: set[str] = set()

    segment = build(b"".join(event(name, ephemeral=name == "e") + b"\n" for name in "abe"), seen=seen)

    assert (segment.ids, seen) == (["a", "b"], {"a", "b"})


def test_both_kinds_of_hash_can_be_asked_of_one_segment() -> None:
    segment = build(event("a") + b"\n" + event("b") + b"\n")

    digests = segment.hashes(for_digest=True)
    assert [len(one) for one in digests] == [32, 32]
    assert [len(one) for one in segment.hashes(for_digest=False)] == [16, 16]
    assert segment.hashes(for_digest=True) == digests


def test_an_empty_segment_stays_where_it_began() -> None:
    assert build(b"torn").end == START
    assert build(b"").hashes(for_digest=True) == []


@pytest.mark.parametrize("options", [{}, {"skip": frozenset()}], ids=["clean loop", "one by one"])
def test_a_segment_may_be_filled_to_its_last_byte(options: dict[str, Any]) -> None:
    one = len(event("0")) + 1
    content = b"".join(event(str(number)) + b"\n" for number in range(3))

    assert build(content, bytes_max=2 * one - 1, **options).ids == ["0", "1"]
    assert build(content, bytes_max=2 * one - 2, **options).ids == ["0"]
    assert build(content, bytes_max=2 * one, **options).size == 2 * one


def test_a_line_with_several_events_fills_a_segment_exactly() -> None:
    content = event("a") + b"\n" + event("b") + event("c") + b"\n" + event("d") + b"\n"

    assert build(content, events_max=3).ids == ["a", "b", "c"]
    assert build(content, events_max=2).ids == ["a"]


@pytest.mark.parametrize("ephemeral", [False, True], ids=["rubbish", "shown"])
def test_what_is_held_beside_the_events_ends_a_segment_at_its_limit(ephemeral: bool) -> None:
    line = event("x", ephemeral=True) if ephemeral else b"rubbish"
    content = (line + b"\n") * 5

    def held(**limits: Any) -> int:
        segment = build(content, keep_live=True, **limits)
        return len(segment.live) + len(segment.unsendable)

    assert held(events_max=3) == 3
    assert held(bytes_max=2 * len(line)) == 2
    assert held(bytes_max=2 * len(line) + 1) == 3


def test_refused_events_are_left_out_of_ids_and_hashes_alike() -> None:
    segment = build(b"".join(event(name) + b"\n" for name in "abc"))
    hashes = segment.hashes(for_digest=True)

    assert segment.without(frozenset(), for_digest=True) == (["a", "b", "c"], hashes)
    assert segment.without(frozenset({0, 2}), for_digest=True) == (["b"], hashes[1:2])
    assert segment.without(frozenset({1}), for_digest=False)[0] == ["a", "c"]


def test_a_segment_tells_how_many_events_it_has_and_the_last() -> None:
    segment = build(event("a") + b"\n" + event("b") + b"\n")

    assert (segment.events, segment.last_id) == (2, "b")
    assert (build(b"\n").events, build(b"\n").last_id) == (0, None)


@pytest.mark.parametrize("identity", ["x" * 256, "x" * 257, ""])
def test_an_event_with_an_unusable_id_is_quarantined(identity: str) -> None:
    segment = build(event("a") + b"\n" + event(identity) + b"\n")

    is_usable = 0 < len(identity) <= ID_LENGTH_MAX
    assert segment.ids == (["a", identity] if is_usable else ["a"])
    assert [one.reason for one in segment.unsendable] == ([] if is_usable else ["bad_id"])


def test_a_piece_of_a_text_in_a_file_is_not_shown() -> None:
    whole = event("a", ephemeral=True)
    piece = event("b", kind="assistant.message_delta", ephemeral=True)

    assert build(whole + b"\n" + piece + b"\n", keep_live=True).live == [whole]
