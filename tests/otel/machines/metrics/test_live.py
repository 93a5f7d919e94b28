"""What passing events add to the metrics: counts and times, bounded, and nothing of what they say."""

import itertools
import json
from typing import Any

import pytest

from otel import instruments
from otel.machines.metrics.live import OTHER, LiveMetering

AT = "2026-11-18T10:00:00.000Z"
LATER = "2026-11-18T10:00:02.500Z"
NOW_NS = 1_795_000_000_000_000_000


def measured(metering: LiveMetering, type: str, at: str = AT, session: str = "s", **data: Any) -> dict[str, Any]:
    found = metering.measure(session, type, json.dumps(data).encode(), at, NOW_NS)
    return {
        one.instrument.name.removeprefix("github.copilot.live."): (one.value, one.labels[: -len(instruments.SHARED)])
        for one in found
    }


def test_every_event_is_counted_by_its_type_if_that_is_known() -> None:
    metering = LiveMetering()

    assert measured(metering, "assistant.message_delta", deltaContent="x") == {
        "event.count": (1, ("assistant.message_delta",))
    }
    assert measured(metering, "my.secret_type") == {"event.count": (1, (OTHER,))}


@pytest.mark.parametrize(
    ("asked", "answered", "kind"),
    [
        ("user_input.requested", "user_input.completed", "user_input"),
        ("elicitation.requested", "elicitation.completed", "elicitation"),
        ("exit_plan_mode.requested", "exit_plan_mode.completed", "exit_plan_mode"),
        ("permission.requested", "permission.completed", "permission"),
        ("mcp.oauth_required", "mcp.oauth_completed", "mcp.oauth"),
    ],
)
def test_a_wait_for_a_person_is_measured_when_it_ends(asked: str, answered: str, kind: str) -> None:
    metering = LiveMetering()
    assert "wait.duration" not in measured(metering, asked, requestId="r")

    assert "wait.duration" not in measured(metering, answered, LATER, "another", requestId="r")
    assert "wait.duration" not in measured(metering, answered, LATER, requestId="another")
    assert measured(metering, answered, LATER, requestId="r")["wait.duration"] == (2.5, (kind,))
    assert "wait.duration" not in measured(metering, answered, LATER, requestId="r")


@pytest.mark.parametrize(("at", "days"), [("2026-11-25T10:00:00.000Z", 7.0), ("2026-11-25T10:00:00.001Z", None)])
def test_a_wait_lasts_a_week_at_most(at: str, days: float | None) -> None:
    metering = LiveMetering()
    measured(metering, "user_input.requested", requestId="r")

    found = measured(metering, "user_input.completed", at, requestId="r").get("wait.duration")
    assert found == (None if days is None else (days * 86_400, ("user_input",)))


def test_the_context_and_the_calls_of_a_model_are_measured() -> None:
    metering = LiveMetering()

    assert measured(metering, "session.usage_info", tokenLimit=200, currentTokens=50)["context.utilization"][0] == 0.25
    assert measured(metering, "model.call_final_result", result="http_5xx")["model_call.count"] == (1, ("http_5xx",))
    assert measured(metering, "model.call_final_result", result="hunter2")["model_call.count"] == (1, (OTHER,))


# As the schema of CLI 1.0.102 has them: which outcomes each kind of decision has, and what it can be about.
_OUTCOMES = {
    "policy_resolved": "resolved degraded",
    "spawn_completed": "succeeded failed",
    "enforcement_state": "engaged inactive failed",
    "access_denied": "denied",
    "access_recorded": "allowed",
    "bypass_decided": "approved declined",
    "permissive_retry_decided": "approved declined",
    "permissive_retry_completed": "succeeded failed",
}
_CONTROLS = ["process", "filesystem", "network", "routing", "bypass", "credentials", "platform"]
_POINTS = ["shell", "builtin_filesystem", "search", "web_fetch", "mcp", "lsp"]
_PLATFORMS = ("macos", "linux", "windows", OTHER)


@pytest.mark.parametrize("kind", _OUTCOMES)
def test_every_decision_that_the_sandbox_can_take_is_told_in_its_own_words(kind: str) -> None:
    decisions = list(itertools.product([kind], _CONTROLS, _OUTCOMES[kind].split(), _POINTS, _PLATFORMS))
    fields = ("kind", "control", "outcome", "enforcementPoint", "platform")

    found = [measured(LiveMetering(), "sandbox.decision", **dict(zip(fields, one, strict=True))) for one in decisions]

    assert [one["github.copilot.sandbox.operation.count"] for one in found] == [(1, one) for one in decisions]


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b'{"requestId":7}', b'{"tokenLimit":0,"currentTokens":9}', b'{"tokenLimit":1e999}', b"\xff", b"{"],
)
@pytest.mark.parametrize("type", ["user_input.requested", "session.usage_info", "model.call_final_result", "", "\x00"])
def test_odd_data_is_counted_and_harms_nothing(type: str, data: bytes) -> None:
    found = LiveMetering().measure("s", type, data, "no time", NOW_NS)

    assert found[0].instrument is instruments.LIVE_EVENTS
    assert found[0].time_ns == NOW_NS


def test_memory_is_bounded() -> None:
    metering = LiveMetering()
    for number in range(5000):
        measured(metering, "user_input.requested", requestId=str(number))

    assert len(metering._pending) <= 1024
    assert measured(metering, "user_input.completed", LATER, requestId="4999")["wait.duration"][0] == 2.5


def test_sandboxes_and_servers_are_counted_as_the_cli_counts_them() -> None:
    metering = LiveMetering()
    decided = {"kind": "enforcement_state", "control": "process", "outcome": "inactive", "platform": "linux"}

    sandbox = measured(metering, "sandbox.decision", enforcementPoint="shell", command="rm secret", **decided)
    server = measured(metering, "session.mcp_server_status_changed", serverName="a-secret", status="failed")
    pending = measured(metering, "session.mcp_server_status_changed", serverName="a-secret", status="pending")
    odd = measured(metering, "sandbox.decision", **{**decided, "outcome": "a-secret"})

    name = "github.copilot.sandbox.operation.count"
    assert sandbox[name] == (1, ("enforcement_state", "process", "inactive", "shell", "linux"))
    assert server["github.copilot.mcp.server.connection.count"] == (1, ("failure",))
    assert set(pending) == {"event.count"}
    assert odd[name] == (1, ("enforcement_state", "process", OTHER, OTHER, "linux"))
