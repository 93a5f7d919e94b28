"""A team whose exporters may only upload: whose session it is, and who may restore it, from the command line."""

from pathlib import Path

from exporter.errors import Exit
from tests.program.driver import Machine


def may_only_upload(machine: Machine, name: str) -> None:
    """Give the exporter a token of this name from now on."""
    assert machine.team is not None
    store = ("--store", str(machine.team.database))
    made = machine.json("mission-control", "token", "create", name, "--upload-only", *store)
    file = Path(machine.root / name)
    file.write_text(made["token"])
    machine.tables["team"]["token_file"] = str(file)


def test_a_session_of_another_token_is_left_alone_and_others_go_on(machine: Machine) -> None:
    team = machine.with_team().team
    assert team is not None
    may_only_upload(machine, "laptop")
    session = machine.session().write(5)
    machine.deliver()
    held = session.durable()
    may_only_upload(machine, "desktop")
    session.write(5)
    other = machine.session().write(5)

    machine.deliver(expected_exit=Exit.PARTIAL)
    again = machine.exporter("backfill", "--all")
    status = machine.exporter("status")

    team.assert_holds(session.id, held)
    team.assert_holds(other.id, other.durable())
    assert again.returncode == Exit.PARTIAL
    assert f"{session.id} at mission_control.team: the session belongs to another token there" in again.stderr
    assert "up to date, 1 session of another token there" in status.stdout


def test_a_deleted_session_is_restored_by_the_command_that_is_printed(machine: Machine) -> None:
    team = machine.with_team().team
    assert team is not None
    may_only_upload(machine, "laptop")
    session = machine.session().write(5)
    machine.deliver()
    team.client.delete(f"{team.root}/api/v1/sessions/{session.id}").raise_for_status()
    again = ("backfill", "--session", session.id, "--from-start")

    refused = machine.exporter(*again)
    restored = machine.exporter("mission-control", "restore", session.id, "--store", str(team.database))
    sent = machine.exporter(*again)

    assert refused.returncode == Exit.PARTIAL
    assert f"exporter mission-control restore {session.id}\n" in refused.stderr
    assert (restored.returncode, sent.returncode) == (Exit.DONE, Exit.DONE), restored.stderr + sent.stderr
    machine.assert_delivered()
