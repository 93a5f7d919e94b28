"""Receivers and state directories that were copied: what a receiver has lost is delivered again, and nothing hidden."""

import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from exporter.pipeline.lane import ROUND_SECONDS
from tests.bench.measure import cpu_seconds
from tests.program.driver import Machine
from tests.program.session_files import SessionFile, event_id
from tests.program.waiting import until

_IDLE_SESSIONS: Final = 1_000
_IDLE_SHARE: Final = 0.005


def _copy(database: Path, to: Path) -> None:
    """Copy a database while it is open, as a backup does."""
    with sqlite3.connect(database) as source, sqlite3.connect(to) as target:
        source.backup(target)


def _restore(machine: Machine, backup: Path) -> None:
    team = machine.team
    assert team is not None
    team.stop()
    for path in team.directory.glob("mission_control.db*"):
        path.unlink()
    shutil.copy(backup, team.database)
    team.start()


def _half_in_a_backup(machine: Machine) -> tuple[SessionFile, Path]:
    """Deliver 100 events, copy the store, and deliver 100 more."""
    machine.with_team()
    session, backup = machine.session().write(100), machine.root / "backup.db"
    machine.deliver()
    assert machine.team is not None
    _copy(machine.team.database, backup)
    session.write(100)
    machine.deliver()
    return session, backup


def test_the_next_run_fills_a_store_that_was_restored_from_a_backup(machine: Machine) -> None:
    session, backup = _half_in_a_backup(machine)
    assert machine.team is not None
    _restore(machine, backup)
    assert machine.team.count(session.id) == 100

    machine.deliver()

    machine.team.assert_holds(session.id, session.durable())


@pytest.mark.slow
@pytest.mark.faults
def test_a_running_exporter_fills_a_store_that_was_restored_from_a_backup(machine: Machine) -> None:
    session, backup = _half_in_a_backup(machine)
    assert machine.team is not None
    machine.start()
    until(lambda: machine.json("status")["daemon"]["running"], "the exporter")
    _restore(machine, backup)

    team = machine.team
    until(lambda: team.count(session.id) == 200, "the events that the restored store lacks", seconds=150)

    team.assert_holds(session.id, session.durable())


@pytest.mark.slow
def test_a_thousand_idle_sessions_are_asked_about_within_the_hour_for_little(
    machine: Machine, record_property: Callable[[str, object], None]
) -> None:
    """The answers of 200 sessions are an hour old; what one question costs tells the share for a thousand."""
    machine.with_team()
    for _ in range(200):
        machine.session().write(50)
    machine.deliver()
    marks = next(machine.state.glob("marks.db"))
    with sqlite3.connect(marks) as database:
        database.execute("UPDATE confirmed SET at = at - 3600")
    begun = time.time()

    def asked() -> int:
        with sqlite3.connect(f"file:{marks}?mode=ro", uri=True) as database:
            return int(database.execute("SELECT COUNT(*) FROM confirmed WHERE at >= ?", (begun,)).fetchone()[0])

    running = machine.start()
    until(lambda: asked() >= 5, "the first questions")
    cpu, before = cpu_seconds(running.process.pid), asked()
    time.sleep(20)
    cost = (cpu_seconds(running.process.pid) - cpu) / (asked() - before)

    share = cost * _IDLE_SESSIONS / (ROUND_SECONDS / 2)  # the shortest round there can be
    record_property("CPU per question", f"{1_000 * cost:.1f} ms")
    assert ROUND_SECONDS <= 3_600
    assert share <= _IDLE_SHARE, f"{100 * share:.2f} % of a processor, {1_000 * cost:.1f} ms a question"


def test_neither_of_two_installations_with_one_state_directory_hides_the_others_events(machine: Machine) -> None:
    machine.with_team()
    session = machine.session().write(50)
    machine.deliver()
    assert machine.team is not None
    state, home = machine.root / "copied-state", machine.root / "copied-home"
    shutil.copytree(machine.state, state)
    shutil.copytree(machine.home, home)
    copied = SessionFile(home, seed=99)
    copied.id, copied.path = session.id, home / "session-state" / session.id / "events.jsonl"
    session.write(10)
    copied.continue_after(copied.durable())
    copied.write(20)

    machine.deliver()
    answer = machine.exporter("run", "--until-idle", "--state-dir", str(state), "--copilot-home", str(home))
    machine.deliver()

    page = machine.team.get(f"/api/v1/sessions/{session.id}/events?limit=500")
    assert answer.returncode == 0, answer.stderr
    expected = {event_id(line) for line in session.durable() + copied.durable()}
    assert {one["id"] for one in page["events"]} == expected
    assert len(expected) == 50 + 10 + 20
