"""The AHP source against real VS Code agent hosts, in two dialects, beside Copilot's own log of the same sessions."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from otel.encode.host_logs import log_request
from tests.core.ahp.test_captures import results, root, spawned, starts, text
from tests.real import install
from tests.real.ahp_driver import Driver
from tests.real.ahp_host import CHAT, CLASSIC, AgentHost, host
from tests.real.ahp_observer import AhpObserver, verified
from tests.real.cage import Cage
from tests.real.cli import wait_until
from tests.real.conftest import MakeCopilot
from tests.real.install import InstallError
from tests.real.rpc import Server

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]
BOTH = pytest.mark.parametrize("version", [CLASSIC, CHAT], ids=["classic", "chat"])
SCENARIOS = ("hello", "bash", "badtool", "reason", "sub_sync")

MakeHost = Callable[[str], AgentHost]


@pytest.fixture(scope="module")
def host_of(cage: Cage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeHost]:
    """The host of a version, started when it is first asked for."""
    made: list[AgentHost] = []
    try:
        for version in (CLASSIC, CHAT):
            host(version)
    except InstallError as error:
        pytest.skip(f"NO REAL AGENT HOSTS: {error}")

    @cache
    def start(version: str) -> AgentHost:
        made.append(AgentHost(cage, version, tmp_path_factory.mktemp(f"host-{version}")))
        made[-1].start()
        return made[-1]

    yield start
    for each in made:
        each.__exit__()


def name_of(uri: str) -> str:
    return uri.rpartition("/")[2]


def log_of(host: AgentHost, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Copilot's own log of the session in which these prompts were given, once it is written to its end."""
    prompts = [data["content"] for data in root(events, "user.message")]
    found: list[dict[str, Any]] = []

    def is_written() -> bool:
        for path in (host.home / ".copilot/session-state").glob("*/events.jsonl"):
            log = [json.loads(line) for line in path.read_bytes().splitlines()]
            if [data["content"] for data in root(log, "user.message")] == prompts:
                found[:] = log
                last = [e for e in log if e["type"] in ("assistant.message", "assistant.turn_end", "user.message")][-1]
                return last["type"] == "assistant.turn_end" and not root(log, "assistant.message")[-1]["toolRequests"]
        return False

    wait_until(is_written, f"Copilot's log of {prompts}", 20)
    return found


def assert_is_the_log(events: list[dict[str, Any]], log: list[dict[str, Any]]) -> None:
    assert text(events) == text(log)
    assert text(events, "assistant.reasoning") in (text(log, "assistant.reasoning"), _thought(log))
    assert starts(events) == starts(log)
    assert results(events) == results(log)
    assert spawned(events) == spawned(log)
    ids = [event["id"] for event in events]
    assert len(ids) == len(set(ids))
    assert not [event for event in events if event["type"] == "exporter.gap"]


def assert_is_the_hosts_history(host: AgentHost, observer: AhpObserver, session: str) -> None:
    """`exporter verify --source` finds nothing missing, double or different, and nothing to add."""
    events = observer.events(session)
    status, rows = verified(host.cage, host.port, observer.root, session)

    assert [(row["verdict"], row["history"], row["given"]) for row in rows] == [("equal", len(events), len(events))]
    assert status == 0


def assert_cannot_be_asked(status: int, rows: list[dict[str, Any]], why: str) -> None:
    """`exporter verify --source` says that a history cannot be compared, and why."""
    assert (status, [row["verdict"] for row in rows]) == (4, ["not reachable"])
    assert why in rows[0]["detail"]


def _thought(log: list[dict[str, Any]]) -> str:
    return "".join(data.get("reasoningText") or "" for data in root(log, "assistant.message"))


@BOTH
def test_a_session_that_is_watched_is_as_in_copilots_own_log(version: str, host_of: MakeHost, tmp_path: Path) -> None:
    host = host_of(version)
    with AhpObserver(tmp_path / "state", host.url, host.connect) as observer, Driver(host) as driver:
        observer.wait_state("following")
        session = name_of(driver.create())
        for scenario in SCENARIOS:
            assert driver.turn(scenario) == "turnComplete"
        observer.wait_turns(session, len(SCENARIOS))
        observer.wait_for(session, "subagent.completed", 1)
        events = observer.events(session)

        assert_is_the_log(events, log_of(host, events))
        (child,) = {event["agentId"] for event in events if event.get("agentId")}
        assert {observer.places[e["id"]].path for e in events if e.get("agentId")} == {(child,)}
        assert {observer.places[e["id"]].root for e in events} == {session}
        said = [e["data"]["content"] for e in events if e["type"] == "assistant.message" and e.get("agentId")]
        assert said == ["The agent has spoken."]
        assert "assistant.message_delta" in {event["type"] for event in observer.ephemeral}
        assert observer.source.host.invalid_frames == 0
        assert bool(observer.telemetry) == (version == CHAT)
        for method, frame in observer.telemetry:
            assert method == "otlp/exportLogs"
            logs = ExportLogsServiceRequest.FromString(log_request(json.loads(frame)["params"]["payload"]))
            assert all(one.body.string_value for each in logs.resource_logs for one in each.scope_logs[0].log_records)
    assert_is_the_hosts_history(host, observer, session)


@BOTH
def test_a_session_that_was_there_before_us_is_the_same(version: str, host_of: MakeHost, tmp_path: Path) -> None:
    host = host_of(version)
    with Driver(host) as driver:
        session = name_of(driver.create())
        for scenario in ("bash", "sub_sync", "hello"):
            driver.turn(scenario)
        with AhpObserver(tmp_path / "state", host.url, host.connect) as observer:
            observer.wait_turns(session, 3)
            observer.wait_for(session, "subagent.completed", 1)
            events = observer.events(session)

    assert_is_the_log(events, log_of(host, events))
    assert_is_the_hosts_history(host, observer, session)


@BOTH
def test_the_connection_is_cut_again_and_again(version: str, host_of: MakeHost, tmp_path: Path) -> None:
    host = host_of(version)
    with AhpObserver(tmp_path / "state", host.url, host.connect) as observer, Driver(host) as driver:
        observer.wait_state("following")
        session = name_of(driver.create())
        for scenario in ("bash", "sub_sync", "hello", "badtool"):
            observer.drop()
            driver.turn(scenario)
        observer.wait_turns(session, 4)
        observer.wait_for(session, "subagent.completed", 1)
        events = observer.events(session)

        assert_is_the_log(events, log_of(host, events))
        assert observer.source.connections >= 3
    assert_is_the_hosts_history(host, observer, session)


@BOTH
def test_more_happens_than_the_host_can_replay(version: str, host_of: MakeHost, tmp_path: Path) -> None:
    """It keeps a thousand messages, so that it answers with states; what passed meanwhile is in them."""
    host = host_of(version)
    with AhpObserver(tmp_path / "state", host.url, host.connect) as observer, Driver(host) as driver:
        observer.wait_state("following")
        session = name_of(driver.create())
        driver.turn("hello")
        observer.wait_turns(session, 1)
        observer.pause()
        before, turns = driver.seen, 1
        while driver.seen - before < 1200:
            driver.turn("many")
            turns += 1
        observer.resume()
        driver.turn("hello")
        observer.wait_turns(session, turns + 1)
        events = observer.events(session)

        assert_is_the_log(events, log_of(host, events))
    assert_is_the_hosts_history(host, observer, session)


@BOTH
def test_the_host_is_restarted(version: str, cage: Cage, host_of: MakeHost, tmp_path: Path) -> None:
    """Ids of turns and parts are others afterwards, and the host answers the old marker with nothing at all."""
    host_of(version)
    with AgentHost(cage, version, tmp_path / "home") as host:
        with AhpObserver(tmp_path / "state", host.url, host.connect) as observer:
            with Driver(host) as driver:
                uri = driver.create()
                session = name_of(uri)
                for scenario in ("bash", "sub_sync"):
                    driver.turn(scenario)
                observer.wait_turns(session, 2)
                observer.wait_for(session, "subagent.completed", 1)
            before = observer.events(session)
            log_of(host, before)  # a host that dies before its history is written has another one afterwards
            host.restart()
            with Driver(host) as driver:
                driver.open(uri)
                assert driver.turn("hello") == "turnComplete"
                observer.wait_turns(session, 3)
            events = observer.events(session)

            assert events[: len(before)] == before
            assert_is_the_log(events, log_of(host, events))
            assert observer.source.host.restarts >= 1
        assert_is_the_hosts_history(host, observer, session)


def test_a_session_that_has_a_file_gives_passing_events_only(host_of: MakeHost, tmp_path: Path) -> None:
    host = host_of(CHAT)
    with Driver(host) as driver:
        driver.create()
        driver.turn("hello")
        sessions = frozenset(path.name for path in (host.home / ".copilot/session-state").iterdir())
        with AhpObserver(tmp_path / "state", host.url, host.connect, elsewhere=sessions) as observer:
            observer.wait_state("following")
            wait_until(
                lambda: any(one.name in sessions for one in observer.source.host.subscriptions.sessions),
                "the CLI's own name",
                20,
            )
            driver.turn("bash")
            wait_until(lambda: any(e["type"] == "session.idle" for e in observer.ephemeral), "a passing event", 20)

            journals = (observer.root / "journals").glob("*/events.jsonl")
            assert [path.parent.name for path in journals if path.stat().st_size] == []
    for one in sessions:
        status, rows = verified(host.cage, host.port, observer.root, one, files=host.home / ".copilot")
        assert (status, [row["verdict"] for row in rows]) == (4, ["not asked"])
        assert "read from its file" in rows[0]["detail"]


def test_the_clis_own_host_is_followed_up_to_its_refusal(make_copilot: MakeCopilot, cage: Cage, tmp_path: Path) -> None:
    """It speaks 1.0, lists its sessions, and shows none without a sign-in of its own: that is explained."""
    with Server(make_copilot(install.NEW, "ahp-own-host")) as server:
        session, name, port = server.create(), str(uuid.uuid4()), cage.free_port()
        server.turn(session, "hello")
        server.call("host.start", hostId=name, localServer={"hostname": "127.0.0.1", "port": port, "token": "made-up"})
        server.call("host.publishSession", hostId=name, sessionId=session)
        url = f"ws://127.0.0.1:{port}/?tkn=made-up"
        with AhpObserver(tmp_path / "right", url, lambda: cage.connect(port)) as observer:
            wait_until(lambda: bool(observer.source.host.subscriptions.problems), "a refusal", 20)
            seen, events = observer.source.host, observer.events(session)
            root = observer.root
        with AhpObserver(tmp_path / "wrong", url + "-not", lambda: cage.connect(port)) as observer:
            observer.wait_state("refused the token (HTTP 401)")
        cannot = verified(cage, port, root, session, token="made-up")

    assert seen.dialect is not None
    assert (seen.version, seen.dialect.name, events) == ("1.0.0", "1.x", [])
    assert "rpc://" in seen.subscriptions.problems[session]
    assert_cannot_be_asked(*cannot, "before a sign-in")


@BOTH
def test_a_wrong_token_is_told_and_not_shown(version: str, host_of: MakeHost, tmp_path: Path) -> None:
    host = host_of(version)
    with AhpObserver(tmp_path / "state", host.url + "-not", host.connect) as observer:
        observer.wait_state("refused the token (HTTP 403)")

        assert "token-of-the-host" not in repr(vars(observer.source))


def test_the_history_of_a_host_that_refuses_the_token_cannot_be_asked(host_of: MakeHost, tmp_path: Path) -> None:
    host = host_of(CHAT)
    answer = verified(host.cage, host.port, tmp_path / "state", str(uuid.uuid4()), token="wrong")

    assert_cannot_be_asked(*answer, "refused the token (HTTP 403)")
