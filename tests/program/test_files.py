"""What happens to session files: grown, rewound, truncated, replaced, moved, removed, or no files at all."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.program.driver import Machine
from tests.program.floor import Reply
from tests.program.session_files import SessionFile, event_id
from tests.program.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def following(delivering: Machine) -> Machine:
    """A machine whose exporter runs and has delivered 100 events of one session."""
    delivering.start()
    delivering.session().write(100)
    delivering.assert_delivered()
    return delivering


def pass_by(machine: Machine) -> None:
    """Wait until the exporter has looked at everything that happened before now."""
    machine.session().write(1)
    machine.assert_delivered()


def assert_hidden(machine: Machine, session: SessionFile, removed: list[bytes]) -> None:
    """The receiver shows none of these events any more."""
    assert machine.team is not None
    shown = machine.team.get(f"/api/v1/sessions/{session.id}/events?limit=500")["events"]
    assert not {one["id"] for one in shown} & {event_id(line) for line in removed}


def test_a_directory_may_be_there_before_the_sessions_root_is(delivering: Machine) -> None:
    root = delivering.home / "session-state"
    root.rmdir()
    delivering.start()
    until((delivering.state / "control.sock").exists, "the exporter's readiness")
    delivering.session().write(20)

    delivering.assert_delivered()
    delivering.assert_sent_once()


def test_a_directory_may_be_there_before_its_file(following: Machine) -> None:
    session = following.session()
    pass_by(following)
    session.write(20)

    following.assert_delivered()
    following.assert_sent_once()


def test_a_file_may_be_there_before_its_first_byte(following: Machine) -> None:
    session = following.session()
    session.append_bytes(b"")
    pass_by(following)
    session.write(20)

    following.assert_delivered()
    following.assert_sent_once()


def test_a_new_session_is_seen_with_what_it_holds_already(following: Machine) -> None:
    hidden = following.planned_session()
    elsewhere = following.root / "elsewhere"
    hidden.directory, hidden.path = elsewhere, elsewhere / "events.jsonl"
    hidden.create().write(50)
    target = following.home / "session-state" / hidden.id
    elsewhere.rename(target)
    hidden.directory, hidden.path = target, target / "events.jsonl"

    following.assert_delivered()
    following.assert_sent_once()


def test_a_session_goes_on_where_it_was_after_a_restart(following: Machine) -> None:
    [session] = following.sessions
    following.running[0].stop()
    session.write(30)
    following.start()
    session.write(30)

    following.assert_delivered()
    following.assert_sent_once()


def test_a_rewind_hides_what_is_gone_and_sends_nothing_twice(following: Machine) -> None:
    [session] = following.sessions
    lines = session.durable()
    session.replace(lines[:40])
    session.write(25)

    following.assert_delivered()
    assert_hidden(following, session, lines[40:])
    following.assert_sent_once()


def test_a_rewind_to_a_shorter_file_is_seen_without_new_events(following: Machine) -> None:
    [session] = following.sessions
    lines = session.durable()
    session.replace(lines[:40])

    following.assert_delivered()
    assert_hidden(following, session, lines[40:])
    following.assert_sent_once()


def test_a_rewind_while_down_hides_what_is_gone_and_sends_nothing_twice(following: Machine) -> None:
    [session] = following.sessions
    following.running[0].stop()
    lines = session.durable()
    session.replace(lines[:40])
    session.write(70)
    following.start()

    following.assert_delivered()
    assert_hidden(following, session, lines[40:])
    following.assert_sent_once()


def test_a_rewind_can_be_taken_back(following: Machine) -> None:
    [session] = following.sessions
    lines = session.durable()
    session.replace(lines[:40])
    following.assert_delivered()
    session.replace(lines)

    following.assert_delivered({session: lines})


def test_a_rewind_of_a_rewind_sends_nothing_twice(following: Machine) -> None:
    [session] = following.sessions
    for kept in (80, 50, 20):
        session.replace(session.durable()[:kept])
        session.write(10)
        following.assert_delivered()

    following.assert_sent_once()


def test_a_file_truncated_to_shorter_goes_on_from_there(following: Machine) -> None:
    [session] = following.sessions
    lines = session.durable()
    kept = session.path.read_bytes().find(lines[29]) + len(lines[29]) + 1
    os.truncate(session.path, kept)
    session.continue_after(lines[:30])
    session.write(10)

    following.assert_delivered()
    assert_hidden(following, session, lines[30:])
    following.assert_sent_once()


def test_a_file_truncated_to_nothing_begins_anew(following: Machine) -> None:
    [session] = following.sessions
    lines = session.durable()
    os.truncate(session.path, 0)
    session.parent = None
    session.write(10)

    following.assert_delivered()
    assert_hidden(following, session, lines)
    following.assert_sent_once()


def test_a_file_truncated_and_refilled_longer_is_not_taken_for_a_longer_one(following: Machine) -> None:
    [session] = following.sessions
    lines = session.durable()
    session.parent = None
    new = session.events(400)
    descriptor = os.open(session.path, os.O_WRONLY | os.O_TRUNC)
    os.write(descriptor, b"".join(line + b"\n" for line in new))
    os.close(descriptor)

    following.assert_delivered()
    assert_hidden(following, session, lines)
    following.assert_sent_once()


def test_a_copied_and_truncated_file_delivers_what_comes_after(following: Machine) -> None:
    [session] = following.sessions
    shutil.copyfile(session.path, session.directory / "events.jsonl.1")
    os.truncate(session.path, 0)
    session.write(150)

    following.assert_delivered()
    following.assert_sent_once()


@pytest.mark.parametrize("new_count", [20, 400], ids=["shorter", "longer"])
def test_another_file_under_the_same_inode_is_seen_after_a_restart(following: Machine, new_count: int) -> None:
    [session] = following.sessions
    following.running[0].stop()
    inode = session.path.stat().st_ino
    lines = session.durable()
    os.truncate(session.path, 0)
    session.parent = None
    session.write(new_count)
    assert session.path.stat().st_ino == inode
    following.start()

    following.assert_delivered()
    assert_hidden(following, session, lines)
    following.assert_sent_once()


def test_a_file_deleted_and_made_again_while_down_is_another_one(following: Machine) -> None:
    [session] = following.sessions
    following.running[0].stop()
    lines = session.durable()
    session.path.unlink()
    session.parent = None
    session.write(150)
    following.start()

    following.assert_delivered()
    assert_hidden(following, session, lines)
    following.assert_sent_once()


def test_a_file_deleted_and_made_again_is_another_one(following: Machine) -> None:
    [session] = following.sessions
    session.path.unlink()
    session.parent = None
    session.write(50)

    following.assert_delivered()
    following.assert_sent_once()


def test_a_file_deleted_while_behind_is_drained_from_the_open_file(machine: Machine) -> None:
    machine.with_floor()
    assert machine.floor is not None
    machine.floor.answer = lambda _: Reply(503)
    session = machine.session().write(3_000)
    lines = session.durable()
    machine.start()
    machine.floor.wait_for_post()
    session.path.unlink()
    pass_by_number = len(machine.floor.posts)
    machine.floor.wait_for_post(pass_by_number + 1)
    machine.floor.answer = lambda _: Reply(200)

    machine.floor.wait_for(session.id, [event_id(line) for line in lines])
    assert machine.floor.lines(session.id) == lines
    machine.assert_sent_once()
    machine.verify()


def test_a_deleted_session_leaves_the_receiver_as_it_was(following: Machine) -> None:
    [session] = following.sessions
    lines = session.durable()
    shutil.rmtree(session.directory)
    pass_by(following)

    assert following.team is not None
    following.team.assert_holds(session.id, lines)
    following.assert_sent_once()


def test_a_directory_moved_out_and_back_sends_nothing_twice(following: Machine) -> None:
    [session] = following.sessions
    away = following.root / "away"
    session.directory.rename(away)
    pass_by(following)
    away.rename(session.directory)
    session.write(20)

    following.assert_delivered()
    following.assert_sent_once()


def test_a_directory_that_grew_while_it_was_away_is_delivered(following: Machine) -> None:
    [session] = following.sessions
    away = following.root / "away"
    session.directory.rename(away)
    pass_by(following)
    with (away / "events.jsonl").open("ab") as file:
        file.write(session.event() + b"\n")
    away.rename(session.directory)

    following.assert_delivered()
    following.assert_sent_once()


def make_loop(path: Path) -> None:
    path.symlink_to(path)


def make_chain(path: Path) -> None:
    other = path.with_name("other")
    other.symlink_to(path)
    path.symlink_to(other)


@pytest.mark.parametrize("make", [make_loop, make_chain, os.mkfifo, Path.mkdir])
@pytest.mark.parametrize("running", [True, False], ids=["running", "at-start"])
def test_what_is_no_file_is_passed_over(delivering: Machine, make: object, running: bool) -> None:
    assert callable(make)
    if running:
        delivering.start()
        delivering.session().write(1)
        delivering.assert_delivered()
    odd = delivering.session()
    make(odd.path)
    delivering.session().write(20)
    if not running:
        delivering.start()

    delivering.assert_delivered()
    problems = delivering.json("status")["sources"][0]["problems"]
    assert odd.id in {one["session"] for one in problems}
    delivering.assert_sent_once()


def test_a_linked_file_is_not_followed_and_a_linked_directory_is_and_both_are_said(delivering: Machine) -> None:
    outside, kept = delivering.root / "outside", delivering.root / "kept"
    linked_file = delivering.session()
    moved = delivering.session().write(20)
    outside.write_bytes(b"".join(line + b"\n" for line in moved.durable()))
    linked_file.path.symlink_to(outside)
    moved.directory.rename(kept)
    moved.directory.symlink_to(kept)
    before = delivering.json("status")
    delivering.start()

    delivering.assert_delivered_to_floor(moved)
    problems = delivering.json("status")["sources"][0]["problems"]
    examined = json.loads(delivering.exporter("doctor", "--json").stdout)["checks"]
    checks = {one["detail"]: one["verdict"] for one in examined if one["name"] == "link"}

    assert delivering.floor is not None and delivering.floor.count(linked_file.id) == 0
    assert [one["session"] for one in problems] == [linked_file.id]
    assert checks == {
        f"{linked_file.path} is a link out of its directory and is not followed: {outside}": "warning",
        f"{moved.directory} is a link and is followed: {kept}": "note",
    }
    assert {sink["lag_events"] for sink in before["sinks"]} == {20}


def test_a_fork_that_repeats_ids_is_a_session_of_its_own(following: Machine) -> None:
    [session] = following.sessions
    fork = following.session()
    lines = session.durable()[:60]
    fork.append(lines)
    fork.continue_after(lines)
    fork.write(15)
    session.write(15)

    following.assert_delivered()
    following.assert_sent_once()
