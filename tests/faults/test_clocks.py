"""Clocks that jump, an hour of outage, and answers that are asked about once a minute: with libfaketime (F7, F12 …)."""

import time
from itertools import pairwise

import pytest

from tests.faults.clock import DAY_SECONDS, WallClock, speed_up
from tests.faults.conftest import Fact
from tests.otel.certificates import make_certificates
from tests.program.driver import Machine
from tests.program.floor import GOOD, Post, Reply
from tests.program.session_files import event_id
from tests.program.team import Team
from tests.program.waiting import until
from tests.queued import Stopwatch

pytestmark = [pytest.mark.faults, pytest.mark.timeout(180)]

SPEED = 60
OVERHEAD_SECONDS = 0.5
"""What a process on a busy machine may need beside the wait, on the true clock."""


def test_endpoint_away_for_an_hour(machine: Machine, fact: Fact) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    speed_up(machine, 2 * SPEED)
    knocks: list[float] = []

    def away(_: Post) -> Reply:
        knocks.append(time.monotonic())
        return Reply(503)

    counting.answer = away
    session = machine.session().write(500)
    running = machine.start()
    counting.wait_for_post()
    ends = knocks[0] + 3_600 / (2 * SPEED)
    while time.monotonic() < ends:
        session.write(1)
        time.sleep(0.2)

    counting.answer = lambda _: GOOD
    recovered = time.monotonic()
    until(lambda: len(counting.posts) > len(knocks), "a request after the recovery", seconds=10)
    resumed = time.monotonic() - recovered
    counting.wait_for(session.id, [event_id(line) for line in session.durable()])

    fact("requests in the hour", len(knocks))
    fact("resumed after", f"{resumed * 2 * SPEED:.0f} s")
    fact("lost", 0)
    fact("twice", counting.repeated())
    assert 40 <= len(knocks) <= 400
    assert resumed <= 60 / (2 * SPEED) + OVERHEAD_SECONDS
    assert counting.lines(session.id) == session.durable()
    assert counting.repeated() == 0
    assert running.alive


@pytest.mark.parametrize("status", [501, 505, 404, 410])
def test_an_endpoint_that_says_never_is_asked_seldom_and_nothing_is_given_up(
    machine: Machine, fact: Fact, status: int
) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    speed_up(machine, SPEED)
    refused: list[float] = []

    def refuse(_: Post) -> Reply:
        refused.append(time.monotonic())
        return Reply(status)

    counting.answer = refuse
    session = machine.session().write(300)
    running = machine.start()
    word = "not found" if status == 404 else str(status)
    running.wait_for_word(word)

    def longest() -> float:
        return max(((later - earlier) * SPEED for earlier, later in pairwise(refused)), default=0.0)

    until(lambda: longest() >= 25, "a wait of half a minute", seconds=30)
    (sink,) = machine.json("status")["sinks"]
    counting.answer = lambda _: GOOD
    machine.assert_delivered_to_floor(session)

    fact(f"{status}: longest wait", f"{longest():.0f} s")
    fact(f"{status}: requests", len(refused))
    fact("lost", 0)
    assert len(refused) <= 40
    assert word in str(sink["last_error"])
    assert sink["lag_events"] == 300
    assert machine.quarantined() == []
    assert counting.repeated() == 0
    assert running.alive


@pytest.mark.parametrize("days", [1, -1])
def test_a_wall_clock_that_jumps_by_a_day(machine: Machine, fact: Fact, days: int) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    clock = WallClock(machine)
    session = machine.session().write(100)
    running = machine.start()
    machine.assert_delivered_to_floor(session)
    counting.answer = lambda _: Reply(503)
    session.write(100)
    counting.wait_for_post(len(counting.posts) + 1)
    clock.move(days * DAY_SECONDS)
    asked = len(counting.posts)
    time.sleep(4)
    in_four_seconds = len(counting.posts) - asked
    counting.wait_for_post(asked + 1)
    counting.answer = lambda _: GOOD
    started, watch = time.monotonic(), Stopwatch(running.process.pid)
    machine.assert_delivered_to_floor(session)
    session.write(5)
    machine.assert_delivered_to_floor(session)

    fact(f"{days:+d} day: requests in 4 s", in_four_seconds)
    fact("resumed after", f"{time.monotonic() - started:.1f} s")
    fact("twice", counting.repeated())
    assert in_four_seconds <= 8
    assert watch.seconds() <= 20
    assert counting.repeated() == 0
    assert running.alive


def test_a_certificate_that_expired_is_waited_for(machine: Machine, fact: Fact) -> None:
    folder = machine.root / "certificates"
    folder.mkdir()
    made = make_certificates(folder)
    team = machine.team = Team(
        machine.root / "team", machine.environment, (made.server, made.server_key), trusted=made.authority
    )
    machine.tables["team"] = {
        "url": team.url,
        "token_file": str(team.token_file),
        "certificate_file": str(made.authority),
    }
    clock = WallClock(machine)
    clock.move(3 * DAY_SECONDS)
    session = machine.session().write(200)
    running = machine.start()
    running.wait_for_word("certificate")
    (sink,) = machine.json("status")["sinks"]
    before = team.count(session.id)

    clock.move(0)
    started = time.monotonic()
    machine.assert_delivered()

    fact("sent while expired", before)
    fact("resumed after", f"{time.monotonic() - started:.1f} s")
    fact("lost", 0)
    assert (sink["state"], before) == ("waiting", 0)
    assert machine.quarantined() == []
    assert running.alive
