"""Ids of traces and spans: the same for ever, and different for whatever is different."""

import itertools

from otel.machines.traces.spans import span_id, trace_id


def test_ids_stay_what_they_are() -> None:
    """A change here breaks every trace that was ever sent: a second sending would no longer be the same spans."""
    assert trace_id("session", "event").hex() == "caabe715858414002b7187b46dbaca5f"
    assert span_id("chat", "session", "event").hex() == "c97027e0834eb757"


def test_ids_differ_with_everything_they_are_made_of() -> None:
    texts = ["", "a", "b", "ab", "é"]

    spans = [span_id(*parts) for parts in itertools.product(texts, texts, texts)]
    traces = [trace_id(*parts) for parts in itertools.product(texts, texts)]

    assert len(set(spans)) == len(spans)
    assert len(set(traces)) == len(traces)
    assert {len(span) for span in spans} == {8}
    assert {len(trace) for trace in traces} == {16}


def test_text_that_utf8_cannot_hold_has_an_id_too() -> None:
    assert any(trace_id("\ud800", "\udfff"))
