"""Asked to stop, the exporter sends what it can, remembers the rest, and is gone within two seconds (F4-F6)."""

import signal
import threading
from collections.abc import Callable

import pytest

from tests.program.driver import Machine
from tests.program.floor import GOOD, Floor, Post, Reply
from tests.program.waiting import until

pytestmark = pytest.mark.alone

STOP_SECONDS = 2.0
BOTH = pytest.mark.parametrize("stop_signal", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])


@BOTH
def test_a_stop_while_an_answer_is_on_its_way_repeats_nothing(machine: Machine, stop_signal: signal.Signals) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    counting.answer = lambda _: Reply(hold=True)
    session = machine.session().write(2_000)
    running = machine.start()
    counting.wait_for_post()

    running.process.send_signal(stop_signal)
    slow_answer = threading.Timer(0.4, counting.release)
    slow_answer.start()
    seconds = running.ended()
    counting.answer = lambda _: GOOD
    machine.deliver()

    assert seconds <= STOP_SECONDS
    assert counting.repeated() == 0
    assert counting.lines(session.id) == session.durable()
    machine.verify()


def _unavailable(counting: Floor) -> None:
    counting.answer = lambda _: Reply(503)


def _hanging(counting: Floor) -> None:
    counting.answer = lambda _: Reply(503, hold=True)


def _unavailable_registration(counting: Floor) -> None:
    counting.register = lambda: Reply(503)


@BOTH
@pytest.mark.parametrize("fail", [_unavailable, _hanging, _unavailable_registration])
def test_a_stop_while_the_endpoint_fails_loses_nothing(
    machine: Machine, fail: Callable[[Floor], None], stop_signal: signal.Signals
) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    fail(counting)
    session = machine.session().write(3_000)
    running = machine.start()
    if fail is _unavailable_registration:
        until(lambda: "503" in running.text() or not running.alive, "a word about the 503")
    else:
        counting.wait_for_post()

    seconds = running.stop(stop_signal)
    counting.release()
    counting.answer, counting.register = lambda _: GOOD, lambda: GOOD
    machine.deliver()

    assert seconds <= STOP_SECONDS
    assert counting.lines(session.id) == session.durable()
    machine.verify()


def test_a_stop_while_the_endpoint_refuses_connections_loses_nothing(machine: Machine) -> None:
    first = machine.with_floor().floor
    assert first is not None
    first.close()
    session = machine.session().write(3_000)
    running = machine.start()
    until((machine.state / "control.sock").exists, "the daemon's control socket")

    seconds = running.stop()
    machine.floor = Floor(port=first.port)
    machine.deliver()

    assert seconds <= STOP_SECONDS
    assert machine.floor.lines(session.id) == session.durable()
    machine.verify()


def test_a_second_stop_ends_at_once_with_the_marks_intact(machine: Machine) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    accepted: list[Post] = []

    def answer(post: Post) -> Reply:
        accepted.append(post)
        return GOOD if len(accepted) <= 3 else Reply(503, hold=True)

    counting.answer = answer
    machine.settings["drain_seconds"] = 30
    session = machine.session().write(5_000)
    running = machine.start()
    counting.wait_for_post(4)
    running.process.send_signal(signal.SIGTERM)
    with pytest.raises(AssertionError):
        until(lambda: not running.alive, "an end although it is to drain for 30 s", seconds=0.5)

    seconds = running.stop()
    counting.release()
    counting.answer = lambda _: GOOD
    machine.deliver()

    assert seconds <= 0.5
    assert counting.repeated() == 0
    assert counting.lines(session.id) == session.durable()
    machine.verify()


def test_an_idle_exporter_stops_at_once_and_leaves_no_socket(delivering: Machine) -> None:
    delivering.session().write(50)
    running = delivering.start()
    delivering.assert_delivered()

    seconds = running.stop()

    assert seconds <= 1.0
    assert running.process.returncode == 0
    assert not (delivering.state / "control.sock").exists()
