"""An event with a time that has not come yet: its session is as old as its file, not on top of the list for good."""

import os
import time

import pytest

from tests.program.driver import Machine

WRONG = "2099-01-01T00:00:00.000Z"


@pytest.mark.timeout(120)
def test_a_wrong_clock_puts_no_session_on_top_for_good(machine: Machine) -> None:
    machine.with_team()
    assert machine.team is not None
    wrong, sound = machine.session(), machine.session()
    now = time.time()
    wrong.append([wrong.event(timestamp=WRONG)])
    os.utime(wrong.path, (now - 7200, now - 7200))
    at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(now - 3600))
    sound.append([sound.event(timestamp=at)])
    machine.deliver()

    listed = machine.json("sessions", "list")["sessions"]
    assert [one["id"] for one in listed] == [sound.id, wrong.id]
    assert listed[1]["last_activity"][:19] == time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now - 7200))
    assert "in 2" not in machine.exporter("sessions", "list").stdout

    there = {one["id"]: one["last_activity"] for one in machine.team.get("/api/v1/sessions")["sessions"]}
    received = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + 1))
    assert there[sound.id] == at
    assert at < there[wrong.id][:19] <= received
    assert machine.team.get(f"/api/v1/sessions/{wrong.id}")["started"] == there[wrong.id]
