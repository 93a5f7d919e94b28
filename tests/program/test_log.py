"""What a daemon writes to its log: its life, one line for a fault, and never what is in an event."""

import json
import signal
from typing import Any

import pytest

from tests.program.driver import Machine, Running
from tests.program.floor import GOOD, Floor, Reply
from tests.program.waiting import until

pytestmark = pytest.mark.slow
CONTENT = "the-tower-of-the-old-mill"


def lines(running: Running) -> list[dict[str, Any]]:
    """The whole lines of its log, each of which must be JSON with what every line has."""
    found = [json.loads(line) for line in running.text().splitlines(keepends=True) if line.endswith("\n")]
    assert all({"time", "level", "event", "message"} <= line.keys() for line in found)
    return found


def events(running: Running) -> list[str]:
    return [line["event"] for line in lines(running)]


def floor_of(machine: Machine) -> Floor:
    assert machine.floor is not None
    return machine.floor


def test_a_life_is_told_in_lines(machine: Machine) -> None:
    machine.with_floor().settings["log_format"] = "json"
    session = machine.session()
    session.append(session.events(3))

    running = machine.start()
    until(lambda: "caught_up" in events(running), "that it has caught up")
    running.stop()

    told = [line for line in lines(running) if line["event"] != "settings_note"]
    assert [line["event"] for line in told] == ["started", "ready", "caught_up", "stopping", "stopped"]
    started, stopped = told[0], told[-1]
    assert started["version"] == machine.json("--version")["version"]
    assert started["settings"] == str(machine.root / "exporter.toml")
    assert started["sinks"] == {"mission_control.floor": floor_of(machine).url}
    assert (stopped["events"], stopped["pending_bytes"]) == ({"mission_control.floor": 3}, {})


def test_the_same_life_as_text_names_the_page(machine: Machine) -> None:
    running = machine.start()
    running.wait_for_word("caught up")
    running.stop()

    said = [line for line in running.text().splitlines() if not line.startswith("warning:")]
    assert [line.split(" ", 1)[1].partition(" · ")[0] for line in said] == [
        *("started", "the page is served", "ready", "caught up", "stopping", "stopped")
    ]
    assert "the page is served · url http://127.0.0.1:" in running.text()


def test_a_sink_that_is_away_is_one_line_whatever_the_sessions_and_one_when_it_is_back(machine: Machine) -> None:
    floor = floor_of(machine.with_floor())
    machine.settings |= {"log_format": "json", "drain_seconds": 0}
    floor.register = lambda: Reply(503)
    for _ in range(12):
        session = machine.session()
        session.append(session.events(2))

    running = machine.start()
    until(lambda: machine.json("status")["sinks"][0]["retries"] >= 4, "some failures")
    assert events(running).count("sink_waiting") == 1
    floor.register = lambda: GOOD
    until(lambda: "sink_recovered" in events(running), "that it delivers again")
    running.stop(signal.SIGTERM)

    faults = [line for line in lines(running) if line["event"] == "sink_waiting"]
    again = [line for line in lines(running) if line["event"] == "sink_recovered"]
    assert {(line["level"], line["sink"], line["url"]) for line in faults} == {
        ("warning", "mission_control.floor", floor.url)
    }
    assert len(faults) == 2 and faults[1]["times"] >= 3  # and how often, at the latest when it ends
    assert [line["message"] for line in again] == ["delivering again"]
    assert again[0]["failures"] == 1 + faults[1]["times"]


def test_no_line_holds_content_whatever_a_receiver_answers(machine: Machine) -> None:
    floor = floor_of(machine.with_floor())
    machine.settings |= {"log_format": "json", "log_level": "debug"}
    statuses = iter((500, 400, 413, 422, 409, 503, 200))

    def repeat(_: object) -> Reply:
        return Reply(next(statuses, 200), body=json.dumps({"error": CONTENT, "message": CONTENT}).encode())

    floor.answer = repeat
    session = machine.session()
    session.append([session.event(text=f"{CONTENT} {number}") for number in range(8)])
    session.append_bytes(f'{{"type": "{CONTENT}", "data": {CONTENT}\n'.encode())

    running = machine.start()
    until(lambda: "caught_up" in events(running), "that it has caught up")
    running.stop()

    assert {"sink_waiting", "quarantined"} <= set(events(running))  # the control: there was something to tell
    assert CONTENT not in running.text()


@pytest.mark.parametrize("by_variable", [False, True])
def test_an_error_of_the_settings_has_the_form_that_they_ask_for(machine: Machine, by_variable: bool) -> None:
    machine.settings |= {"port": "none"} | ({} if by_variable else {"log_format": "json"})
    machine.environment |= {"EXPORTER_LOG_FORMAT": "json"} if by_variable else {}

    answer = machine.exporter("run")

    [line] = map(json.loads, answer.stderr.splitlines())
    assert (answer.returncode, line["event"], line["level"], line["kind"]) == (3, "failed", "error", "configuration")
    assert "expected port to be an integer" in line["message"]
