"""The session fixtures hold nothing of GitHub's prompts and nothing of the machine they were made on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.capture import FIXTURES, OWN_TEXT_CHARACTERS_MAX, TOTAL_BYTES_MAX, without_prompts

LOGS = sorted(FIXTURES.glob("*/events.jsonl"))


@pytest.mark.parametrize("log", LOGS, ids=[log.parent.name for log in LOGS])
def test_a_log_holds_no_prompt_text(log: Path) -> None:
    events = [json.loads(line) for line in log.read_bytes().splitlines()]

    assert [text for event in events for text in _texts(event) if len(text) > OWN_TEXT_CHARACTERS_MAX] == []
    prompts = [event["data"]["content"] for event in events if event["type"] == "system.message"]
    assert prompts
    assert [prompt for prompt in prompts if not prompt.startswith("<removed ")] == []


@pytest.mark.parametrize("file", sorted(FIXTURES.glob("*/*")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_file_names_no_place_of_the_machine_it_was_made_on(file: Path) -> None:
    text = file.read_text()

    assert [place for place in ("/tmp/", "/root", "/Users/", "/home/") if place in text.replace("/home/dev/", "")] == []


def test_the_fixtures_are_small() -> None:
    assert LOGS
    assert sum(path.stat().st_size for path in FIXTURES.rglob("*") if path.is_file()) <= TOTAL_BYTES_MAX


def test_an_event_without_prompt_text_keeps_its_bytes() -> None:
    line = b'{"type":"tool.execution_start", "data":{"a":1.0e2,"b":"\\u00e9"},"id":"1"}'

    assert without_prompts(line) == line


def test_texts_of_a_system_message_are_removed() -> None:
    line = b'{"type":"system.message","data":{"content":"' + b"You are. " * 20 + b'"},"id":"1"}'

    assert json.loads(without_prompts(line))["data"] == {"content": "<removed 180 chars>"}


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
