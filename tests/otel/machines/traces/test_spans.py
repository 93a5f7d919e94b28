"""What every span has in common: its beginning, its end, its texts, its links, and the places that others name."""

import pytest

from otel import names
from otel.machines.traces.spans import (
    EVENTS_PER_SPAN_MAX,
    TEXT_BYTES_MAX,
    Spans,
    add_event,
    cut,
    fill,
    finish,
    link,
    orphan,
)
from otel.machines.traces.spans import parse_traceparent as parsed
from otel.model import Context, Kind, Span, Status
from otel.names import Value

TRACE, SPAN = "0123456789abcdef" * 2, "fedcba9876543210"


def begun(operation: str = names.CHAT, parent: Context | None = None) -> Span:
    return Spans("s", "cli", content=False).begin(operation, "event", 100, parent, "m", Kind.CLIENT)


def test_a_span_begins_a_trace_or_goes_below_its_parent() -> None:
    root = begun()
    child = begun("execute_tool", root.context)

    assert (root.parent_id, child.parent_id) == (None, root.context.span_id)
    assert child.context.trace_id == root.context.trace_id
    assert child.context.span_id != root.context.span_id
    assert (child.start_ns, child.end_ns, child.kind, child.target) == (100, 0, Kind.CLIENT, "m")
    assert child.attributes == {
        names.CONVERSATION_ID: "s",
        names.SESSION_ID: "s",
        names.OPERATION: "execute_tool",
        names.EVENT_ID: "event",
    }


@pytest.mark.parametrize(("at", "end"), [(101, 101), (100, 100), (99, 100)])
def test_a_span_never_ends_before_it_begins(at: int, end: int) -> None:
    assert finish(begun(), at).end_ns == end


def test_a_span_that_failed_says_why_and_the_first_reason_stays() -> None:
    span = finish(begun(), 200)
    assert (span.status, span.attributes.get(names.ERROR_TYPE)) == (Status.UNSET, None)

    assert finish(span, 200, "first").status is Status.ERROR
    assert finish(span, 200, "second").attributes[names.ERROR_TYPE] == "first"


def test_a_span_whose_process_died_failed_at_the_last_event() -> None:
    span = begun()
    span.attributes[names.ERROR_TYPE] = "earlier"

    orphan(span, 200, "process_crash")

    assert (span.end_ns, span.status) == (200, Status.ERROR)
    assert (span.attributes[names.ORPHANED], span.attributes[names.ERROR_TYPE]) == (True, "process_crash")


def test_finished_spans_leave_once() -> None:
    spans = Spans("s", "cli", content=False)
    spans.end(begun(), 200, "broken")

    assert [span.attributes[names.ERROR_TYPE] for span in spans.pop_done()] == ["broken"]
    assert spans.pop_done() == []


def test_a_span_has_events_up_to_a_limit() -> None:
    span = begun()
    for number in range(EVENTS_PER_SPAN_MAX + 2):
        add_event(span, number, names.EXCEPTION, {})

    assert [event.time_ns for event in span.events] == list(range(EVENTS_PER_SPAN_MAX))


@pytest.mark.parametrize(
    ("value", "set_to"),
    [("m", "m"), ("", None), (None, None), (3, None), ("é", "é"), ("x" * TEXT_BYTES_MAX, "x" * TEXT_BYTES_MAX)],
)
def test_a_text_is_set_when_it_is_one(value: Value | None, set_to: str | None) -> None:
    assert fill({}, (names.REQUEST_MODEL, value)).get(names.REQUEST_MODEL) == set_to


@pytest.mark.parametrize(
    ("value", "set_to"),
    [(3, 3), (3.9, 3), (0, 0), (-1, -1), (True, None), ("3", None), (None, None), (float("inf"), None), (2**63, None),
     (-(2**63), None)],
)  # fmt: skip
def test_a_number_is_set_when_it_fits(value: Value | None, set_to: int | None) -> None:
    found = fill({}, (names.INPUT_TOKENS, value)).get(names.INPUT_TOKENS)

    assert (found, type(found)) == (set_to, type(set_to))


def test_a_truth_is_set_when_it_is_one() -> None:
    assert fill({}, (names.ORPHANED, False)) == {names.ORPHANED: False}
    assert fill({}, (names.ORPHANED, 1)) == {}


@pytest.mark.parametrize("character", ["x", "é", "€", "\U0001f600"])
def test_a_text_that_is_too_long_is_cut_between_characters_and_marked(character: str) -> None:
    size = len(character.encode())

    for room in range(16, 24):
        text = character * (room // size)
        assert cut(text, room) == text
        shortened = cut(character * (room // size + 1), room)
        assert len(shortened.encode()) <= room
        assert shortened.startswith(character)
        assert shortened != character * (room // size + 1)
        assert shortened.strip(character) == cut("x" * 99, room).strip("x") != ""
        assert room - len(shortened.encode()) < size


def test_half_a_character_is_replaced_however_short_the_text() -> None:
    assert cut("a\ud800") == "a?"


def test_a_link_says_what_it_is_for() -> None:
    context = Context(b"t" * 16, b"s" * 8)

    assert (link(context, "fork").context, link(context, "fork").attributes) == (context, {names.LINK_TYPE: "fork"})


@pytest.mark.parametrize("text", [f"00-{TRACE}-{SPAN}-01", f" 00-{TRACE}-{SPAN}-00 ", f"cc-{TRACE}-{SPAN}-01-more"])
def test_a_traceparent_names_a_place(text: str) -> None:
    assert parsed(text) == Context(bytes.fromhex(TRACE), bytes.fromhex(SPAN))


@pytest.mark.parametrize(
    "text",
    [
        None, "", f"00-{TRACE}-{SPAN}", f"ff-{TRACE}-{SPAN}-01", f"0-{TRACE}-{SPAN}-01", f"00-{TRACE[1:]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}0-01", f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[:-1]}x-{SPAN}-01",
        f"00-{TRACE[:-2]}  -{SPAN}-01", f"00-{TRACE}-{SPAN[:-2]}  -01",
    ],
)  # fmt: skip
def test_what_is_no_traceparent_names_none(text: str | None) -> None:
    assert parsed(text) is None
