"""`verify` proves that a receiver holds exactly what the files hold, names what differs, and repairs it."""

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from tests.program.driver import Machine
from tests.program.session_files import event_id


def delivered(machine: Machine) -> list[str]:
    """The ids of a session of 300 events that has arrived, beside another one."""
    session = machine.session().write(300)
    machine.session().write(20)
    machine.deliver()
    machine.verify()
    return [event_id(line) for line in session.durable()]


def differences(machine: Machine) -> dict[str, Any]:
    """What `verify --all` says of the first session at the team's receiver, ending with 8."""
    document = machine.json("verify", "--all", expected_exit=8)
    assert document["exit"] == 8
    unequal = [one for one in document["sessions"] if not one["equal"]]
    assert [one["session"] for one in unequal] == [machine.sessions[0].id]
    assert unequal[0]["sink"] == "mission_control.team"
    return dict(unequal[0])


def remove(database: sqlite3.Connection, one: str) -> None:
    """Remove an event behind the receiver's back, and let the receiver's own figures tell the truth about it."""
    assert database.execute("DELETE FROM events WHERE id = ?", (one,)).rowcount == 1
    _refresh(database)


def change(database: sqlite3.Connection, one: str) -> None:
    """Change an event's bytes, and the hash beside them."""
    body = bytes(database.execute("SELECT body FROM events WHERE id = ?", (one,)).fetchone()[0])
    changed = body.replace(b'"content":"', b'"content":"not ', 1)
    _write_body(database, one, changed)
    _refresh(database)


def _write_body(database: sqlite3.Connection, one: str, body: bytes) -> None:
    from hashlib import sha256

    database.execute("UPDATE events SET body = ?, sha256 = ? WHERE id = ?", (body, sha256(body).digest(), one))


def _refresh(database: sqlite3.Connection) -> None:
    from hashlib import sha256

    for (session,) in database.execute("SELECT n FROM sessions").fetchall():
        rows = database.execute("SELECT id, sha256 FROM events WHERE session = ? AND hidden = 0 ORDER BY n", (session,))
        sums, count, last = 0, 0, None
        for last, digest in rows:
            sums += int.from_bytes(sha256(last.encode() + b"\0" + bytes(digest)).digest(), "big")
            count += 1
        database.execute(
            "UPDATE sessions SET count = ?, digest = ?, last_event_id = ? WHERE n = ?",
            (count, (sums % (1 << 256)).to_bytes(32, "big"), last, session),
        )


@pytest.mark.parametrize(("tamper", "named"), [(remove, "missing"), (change, "different")])
def test_tampering_is_named_and_repaired(
    machine: Machine, tamper: Callable[[sqlite3.Connection, str], None], named: str
) -> None:
    team = machine.with_team().team
    assert team is not None
    victim = delivered(machine)[150]
    team.tamper(lambda database: tamper(database, victim))

    said = differences(machine)
    repaired = machine.exporter("verify", "--all", "--repair")

    assert said[named] == [victim]
    assert [said[other] for other in ("missing", "different", "extra") if other != named] == [[], []]
    assert repaired.returncode == 0, repaired.stdout + repaired.stderr
    machine.verify()
    assert team.count(machine.sessions[0].id) == 300
    held = {one["id"] for one in _all_events(machine)}
    assert victim in held


def test_several_missing_events_are_all_named_and_repaired_while_a_daemon_runs(machine: Machine) -> None:
    team = machine.with_team().team
    assert team is not None
    victims = delivered(machine)[20:25]
    machine.start()

    def tamper(database: sqlite3.Connection) -> None:
        for one in victims:
            remove(database, one)

    team.tamper(tamper)

    said = differences(machine)
    repaired = machine.exporter("verify", "--session", machine.sessions[0].id, "--repair")

    assert sorted(said["missing"]) == sorted(victims)
    assert repaired.returncode == 0, repaired.stdout + repaired.stderr
    machine.verify()


def test_an_event_that_is_not_in_the_file_is_named(machine: Machine) -> None:
    team = machine.with_team().team
    assert team is not None
    victim = delivered(machine)[7]
    stranger = machine.sessions[0].new_id()

    def tamper(database: sqlite3.Connection) -> None:
        row = database.execute("SELECT * FROM events WHERE id = ?", (victim,))
        names = [column[0] for column in row.description]
        values = dict(zip(names, row.fetchone(), strict=True))
        body = bytes(values["body"]).replace(victim.encode(), stranger.encode())
        values |= {"n": None, "id": stranger, "body": body, "key": 1}
        marks = ",".join("?" * len(names))
        database.execute(f"INSERT INTO events ({','.join(names)}) VALUES ({marks})", [values[name] for name in names])
        _write_body(database, stranger, body)
        _refresh(database)

    team.tamper(tamper)

    said = differences(machine)

    assert (said["missing"], said["extra"]) == ([], [stranger])


def test_a_session_the_receiver_forgot_is_neither_equal_nor_a_difference(machine: Machine) -> None:
    team = machine.with_team().team
    assert team is not None
    ids = delivered(machine)
    answer = team.client.delete(f"{team.root}/api/v1/sessions/{machine.sessions[0].id}")

    rows = machine.json("verify", "--all")["sessions"]
    backfilled = machine.exporter("backfill", "--all")

    assert answer.status_code in (200, 204)
    assert sorted(row["verdict"] for row in rows) == ["deleted there", "equal"]
    assert sum(row["equal"] for row in rows) == 1
    assert backfilled.returncode == 0, backfilled.stdout
    assert "deleted there" in backfilled.stdout
    assert len(ids) == 300


@pytest.mark.slow
def test_a_receiver_that_comes_back_empty_gets_every_session_from_an_idle_exporter(machine: Machine) -> None:
    team = machine.with_team().team
    assert team is not None
    delivered(machine)
    running = machine.start()
    team.stop()
    for file in team.database.parent.glob(f"{team.database.name}*"):
        file.unlink()
    team.start()

    for session in machine.sessions:  # asked about at a random moment of the minute after the next report
        team.wait_for(session.id, session.durable(), seconds=90)

    machine.verify()
    assert running.text().count("another store") == 1


def test_a_lost_receiver_is_repaired_without_a_daemon(machine: Machine) -> None:
    team = machine.with_team().team
    assert team is not None
    delivered(machine)
    team.stop()
    down = machine.exporter("verify", "--all")
    for file in team.database.parent.glob(f"{team.database.name}*"):
        file.unlink()
    team.start()

    lost = machine.exporter("verify", "--all")
    repaired = machine.exporter("verify", "--all", "--repair")

    assert (down.returncode, "not reachable" in down.stdout, "event-" in down.stdout) == (6, True, False)
    assert (lost.returncode, "has not this session any more" in lost.stdout) == (8, True)
    assert repaired.returncode == 0, repaired.stdout + repaired.stderr
    machine.verify()


def test_a_backfill_says_what_is_in_quarantine(machine: Machine) -> None:
    machine.with_team().session().write(5).append([b"rubbish"])

    answer = machine.exporter("backfill", "--all")

    assert answer.returncode == 4
    assert "but for 1 in quarantine" in answer.stdout
    assert "exporter quarantine list" in answer.stdout


def _all_events(machine: Machine) -> list[dict[str, Any]]:
    assert machine.team is not None
    return list(machine.team.get(f"/api/v1/sessions/{machine.sessions[0].id}/events?limit=1000")["events"])
