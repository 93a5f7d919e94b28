"""One event is one readable line."""

import json
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.cli.output.events import EventLines, summary
from exporter.cli.output.table import TerminalView


def event(kind: str, /, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "id": "e1", "timestamp": "2026-11-18T09:30:00.000Z", "parentId": None}


@pytest.mark.parametrize(
    ("given_event", "said"),
    [
        (event("user.message", content="Fix\nit"), "Fix it"),
        (event("assistant.message", content="", toolRequests=[{"name": "view"}, {"name": "bash"}]), "calls view, bash"),
        (event("tool.execution_start", toolName="bash", arguments={"command": "make test"}), "bash: make test"),
        (event("tool.execution_complete", success=True, result={"content": "fine"}), "ok fine"),
        (
            event("tool.execution_complete", success=True, shellExecution={"exitCode": 5}, result={"content": "x"}),
            "failed (5) x",
        ),
        (event("tool.execution_complete", success=False, error={"message": "no such file"}), "failed no such file"),
        (
            event("session.usage_record", usage={"model": "m", "inputTokens": 9000, "outputTokens": 12}),
            "m 9,000 in, 12 out",
        ),
        (
            event("system.notification", kind={"type": "shell_completed", "exitCode": 0, "description": "Suite"}),
            "shell completed, exit code 0: Suite",
        ),
        (event("system.notification", kind={"type": "agent_idle", "displayName": "helper"}), "agent idle: helper"),
        (event("session.warning", message="careful"), "careful"),
        (event("never.heard_of", anything=[1, 2]), ""),
        ({"type": "session.info", "data": "not an object"}, ""),
    ],
)
def test_an_event_says_what_matters_of_it(given_event: dict[str, Any], said: str) -> None:
    assert summary(given_event) == said


def test_a_new_day_is_announced_once() -> None:
    lines = EventLines(TerminalView(80))
    first, second = (lines.text(json.dumps(event("user.message", content="hi")).encode()) for _ in range(2))

    assert "2026\n" in first
    assert second.endswith("user.message              hi")
    assert "\n" not in second


def test_what_cannot_be_read_is_still_a_line() -> None:
    assert EventLines(TerminalView(80)).text(b'{"type":') == "--:--:--  (not readable) 8 bytes"


def test_every_event_of_the_demo_fits_the_terminal() -> None:
    lines = EventLines(TerminalView(80))
    recorded = files("exporter.demo").joinpath("session.jsonl").read_bytes().splitlines()

    assert max(len(shown) for line in recorded for shown in lines.text(line).splitlines()) <= 80


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
KNOWN = st.sampled_from(
    [
        "tool.execution_start",
        "tool.execution_complete",
        "assistant.message",
        "session.usage_record",
        "system.notification",
        "subagent.started",
        "session.start",
        "session.shutdown",
        "x",
    ]
)
FIELDS = st.sampled_from(
    ["arguments", "result", "error", "shellExecution", "toolRequests", "usage", "kind", "content", "toolName"]
)


@given(KNOWN, st.dictionaries(FIELDS, JSON))
def test_fields_of_any_shape_do_not_stop_the_line(kind: str, data: dict[str, Any]) -> None:
    line = json.dumps(event(kind, **data)).encode()

    assert EventLines(TerminalView(80)).text(line)
