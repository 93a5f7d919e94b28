"""What the start of a tool call tells of the answers that come for it, and for the shell that it runs in."""

import json
from typing import Any

import pytest

from exporter.core.events.envelope import Envelope, decode
from exporter.core.events.redaction import Redacted
from exporter.core.events.tool_calls import CallTold, told_by

PASS = "printed.pass"


class Printing:
    """Commands that say `pass show` print a secret; what they print is no matter here."""

    def rule_of(self, data: bytes, /) -> str | None:
        return PASS if b"pass show" in data else None

    def mask(self, _line: bytes, redacted: Redacted, _rule: str, /) -> Redacted:
        return redacted


COMMANDS = Printing()


def start(arguments: Any, agent: str | None = None) -> Envelope:
    data = {"toolCallId": "c", "toolName": "bash", "arguments": arguments}
    fields = {"id": "e", "type": "tool.execution_start", "timestamp": "t", "data": data}
    envelope = decode(json.dumps({**fields, **({"agentId": agent} if agent else {})}).encode())
    assert isinstance(envelope, Envelope)
    return envelope


@pytest.mark.parametrize("agent", [None, "child"])
def test_a_command_tells_of_its_call_and_of_its_shell(agent: str | None) -> None:
    told = told_by(COMMANDS, start({"command": "pass show x", "shellId": "s"}, agent))

    (call, of_call), (shell, of_shell) = told
    assert call == (agent, "c")
    assert shell[0] == agent and shell != call
    assert of_call == of_shell == CallTold(PASS)


def test_what_reads_a_shell_is_told_by_the_command_that_runs_in_it() -> None:
    _, (shell, _) = told_by(COMMANDS, start({"command": "pass show x", "shellId": "s"}))

    assert told_by(COMMANDS, start({"shellId": "s"})) == [((None, "c"), CallTold(None, shell))]
    assert told_by(COMMANDS, start({"shellId": "other"}))[0][1].shell != shell


@pytest.mark.parametrize("arguments", [{"command": "pass show x"}, {"command": "pass show x", "shellId": 7}, None])
def test_without_a_shell_a_command_tells_of_its_own_call_only(arguments: Any) -> None:
    told = told_by(COMMANDS, start(arguments))

    assert told == [((None, "c"), CallTold(PASS if arguments else None))]
