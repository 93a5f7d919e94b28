"""Spans and log records of a sub-agent say which agents it is below, as the registry of the program does."""

import json
from pathlib import Path
from typing import Any

import pytest

from exporter.core.agents.registry import AgentRegistry
from exporter.core.events.envelope import Envelope, decode
from otel import names
from otel.event import read
from otel.machines.logs import record
from otel.machines.traces.machine import Traces
from otel.model import Span
from tests.shared import REAL

FIXTURES = Path(__file__).parents[2] / "fixtures"
LOGS = [
    log
    for log in sorted([*REAL.glob("**/events.jsonl"), *FIXTURES.glob("**/events.jsonl")])
    if b'"subagent.started"' in log.read_bytes()
]


def line(number: int, type: str, agent: str | None = None, **data: Any) -> bytes:
    event = {"type": type, "id": f"e{number}", "timestamp": f"2026-11-18T10:00:{number:02}.000Z", "data": data}
    return json.dumps(event | ({"agentId": agent} if agent else {})).encode()


def told(lines: list[bytes]) -> tuple[list[tuple[str, ...]], dict[str, Any]]:
    """The path of each log record, and that of every agent's span."""
    traces, paths, spans = Traces("s"), list[tuple[str, ...]](), list[Span]()
    for one in lines:
        event = read(one)
        assert event is not None
        taken = traces.take(event)
        spans += taken.spans
        logged = record(event, taken, one, "s").details.get(names.AGENT_PATH, ())
        assert isinstance(logged, tuple)
        paths.append(logged)
    spans += traces.process_died()
    of = {span.attributes.get(names.AGENT_INSTANCE_ID): span for span in spans if span.operation == names.INVOKE_AGENT}
    return paths, {str(agent): span.attributes.get(names.AGENT_PATH) for agent, span in of.items() if agent}


@pytest.mark.parametrize("log", LOGS, ids=lambda log: "/".join(log.parts[-4:-1]))
def test_the_paths_of_a_capture_are_those_of_the_registry(log: Path) -> None:
    lines = log.read_bytes().splitlines()
    envelopes = [one for raw in lines if isinstance(one := decode(raw), Envelope)]
    session = json.loads(bytes(envelopes[0].data))["sessionId"]
    agents = AgentRegistry()
    agents.add(session)
    expected = [agents.attribute(session, envelope).path for envelope in envelopes]

    logged, spans = told(lines)

    assert logged == expected
    assert spans == {path[-1]: path for path in expected if path}


STORY = [
    line(0, "user.message", content="Go"),
    line(1, "tool.execution_start", toolCallId="c1", toolName="task"),
    line(2, "subagent.started", "outer", toolCallId="c1", agentName="explore"),
    line(3, "tool.execution_start", "outer", toolCallId="c2", toolName="task"),
    line(4, "assistant.message", "inner", content="Before my start"),
    line(5, "subagent.started", "inner", toolCallId="c2", parentId="a-task", agentName="task"),
    line(6, "assistant.message", "inner", content="Hm"),
    line(7, "subagent.failed", "inner", toolCallId="c2", error="No"),
    line(8, "assistant.turn_end", "inner"),
    line(9, "subagent.started", "named", toolCallId="c9", parentId="outer"),
    line(10, "user.message", "inner", content="Once more"),
    line(11, "assistant.turn_end"),
]


def test_a_nested_agent_is_below_who_made_its_call_or_else_who_is_named() -> None:
    logged, spans = told(STORY)

    assert logged[1:4] == [(), ("outer",), ("outer",)]
    assert logged[5:] == [("outer", "inner")] * 4 + [("outer", "named"), ("outer", "inner"), ()]
    assert spans == {"outer": ("outer",), "inner": ("outer", "inner"), "named": ("outer", "named")}


def test_agents_that_start_each_other_have_paths_that_end() -> None:
    lines = [
        line(0, "user.message", content="Go"),
        line(1, "subagent.started", "x", toolCallId="c1"),
        line(2, "subagent.started", "y", toolCallId="c2", parentId="x"),
        line(3, "tool.execution_start", "y", toolCallId="c1", toolName="task"),
        line(4, "subagent.completed", "x", toolCallId="c1"),
        line(5, "subagent.started", "x", toolCallId="c1"),
        line(6, "assistant.message", "x", content="Hm"),
    ]

    logged, _ = told(lines)

    assert all(len(set(path)) == len(path) for path in logged)
    assert logged[6][-1] == "x"


def test_a_hook_about_an_agent_is_its_own_and_any_other_is_the_main_agents() -> None:
    def hook(number: int, kind: str, invocation: str, session: object = None) -> bytes:
        about: dict[str, Any] = {"input": {"sessionId": session}} if session else {}
        return line(number, f"hook.{kind}", hookInvocationId=invocation, hookType="agentStop", **about)

    lines = [
        *STORY[:3],
        hook(3, "start", "h1", "outer"),
        hook(4, "start", "h2", "where-a-fork-came-from"),
        hook(5, "start", "h3", 7),
        hook(6, "end", "h2"),
        hook(7, "end", "h1"),
        hook(8, "end", "h1"),
    ]

    logged, _ = told(lines)

    assert logged[3:] == [("outer",), (), (), (), ("outer",), ()]


def test_the_main_agents_events_say_nothing_of_agents() -> None:
    event = read(STORY[0])
    assert event is not None

    assert names.AGENT_PATH not in record(event, Traces("s").take(event), STORY[0], "s").details
