"""Sessions that only a CLI server has: every command finds them by their journal, whole or with its front cut off."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.program.cli_server import SESSION, CliServer, event
from tests.program.driver import Machine
from tests.program.floor import GOOD, Reply
from tests.program.waiting import until

TOKEN: Final = "ghp_" + "a1B2c3D4e5F6" * 3
ROOM: Final = 1 << 20


@pytest.fixture
def cli() -> Iterator[CliServer]:
    server = CliServer()
    yield server
    server.close()


@pytest.fixture
def observing(machine: Machine, cli: CliServer) -> Machine:
    """A machine that delivers what a CLI server has to the real receiver."""
    machine.with_team()
    machine.environment["EXPORTER_SOURCE"] = json.dumps([{"url": cli.url}])
    return machine


def journal(machine: Machine) -> Path:
    return machine.state / "journals" / SESSION / "events.jsonl"


def taken(machine: Machine, lines: list[bytes]) -> None:
    """Wait until the journal holds the last of these events."""
    until(
        lambda: journal(machine).exists() and journal(machine).read_bytes().endswith(lines[-1] + b"\n"), "the journal"
    )


def deliver(machine: Machine, lines: list[bytes]) -> None:
    """Run beside the server until the receiver has these events."""
    assert machine.team is not None
    running = machine.start()
    machine.team.wait_for(SESSION, lines)
    running.stop()


def sources(machine: Machine) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in machine.json("status")["sources"]}


def lag(machine: Machine) -> int:
    [sink] = machine.json("status")["sinks"]
    return int(sink["lag_events"])


def tailed(machine: Machine) -> list[bytes]:
    answer = machine.exporter("sessions", "tail", SESSION, "--json")
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.encode().splitlines()


def test_every_command_finds_a_session_that_is_only_a_journal(observing: Machine, cli: CliServer) -> None:
    assert observing.team is not None
    cli.add(5)
    deliver(observing, cli.lines)

    assert sources(observing)["journals"]["sessions"] == 1
    assert sources(observing)["journals"]["bytes"] == journal(observing).stat().st_size
    assert lag(observing) == 0
    [listed] = observing.json("sessions", "list")["sessions"]
    assert (listed["id"], listed["source"], listed["events"]) == (SESSION, "journal", 5)
    assert [one["lag_events"] for one in listed["sinks"]] == [0]
    assert observing.json("sessions", "show", SESSION[:6])["file"] == str(journal(observing))
    assert tailed(observing) == cli.lines
    observing.verify()
    [row] = observing.json("backfill", "--session", SESSION, "--dry-run")["sessions"]
    assert (row["events"], row["state"]) == (0, "nothing to send")
    [row] = observing.json("backfill", "--session", SESSION, "--from-start", "--dry-run")["sessions"]
    assert row["events"] == 5
    [row] = observing.json("backfill", "--all", "--from-start")["sessions"]
    assert (row["events"], row["state"]) == (5, "delivered")
    observing.team.assert_holds(SESSION, cli.lines)
    observing.verify()


def test_what_a_journal_still_owes_is_told_and_delivered_without_a_daemon(observing: Machine, cli: CliServer) -> None:
    assert observing.team is not None
    cli.add(3)
    deliver(observing, cli.lines)
    observing.team.stop()
    running = observing.start()
    cli.add(4)
    taken(observing, cli.lines)
    running.stop()

    assert lag(observing) == 4
    [listed] = observing.json("sessions", "list")["sessions"]
    assert [(one["delivered"], one["lag_events"]) for one in listed["sinks"]] == [(3, 4)]
    observing.team.start()
    [row] = observing.json("verify", "--all", expected_exit=8)["sessions"]
    assert row["missing"] == ["e3", "e4", "e5", "e6"]
    [row] = observing.json("backfill", "--session", SESSION)["sessions"]
    assert (row["events"], row["state"]) == (4, "delivered")
    observing.team.assert_holds(SESSION, cli.lines)
    observing.verify()
    assert lag(observing) == 0


def test_a_journal_holds_no_secret_and_a_preview_of_it_shows_none(observing: Machine, cli: CliServer) -> None:
    assert observing.team is not None
    cli.add(1)
    cli.add(1, note=f"the token is {TOKEN}")
    running = observing.start()
    until(lambda: observing.team is not None and observing.team.count(SESSION) == 2, "both events")
    running.stop()

    preview = observing.exporter("redact", "preview", "--session", SESSION, "--json")

    assert preview.returncode == 0, preview.stderr
    assert TOKEN.encode() not in journal(observing).read_bytes()
    assert TOKEN not in preview.stdout
    assert b"[REDACTED:" in tailed(observing)[1]
    [listed] = observing.json("sessions", "list")["sessions"]
    assert listed["masked"] == 1


def test_a_journal_that_is_cut_while_it_is_followed_loses_nothing_and_repeats_nothing(
    observing: Machine, cli: CliServer
) -> None:
    """Four times more than there is room for, through an outage and a kill, with sinks at different places."""
    observing.with_floor()
    assert observing.team is not None and observing.floor is not None
    observing.environment["EXPORTER_LIMITS__JOURNAL_BYTES"] = str(ROOM)
    running = observing.start()
    for step in range(20):
        cli.add(100, size=2_000)
        if step == 5:
            observing.floor.answer = lambda _: Reply(503)
        if step == 10:  # the floor has taken nothing for a while: the server waits, nothing is lost
            until(lambda: "full" in str(sources(observing)), "the journal to be full")
            observing.floor.answer = lambda _: GOOD
        if step == 14:
            observing.team.wait_for(SESSION, cli.lines)
            running.kill()
            running = observing.start()
        if step not in range(5, 10):
            observing.team.wait_for(SESSION, cli.lines)
    observing.floor.wait_for(SESSION, [f"e{number}" for number in range(len(cli.lines))])
    until(lambda: journal(observing).stat().st_blocks * 512 <= ROOM + 8192, "room in the journal")
    observing.verify()
    running.stop()

    observing.team.assert_holds(SESSION, cli.lines)
    assert observing.floor.lines(SESSION) == cli.lines
    assert observing.team.duplicates() == 0
    assert observing.floor.repeated() <= 500  # what was under way when it was killed
    facts = journal(observing).stat()
    assert facts.st_size > 4 * ROOM
    assert facts.st_blocks * 512 <= ROOM + 8192
    _the_commands_pass_over_what_was_cut_off(observing, cli)


def _the_commands_pass_over_what_was_cut_off(observing: Machine, cli: CliServer) -> None:
    assert observing.team is not None
    left = tailed(observing)
    assert left == cli.lines[-len(left) :] and 0 < len(left) < len(cli.lines)
    assert sources(observing)["journals"]["bytes"] <= ROOM
    assert [one["lag_events"] for one in observing.json("status")["sinks"]] == [0, 0]
    [listed] = observing.json("sessions", "list")["sessions"]
    assert [one["lag_events"] for one in listed["sinks"]] == [0, 0]
    assert [one["delivered"] for one in listed["sinks"]] == [len(cli.lines)] * 2
    assert observing.exporter("redact", "preview", "--session", SESSION).returncode == 0
    rows = observing.json("backfill", "--all", "--from-start")["sessions"]
    assert {row["state"] for row in rows} == {"delivered"}
    observing.team.assert_holds(SESSION, cli.lines)
    observing.verify()


def test_what_belongs_to_no_known_session_is_counted(observing: Machine, cli: CliServer) -> None:
    assert observing.team is not None
    cli.add(1)
    running = observing.start()
    observing.team.wait_for(SESSION, cli.lines)
    assert "unattributed" not in sources(observing)["journals"]

    cli.tell("session.lifecycle", type="session.deleted", sessionId=SESSION)
    time.sleep(0.2)
    cli.pass_by(event(1, ephemeral=True), event(2, ephemeral=True))

    until(lambda: sources(observing)["journals"].get("unattributed") == 2, "what came late")
    assert "2 events without a known session" in observing.exporter("status").stdout
    running.stop()


def test_doctor_counts_the_types_and_methods_that_no_list_of_ours_has(observing: Machine, cli: CliServer) -> None:
    assert observing.team is not None
    cli.add(1)
    running = observing.start()
    observing.team.wait_for(SESSION, cli.lines)
    cli.add(2, type="session.brand_new")
    cli.pass_by(*(event(number, ephemeral=True, type=f"a secret {TOKEN}") for number in range(3)))
    cli.pass_by(event(9, ephemeral=True, type="assistant.brand_new_delta"))
    cli.tell("session.brandNew", sessionId=SESSION)
    observing.team.wait_for(SESSION, cli.lines)

    def told() -> dict[str, str]:
        checks = json.loads(observing.exporter("doctor", "--schema", "--json").stdout)["checks"]
        return {one["name"]: one["detail"] for one in checks if one["name"].startswith("event types")}

    until(lambda: "brandNew" in told()[f"event types of {cli.url}"], "what was counted")
    of_source = told()[f"event types of {cli.url}"]
    for what in ("session.brand_new ×2", "(not a name) ×3", "assistant.brand_new_delta ×1", "session.brandNew() ×1"):  # noqa: RUF001
        assert what in of_source
    assert TOKEN not in str(told())
    running.stop()
    assert "while it is observed" in told()[f"event types of {cli.url}"]
    assert "session.brand_new ×2" in told()["event types"]  # noqa: RUF001  the journal has them


def test_status_says_what_is_wrong_with_a_server_and_nothing_is_lost_meanwhile(
    observing: Machine, cli: CliServer
) -> None:
    assert observing.team is not None
    cli.add(3)
    cli.refuse("connect", -32002)
    token = observing.root / "token"
    token.write_text("wrong")
    token.chmod(0o600)
    observing.environment["EXPORTER_SOURCE"] = json.dumps([{"url": cli.url, "token_file": str(token)}])
    running = observing.start()

    def state() -> str:
        return str(sources(observing).get(cli.url, {}).get("state"))

    until(lambda: "refused the token" in state(), "the refusal")
    [check] = [one for one in doctor(observing) if one["name"] == f"source {cli.url}"]
    assert check["verdict"] == "warning" and "token" in check["detail"]
    cli.accept("connect")
    observing.team.wait_for(SESSION, cli.lines)
    assert state() == "following"
    cli.stop_listening()
    cli.hang_up()
    until(lambda: "cannot be reached" in state(), "that the server is gone")
    cli.add(1200)
    cli.listen_again()
    observing.team.wait_for(SESSION, cli.lines)
    running.stop()

    observing.team.assert_holds(SESSION, cli.lines)
    assert observing.team.duplicates() == 0
    observing.verify()


def doctor(machine: Machine) -> list[dict[str, Any]]:
    return list(json.loads(machine.exporter("doctor", "--json").stdout)["checks"])
