"""An event of a host has the same id however often it is told, and a line that can always be written."""

import json
from uuid import uuid5

import pytest

from exporter.core.ahp.drafts import NAMESPACE, Draft, id_of, is_made, moment, seconds_of, write


@pytest.mark.parametrize("parts", [("a",), ("a", "b", 3), ("ü", None), ()])
def test_an_id_is_the_uuid_of_its_parts(parts: tuple[object, ...]) -> None:
    assert id_of(*parts) == str(uuid5(NAMESPACE, "|".join(map(str, parts))))
    assert is_made(id_of(*parts))


@pytest.mark.parametrize("other", ["8d3a4b52-6f0e-4c53-9a57-9f3a7c1d2e4b", "event-1", ""])
def test_other_ids_were_not_made_here(other: str) -> None:
    assert not is_made(other)


def test_a_line_names_its_agent_and_says_when_it_is_not_durable() -> None:
    plain = {"type": "t", "data": {"a": 1}, "id": "i", "timestamp": "at", "parentId": "p"}

    assert json.loads(write(Draft("i", "t", "at", {"a": 1}), "p")) == plain
    child = Draft("i", "t", "at", {"a": 1}, "agent", is_ephemeral=True)
    assert json.loads(write(child, "p")) == {**plain, "agentId": "agent", "ephemeral": True}


@pytest.mark.parametrize("value", [2**70, "\ud800"])
def test_a_line_is_written_whatever_it_holds(value: object) -> None:
    assert json.loads(write(Draft("i", "t", "at", {"a": value}), None))["data"] == {"a": value}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "1970-01-01T00:00:00.000Z"), (-5.0, "1970-01-01T00:00:00.000Z"), (1.5, "1970-01-01T00:00:01.500Z"),
     (1e15, "9999-12-31T23:59:59.000Z")],
)  # fmt: skip
def test_a_time_is_written_as_the_cli_does_and_within_its_years(seconds: float, text: str) -> None:
    assert moment(seconds) == text


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(1500, 1.5), (0, 0.0), (-1, None), (253_402_300_799_000, 253_402_300_799.0), (253_402_300_799_001, None),
     (True, None), (None, None), ("1970-01-01T00:00:02Z", 2.0), ("soon", None), ([1], None)],
)  # fmt: skip
def test_a_hosts_time_is_milliseconds_or_text(value: object, seconds: float | None) -> None:
    assert seconds_of(value) == seconds
