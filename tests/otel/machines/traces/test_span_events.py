"""The events of a span."""

import json
from typing import Any

import pytest

from otel import names, payloads
from otel.event import read
from otel.machines.traces import span_events
from otel.model import Attributes
from otel.projection import TABLE


def test_every_type_that_is_an_event_of_a_span_is_one_that_the_cli_writes() -> None:
    assert sorted(span_events.SPAN_EVENTS.keys() - TABLE.keys()) == []


@pytest.mark.parametrize(
    ("kind", "data", "attributes"),
    [
        (
            "session.error",
            {"errorType": "query", "message": "No answer."},
            {
                names.EXCEPTION_TYPE: "SessionTurnError",
                names.EXCEPTION_MESSAGE: "Session error: No answer.",
                names.MESSAGE: "No answer.",
                names.COPILOT_ERROR_TYPE: "query",
            },
        ),
        (
            "session.error",
            {"errorType": "query"},
            {names.EXCEPTION_TYPE: "SessionTurnError", names.COPILOT_ERROR_TYPE: "query"},
        ),
        (
            "session.custom_notification",
            {"source": "s", "name": "n", "subject": {"a": "größer"}, "payload": {"b": "→"}},
            {
                names.CUSTOM_SOURCE: "s",
                names.CUSTOM_NAME: "n",
                names.CUSTOM_SUBJECT: '{"a":"größer"}',
                names.CUSTOM_PAYLOAD: '{"b":"→"}',
            },
        ),
    ],
    ids=["an error", "an error without a text", "text of an extension"],
)
def test_an_event_of_a_span_says_what_the_session_said(kind: str, data: dict[str, Any], attributes: Attributes) -> None:
    line = {"type": kind, "data": data, "id": "e", "timestamp": "2026-11-18T10:00:00.000Z"}
    event = read(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode())
    assert event is not None

    assert span_events.SPAN_EVENTS[kind](event)[1] == attributes


@pytest.mark.parametrize(("legacy", "turn"), [(False, "t"), (True, None)])
def test_a_message_of_a_person_names_its_turn_but_in_the_shape_of_cli_1_0_48(legacy: bool, turn: str | None) -> None:
    said = payloads.UserMessage(source="user", turn_id="t")

    assert span_events.user_message(said, legacy=legacy)[1].get(names.USER_MESSAGE_TURN) == turn
