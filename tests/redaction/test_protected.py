"""Only the envelope, ids at their places that look like ids, and ciphertext are left alone; all else is text."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from redaction.engine import CLEAN, Engine, Masked
from redaction.protected import LINKAGE, is_protected
from tests.redaction.contract import BUDGET_MS
from tests.redaction.events import EVENT, SESSION, line
from tests.redaction.made_up import make
from tests.rows import each
from tests.shared import CACHE, REAL

TOKEN = make("github ghp", 3).text
SECRETS = (TOKEN, make("aws id", 3).text)
UUID = "0b9e7a44-3d2c-4f5b-8a6e-7c1d2e3f4a5b"
CALL = "call_0a1b2c3d4e5f60718293a4b5"
TRACE = "00-0a1b2c3d4e5f60718293a4b5c6d7e8f9-0a1b2c3d4e5f6071-01"
ENGINE = Engine(b"a key of the tests", cache_dir=CACHE)
KNOWING = ENGINE.with_known_values([EVENT, SESSION, UUID, CALL, TRACE])
DROPPING = Engine(b"a key of the tests", opaque="drop", cache_dir=CACHE)
TYPES = (*LINKAGE, "session.model_change", "session.custom_notification", "session.info", "brand.new", "")
# Names that are an id, or mean something, at some place of some event.
NAMES = re.findall(
    r"\w+",
    """
    agentId apiCallId baseCommit behaviorModelId branch checkpointId clientId commit copilotVersion currentModel
    data encryptedContent encrypted_content eventId firstDispatchedModel headCommit hookInvocationId hookType id
    interactionId kind messageId mimeType mode model name newModel originatingMessageId parentAgentTaskId
    parentId parentToolCallId providerCallId reasoningOpaque remoteSessionId requestId resumeTime role
    selectedModel sessionId sha signature source spanId startTime thoughtSignature timestamp toolCallId toolName
    traceId traceparent turnId type upToEventId version
    """,
)


def _at(path: tuple[str, ...], value: object) -> dict[str, Any]:
    """The members that hold this value at this path."""
    for step in reversed(path):
        value = [value] if step == "*" else {step: value}
    assert isinstance(value, dict)
    return value


def _survives(raw: bytes, secret: str, engine: Engine = ENGINE) -> bool:
    result = engine.redact(raw, BUDGET_MS)
    return not isinstance(result, Masked) or secret in result.line.decode()


@each(TYPES, SECRETS)
def test_a_secret_is_masked_under_every_name_of_every_event(event_type: str, secret: str) -> None:
    for text in (secret, f"k-id-{secret}", f"token {secret}."):
        members = dict.fromkeys(NAMES, text)
        for data in (members, {"arguments": members}, {"attachments": [members]}, {"toolRequests": [members]}):
            raw = line({"type": event_type, "data": data})
            assert not _survives(raw, secret), data
            assert not _survives(raw, secret, DROPPING), data


@each(LINKAGE)
def test_a_secret_is_masked_where_an_id_belongs(event_type: str) -> None:
    for path in LINKAGE[event_type]:
        for secret in SECRETS:
            assert not _survives(line({"type": event_type, **_at(path, secret)}), secret), path


@each(LINKAGE)
def test_an_id_stays_at_its_place_and_only_there(event_type: str) -> None:
    for path in LINKAGE[event_type]:
        for value in (UUID, CALL, TRACE):
            members = {"type": event_type, **_at(path, value)}
            assert KNOWING.redact(line(members), BUDGET_MS) == CLEAN, path
            for elsewhere in (("data", "arguments", *path[1:]), ("data", "other", *path)):
                assert not _survives(line({**members, **_at(elsewhere, value)}), value, KNOWING), elsewhere


def test_in_an_unknown_event_only_uuids_under_the_names_of_ids_stay() -> None:
    assert KNOWING.redact(line({"type": "brand.new", "data": {"newId": UUID}}), BUDGET_MS) == CLEAN
    for data in ({"toolCallId": CALL}, {"new": UUID}, {"ids": {"newId": UUID}}, {"kind": UUID}):
        assert isinstance(KNOWING.redact(line({"type": "brand.new", "data": data}), BUDGET_MS), Masked), data


def test_the_envelope_stays() -> None:
    raw = line({"type": "assistant.message", "agentId": CALL, "data": {}})

    assert KNOWING.redact(raw, BUDGET_MS) == CLEAN
    assert not _survives(line({"type": "assistant.message", "agentId": f"agent {TOKEN}", "data": {}}), TOKEN)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"data":{"toolCallId":"%b"},"type":"tool.execution_start"}',
        b' { "type" : "tool.execution_start", "data" : {"toolCallId":"%b"}}',
        b'{"type":"tool.execution_start","data":{"toolCallId":"%b","x":"\\ud800"}}',
    ],
)
def test_the_type_is_found_wherever_it_stands(raw: bytes) -> None:
    assert KNOWING.redact(raw % CALL.encode(), BUDGET_MS) == CLEAN


@pytest.mark.parametrize("data", [b'{"a":"\\ud800","toolCallId":"%b"}', b"[" * 9_000 + b'"%b"' + b"]" * 9_000])
def test_an_event_whose_type_cannot_be_read_is_one_of_an_unknown_type(data: bytes) -> None:
    raw = b'{"data":' + data % CALL.encode() + b',"type":"tool.execution_start"}'

    assert isinstance(KNOWING.redact(raw, BUDGET_MS), Masked)


def test_dropping_opaque_fields_hides_no_secret_in_a_users_own() -> None:
    members = dict.fromkeys(("encryptedContent", "reasoningOpaque", "signature"), f"x {TOKEN} y")
    for event_type in ("assistant.message", "tool.execution_start"):
        raw = line({"type": event_type, "data": {**members, "toolRequests": [{"arguments": members}]}})
        result = DROPPING.redact(raw, BUDGET_MS)
        assert isinstance(result, Masked)
        assert TOKEN not in result.line.decode()
        assert ("opaque" in result.rules) == (event_type == "assistant.message")
        assert DROPPING.redact(result.line, BUDGET_MS) == CLEAN


def _captured() -> Iterator[dict[str, Any]]:
    for file in sorted(REAL.glob("captures*/*/events.jsonl")):
        for raw in file.read_bytes().splitlines():
            yield json.loads(raw)


def _leaves(value: object, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield path, value
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _leaves(inner, (*path, key))


def _planted(value: object, secret: str) -> object:
    if isinstance(value, dict):
        return {key: _planted(inner, secret) for key, inner in value.items()}
    if isinstance(value, list):
        return [_planted(inner, secret) for inner in value]
    return f"k-{secret}" if isinstance(value, str) else value


def test_recorded_events_keep_their_ids_and_a_secret_in_any_field_is_masked() -> None:
    seen = set()
    for event in _captured():
        event_type = event["type"]
        for path, value in _leaves(event, ()):
            if path[0] == "data" and isinstance(path[-1], str) and path[-1].endswith("allId"):
                user_made = {"arguments", "result", "input"} & set(path)
                assert user_made or is_protected(event_type, path, value.encode()), path
        shape = (event_type, *(path for path, _ in _leaves(event, ())))
        if shape not in seen:
            seen.add(shape)
            for secret in SECRETS:
                raw = json.dumps({**event, "data": _planted(event["data"], secret)}).encode()
                assert secret not in raw.decode() or not _survives(raw, secret), event_type
