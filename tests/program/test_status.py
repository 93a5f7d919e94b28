"""What `exporter status` says of a daemon that runs."""

from collections.abc import Iterator
from typing import Any

import pytest

from exporter.errors import Exit
from exporter.status import faults
from tests.program.driver import Machine
from tests.program.floor import GOOD, Reply
from tests.program.waiting import until


def test_a_wait_takes_not_yet_for_an_answer() -> None:
    answers: Iterator[dict[str, list[str]]] = iter([{}, {"sources": []}, {"sources": ["files"]}])

    until(lambda: next(answers)["sources"][0] == "files", "the sources")

    nothing: dict[str, bool] = {}
    with pytest.raises(AssertionError, match="the sources"):
        until(lambda: nothing["sources"], "the sources", seconds=0.01)


@pytest.mark.timeout(120)
def test_reading_is_what_was_read_in_the_last_seconds(delivering: Machine) -> None:
    delivering.start()
    session = delivering.session().write(500)
    delivering.assert_delivered()

    def reading() -> float:
        [files] = [one for one in delivering.json("status")["sources"] if one["name"] == "files"]
        return float(files["events_per_second"])

    assert reading() > 20
    until(lambda: reading() == 0, "quiet after the last event", seconds=60)
    assert "idle" in delivering.exporter("status").stdout

    session.write(200)
    until(lambda: reading() > 10, "the events of now", seconds=60)


def test_check_tells_a_monitor_how_it_is(machine: Machine) -> None:
    session = machine.with_floor().session().write(5)
    floor = machine.floor
    assert floor is not None

    def check() -> int:
        return machine.exporter("status", "--check").returncode

    assert check() == Exit.LOCKED
    floor.answer = lambda _: Reply(503)
    running = machine.start()
    until(lambda: check() == Exit.UNREACHABLE, "the sink that does not answer")
    floor.answer = lambda _: Reply(401)
    until(lambda: check() == Exit.REFUSED, "the sink that refuses")
    running.kill()
    floor.answer = lambda _: GOOD
    machine.start()
    floor.wait_for(session.id, 5)
    until(lambda: check() == Exit.DONE, "all is well")
    session.append([b"rubbish"])
    until(lambda: check() == Exit.PARTIAL, "the quarantine")
    document = machine.json("status", "--check", expected_exit=4)

    assert document["faults"] == ["mission_control.floor has 1 event in quarantine"]
    assert "1 event in quarantine" in machine.exporter("status", "--check").stdout


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"lag_events": 3, "lag_seconds": 299.0}, []),
        ({"lag_events": 3, "lag_seconds": 300.0}, [Exit.PARTIAL]),
        ({"lag_bytes": 9, "lag_seconds": 301.0}, [Exit.PARTIAL]),
        ({"lag_seconds": 900.0}, []),
        ({"quarantined": 9}, []),
        ({"quarantined": 10}, [Exit.PARTIAL]),
        ({"state": "refused", "quarantined": 10}, [Exit.REFUSED, Exit.PARTIAL]),
        ({"state": "stopped"}, [Exit.PARTIAL]),
    ],
)
def test_thresholds_are_reached_at_their_value(facts: dict[str, Any], expected: list[Exit]) -> None:
    well = {"name": "mission_control.a", "state": "ok", "lag_events": 0, "lag_bytes": 0, "lag_seconds": 0.0}
    sink = {**well, "quarantined": 0, "last_error": None, **facts}

    status = {"daemon": {"running": True}, "sources": [{"name": "files"}], "sinks": [sink]}
    found = faults(status, lag_seconds=300, quarantined=10)

    assert [code for code, _ in found] == expected


def test_journals_that_take_no_events_are_a_fault() -> None:
    full = {"name": "journals", "state": "the journals are full"}
    sources = [{"name": "files"}, {"name": "tap", "state": "1 connected"}, full]

    found = faults({"daemon": {"running": True}, "sources": sources, "sinks": []}, lag_seconds=300, quarantined=1)

    assert found == [(Exit.PARTIAL, "journals: the journals are full")]
    well = [{"name": "journals", "state": "ok"}]
    assert faults({"daemon": {"running": True}, "sources": well, "sinks": []}, lag_seconds=300, quarantined=1) == []
