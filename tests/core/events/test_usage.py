"""What is kept of the usage that a CLI server tells and writes into no event of its own."""

import json
from typing import Any

import pytest

from exporter.core.events.envelope import Envelope, decode
from exporter.core.events.usage import usage_line

DATA = {
    "model": "m",
    "inputTokens": 3,
    "cost": 1.5,
    "apiCallId": "",
    "secret": "x",
    "accounting": {"sourceSessionId": "s"},
}


def told(**changes: Any) -> Envelope:
    fields = {
        "id": "e",
        "type": "assistant.usage",
        "timestamp": "t",
        "parentId": "record",
        "ephemeral": True,
        "data": DATA,
    }
    envelope = decode(json.dumps({**fields, **changes}).encode())
    assert isinstance(envelope, Envelope)
    return envelope


def test_the_figures_are_kept_under_the_id_of_the_record_and_nothing_else_is() -> None:
    line = usage_line(told(agentId="a"), lambda _: False)

    assert line is not None
    assert json.loads(line) == {
        "type": "session.usage_record",
        "data": {"usage": {"model": "m", "inputTokens": 3, "cost": 1.5, "accounting": {"sourceSessionId": "s"}}},
        "id": "record",
        "timestamp": "t",
        "agentId": "a",
        "ephemeral": True,
    }


def test_without_a_record_it_has_the_id_of_what_was_told() -> None:
    line = usage_line(told(data={"model": "m"}), lambda _: True)

    assert line is not None
    assert json.loads(line)["id"] == "e"


@pytest.mark.parametrize(
    "changes", [{"ephemeral": False}, {"type": "assistant.message"}, {"data": [1]}, {"data": None}]
)
def test_nothing_is_kept_of_another_event(changes: dict[str, Any]) -> None:
    assert usage_line(told(**changes), lambda _: False) is None


def test_nothing_is_kept_where_the_record_is_known() -> None:
    assert usage_line(told(), lambda id: id == "record") is None
