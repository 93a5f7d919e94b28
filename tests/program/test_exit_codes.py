"""How a run that cannot go on ends: the exit codes that scripts rely on, and what comes back by itself (F15)."""

import subprocess
import time

import pytest

from tests.program.driver import Machine
from tests.program.floor import Reply
from tests.program.session_files import event_id
from tests.program.waiting import until

GIVE_UP_SECONDS = 1.0


@pytest.mark.parametrize("command", [("run", "--until-idle"), ("backfill", "--all")], ids=["run", "backfill"])
@pytest.mark.parametrize("endpoint", ["refused", "503"])
def test_an_unreachable_sink_ends_with_6_and_keeps_the_data(
    machine: Machine, command: tuple[str, ...], endpoint: str
) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    machine.settings["give_up_seconds"] = GIVE_UP_SECONDS
    session = machine.session().write(20)
    counting.answer = lambda _: Reply(503)
    if endpoint == "refused":
        counting.close()

    begun = time.monotonic()
    ended = machine.start(*command)
    busy_apart = ended.ended()

    assert ended.process.returncode == 6, ended.text()
    assert time.monotonic() - begun >= GIVE_UP_SECONDS
    assert busy_apart <= GIVE_UP_SECONDS + 4
    assert counting.count(session.id) == 0
    (sink,) = machine.json("status")["sinks"]
    assert ("Refused" if endpoint == "refused" else "503") in sink["last_error"].replace("refused", "Refused")
    again = machine.with_floor().floor
    assert again is not None
    try:
        machine.deliver()
        assert again.lines(session.id) == session.durable()
        assert [one["last_error"] for one in machine.json("status")["sinks"]] == [None]
    finally:
        if endpoint == "503":
            counting.close()


def test_a_refused_token_ends_with_5(machine: Machine) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    counting.token = "another-token"
    machine.session().write(20)

    ended = machine.exporter("run", "--until-idle")

    assert ended.returncode == 5, ended.stderr
    assert "token" in ended.stderr
    assert "sinks mission_control.floor http://127.0.0.1:" in ended.stderr
    assert counting.posts == []


def test_a_refused_token_stops_that_sink_only(machine: Machine) -> None:
    team, counting = machine.with_team().team, machine.with_floor().floor
    assert team is not None
    assert counting is not None
    counting.token = "another-token"
    session = machine.session().write(20)

    ended = machine.exporter("run", "--until-idle")

    assert ended.returncode == 5, ended.stderr
    team.assert_holds(session.id, session.durable())


def test_something_in_quarantine_ends_with_4(machine: Machine) -> None:
    machine.with_floor()
    session = machine.session().write(5)
    session.append([b"no event"])

    ended = machine.exporter("run", "--until-idle")

    assert ended.returncode == 4, ended.stderr
    assert len(machine.json("quarantine", "list")["quarantined"]) == 1


def test_an_event_the_receiver_refuses_ends_with_4_and_the_others_arrive(machine: Machine) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    session = machine.session().write(40)
    lines = session.durable()
    poison = event_id(lines[17])
    counting.answer = lambda post: Reply(400 if poison in post.ids else 200)

    ended = machine.exporter("run", "--until-idle")

    assert ended.returncode == 4, ended.stderr
    assert counting.lines(session.id) == lines[:17] + lines[18:]
    listed = machine.json("quarantine", "list")["quarantined"]
    assert [(one["session"], one["event"]) for one in listed] == [(session.id, poison)]
    assert counting.repeated() == 0
    machine.verify()


def test_a_token_over_plain_http_to_another_machine_ends_with_3_before_anything_is_sent(machine: Machine) -> None:
    machine.tables["far"] = {"url": "http://192.0.2.1/agents", "token": "a-token-that-stays-here"}
    machine.session().write(5)

    ended = machine.exporter("run", "--until-idle")

    assert ended.returncode == 3
    assert "allow_http" in ended.stderr
    assert "a-token-that-stays-here" not in ended.stderr


def test_an_unknown_setting_ends_with_3(machine: Machine) -> None:
    machine.with_floor()
    machine.settings["give_up_secondz"] = 1

    ended = machine.exporter("run", "--until-idle")

    assert ended.returncode == 3
    assert "give_up_seconds" in ended.stderr


def test_a_missing_token_file_ends_with_3(machine: Machine) -> None:
    machine.with_floor()
    machine.tables["floor"] = {"url": machine.tables["floor"]["url"], "token_file": str(machine.root / "not-here")}

    ended = machine.exporter("run", "--until-idle")

    assert ended.returncode == 3
    assert "not-here" in ended.stderr


def test_an_empty_token_file_is_needed_by_nothing_that_sends_nothing(machine: Machine) -> None:
    """As a shell leaves it before the command of `exporter mission-control token create me > FILE` begins."""
    machine.with_floor()
    machine.session().write(3)
    file = machine.root / "mc.token"
    file.touch()
    machine.tables["floor"] = {"url": machine.tables["floor"]["url"], "token_file": str(file)}
    commands = (["status"], ["quarantine", "list"], ["mission-control", "token", "list"])

    refused = machine.exporter("run", "--until-idle")
    answers = [machine.exporter(*words) for words in commands]
    examined = machine.json("doctor", expected_exit=4)
    with file.open("w") as output:
        made = subprocess.run(
            machine.command("mission-control", "token", "create", "me"),
            env=machine.environment,
            stdout=output,
            check=False,
        )

    assert refused.returncode == 3
    assert "exporter.toml:6" in refused.stderr
    assert f"the file is empty ({file})" in refused.stderr
    assert [(one.returncode, one.stderr) for one in answers] == [(0, "")] * 3
    failed = [check for check in examined["checks"] if check["verdict"] == "failed"]
    assert [check["name"] for check in failed] == ["mission_control.floor"]
    assert str(file) in failed[0]["detail"]
    assert made.returncode == 0
    assert len(file.read_text().split()) == 1
    machine.deliver()


def test_a_running_daemon_goes_on_by_itself_once_the_token_file_is_right(machine: Machine) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    counting.token = "the-token-of-today"
    mine = machine.root / "mine.token"
    mine.write_text("a-token-of-last-month\n")
    machine.tables["floor"] = {"url": counting.url, "token_file": str(mine)}
    session = machine.session().write(300)
    running = machine.start()
    until(lambda: "refuses the token" in running.text(), "a loud word about the token", seconds=60)

    mine.write_text("the-token-of-today\n")

    machine.assert_delivered_to_floor(session)
    assert counting.repeated() == 0
    assert running.alive
    machine.verify()


def test_a_token_that_expires_on_the_way_costs_no_event(machine: Machine) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    mine = machine.root / "mine.token"
    mine.write_text("first\n")
    machine.tables["floor"] = {"url": counting.url, "token_file": str(mine)}
    counting.token = "first"
    session = machine.session().write(100)
    running = machine.start()
    counting.wait_for(session.id, [event_id(line) for line in session.durable()])
    counting.token = "second"
    session.write(100)
    until(lambda: "refuses the token" in running.text(), "a loud word about the token", seconds=60)

    mine.write_text("second\n")

    counting.wait_for(session.id, [event_id(line) for line in session.durable()])
    assert counting.lines(session.id) == session.durable()
    assert counting.repeated() == 0
    machine.verify()
