"""The events of a span."""

from otel.machines.traces import span_events
from otel.projection import TABLE


def test_every_type_that_is_an_event_of_a_span_is_one_that_the_cli_writes() -> None:
    assert sorted(span_events.SPAN_EVENTS.keys() - TABLE.keys()) == []
