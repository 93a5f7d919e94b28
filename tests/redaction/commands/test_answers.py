"""A whole answer masked: each of its strings by one marker, and nothing else of the event."""

import json
from typing import Any

import pytest

from redaction.allowlist import Allowed
from redaction.engine import CLEAN, Engine, Masked, Refused
from tests.shared import CACHE

ENGINE = Engine(bytes(32), cache_dir=CACHE)
BUDGET_MS, CALL = 20_000.0, "printed.pass"
TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3


def line(**data: Any) -> bytes:
    event = {"type": "tool.execution_complete", "data": {"toolCallId": "c1", **data}, "id": "e1", "timestamp": "t"}
    return json.dumps({**event, "parentId": None}).encode()


def shown(raw: bytes, engine: Engine = ENGINE) -> dict[str, Any]:
    result = engine.redact(raw, BUDGET_MS, CALL)
    assert isinstance(result, Masked)
    data: dict[str, Any] = json.loads(result.line)["data"]
    return data


def is_marker(text: str) -> bool:
    return text.startswith("[REDACTED:printed.pass:") and text.endswith("]") and len(text) == 32


def test_every_string_of_a_result_is_one_marker_and_the_rest_stays() -> None:
    blocks = [
        {"type": "text", "text": f'a "quoted"\n{TOKEN} \u00e9', "size": 3, "is_last": True, "none": None, "empty": ""}
    ]
    data = shown(line(success=True, model="gpt", result={"content": "amber", "contents": blocks}))

    assert (data["toolCallId"], data["success"], data["model"]) == ("c1", True, "gpt")
    [block] = data["result"]["contents"]
    assert all(map(is_marker, (data["result"]["content"], block["type"], block["text"])))
    assert (block["size"], block["is_last"], block["none"], block["empty"]) == (3, True, None, "")


@pytest.mark.parametrize("place", ["partialOutput", "text"])
def test_a_piece_of_output_is_masked_as_a_whole(place: str) -> None:
    assert is_marker(shown(line(**{place: "amber\njetty", "stream": "stdout"}))[place])


def test_of_a_hook_the_result_is_masked_and_its_other_input_stays() -> None:
    given = {"toolName": "bash", "toolResult": {"textResultForLlm": "amber", "sessionLog": "jetty"}}
    hook = shown(line(hookType="postToolUse", input=given))["input"]

    assert hook["toolName"] == "bash"
    assert is_marker(hook["toolResult"]["textResultForLlm"]) and is_marker(hook["toolResult"]["sessionLog"])


def test_of_a_failed_call_the_message_is_masked_and_its_code_stays() -> None:
    data = shown(line(success=False, error={"code": "failure", "message": "amber", "more": {"code": "jetty"}}))

    assert (data["success"], data["error"]["code"]) == (False, "failure")
    assert is_marker(data["error"]["message"])
    assert is_marker(data["error"]["more"]["code"])


def test_the_same_text_has_the_same_marker_and_a_masked_line_stays_as_it_is() -> None:
    once = ENGINE.redact(line(result={"a": "amber", "b": "amber", "c": "jetty"}), BUDGET_MS, CALL)

    assert isinstance(once, Masked)
    result = json.loads(once.line)["data"]["result"]
    assert result["a"] == result["b"] != result["c"]
    assert ENGINE.redact(once.line, BUDGET_MS, CALL) is CLEAN
    assert ENGINE.redact(once.line, BUDGET_MS) is CLEAN
    assert ENGINE.mask_answer(once.line, CALL) is CLEAN


def test_a_finding_is_the_whole_text_and_others_beside_the_answer_are_told_too() -> None:
    result = ENGINE.redact(line(result={"content": f"é {TOKEN}"}, note=TOKEN), BUDGET_MS, CALL)

    assert isinstance(result, Masked)
    found = {finding.path: (finding.rule, finding.start, finding.end) for finding in result.findings}
    assert found == {"/data/result/content": (CALL, 0, 42), "/data/note": ("github-pat-classic", 0, 40)}
    assert TOKEN.encode() not in result.line


def test_the_allowlist_holds_for_answers() -> None:
    by_rule = Engine(allowed=[Allowed(rule=CALL)], cache_dir=CACHE)
    by_value = Engine(allowed=[Allowed(value="amber")], cache_dir=CACHE)
    raw = line(result={"a": "amber", "b": "jetty"})

    assert by_rule.redact(raw, BUDGET_MS, CALL) is CLEAN
    result = shown(raw, by_value)["result"]
    assert result["a"] == "amber"
    assert is_marker(result["b"])


def test_stars_replace_an_answer_too() -> None:
    stars = Engine(marker="stars", cache_dir=CACHE)
    once = stars.redact(line(result="amber"), BUDGET_MS, CALL)

    assert isinstance(once, Masked)
    assert json.loads(once.line)["data"]["result"] == "******"
    assert stars.redact(once.line, BUDGET_MS, CALL) is CLEAN


@pytest.mark.parametrize(("raw", "call"), [(line(result="amber")[:-1], CALL), (line(result="amber"), "no such rule")])
def test_what_cannot_be_masked_is_refused(raw: bytes, call: str) -> None:
    assert ENGINE.redact(raw, BUDGET_MS, call) == Refused("redactor_failed")
