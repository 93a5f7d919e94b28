"""The commands end to end: a session on disk, the embedded Mission Control, the real program."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from exporter.demo.replay import replay
from exporter.errors import Exit
from exporter.missioncontrol.ingest import write_jobs
from exporter.missioncontrol.store.sqlite.store import SqliteStore
from tests.cli.program import command, exporter, up
from tests.cli.test_terminal import on_terminal

NOTHING_AT_ALL = b'{"type":"session.info","data":{}}\n'

pytestmark = [pytest.mark.usefixtures("compiled"), pytest.mark.slow]


@pytest.fixture
def session_id(own_home: Path) -> str:
    """The demo session, recorded below the test's own `~/.copilot`."""
    return asyncio.run(replay(own_home / ".copilot", speed=10_000.0))


def events_file(own_home: Path, session_id: str) -> Path:
    return own_home / ".copilot" / "session-state" / session_id / "events.jsonl"


def answer_of(*arguments: str, code: Exit = Exit.DONE) -> dict[str, Any]:
    answer = exporter(*arguments, "--json")
    assert answer.returncode == code, answer.stdout + answer.stderr
    document: dict[str, Any] = json.loads(answer.stdout)
    return document


def test_backfill_delivers_and_verify_proves_it(session_id: str) -> None:
    would = answer_of("backfill", "--all", "--dry-run")["sessions"]
    first = answer_of("backfill", "--all")["sessions"]
    second = answer_of("backfill", "--session", session_id[:6])["sessions"]
    compared = answer_of("verify", "--all")["sessions"]

    assert [(row["session"], row["sink"]) for row in first] == [(session_id, "local")]
    assert would[0]["events"] == first[0]["events"] > 0
    assert would[0]["masked"] == first[0]["masked"] >= 2
    assert second[0]["events"] == 0
    assert [(row["equal"], row["delivered"], row["receiver"]) for row in compared] == [
        (True, first[0]["events"], first[0]["events"])
    ]


@pytest.mark.parametrize("line", ["run --until-idle", "backfill --all", "verify --all"])
def test_a_variable_of_a_mistyped_table_is_warned_about(session_id: str, line: str) -> None:
    answer = exporter(*line.split(), EXPORTER_MISION_CONTROL__URL="https://mc.example.com")

    said = "EXPORTER_MISION_CONTROL__URL is not a setting; did you mean EXPORTER_MISSION_CONTROL__URL?"
    assert f"warning: {said}\n" in answer.stderr


def test_backfill_for_people_ends_with_a_sum(session_id: str) -> None:
    answer = exporter("backfill", "--session", session_id)

    assert answer.returncode == Exit.DONE
    assert "delivered, " in answer.stdout.splitlines()[-1]
    assert session_id in answer.stdout


def test_run_until_idle_delivers_everything(session_id: str) -> None:
    assert exporter("run", "--until-idle").returncode == Exit.DONE

    [sink] = answer_of("status")["sinks"]
    assert (sink["name"], sink["lag_events"], sink["lag_bytes"]) == ("local", 0, 0)
    assert answer_of("backfill", "--all")["sessions"][0]["events"] == 0


def test_status_without_a_daemon_is_an_answer(session_id: str) -> None:
    status = answer_of("status")

    assert status["daemon"]["running"] is False
    assert [source["sessions"] for source in status["sources"]] == [1]
    assert "not running" in exporter("status").stdout


def test_sessions_are_listed_shown_and_tailed(own_home: Path, session_id: str) -> None:
    [listed] = answer_of("sessions", "list")["sessions"]
    shown = answer_of("sessions", "show", session_id[:9])
    tailed = exporter("sessions", "tail", session_id[:9], "--json").stdout.splitlines()

    recorded = [json.loads(line) for line in events_file(own_home, session_id).read_bytes().splitlines()]
    assert listed["id"] == shown["id"] == session_id
    assert listed["state"] == "ended"
    assert [json.loads(line)["id"] for line in tailed] == [event["id"] for event in recorded]
    assert answer_of("sessions", "list", "--state", "crashed")["sessions"] == []


def test_no_session_can_steer_the_terminal_through_json(own_home: Path, session_id: str) -> None:
    content = "\x9b2J \u202e\u2066 \x7f é"
    line = {"type": "user.message", "id": "steers", "parentId": None, "data": {"content": content}}
    with events_file(own_home, session_id).open("a", encoding="utf-8") as file:
        file.write(json.dumps({**line, "timestamp": "2026-11-19T12:00:00Z"}, ensure_ascii=False) + "\n")

    shown = exporter("sessions", "tail", session_id, "--json").stdout.splitlines()[-1]

    assert json.loads(shown)["data"]["content"] == content
    assert not set(content) & set(shown) - set(" 2Jé")
    assert "é" in shown


def test_tail_masks_secrets_for_people_and_for_programs(session_id: str) -> None:
    shown = exporter("sessions", "tail", session_id).stdout + exporter("sessions", "tail", session_id, "--json").stdout

    assert "tool.execution_complete" in shown
    assert "AKIA" not in shown
    assert "ghp_" not in shown


@pytest.mark.parametrize(
    "line", ["sessions show ffff", "sessions tail ffff", "backfill --session ffff", "verify --session ffff"]
)
def test_an_id_nothing_begins_with_ends_with_2(session_id: str, line: str) -> None:
    unknown = "no" + session_id[:4]

    answer = exporter(*line.replace("ffff", unknown).split())

    assert answer.returncode == Exit.USAGE
    assert "exporter sessions list" in answer.stderr


@pytest.mark.parametrize("line", ["--all --source --repair", "--all --wake", "--source"])
def test_what_verify_cannot_do_at_once_ends_with_2(session_id: str, line: str) -> None:
    assert exporter("verify", *line.split()).returncode == Exit.USAGE


def test_verify_with_the_source_says_of_session_files_that_they_have_none(session_id: str) -> None:
    everything = exporter("verify", "--all", "--source")
    one = exporter("verify", "--session", session_id, "--source")

    assert (everything.returncode, one.returncode) == (Exit.PARTIAL, Exit.PARTIAL)
    assert "`exporter verify` compares session files" in everything.stdout
    assert "this session is read from its file" in one.stdout


def test_a_sink_that_is_not_configured_ends_with_2(session_id: str) -> None:
    answer = exporter("backfill", "--all", "--sink", "nowhere")

    assert answer.returncode == Exit.USAGE
    assert "nowhere" in answer.stderr


def test_what_cannot_be_sent_is_listed_shown_and_dropped(own_home: Path, session_id: str) -> None:
    with events_file(own_home, session_id).open("ab") as file:
        file.write(NOTHING_AT_ALL)

    delivered = answer_of("backfill", "--all", code=Exit.PARTIAL)
    [entry] = answer_of("quarantine", "list")["quarantined"]
    shown = answer_of("quarantine", "show", str(entry["n"]))
    dropped = answer_of("quarantine", "drop", str(entry["n"]))

    assert delivered["exit"] == Exit.PARTIAL
    assert entry["session"] == shown["session"] == session_id
    assert entry["size"] in (len(NOTHING_AT_ALL), len(NOTHING_AT_ALL) - 1)
    assert dropped["done"] == [entry["n"]]
    assert answer_of("quarantine", "list")["quarantined"] == []


def test_of_a_long_event_in_quarantine_a_terminal_gets_the_beginning(own_home: Path, session_id: str) -> None:
    with events_file(own_home, session_id).open("ab") as file:
        file.write(b'{"type":"assistant.message","data":{"content":"' + b"word " * 20_000 + b'"}}\n')
    exporter("backfill", "--all")

    shown = on_terminal(command("quarantine", "show", "1"))
    whole = [on_terminal(command("quarantine", "show", "-v", "1")), exporter("quarantine", "show", "1").stdout]

    assert 3_000 < len(shown) < 6_000
    assert "use -v or a pipe to show all" in shown
    assert all(one.count("word ") == 20_000 and "use -v or a pipe" not in one for one in whole)


def test_a_number_that_is_not_in_quarantine_ends_with_2(session_id: str) -> None:
    assert answer_of("quarantine", "show", "99", code=Exit.USAGE)["error"]["kind"] == "usage"


def test_doctor_finds_nothing_wrong_here(session_id: str) -> None:
    checks = answer_of("doctor")["checks"]

    assert checks
    assert {check["verdict"] for check in checks} <= {"ok", "note", "warning"}
    assert all(set(check) >= {"name", "verdict", "detail", "remedy"} for check in checks)


def test_doctor_reports_a_wrong_setting_as_a_check() -> None:
    answer = exporter("doctor", "--json", EXPORTER_HISTORY_DAYS="many")

    [check] = json.loads(answer.stdout)["checks"]
    assert answer.returncode == Exit.CONFIGURATION
    assert (check["name"], check["verdict"]) == ("configuration", "failed")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_says_where_its_page_is_and_stops_when_told(session_id: str, number: signal.Signals) -> None:
    with up(stop_with=number) as (program, ready):
        status = answer_of("status")

    assert ready["url"].startswith("http://127.0.0.1:")
    assert ready["sessions"] == 1
    assert status["daemon"]["running"] is True
    assert program.returncode == Exit.DONE


def test_up_takes_any_port_when_told_to() -> None:
    with up("--port", "0") as (_, one):
        pass

    assert int(one["url"].rstrip("/").rpartition(":")[2]) > 0


def test_up_beside_an_exporter_shows_its_page(session_id: str) -> None:
    with up() as (_, ready):
        attached = answer_of("up", "--no-open")["ready"]
        second_run = exporter("run")

    assert attached["url"] == ready["url"]
    assert attached["attached"] is True
    told = ("sessions", "events", "bytes", "masked", "days", "leaves")
    assert {name: attached[name] for name in told} == {name: ready[name] for name in told}
    assert attached["sessions"] == 1
    assert second_run.returncode == Exit.LOCKED


def test_the_demo_leaves_the_users_own_directory_alone(own_home: Path) -> None:
    with up("--demo") as (program, ready):
        pass

    assert ready["demo"] is True
    assert ready["sessions"] >= 19
    assert not (own_home / ".copilot").exists()
    assert program.returncode == Exit.DONE


def test_an_end_that_is_not_the_whole_thing_is_said_in_words(session_id: str) -> None:
    nobody = {"EXPORTER_MISSION_CONTROL__URL": "http://127.0.0.1:9/agents", "EXPORTER_GIVE_UP_SECONDS": "0.5"}

    answer = exporter("backfill", "--all", **nobody)

    assert answer.returncode == Exit.UNREACHABLE
    assert "mission_control" in answer.stdout
    assert "exit 6: a sink cannot be reached; the data is kept" in answer.stderr


def test_an_administrator_makes_tokens_and_restores_a_session(tmp_path: Path) -> None:
    store, now = tmp_path / "mc.db", "2026-11-18T10:00:00.000Z"
    with SqliteStore(store) as opened:
        opened.do(lambda database: write_jobs.register(database, "gone", "gone", now))
        opened.do(lambda database: write_jobs.register(database, "here", "here", now))
        opened.do(lambda database: write_jobs.forget_session(database, "gone", now))
    place = ("--store", str(store))
    token, restore = ("mission-control", "token"), ("mission-control", "restore")

    both = exporter(*token, "create", "anna", "--read-only", "--upload-only", *place)
    made = answer_of(*token, "create", "anna", "--read-only", *place)
    listed = exporter(*token, "list", *place)
    refused = [exporter(*restore, id, *place) for id in ("here", "never")]
    restored = answer_of(*restore, "gone", *place)
    again = exporter(*restore, "gone", *place)

    assert (both.returncode, made["scope"], "read only" in listed.stdout) == (Exit.USAGE, "read", True)
    assert [answer.returncode for answer in refused] == [Exit.USAGE, Exit.USAGE]
    assert ["not deleted" in answer.stderr for answer in (*refused, again)] == [True, False, True]
    assert restored == {"restored": "gone"}
