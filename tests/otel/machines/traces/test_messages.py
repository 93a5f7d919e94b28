"""Messages as the conventions write them: JSON that can be parsed, whatever is in it and however long it is."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel import names
from otel.event import Event, read
from otel.machines.traces import messages
from otel.machines.traces.spans import TEXT_BYTES_MAX
from tests.otel.captures import captures, objects
from tests.otel.story import Story


def _event(kind: str, *, ensure_ascii: bool = True, **data: Any) -> Event:
    event = read(json.dumps({"type": kind, "id": "e", "data": data}, ensure_ascii=ensure_ascii).encode())
    assert event is not None
    return event


def test_what_was_said_is_a_message_with_a_role_and_parts() -> None:
    story = Story(content=True)
    story.ask(content='Say "hi".')
    story.tell("system.message", {"role": "system", "content": "Be nice."})
    story.answer()
    story.end_turn()

    attributes = story.one("invoke_agent").attributes

    assert json.loads(str(attributes[names.INPUT_MESSAGES])) == [
        {"role": "user", "parts": [{"type": "text", "content": 'Say "hi".'}]}
    ]
    assert json.loads(str(attributes[names.SYSTEM_INSTRUCTIONS])) == [{"type": "text", "content": "Be nice."}]
    assert json.loads(str(attributes[names.OUTPUT_MESSAGES])) == [
        {"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}
    ]


@pytest.mark.parametrize("said", [{}, {"content": ""}, {"content": 7}])
def test_nothing_said_is_no_message(said: dict[str, Any]) -> None:
    assert messages.input_messages(_event("user.message", **said)) is None
    assert messages.system_instructions(_event("system.message", **said)) is None


def test_a_request_without_arguments_says_so() -> None:
    told = messages.output_messages(_event("assistant.message", toolRequests=[{"toolCallId": "c", "name": "bash"}]))

    assert json.loads(told)[0]["parts"] == [{"type": "tool_call", "id": "c", "name": "bash", "arguments": None}]


def test_arguments_that_are_too_long_are_cut_as_text() -> None:
    request = {"toolCallId": "c", "name": "bash", "arguments": {"command": "für " * 30_000}}
    event = _event("assistant.message", ensure_ascii=False, toolRequests=[request])

    [part] = json.loads(messages.output_messages(event))[0]["parts"]
    assert part["arguments"].startswith('{"command"')
    assert "für für" in part["arguments"] and "\ufffd" not in part["arguments"]


_LONG = st.sampled_from(["", "x", '"', "\n", "\0", "é", "\ud800", "🎈"])
_SIZES = st.sampled_from([1, 1_000, 20_000, 66_000])


@given(_LONG, _SIZES, _LONG, _SIZES, st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_what_is_too_long_is_cut_and_can_still_be_parsed(text: str, long: int, more: str, longer: int, n: int) -> None:
    requests = [{"toolCallId": "c", "name": "bash", "arguments": {"command": more * longer}}] * n
    answer = _event("assistant.message", content=text * long, toolRequests=requests)

    told = [
        messages.input_messages(_event("user.message", content=text * long)) or "[]",
        messages.system_instructions(_event("system.message", content=text * long)) or "[]",
        messages.output_messages(answer),
    ]

    for one in told:
        assert len(one.encode()) <= TEXT_BYTES_MAX
        assert isinstance(json.loads(one), list)
    assert sum(part["type"] == "tool_call" for part in json.loads(told[2])[0]["parts"]) == n


@pytest.mark.parametrize("directory", captures("events.jsonl", "otel.jsonl"))
def test_answers_are_written_as_the_cli_writes_them(directory: Path) -> None:
    """By the first tool that an answer asks for, as answers that a rewind took out of the log are not in it."""
    written = [span.get("attributes", {}).get(names.OUTPUT_MESSAGES.name) for span in objects(directory / "otel.jsonl")]
    theirs = [message for one in written if one for message in json.loads(one)]
    for message in theirs:
        message.pop("finish_reason", None)  # of CLI 1.0.48; it is an attribute of its own, too
    by_call = {_first_call(message): message for message in theirs if len(message["parts"]) == 1}

    compared = 0
    for line in (directory / "events.jsonl").read_bytes().splitlines():
        event = read(line)
        if event is not None and event.type == "assistant.message":
            [message] = json.loads(messages.output_messages(event))
            call = _first_call(message)
            if call is not None and call in by_call and len(message["parts"]) == 1:
                assert message == by_call[call]
                compared += 1

    if not theirs:
        pytest.skip("the CLI was not to tell texts here")
    assert compared


def _first_call(message: dict[str, Any]) -> str | None:
    return next((part["id"] for part in message["parts"] if part["type"] == "tool_call"), None)
