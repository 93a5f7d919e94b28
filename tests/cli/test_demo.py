"""The sessions of the demo look like real ones and are ours; one plays live, the others fill a fortnight."""

import asyncio
import json
import stat
from collections import Counter
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from exporter.core.events.envelope import Envelope, decode
from exporter.demo.history import HISTORY_DAYS, release, write_history
from exporter.demo.replay import replay
from exporter.sources.files.cli_process import Holders, Liveness

FAST = 2000.0


def recorded() -> list[dict[str, Any]]:
    return [json.loads(line) for line in files("exporter.demo").joinpath("session.jsonl").read_text().splitlines()]


def check_chain(events: list[dict[str, Any]]) -> None:
    ids = [event["id"] for event in events]
    assert len(set(ids)) == len(ids)
    assert [event["parentId"] for event in events] == [None, *ids[:-1]]


def test_the_session_has_the_shape_of_a_real_one() -> None:
    events = recorded()

    check_chain(events)
    assert 60 <= len(events) <= 120
    assert {tuple(event) for event in events} == {
        ("type", "data", "id", "timestamp", "parentId"),
        ("type", "data", "agentId", "id", "timestamp", "parentId"),
    }
    assert [event["timestamp"] for event in events] == sorted(event["timestamp"] for event in events)
    assert (events[0]["type"], events[-1]["type"]) == ("session.start", "session.shutdown")


def test_every_tool_call_ends() -> None:
    def calls(kind: str) -> list[str]:
        return sorted(event["data"]["toolCallId"] for event in recorded() if event["type"] == kind)

    assert calls("tool.execution_start") == calls("tool.execution_complete")


def test_the_session_shows_what_the_page_can_show() -> None:
    kinds = {event["data"]["kind"]["type"] for event in recorded() if event["type"] == "system.notification"}
    text = files("exporter.demo").joinpath("session.jsonl").read_text()

    assert kinds == {"agent_idle", "shell_completed", "instruction_discovered"}
    assert {"session.usage_record", "session.warning", "subagent.completed"} <= {event["type"] for event in recorded()}
    assert "AKIA" in text
    assert "ghp_" in text


def test_each_replay_is_a_new_session_of_now(tmp_path: Path) -> None:
    first, second = (asyncio.run(replay(tmp_path, speed=FAST)) for _ in range(2))

    lines = [(tmp_path / "session-state" / one / "events.jsonl").read_bytes().splitlines() for one in (first, second)]
    ids = [[decoded.id for line in each if isinstance(decoded := decode(line), Envelope)] for each in lines]
    assert first != second
    assert len(ids[0]) == len(ids[1]) == len(recorded())
    assert set(ids[0]) & set(ids[1]) == set()
    check_chain([json.loads(line) for line in lines[0]])
    assert json.loads(lines[0][0])["data"]["sessionId"] == first
    assert json.loads(lines[0][0])["timestamp"] > recorded()[0]["timestamp"]
    assert b"2026-11-18T09:3" not in b"".join(lines[0])


def test_a_replay_keeps_its_files_to_the_user_and_takes_its_lock_away(tmp_path: Path) -> None:
    session_id = asyncio.run(replay(tmp_path, speed=FAST))

    directory = tmp_path / "session-state" / session_id
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {
        "events.jsonl": 0o600,
        "workspace.yaml": 0o600,
    }
    assert f"id: {session_id}" in (directory / "workspace.yaml").read_text()


def test_a_replay_grows_line_by_line_and_stops_where_it_is_cancelled(tmp_path: Path) -> None:
    def written_so_far() -> bytes:
        return b"".join(path.read_bytes() for path in tmp_path.glob("session-state/*/events.jsonl"))

    async def play_a_little() -> bytes:
        task = asyncio.create_task(replay(tmp_path, speed=20.0))
        while not (written := written_so_far()):  # noqa: ASYNC110 - what is waited for is a file
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return written

    written = asyncio.run(play_a_little())

    assert written.endswith(b"\n")
    assert 0 < len(written.splitlines()) < len(recorded())
    assert list(tmp_path.glob("session-state/*/inuse.*")) == []


@pytest.mark.parametrize("speed", [0, -1])
def test_a_speed_that_leads_nowhere_is_refused(tmp_path: Path, speed: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        asyncio.run(replay(tmp_path, speed=speed))


NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


def history(home: Path) -> dict[Path, list[dict[str, Any]]]:
    found = sorted(home.glob("session-state/*/events.jsonl"))
    return {path.parent: [json.loads(line) for line in path.read_text().splitlines()] for path in found}


def test_a_fortnight_holds_what_happens_in_one(tmp_path: Path) -> None:
    write_history(tmp_path, NOW)

    told = history(tmp_path)
    began = [datetime.fromisoformat(events[0]["timestamp"]) for events in told.values()]
    kinds = Counter(event["type"] for events in told.values() for event in events)
    places = {(event["context"]["repository"], event["context"]["branch"]) for event in
              (events[0]["data"] for events in told.values())}  # fmt: skip
    failures = [sum(one["data"].get("success") is False for one in events) for events in told.values()]
    text = "".join(path.read_text() for path in tmp_path.rglob("events.jsonl"))
    assert 18 <= len(told) <= 22
    assert min(began) > NOW - timedelta(days=HISTORY_DAYS)
    assert min(began) < NOW - timedelta(days=HISTORY_DAYS - 1)
    assert len({one[0] for one in places}) >= 4
    assert kinds["session.compaction_complete"] == kinds["session.compaction_start"] == 2
    assert kinds["subagent.completed"] == kinds["subagent.started"] >= 6
    assert kinds["session.shutdown"] == len(told) - 2
    assert max(failures) >= 5
    assert "AKIA" in text


def test_every_session_of_the_fortnight_is_whole(tmp_path: Path) -> None:
    write_history(tmp_path, NOW)

    for directory, events in history(tmp_path).items():
        check_chain(events)
        times = [event["timestamp"] for event in events]
        assert times == sorted(times)
        assert all(isinstance(decode(json.dumps(event).encode()), Envelope) for event in events)
        assert f"id: {directory.name}" in (directory / "workspace.yaml").read_text()
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert datetime.fromtimestamp((directory / "events.jsonl").stat().st_mtime, UTC) <= NOW


def test_the_fortnight_is_written_once(tmp_path: Path) -> None:
    write_history(tmp_path, NOW)
    before = {path: path.read_bytes() for path in tmp_path.rglob("events.jsonl")}

    write_history(tmp_path, NOW + timedelta(days=3))

    assert {path: path.read_bytes() for path in tmp_path.rglob("events.jsonl")} == before


def test_what_waits_ends_with_the_demo_and_what_crashed_stays_so(tmp_path: Path) -> None:
    write_history(tmp_path, NOW)
    locks = [path.parent for path in sorted(tmp_path.rglob("inuse.*.lock"))]
    lives = {Holders().of(directory) for directory in locks}

    release(tmp_path)

    assert len(locks) == 2
    assert Liveness.RUNNING in lives  # and is shown as such, though its process is the exporter's own
    assert [path.name for path in tmp_path.rglob("inuse.*")] == ["inuse.4194303.lock"]
