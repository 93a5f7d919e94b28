"""One exporter owns a state directory; everybody else is turned away or helped by it (F47, F52)."""

import os
import threading
import time

from tests.program.driver import Machine
from tests.program.waiting import until

MONTH_SECONDS = 30 * 86_400


def test_a_second_run_ends_with_7_within_a_second(delivering: Machine) -> None:
    session = delivering.session().write(100)
    running = delivering.start()
    until((delivering.state / "control.sock").exists, "the first daemon's control socket")

    second = delivering.start()
    seconds = second.ended()

    assert second.process.returncode == 7, second.text()
    assert seconds <= 1.0
    session.write(100)
    delivering.assert_delivered()
    delivering.assert_sent_once()
    assert running.alive


def test_two_daemons_started_together_deliver_everything_once(delivering: Machine) -> None:
    delivering.session().write(5_000)

    both = [delivering.start(), delivering.start()]
    until(lambda: not all(one.alive for one in both), "the end of one of them")

    ended = next(one for one in both if not one.alive)
    assert ended.process.returncode == 7, ended.text()
    delivering.assert_delivered()
    delivering.assert_sent_once()


def test_a_lock_left_by_a_killed_daemon_holds_nobody_up(delivering: Machine) -> None:
    delivering.session().write(100)
    running = delivering.start()
    delivering.assert_delivered()
    running.kill()
    delivering.sessions[0].write(100)

    delivering.deliver()

    delivering.assert_delivered()
    delivering.assert_sent_once()


def test_backfill_beside_a_daemon_delivers_an_old_session_through_it(delivering: Machine) -> None:
    fresh, old = delivering.session().write(200), delivering.session().write(3_000)
    long_ago = time.time() - MONTH_SECONDS
    os.utime(old.path, (long_ago, long_ago))
    running = delivering.start()
    assert delivering.team is not None
    delivering.team.wait_for(fresh.id, fresh.durable())
    before = delivering.team.count(old.id)

    answer = delivering.exporter("backfill", "--session", old.id)

    assert before == 0
    assert answer.returncode == 0, answer.stderr
    assert delivering.team.count(old.id) == 3_000
    assert running.alive
    delivering.assert_delivered()
    delivering.assert_sent_once()


def test_backfill_of_a_session_that_is_being_followed_leaves_no_gap_and_repeats_nothing(delivering: Machine) -> None:
    session = delivering.session().write(2_000)
    running = delivering.start()
    delivering.assert_delivered()
    finished = threading.Event()

    def write() -> None:
        while not finished.wait(0.01):
            session.write(10)

    author = threading.Thread(target=write)
    author.start()
    try:
        answers = [delivering.exporter("backfill", "--session", session.id) for _ in range(4)]
    finally:
        finished.set()
        author.join()

    assert [answer.returncode for answer in answers] == [0, 0, 0, 0], answers[-1].stderr
    delivering.assert_delivered()
    delivering.assert_sent_once()
    assert running.alive
