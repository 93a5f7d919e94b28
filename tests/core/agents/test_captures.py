"""In every capture of a real session with sub-agents, every event has a session and a path."""

import json
from pathlib import Path
from typing import Any

import pytest

from exporter.core.agents.registry import AgentRegistry, EventOwner
from exporter.core.events.envelope import Envelope, decode
from tests.shared import REAL


def _with_agents() -> list[Any]:
    logs = sorted([*REAL.glob("captures*/*/events*.jsonl"), *REAL.glob("ahp/captures/*/events.jsonl")])
    found = [log for log in logs if b'"subagent.started"' in log.read_bytes()]
    if not found:
        return [pytest.param(REAL, marks=pytest.mark.skip(reason=f"there are no captures in {REAL}"))]
    return [pytest.param(log, id="/".join(log.parts[-3:])) for log in found]


def _live_with_agents() -> list[Any]:
    found = [log for log in sorted(REAL.glob("captures*/*/frames_*.jsonl")) if b'"agentId"' in log.read_bytes()]
    if not found:
        return [pytest.param(REAL, marks=pytest.mark.skip(reason=f"there are no captures in {REAL}"))]
    return [pytest.param(log, id="/".join(log.parts[-3:])) for log in found]


def _attribute(events: list[tuple[str, Envelope]]) -> tuple[AgentRegistry, list[EventOwner]]:
    agents = AgentRegistry()
    for session, _ in events:
        agents.add(session)
    return agents, [agents.attribute(session, envelope) for session, envelope in events]


@pytest.mark.parametrize("log", _with_agents())
def test_every_event_of_a_file_resolves(log: Path) -> None:
    envelopes = [one for line in log.read_bytes().splitlines() if isinstance(one := decode(line), Envelope)]
    root = json.loads(bytes(envelopes[0].data))["sessionId"]
    _, places = _attribute([(root, envelope) for envelope in envelopes])

    assert all(place.root == root and place.error is None for place in places)
    for envelope, place in zip(envelopes, places, strict=True):
        assert place.path[-1:] == ((envelope.agentId,) if envelope.agentId else _by_hook(envelopes, envelope, root))
    starts = [place for envelope, place in zip(envelopes, places, strict=True) if envelope.type == "subagent.started"]
    assert starts and all(len(place.path) == 1 for place in starts)


def _by_hook(envelopes: list[Envelope], one: Envelope, root: str) -> tuple[str, ...]:
    """The child that a hook without an agent id is about, by looking through the whole file."""
    if not one.type.startswith("hook."):
        return ()
    invocation = json.loads(bytes(one.data))["hookInvocationId"]
    for other in envelopes:
        if other.type == "hook.start" and (data := json.loads(bytes(other.data)))["hookInvocationId"] == invocation:
            session = data["input"].get("sessionId", root)
            return () if session == root else (session,)
    return ()


@pytest.mark.parametrize("log", _live_with_agents())
def test_every_live_event_resolves(log: Path) -> None:
    events = []
    for line in log.read_bytes().splitlines():
        message = json.loads(line).get("msg") or {}
        if message.get("method") == "session.event":
            envelope = decode(json.dumps(message["params"]["event"]).encode())
            assert isinstance(envelope, Envelope)
            events.append((message["params"]["sessionId"], envelope))
    _, places = _attribute(events)

    for (session, envelope), place in zip(events, places, strict=True):
        assert (place.root, place.error) == (session, None)
        assert envelope.agentId is None or place.path[-1] == envelope.agentId
