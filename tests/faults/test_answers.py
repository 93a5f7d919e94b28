"""Answers that a receiver may give, from a process of its own over a socket, to the installed command."""

import signal
import threading
import time

import pytest

from tests.faults.clock import speed_up
from tests.faults.conftest import Fact
from tests.program.driver import Machine
from tests.program.floor import GOOD, Floor, Post, Reply
from tests.program.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(180)]

PASSING = (408, 425, 429, 500, 502, 503, 504)
IMPATIENT = {
    "none": None,
    "0": "0",
    "negative": "-5",
    "0.001": "0.001",
    "past": "Thu, 01 Jan 1970 00:00:00 GMT",
    "text": "soon",
}


def _sinks(machine: Machine, names: "list[str]") -> "dict[str, Floor]":
    floors = {name: Floor() for name in names}
    for number, floor in enumerate(floors.values()):
        machine.tables[f"sink{number}"] = {"url": floor.url, "token": "floor-token-of-the-tests"}
    return floors


def _close(floors: "dict[str, Floor]") -> None:
    for floor in floors.values():
        floor.close()


def test_killed_between_the_answer_and_the_mark(machine: Machine, fact: Fact) -> None:
    """The process is stopped while it waits, the answer goes out, and it never reads it."""
    counting = machine.with_floor().floor
    assert counting is not None
    session = machine.session().write(2_000)
    stopped = threading.Event()

    def answer(post: Post) -> Reply:
        if len(counting.posts) == 3:
            running.process.send_signal(signal.SIGSTOP)
            stopped.set()
        return GOOD

    counting.answer = answer
    running = machine.start()
    assert stopped.wait(20)
    until(lambda: counting.count(session.id) >= 1_500, "the third batch stored")
    time.sleep(0.2)  # the answer is on its way to a process that cannot read it
    running.kill()
    counting.answer = lambda _: GOOD
    machine.deliver()

    fact("lost", 2_000 - counting.count(session.id))
    fact("twice", counting.repeated())
    assert counting.lines(session.id) == session.durable()
    assert 1 <= counting.repeated() <= 500


def test_no_retry_after_shortens_a_wait(machine: Machine, fact: Fact) -> None:
    floors = _sinks(machine, list(IMPATIENT))
    try:
        for _ in range(20):
            machine.session().write(1)
        for name, floor in floors.items():
            header = IMPATIENT[name]
            reply = Reply(503, {} if header is None else {"Retry-After": header})
            floor.answer = lambda _, reply=reply: reply  # type: ignore[misc]
        machine.start()
        for floor in floors.values():
            floor.wait_for_post()
        time.sleep(10)
        asked = {name: len(floor.posts) for name, floor in floors.items()}

        fact("requests in ten seconds, at most", max(asked.values()))
        # Four requests are under way when the first is refused; growing waits allow about eight more, others nineteen.
        assert all(2 <= count <= 17 for count in asked.values()), asked
    finally:
        _close(floors)


def test_each_passing_trouble_is_waited_out(machine: Machine, fact: Fact) -> None:
    floors = _sinks(machine, [str(status) for status in PASSING])
    try:
        session = machine.session().write(300)
        for name, floor in floors.items():

            def answer(_: Post, floor: Floor = floor, status: int = int(name)) -> Reply:
                return Reply(status) if len(floor.posts) <= 2 else GOOD

            floor.answer = answer
        started = time.monotonic()
        machine.deliver()

        fact("seconds for seven endpoints", time.monotonic() - started)
        fact("lost", sum(300 - floor.count(session.id) for floor in floors.values()))
        fact("twice", sum(floor.repeated() for floor in floors.values()))
        for floor in floors.values():
            assert floor.lines(session.id) == session.durable()
            assert floor.repeated() == 0
            assert len(floor.posts) == 3
    finally:
        _close(floors)


def test_the_page_of_a_portal_is_no_acceptance(machine: Machine, fact: Fact) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    speed_up(machine, 30)  # after an alarm it is asked once a minute
    session = machine.session().write(150)
    machine.start()
    machine.assert_delivered_to_floor(session)
    taken = counting.answer
    held_back: list[Post] = []

    def portal(post: Post) -> Reply:
        held_back.append(post)
        return Reply(200, {"Content-Type": "text/html"}, b"<html>Sign in</html>")

    counting.answer = portal
    session.write(200)
    until(lambda: len(held_back) >= 2, "two requests that the portal answers", seconds=90)
    (sink,) = machine.json("status")["sinks"]
    with counting.lock:  # what the portal swallowed never was at the receiver
        counting.answer = taken
        for one in {one for post in held_back for one in post.ids}:
            counting.stored[session.id].pop(one, None)
            counting.times[session.id].pop(one, None)
    machine.assert_delivered_to_floor(session)

    fact("answered by the portal", len(held_back))
    fact("status meanwhile", sink["state"])
    fact("lost", 350 - counting.count(session.id))
    assert sink["lag_events"] == 200
    assert sink["state"] == "waiting"
