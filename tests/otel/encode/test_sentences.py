"""The line of a log record: what a person would say of an event, at every content level."""

import pytest

from otel import names
from otel.encode.sentences import sentence
from otel.model import Attributes, LogRecord
from otel.names import Content, attributes
from otel.projection import TABLE
from tests.otel.machines.test_logs import records
from tests.otel.metered import lines


def _of(event_type: str, details: "Attributes | None" = None, content: Content = Content.METADATA) -> str:
    return sentence(LogRecord(1, "e", event_type, 9, None, "s", details=details or {}), content)


def test_the_end_of_a_tool_says_which_tool_how_it_ended_and_how_long_it_took() -> None:
    found = records(
        lines(
            ("user.message", 0.0, {"content": "go on"}),
            ("tool.execution_start", 1.0, {"toolCallId": "c", "toolName": "bash"}),
            ("tool.execution_complete", 7.2, {"toolCallId": "c", "success": False, "shellExecution": {"exitCode": 1}}),
        )
    )

    assert sentence(found[-1], Content.NONE) == "tool bash: failed: exit 1 after 6.2 s"


def test_an_event_of_any_type_has_a_line() -> None:
    assert all(_of(event_type).strip() for event_type in (*TABLE, "made_up.kind"))
    assert _of("made_up.kind") == "made up kind"


@pytest.mark.parametrize("content", Content)
def test_a_line_holds_nothing_above_its_level_and_no_text(content: Content) -> None:
    everything: Attributes = {attribute: f"{attribute.content.name} {attribute.name}" for attribute in attributes()}
    said = " ".join(_of(event_type, everything, content) for event_type in TABLE)

    hidden = [level.name for level in Content if level > min(content, Content.METADATA)]
    assert [name for name in hidden if name in said] == []
    assert Content.NONE.name in said


def test_a_line_is_one_line_and_short() -> None:
    said = _of("tool.execution_start", {names.TOOL_NAME: "a\nb " + "x" * 500})

    assert "\n" not in said
    assert len(said) < 200
