"""Rewinds in any number, at any moment, end with what the file holds at last (F33-F36)."""

import os
import threading
from random import Random

import pytest

from tests.program.driver import Machine
from tests.program.session_files import SessionFile

pytestmark = pytest.mark.slow


def rewind(session: SessionFile, keep: int, new_count: int) -> None:
    """Keep so many durable events and go on with new ones, in a new file."""
    kept = session.durable()[:keep]
    session.continue_after(kept)
    session.replace([*kept, *session.events(new_count)])


@pytest.mark.parametrize("attempt", range(3))
def test_rewinds_in_a_row_end_with_the_last(delivering: Machine, attempt: int) -> None:
    session = delivering.session().write(400 + attempt)
    running = delivering.start()
    delivering.assert_delivered()

    for keep in (350, 200, 201, 3):
        rewind(session, keep, 11)

    delivering.assert_delivered()
    assert running.alive


@pytest.mark.parametrize("seed", range(3))
def test_random_rewinds_and_appends_end_with_what_the_file_holds(delivering: Machine, seed: int) -> None:
    chance, pause = Random(seed), threading.Event()
    sessions = [delivering.session().write(200) for _ in range(2)]
    running = delivering.start()

    for _ in range(60):
        session = chance.choice(sessions)
        if chance.random() < 0.5:
            session.write(chance.randint(1, 40))
        else:
            rewind(session, chance.randint(0, len(session.durable())), chance.randint(0, 20))
        pause.wait(chance.choice([0, 0, 0.001, 0.01, 0.05]))

    delivering.assert_delivered()
    assert running.alive, running.text()


def test_random_rewinds_between_kills_end_with_what_the_file_holds(delivering: Machine) -> None:
    chance, pause = Random(20261118), threading.Event()
    session = delivering.session().write(500)

    for _ in range(15):
        running = delivering.start()
        pause.wait(chance.uniform(0.25, 0.5))
        if chance.random() < 0.6:
            rewind(session, chance.randint(0, len(session.durable())), chance.randint(0, 50))
        session.write(chance.randint(1, 100))
        pause.wait(chance.uniform(0, 0.03))
        running.kill()
    delivering.deliver()

    delivering.assert_delivered()


def test_an_event_that_returns_with_other_bytes_is_shown_with_them(machine: Machine) -> None:
    machine.with_team()
    session = machine.session().write(60)
    machine.start()
    machine.assert_delivered()
    whole = session.durable()
    session.replace(whole[:20])
    machine.assert_delivered()

    session.replace([*whole[:20], whole[20].replace(b'"content":"', b'"content":"edited '), *whole[21:]])

    machine.assert_delivered()


def test_a_file_cut_in_the_middle_of_a_line_is_delivered_as_far_as_it_is_whole(delivering: Machine) -> None:
    session = delivering.session().write(100)
    delivering.start()
    delivering.assert_delivered()
    lines = session.durable()
    middle = len(lines[50]) // 2
    os.truncate(session.path, session.path.read_bytes().index(lines[50]) + middle)
    assert delivering.team is not None
    delivering.team.wait_for(session.id, lines[:50])

    session.append_bytes(lines[50][middle:] + b"\n")

    delivering.assert_delivered()
