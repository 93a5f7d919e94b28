"""`exporter quarantine replay` towards telemetry, with the installed command: an event that was refused arrives."""

import json
from importlib.resources import files
from typing import Final

import pytest

from tests.otel.receiver import Receiver, text_of
from tests.otel.reply import Reply
from tests.program.driver import Machine
from tests.program.waiting import until

_DEMO: Final = files("exporter.demo").joinpath("session.jsonl").read_bytes().splitlines(keepends=True)
_LONG: Final = 20_000
"""What the redactor does not get through in some milliseconds."""


def _logged(receiver: Receiver) -> list[str]:
    return [text_of(record, "event.id") for record in receiver.logs()]


@pytest.mark.parametrize("daemon", [False, True], ids=["no daemon", "a daemon"])
def test_an_event_that_the_redactor_refused_arrives_when_it_passes(
    machine: Machine, receiver: Receiver, daemon: bool
) -> None:
    machine.environment["EXPORTER_OTEL__ENDPOINT"] = receiver.url
    machine.environment["EXPORTER_OTEL__HISTORY_DAYS"] = "36500"
    directory = machine.home / "session-state" / "s"
    directory.mkdir(exist_ok=True)
    line = json.loads(next(one for one in _DEMO if b'"type":"tool.execution_start"' in one))
    line["data"]["arguments"] = {"words": "api_key = 0f1e2d3c4b5a69788796a5b4c3d2e1f0 " * _LONG}
    lines = [json.dumps(line).encode() + b"\n" if json.loads(one)["id"] == line["id"] else one for one in _DEMO]
    (directory / "events.jsonl").write_bytes(b"".join(lines))
    machine.environment["EXPORTER_REDACTION__BUDGET_MS"] = "5"
    machine.deliver(expected_exit=4)
    kept = machine.json("quarantine", "list")["quarantined"]
    assert line["id"] in {one["event"] for one in kept if one["reason"] == "time_budget"}
    assert line["id"] not in _logged(receiver)
    machine.environment["EXPORTER_REDACTION__BUDGET_MS"] = "60000"
    if daemon:
        running = machine.start("run")
        until(lambda: bool(machine.json("status")["daemon"]["running"]), "the daemon answers")

    answer = machine.exporter("quarantine", "replay", *(str(one["n"]) for one in kept))

    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert sorted(_logged(receiver)) == sorted(json.loads(one)["id"] for one in lines)
    tools = [span for span in receiver.spans() if text_of(span, "github.copilot.event.id") == line["id"]]
    assert [span.name.split()[0] for span in tools] == ["execute_tool"]
    assert machine.quarantined() == []
    if daemon:
        running.stop()


def test_points_that_were_refused_are_sent_again(machine: Machine, receiver: Receiver) -> None:
    machine.environment["EXPORTER_OTEL__ENDPOINT"] = receiver.url
    machine.environment["EXPORTER_OTEL__HISTORY_DAYS"] = "36500"
    machine.environment["EXPORTER_OTEL__SIGNALS"] = '["metrics"]'
    directory = machine.home / "session-state" / "s"
    directory.mkdir(exist_ok=True)
    (directory / "events.jsonl").write_bytes(b"".join(_DEMO))
    name = b"github.copilot.tool.call.count"
    receiver.plan(then=Reply(400, unless=name))
    machine.deliver(expected_exit=4)
    kept = machine.json("quarantine", "list")["quarantined"]
    assert {one["reason"] for one in kept} == {"refused_400"}
    assert name.decode() not in {metric.name for metric in receiver.metrics()}
    receiver.plan(then=Reply())

    answer = machine.exporter("quarantine", "replay", *(str(one["n"]) for one in kept))

    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert name.decode() in {metric.name for metric in receiver.metrics()}
    assert machine.quarantined() == []
