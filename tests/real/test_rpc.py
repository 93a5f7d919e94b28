"""The RPC source against the real headless server: the journal is the file, whatever happens in between."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from exporter.core.agents.registry import EventOwner
from exporter.sources.remote import Want
from exporter.sources.rpc.session import State
from tests.real import install
from tests.real.cli import Copilot, wait_until
from tests.real.conftest import MakeCopilot
from tests.real.observer import Observer
from tests.real.rpc import Server

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

FILE_ONLY = "session.usage_record"


def recorded(server: Server, session_id: str) -> list[dict[str, Any]]:
    path = server.events(session_id)
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def shared(server: Server, session_id: str) -> list[str]:
    """The ids of the file, without those of the type that the server keeps to itself while it runs."""
    return [event["id"] for event in recorded(server, session_id) if event["type"] != FILE_ONLY]


def assert_is_the_file(observer: Observer, server: Server, session_id: str) -> None:
    """Every event of the file once, in its order; what it misses is of the one type; the same but for more detail."""
    observer.wait_for(session_id, lambda: shared(server, session_id))
    file = {event["id"]: event for event in recorded(server, session_id)}
    journal = observer.lines(session_id)
    ids = [event["id"] for event in journal]
    assert len(ids) == len(set(ids))
    assert set(ids) <= set(file), [event["type"] for event in journal if event["id"] not in file]
    assert ids == [id for id in file if id in set(ids)]
    assert {event["type"] for id, event in file.items() if id not in set(ids)} <= {FILE_ONLY}
    for event in journal:
        assert event["type"] == file[event["id"]]["type"]
        assert event["timestamp"] == file[event["id"]]["timestamp"]


def connecting(server: Server) -> Callable[[], Any]:
    port = server._port()
    return lambda: server.copilot.cage.connect(port)


@pytest.mark.parametrize("push", [False, True], ids=["polled", "pushed"])
def test_the_journal_is_the_file_and_ephemeral_events_are_seen_live(
    push: bool, make_copilot: MakeCopilot, tmp_path: Path
) -> None:
    with Server(make_copilot(install.NEW, "rpc")) as server:
        with Observer(tmp_path / "journals", connecting(server), push=push) as observer:
            wait_until(lambda: observer.source.is_connected, "a connection", 20)
            session_id = server.create()
            for scenario in ("hello", "bash", "sub_nest", "sub_two", "sub_fail", "odd", "reason", "secrets", "hello"):
                server.turn(session_id, scenario)
            observer.wait_live(session_id)
            assert_is_the_file(observer, server, session_id)
            if not push:
                server.close(session_id)
                wait_until(lambda: observer.source.sessions[session_id] is State.COLD, "the end", 20)
                assert_is_the_file(observer, server, session_id)
            types = {event["type"] for event in observer.ephemeral}
            ids = [event["id"] for event in observer.ephemeral]
            source = observer.source
        if push:  # a session that we are attached to ends after we have left
            server.close(session_id)

    assert recorded(server, session_id)[-1]["type"] == "session.shutdown"
    assert {"assistant.message_delta", "assistant.idle", "session.idle"} <= types
    assert len(ids) == len(set(ids))
    assert all(event.get("ephemeral") for event in observer.ephemeral)
    assert (source.protocol, source.version, source.server_requests) == (3, install.NEW, 0)
    assert source.counts.durable == len(observer.lines(session_id))
    assert {place.root for place in observer.places} == {session_id}
    assert {len(place.path) for place in observer.places} == {0, 1, 2}
    assert EventOwner(session_id) in observer.places


def test_a_cli_that_is_too_old_is_said_to_be(make_copilot: MakeCopilot, tmp_path: Path) -> None:
    with (
        Server(make_copilot(install.OLD, "rpc-old")) as server,
        Observer(tmp_path / "journals", connecting(server)) as observer,
    ):
        wait_until(lambda: observer.source.is_connected, "a connection", 20)
        session_id = server.create()
        server.turn(session_id, "hello")
        wait_until(lambda: observer.source.sessions.get(session_id) is State.TOO_OLD, "what it says", 20)


@pytest.mark.parametrize("push", [False, True], ids=["polled", "pushed"])
def test_the_owner_still_decides(push: bool, make_copilot: MakeCopilot, tmp_path: Path) -> None:
    """A permission waits for the owner while we look on; nothing is asked of us, nor answered by us."""
    with (
        Server(make_copilot(install.NEW, "rpc-owner")) as server,
        Observer(tmp_path / "journals", connecting(server), push=push) as observer,
    ):
        wait_until(lambda: observer.source.is_connected, "a connection", 20)
        session_id = str(server.call("session.create", **server._session_options())["sessionId"])
        observer.wait_live(session_id)
        server.send(session_id, "edit")

        def asked(type: str) -> list[dict[str, Any]]:
            return [event for event in [*observer.lines(session_id), *observer.ephemeral] if event["type"] == type]

        for count in (1, 2):
            wait_until(lambda: len(asked("permission.requested")) == count, "a permission to be asked for", 20)  # noqa: B023
            time.sleep(1)  # long enough for anybody who would answer
            assert len(asked("permission.completed")) == count - 1
            request = asked("permission.requested")[-1]["data"]["requestId"]
            server.call(
                "session.permissions.handlePendingPermissionRequest",
                sessionId=session_id,
                requestId=request,
                result={"kind": "approve-once"},
            )
        wait_until(lambda: bool(asked("session.idle")), "the turn to end", 30)

        assert observer.source.server_requests == 0
        done = [event for event in observer.lines(session_id) if event["type"] == "tool.execution_complete"]
        assert [event["data"]["success"] for event in done] == [True, True]
        assert "session.resume" not in [event["type"] for event in recorded(server, session_id)]


def test_it_goes_on_where_it_was_after_being_away(make_copilot: MakeCopilot, tmp_path: Path) -> None:
    with Server(make_copilot(install.NEW, "rpc-away")) as server:
        session_id = server.create()
        for _ in range(3):
            server.turn(session_id, "hello")
            with Observer(tmp_path / "journals", connecting(server)) as observer:
                observer.wait_live(session_id)
                assert_is_the_file(observer, server, session_id)
                live = len(observer.ephemeral)
                server.turn(session_id, "sub_sync")
                assert_is_the_file(observer, server, session_id)

                assert live == 0  # what passed while nobody looked is not told as if it happened now
                assert observer.ephemeral
                assert observer.source.counts.expired == 0


def test_a_server_that_is_killed_and_started_again(make_copilot: MakeCopilot, tmp_path: Path) -> None:
    copilot = make_copilot(install.NEW, "rpc-restart")
    ports = [copilot.cage.free_port()]
    with Observer(tmp_path / "journals", lambda: copilot.cage.connect(ports[-1])) as observer:
        with Server(copilot) as server:
            ports.append(server._port())
            session_id = server.create()
            server.turn(session_id, "bash")
            observer.wait_live(session_id)
            assert_is_the_file(observer, server, session_id)
            server.kill()
        observer.wait_state("cannot be reached")
        with Server(copilot) as server:
            ports.append(server._port())
            wait_until(lambda: observer.source.is_connected, "a connection", 20)
            wait_until(lambda: observer.source.sessions.get(session_id) is State.COLD, "the cold session", 20)
            assert_is_the_file(observer, server, session_id)
            assert server.call("session.list")["sessions"][0]["sessionId"] == session_id
            with pytest.raises(Exception, match="not found"):  # we did not load it
                server.call("session.eventLog.tail", sessionId=session_id)
            server.resume(session_id)
            server.turn(session_id, "hello")
            observer.wait_live(session_id)
            assert_is_the_file(observer, server, session_id)


def test_a_cursor_that_expires(make_copilot: MakeCopilot, tmp_path: Path) -> None:
    """A rewind takes events out of the history: what stays is not taken again, what is new is."""
    with (
        Server(make_copilot(install.NEW, "rpc-rewind")) as server,
        Observer(tmp_path / "journals", connecting(server)) as observer,
    ):
        session_id = server.create()
        for scenario in ("hello", "bash", "hello"):
            server.turn(session_id, scenario)
        observer.wait_live(session_id)
        assert_is_the_file(observer, server, session_id)
        before = observer.ids(session_id)
        messages = [e["id"] for e in recorded(server, session_id) if e["type"] == "user.message"]
        server.rewind(session_id, messages[-1])
        wait_until(lambda: observer.source.counts.expired > 0, "the cursor to expire", 20)
        server.turn(session_id, "sub_sync")
        observer.wait_for(session_id, lambda: shared(server, session_id))
        after = observer.ids(session_id)

        assert after[: len(before)] == before
        assert len(after) == len(set(after))
        assert [id for id in after if id in set(shared(server, session_id))] == shared(server, session_id)


def test_history_in_pages(make_copilot: MakeCopilot, tmp_path: Path) -> None:
    """More events than a page holds, read while it is loaded and, by another, when it is not."""
    with Server(make_copilot(install.NEW, "rpc-pages")) as server:
        session_id = server.create()
        while len(recorded(server, session_id)) < 1100:
            server.turn(session_id, "many")
        for name in ("loaded", "cold"):
            with Observer(tmp_path / name, connecting(server)) as observer:
                wanted = State.LIVE if name == "loaded" else State.COLD
                wait_until(lambda: observer.source.sessions.get(session_id) is wanted, name, 60)  # noqa: B023
                assert_is_the_file(observer, server, session_id)
                if name == "cold":
                    assert observer.ids(session_id) == [event["id"] for event in recorded(server, session_id)]

                assert max(observer.pages) <= 1000 < len(observer.ids(session_id))
            server.close(session_id) if name == "loaded" else None


def test_a_full_journal_stops_reading_and_loses_nothing(make_copilot: MakeCopilot, tmp_path: Path) -> None:
    with (
        Server(make_copilot(install.NEW, "rpc-full")) as server,
        Observer(tmp_path / "journals", connecting(server)) as observer,
    ):
        session_id = server.create()
        server.turn(session_id, "hello")
        observer.wait_live(session_id)
        observer.full = True
        server.turn(session_id, "bash")
        wait_until(lambda: observer.source.sessions[session_id] is State.FULL, "a full journal", 20)
        before = observer.ids(session_id)
        server.turn(session_id, "hello")
        assert observer.ids(session_id) == before
        observer.full = False
        assert_is_the_file(observer, server, session_id)


def test_only_what_is_live_when_a_file_has_the_rest(make_copilot: MakeCopilot, tmp_path: Path) -> None:
    with (
        Server(make_copilot(install.NEW, "rpc-live")) as server,
        Observer(tmp_path / "journals", connecting(server), want=Want.LIVE) as observer,
    ):
        session_id = server.create()
        server.turn(session_id, "hello")
        observer.wait_live(session_id)
        server.turn(session_id, "hello")
        wait_until(lambda: any(e["type"] == "session.idle" for e in observer.ephemeral), "a live event", 20)

        assert observer.lines(session_id) == []


@pytest.mark.parametrize(
    ("token", "said"), [("wrong", "refused the token"), (None, "requires a token"), ("right-token", "following")]
)
def test_a_token_is_asked_for(token: str | None, said: str, make_copilot: MakeCopilot, tmp_path: Path) -> None:
    with (
        guarded_server(make_copilot) as server,
        Observer(tmp_path / "journals", connecting(server), token=token) as observer,
    ):
        observer.wait_state(said)
        observer.token = "right-token"
        observer.wait_state("following")  # a new token is picked up without a restart


class _Guarded(Server):
    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        return super().call(method, **({"token": "right-token"} if method == "connect" else {}), **parameters)


@dataclass(frozen=True, slots=True)
class _WithToken(Copilot):
    def environment(self, user_home: Path) -> dict[str, str]:
        return {**Copilot.environment(self, user_home), "COPILOT_CONNECTION_TOKEN": "right-token"}


def guarded_server(make_copilot: MakeCopilot) -> Server:
    copilot = make_copilot(install.NEW, "rpc-token")
    return _Guarded(_WithToken(copilot.cage, copilot.model_port, copilot.home, copilot.scratch, copilot.version))
