"""`verify --source` compares with the history of the server or host, whatever the journal and the marks say."""

from typing import Any

import pytest

import exporter.daemon.verify_source as verify_module
from config.settings import Otel
from exporter.errors import Exit
from tests.core.ahp.scripted import SESSION_NAME, ScriptedHost
from tests.daemon.peer import Peer
from tests.daemon.station import Exporter, Station, until
from tests.daemon.test_ahp_source import impatience, settings_of, watched
from tests.daemon.test_rpc_source import Listening, cli, ids, line_of
from tests.daemon.test_rpc_source import settings_of as rpc_settings_of
from tests.otel.receiver import Receiver
from tests.sources.ahp.server import serving
from tests.sources.rpc.server import SESSION, Refusal, event

__all__ = ["cli", "impatience"]
pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_module, "_QUIET_SECONDS", 0.1)
    monkeypatch.setattr(verify_module, "_SILENT_SECONDS", 2.0)


def turn(n: int, text: str) -> list[dict[str, Any]]:
    return [event(10 * n, content=text), event(10 * n + 1, type="assistant.message", content=f"answer to {text}")]


async def compared(exporter: Exporter, **fields: Any) -> tuple[list[dict[str, Any]], int]:
    answer = await exporter.ask("verify_source", **fields)
    return answer["sessions"], answer["exit"]


async def delivered(station: Station, cli: Listening, full: Peer, **changes: Any) -> Exporter:
    cli.server.history = cli.server.file = [*turn(1, "one"), *turn(2, "two"), *turn(3, "three")]
    exporter = station.exporter(rpc_settings_of(station, cli, full, **changes))
    await until(lambda: len(full.ids(SESSION)) == 6)
    await exporter.idle()
    return exporter


async def test_a_session_that_was_given_as_the_server_has_it_is_equal(
    station: Station, cli: Listening, full: Peer
) -> None:
    exporter = await delivered(station, cli, full)
    await cli.server.add(event(99, type="session.usage_record"))  # a type that is not always told

    for fields in ({"sessions": [SESSION]}, {"sessions": None}):
        [row], end = await compared(exporter, **fields)

        assert (row["verdict"], row["sink"], row["source"], end) == ("equal", "mission_control", cli.url, Exit.DONE)
        assert (row["missing"], row["extra"], row["different"], row["turns"]) == ([], [], [], [])
        assert row["given"] >= 6


async def test_turns_that_are_missing_double_or_different_are_named(
    station: Station, cli: Listening, full: Peer
) -> None:
    exporter = await delivered(station, cli, full)
    again = [{**one, "id": f"again-{one['id']}"} for one in turn(3, "three")]
    changed = {**turn(1, "one")[1], "data": {"content": "another answer"}}
    # The server has another history all at once, and does not tell it.
    cli.server.history[:] = [turn(1, "one")[0], changed, *again, *turn(4, "four")]

    [row], end = await compared(exporter, sessions=[SESSION])

    assert (row["verdict"], end) == ("different", Exit.FINDINGS)
    assert row["missing"] == ["again-e30", "again-e31", "e40", "e41"]
    assert sorted(row["extra"]) == ids(20, 21, 30, 31)
    assert row["different"] == ids(11)
    assert sorted(row["turns"]) == [
        "turn 1: different",
        "turn 2 of the journal: not in the history",
        "turn 2: missing",
        "turn 3 of the journal: double",
        "turn 3: missing",
    ]


async def test_a_sink_of_records_is_compared_by_its_mark(station: Station, cli: Listening, full: Peer) -> None:
    with Receiver() as receiver:
        endpoint = Otel(endpoint=receiver.url, history_days=36_500, signals=("traces",))
        exporter = await delivered(station, cli, full, otel={"default": endpoint})
        rows, end = await compared(exporter, sessions=[SESSION])
        assert [(row["sink"], row["verdict"]) for row in rows] == [
            ("mission_control", "equal"),
            ("otel:traces", "equal"),
        ]
        cli.server.history += turn(4, "four")
        rows, end = await compared(exporter, sessions=[SESSION])

        assert [row["turns"] for row in rows] == [["turn 4: missing"], ["turn 4: missing"]]
        assert "by the mark" in rows[1]["detail"]
        assert end == Exit.FINDINGS


async def test_a_server_that_is_gone_cannot_be_asked(station: Station, cli: Listening, full: Peer) -> None:
    exporter = await delivered(station, cli, full)
    cli.server.protocol = 99

    [row], end = await compared(exporter, sessions=None)

    assert (row["verdict"], end) == ("not reachable", Exit.PARTIAL)
    assert "protocol 99" in row["detail"]


async def test_a_session_with_a_file_is_not_for_this_comparison(station: Station, cli: Listening, full: Peer) -> None:
    exporter = await delivered(station, cli, full)
    session = station.session("with-file")
    session.append(line_of(event(1)))
    await until(lambda: full.ids("with-file") == ids(1))

    [row], end = await compared(exporter, sessions=["with-file"])
    rows, of_all = await compared(exporter, sessions=None)

    assert (row["verdict"], row["source"], end) == ("not asked", "files", Exit.PARTIAL)
    assert "`exporter verify`" in row["detail"]
    assert ([one["session"] for one in rows], of_all) == ([SESSION], Exit.DONE)


async def test_without_a_daemon_the_command_asks_by_itself(station: Station, cli: Listening, full: Peer) -> None:
    exporter = await delivered(station, cli, full)
    await exporter.stop()
    cli.server.history += turn(4, "four")

    other = Exporter(rpc_settings_of(station, cli, full))
    other.running.daemon.start(deliver=False)
    try:
        [row], end = await compared(other, sessions=None)
    finally:
        await other.stop()

    assert (row["turns"], row["missing"], end) == (["turn 4: missing"], ids(40, 41), Exit.FINDINGS)
    assert len(full.ids(SESSION)) == 6


@pytest.mark.parametrize("version", [1, "0.9.0"], ids=["classic", "chat"])
async def test_an_agent_host_is_asked_too_and_one_that_sleeps_only_with_wake(
    version: str | int, station: Station, full: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = ScriptedHost(version)
    async with serving(host) as server:
        exporter = station.exporter(settings_of(station, full, server))
        await watched(exporter, host)
        server.do("start", "write", "call", "ready", "complete", "write", "end")
        await until(lambda: len(full.ids(SESSION_NAME)) > 5)
        await exporter.idle()

        [row], end = await compared(exporter, sessions=None)

        assert (row["verdict"], row["turns"], end) == ("equal", [], Exit.DONE)
        assert row["given"] == row["history"] == len(full.ids(SESSION_NAME))

        answer, idle = host.answer, [{"resource": host.session, "status": 1, "modifiedAt": 1000}]

        def idling(method: str, params: dict[str, Any]) -> dict[str, Any]:
            return {"result": {"items": idle}} if method == "listSessions" else answer(method, params)

        monkeypatch.setattr(host, "answer", idling)
        asked = [
            (row["verdict"], end)
            for wake in (False, True)
            for named in (None, [SESSION_NAME])
            for [row], end in [await compared(exporter, sessions=named, wake=wake)]
        ]
        assert asked[:2] == [("not asked", Exit.DONE), ("not asked", Exit.PARTIAL)]
        assert asked[2:] == [("equal", Exit.DONE), ("equal", Exit.DONE)]


async def test_a_history_that_a_server_does_not_give_is_no_difference(
    station: Station, cli: Listening, full: Peer
) -> None:
    exporter = await delivered(station, cli, full)

    def refused(_: dict[str, Any]) -> Any:
        raise Refusal(-32603)

    cli.server.loaded = False
    cli.server.hooks["sessions.readPersistedEvents"] = refused

    [row], end = await compared(exporter, sessions=[SESSION])

    assert (row["verdict"], end) == ("not reachable", Exit.PARTIAL)
    assert (row["extra"], row["turns"]) == ([], [])
