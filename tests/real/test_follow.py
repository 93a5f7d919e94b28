"""`exporter run` follows the real CLI: the receiver ends with exactly the durable events of every file."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tests.real import install
from tests.real.cli import Interruption, Run, wait_until
from tests.real.conftest import PLAYED, MakeCopilot
from tests.real.rpc import Server
from tests.real.scripts import SECRETS
from tests.real.station import Line, Station, fingerprint

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

Plays = dict[tuple[str, str], Future[Run]]
StationOf = Callable[[str], Station]
VERSIONS = [install.NEW, install.OLD]

# What shows that a scenario was really played: a type, or a piece of a line, that its log holds.
TELLING = {
    "hello": b"Good day.",
    "bash": b'"tool.execution_complete"',
    "secrets": SECRETS["github"].encode(),
    "slow": b"tick 4",
    "bgshell": b'"shell_completed"',
    "detach": b'"detached"',
    "bgboth": b'"shell_detached_completed"',
    "sub_sync": b'"subagent.completed"',
    "sub_bg": b'"subagent.completed"',
    "sub_two": b'"subagent.completed"',
    "sub_fail": b'"session.error"',
    "sub_nest": b'"inner"',
    "instr": b"entry.py",
    "edit": b"list.txt",
    "err500": b'"session.error"',
    "badtool": b"tool_that_is_not",
    "report": b"Looking around",
    "extsend": b"An extension",
    "big": b"y" * 70_000,
    "many": b"number 39",
    "reason": b"If it were not",
    "odd": "😀".encode(),
}


@pytest.mark.parametrize(("version", "scenario"), PLAYED)
def test_every_scenario_arrives_whole(version: str, scenario: str, plays: Plays, station_of: StationOf) -> None:
    run = plays[version, scenario].result()
    station = station_of(version)
    arrived = station.arrived(run.session_id)

    recorded = station.recorded(run.session_id)
    assert TELLING[scenario] in run.events.read_bytes()
    assert [line.event_id for line in arrived] == [line.event_id for line in recorded]
    assert run.return_code == (1 if scenario == "err500" else 0)
    if scenario != "secrets":
        assert arrived == recorded


@pytest.mark.parametrize("version", VERSIONS)
def test_secrets_stay_here_and_all_else_arrives(version: str, plays: Plays, station_of: StationOf) -> None:
    run = plays[version, "secrets"].result()
    station = station_of(version)
    arrived = station.arrived(run.session_id)
    secrets = [secret.encode() for secret in SECRETS.values()]

    delivered = b"\n".join(line.data for line in arrived)
    assert [name for name, secret in SECRETS.items() if secret.encode() in delivered] == []
    clean = [line for line in station.recorded(run.session_id) if not any(secret in line.data for secret in secrets)]
    assert [line for line in clean if line not in arrived] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_goes_on_after_its_shutdown(version: str, plays: Plays, station_of: StationOf) -> None:
    run = plays[version, "hello"].result()
    station = station_of(version)
    before = station.arrived(run.session_id)
    station.copilot.play("bash", resume=run.session_id)

    arrived = station.arrived(run.session_id)
    assert arrived == station.recorded(run.session_id)
    assert arrived[: len(before)] == before
    assert b'"session.resume"' in arrived[len(before)].data


@pytest.mark.parametrize("version", VERSIONS)
def test_a_cli_killed_in_mid_tool_is_followed_into_its_next_life(version: str, station_of: StationOf) -> None:
    station = station_of(version)
    killed = station.copilot.play("slow", interruption=Interruption(b'"tool.execution_start"'))
    before = station.arrived(killed.session_id)
    station.copilot.play("hello", resume=killed.session_id)

    arrived = station.arrived(killed.session_id)
    assert killed.return_code == -signal.SIGKILL
    assert b'"session.shutdown"' not in b"".join(line.data for line in before)
    assert arrived == station.recorded(killed.session_id)
    assert len(arrived) > len(before)


def test_a_terminated_session_arrives_with_its_shutdown(station_of: StationOf) -> None:
    station = station_of(install.NEW)
    ended = station.copilot.play("slow", interruption=Interruption(b'"tool.execution_start"', signal.SIGTERM))

    arrived = station.arrived(ended.session_id)
    assert arrived == station.recorded(ended.session_id)
    assert b'"session.shutdown"' in arrived[-1].data


def test_an_exporter_killed_while_the_cli_writes_loses_nothing(make_copilot: MakeCopilot, tmp_path: Path) -> None:
    station = Station(make_copilot(install.NEW, "exporter-killed"), tmp_path / "station")
    with closing(station), ThreadPoolExecutor(1) as pool:
        play = pool.submit(station.copilot.play, "many")
        for count in (1, 30, 60, 90):
            _wait_stored(station, count)
            station.kill_and_follow_again()
        run = play.result()

        assert station.arrived(run.session_id) == station.recorded(run.session_id)
        assert run.return_code == 0


def test_a_session_with_the_responses_api_arrives(station_of: StationOf) -> None:
    station = station_of(install.NEW)
    with Server(station.copilot, wire_api="responses") as server:
        session_id = server.create()
        server.turn(session_id, "bash")
        server.close(session_id)

    arrived = station.arrived(session_id)
    assert arrived == station.recorded(session_id)
    assert any(b"It ended with 3." in line.data for line in arrived)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_truncate_removed_is_hidden(version: str, station_of: StationOf) -> None:
    station = station_of(version)
    with Server(station.copilot) as server:
        session_id = server.create()
        server.turn(session_id, "hello")
        server.turn(session_id, "bash")
        wait_until(lambda: len(_user_messages(server.events(session_id))) == 2, "the second turn in the log", 10)
        before = station.arrived(session_id)
        server.truncate(session_id, _user_messages(server.events(session_id))[1])
        after_truncate = station.arrived(session_id)
        _assert_rewound(before, after_truncate, station.recorded(session_id))
        server.turn(session_id, "hello")
        server.close(session_id)

    arrived = station.arrived(session_id)
    _assert_rewound(before, arrived, station.recorded(session_id))
    assert len(arrived) > len(after_truncate)


def test_what_a_rewind_removed_is_hidden(station_of: StationOf) -> None:
    station = station_of(install.NEW)
    with Server(station.copilot) as server:
        session_id = server.create()
        server.turn(session_id, "bash")
        server.turn(session_id, "hello")
        before = station.arrived(session_id)
        server.rewind(session_id, _user_messages(server.events(session_id))[1])
        server.close(session_id)

    _assert_rewound(before, station.arrived(session_id), station.recorded(session_id))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_fork_repeats_event_ids_and_both_sessions_are_whole(version: str, station_of: StationOf) -> None:
    station = station_of(version)
    with Server(station.copilot) as server:
        original = server.create()
        server.turn(original, "bash")
        copy = server.fork(original)
        server.turn(original, "hello")
        server.close(original)

    first, second = station.arrived(original), station.arrived(copy)
    assert first == station.recorded(original)
    assert second == station.recorded(copy)
    assert {line.event_id for line in first} & {line.event_id for line in second}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_compaction_arrives(version: str, station_of: StationOf) -> None:
    station = station_of(version)
    with Server(station.copilot) as server:
        session_id = server.create()
        server.turn(session_id, "bash")
        server.turn(session_id, "hello")
        server.compact(session_id)
        log = server.events(session_id)
        wait_until(lambda: b'"session.compaction_complete"' in log.read_bytes(), "the compaction in the log", 20)
        server.close(session_id)

    arrived = station.arrived(session_id)
    assert arrived == station.recorded(session_id)
    types = {json.loads(line.data)["type"] for line in arrived}
    assert "session.compaction_complete" in types
    if version == install.NEW:
        # Types that are in no schema, and that carry no `ephemeral`.
        assert {"model.messages_snapshot", "model.response"} <= types


@pytest.mark.parametrize("version", VERSIONS)
def test_verify_proves_that_all_sessions_are_equal(version: str, plays: Plays, station_of: StationOf) -> None:
    station = _station_at_rest(version, plays, station_of)
    verified = station.command("verify", "--all", "--json")

    assert verified.returncode == 0, verified.stdout.decode()
    assert station.receiver.session_ids() == station.session_ids()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_fresh_exporter_changes_nothing_here_and_nothing_there(
    version: str, plays: Plays, station_of: StationOf, tmp_path: Path
) -> None:
    station = _station_at_rest(version, plays, station_of)
    here = fingerprint(station.copilot.home)
    there = {session_id: station.receiver.events(session_id) for session_id in station.session_ids()}
    again = station.command("run", "--until-idle", state=tmp_path / "state")

    assert again.returncode == 0, again.stdout.decode()
    assert fingerprint(station.copilot.home) == here
    assert {session_id: station.receiver.events(session_id) for session_id in station.session_ids()} == there


def _assert_rewound(before: list[Line], arrived: list[Line], recorded: list[Line]) -> None:
    """Exactly what the file holds now, and less than there was before.

    A rewind writes the lines that stay anew: 1.0.102 makes `0.0` to `0`, 1.0.48 puts the keys in another order. What
    had been delivered of them stays as it was.
    """
    ids = [line.event_id for line in arrived]
    assert ids == [line.event_id for line in recorded]
    assert [json.loads(line.data) for line in arrived] == [json.loads(line.data) for line in recorded]
    assert [line for line in arrived if line not in before and line not in recorded] == []
    assert {line.event_id for line in before} - set(ids)


def _station_at_rest(version: str, plays: Plays, station_of: StationOf) -> Station:
    for (played_version, _), play in plays.items():
        if played_version == version:
            play.result()
    station = station_of(version)
    for session_id in station.session_ids():
        station.arrived(session_id)
    return station


def _wait_stored(station: Station, count: int) -> None:
    def stored() -> bool:
        receiver = station.receiver
        return sum(len(receiver.event_ids(session_id)) for session_id in receiver.session_ids()) >= count

    wait_until(stored, f"{count} stored events", 60)


def _user_messages(log: Path) -> list[str]:
    events = [json.loads(line) for line in log.read_bytes().splitlines()]
    return [event["id"] for event in events if event["type"] == "user.message"]
