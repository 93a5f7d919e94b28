"""What holds for spans whatever the events are."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otel.event import read
from otel.machines.traces.machine import Traces
from otel.model import Span, Status
from otel.names import Semconv
from tests.otel.streams import streams

_SEMCONVS = st.sampled_from(["cli", "latest", "legacy"])
_settings = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _run(lines: list[bytes], semconv: Semconv, *, content: bool = False) -> tuple[Traces, list[Span]]:
    machine = Traces("session", semconv=semconv, content=content)
    spans: list[Span] = []
    for line in lines:
        event = read(line)
        if event is not None:
            spans += machine.take(event).spans
    return machine, spans


@given(streams(), _SEMCONVS)
@_settings
def test_every_span_leaves_once_and_hangs_on_one_that_left(lines: list[bytes], semconv: Semconv) -> None:
    machine, spans = _run(lines, semconv)

    spans += machine.process_died()

    contexts = [span.context for span in spans]
    assert len({context.span_id for context in contexts}) == len(contexts)
    places = set(contexts)
    for span in spans:
        assert span.parent_id is None or (span.context.trace_id, span.parent_id) in places
        assert span.start_ns <= span.end_ns
    above = {span.context.span_id: span.parent_id for span in spans}
    for parent in above.values():
        seen, at = set(), parent
        while at is not None:
            assert at not in seen
            seen.add(at)
            at = above[at]
    assert machine.process_died() == []
    assert not machine.open


@given(streams(), _SEMCONVS, st.booleans())
@_settings
def test_the_same_events_give_the_same_spans(lines: list[bytes], semconv: Semconv, content: bool) -> None:
    first, spans = _run(lines, semconv, content=content)
    second, again = _run(lines, semconv, content=content)

    assert again + second.process_died() == spans + first.process_died()


@given(streams(), _SEMCONVS, st.data())
@_settings
def test_what_left_does_not_depend_on_what_comes(lines: list[bytes], semconv: Semconv, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(lines)))

    _, before = _run(lines[:cut], semconv)
    _, all_of_them = _run(lines, semconv)

    assert all_of_them[: len(before)] == before


@given(streams(), _SEMCONVS)
@_settings
def test_repeated_lines_change_nothing(lines: list[bytes], semconv: Semconv) -> None:
    _, once = _run(lines, semconv)
    _, twice = _run([line for line in lines for _ in range(2)], semconv)

    assert [(span.context, span.parent_id, span.end_ns) for span in twice] == [
        (span.context, span.parent_id, span.end_ns) for span in once
    ]


@given(streams())
@_settings
def test_content_and_convention_change_no_id(lines: list[bytes]) -> None:
    plain, spans = _run(lines, "cli")
    full, texts = _run(lines, "cli", content=True)

    ids = [(span.context, span.parent_id, span.status is Status.ERROR) for span in spans + plain.process_died()]
    assert [(span.context, span.parent_id, span.status is Status.ERROR) for span in texts + full.process_died()] == ids


@given(streams(), _SEMCONVS)
@_settings
def test_values_have_the_type_of_their_name(lines: list[bytes], semconv: Semconv) -> None:
    machine, spans = _run(lines, semconv, content=True)

    for span in spans + machine.process_died():
        for attributes in [span.attributes, *(event.attributes for event in span.events)]:
            assert all(type(value) is name.type for name, value in attributes.items())
