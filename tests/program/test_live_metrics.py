"""Telemetry of what passes: counts and times of its own, beside spans and logs that are what they are without it."""

import json
import socket
from importlib.resources import files
from typing import Any, Final

from tests.otel.receiver import Receiver
from tests.program.driver import Machine
from tests.program.waiting import until

DEMO: Final = files("exporter.demo").joinpath("session.jsonl").read_bytes()
SESSION: Final = "passing"
SAID: Final = "words that nobody keeps"


def passing(number: int, type: str, at: str = "10:00:00.000", **data: Any) -> bytes:
    event = {"type": type, "data": data, "id": f"p{number}", "timestamp": f"2026-11-18T{at}Z", "ephemeral": True}
    return json.dumps({"session": SESSION, "dropped": 0, "event": event}).encode() + b"\n"


EVENTS: Final = [
    passing(0, "assistant.message_start", messageId="m"),
    passing(1, "assistant.message_delta", messageId="m", deltaContent=f"{SAID} "),
    passing(2, "assistant.message_delta", messageId="m", deltaContent=f"{SAID}\n"),
    passing(2, "assistant.message_delta", messageId="m", deltaContent="the same event again"),
    passing(3, "user_input.requested", requestId="r", question=SAID),
    passing(4, "user_input.completed", "10:00:03.000", requestId="r", answer=SAID),
    passing(5, "session.usage_info", tokenLimit=1000, currentTokens=420),
    passing(6, "model.call_final_result", model="m", result="http_5xx"),
    passing(7, "pending_messages.modified"),
]


def live_points(receiver: Receiver) -> dict[str, dict[str, float]]:
    """The newest value of every live metric, by its label; of a histogram what was added up."""
    found: dict[str, dict[str, float]] = {}
    for metric in receiver.metrics():
        name = metric.name.removeprefix("github.copilot.live.")
        if name == metric.name:
            continue
        for point in (*metric.sum.data_points, *metric.histogram.data_points):
            label = "".join(one.value.string_value for one in point.attributes)
            value = point.sum if metric.HasField("histogram") else point.as_int or point.as_double
            found.setdefault(name, {})[label] = value
    return found


def records(receiver: Receiver) -> tuple[list[bytes], list[str]]:
    spans = sorted(span.SerializeToString(deterministic=True) for span in receiver.spans())
    logs = sorted(
        str(one.value.string_value) for log in receiver.logs() for one in log.attributes if one.key == "event.id"
    )
    return spans, logs


def tap_sessions(machine: Machine) -> int:
    [tap] = [one for one in machine.json("status")["sources"] if one["name"] == "tap"]
    return int(tap["sessions"])


def test_what_passes_is_counted_and_changes_nothing_else(machine: Machine, receiver: Receiver) -> None:
    directory = machine.home / "session-state" / SESSION
    directory.mkdir()
    (directory / "events.jsonl").write_bytes(DEMO)
    machine.environment["EXPORTER_OTEL__ENDPOINT"] = receiver.url
    machine.environment["EXPORTER_OTEL__HISTORY_DAYS"] = "36500"
    machine.environment["EXPORTER_SOURCE"] = '[{"url":"tap"}]'
    running = machine.start()
    until((machine.state / "tap.sock").exists, "the tap's socket")
    count = len(DEMO.splitlines())
    until(lambda: len(records(receiver)[1]) >= count, "the logs of the session")

    with socket.socket(socket.AF_UNIX) as tap:
        tap.connect(str(machine.state / "tap.sock"))
        tap.sendall(b"".join(EVENTS))
        until(lambda: tap_sessions(machine) == 1, "what the tap has told")
        marks = machine.json("status")["sinks"]
        running.stop()

    points = live_points(receiver)
    assert points["event.count"] == {
        "assistant.message_start": 1,
        "assistant.message_delta": 2,
        "user_input.requested": 1,
        "user_input.completed": 1,
        "session.usage_info": 1,
        "model.call_final_result": 1,
        "pending_messages.modified": 1,
    }
    assert points["wait.duration"] == {"user_input": 3.0}
    assert points["context.utilization"] == {"": 0.42}
    assert points["model_call.count"] == {"http_5xx": 1}
    assert not [one for one in receiver.requests if SAID.encode() in one.body]
    assert [one["lag_events"] for one in marks] == [0] * len(marks)

    with Receiver() as without:
        machine.environment["EXPORTER_OTEL__ENDPOINT"] = without.url
        machine.environment["EXPORTER_OTEL__HISTORY_DAYS"] = "36500"
        del machine.environment["EXPORTER_SOURCE"]
        machine.deliver()
        assert records(without) == records(receiver)
        assert not live_points(without)
