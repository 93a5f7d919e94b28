"""The CLI's own uploader, pointed at our receiver: its durable events are stored once, whatever it sends again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real import install
from tests.real.account import Account
from tests.real.cage import Cage
from tests.real.cli import wait_until
from tests.real.conftest import MakeCopilot
from tests.real.rpc import Server
from tests.real.station import Line, Receiver, durable_events

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

UPLOAD_SECONDS_MAX = 30
VERSIONS = [install.NEW, install.OLD]


@pytest.fixture
def receiver(cage: Cage, tmp_path: Path) -> Iterator[Receiver]:
    made = Receiver(cage, tmp_path / "receiver")
    yield made
    made.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_whole_session_is_stored_once(
    version: str, make_copilot: MakeCopilot, account: Account, receiver: Receiver
) -> None:
    copilot = make_copilot(version, "uploads")
    with Server(copilot, receiver.upload(account.port)) as server:
        session_id = server.create()
        server.enable_upload(session_id)
        server.turn(session_id, "bash")
        server.turn(session_id, "hello")
        _wait_stored(server, session_id, receiver)
        server.close(session_id)
        log = server.events(session_id)
        if version == install.NEW:
            _wait_stored(server, session_id, receiver)

    _assert_stored_once(receiver.events(_only_session(receiver)), durable_events(log))


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_killed_cli_sends_again_is_stored_once(
    version: str, make_copilot: MakeCopilot, account: Account, receiver: Receiver
) -> None:
    copilot = make_copilot(version, "uploads-killed")
    upload = receiver.upload(account.port)
    with Server(copilot, upload) as server:
        session_id = server.create()
        server.enable_upload(session_id)
        server.turn(session_id, "bash")
        _wait_stored(server, session_id, receiver)
        server.kill()
        assert "mc_last_event_id" not in server.metadata(session_id)
    before = receiver.events(_only_session(receiver))
    with Server(copilot, upload) as server:
        server.resume(session_id)
        server.enable_upload(session_id)
        server.turn(session_id, "hello")
        _wait_stored(server, session_id, receiver)
        server.close(session_id)
        log = server.events(session_id)
        if version == install.NEW:
            _wait_stored(server, session_id, receiver)

    arrived = receiver.events(_only_session(receiver))
    _assert_stored_once(arrived, durable_events(log))
    assert arrived[: len(before)] == before


def _only_session(receiver: Receiver) -> str:
    (session_id,) = receiver.session_ids()
    return session_id


def _wait_stored(server: Server, session_id: str, receiver: Receiver) -> None:
    def stored() -> bool:
        recorded = {line.event_id for line in durable_events(server.events(session_id))}
        known = receiver.session_ids()
        return bool(known) and recorded <= set(receiver.event_ids(known.pop()))

    wait_until(stored, "the uploader to have sent the log", UPLOAD_SECONDS_MAX)


def _assert_stored_once(arrived: list[Line], recorded: list[Line]) -> None:
    """The file's events, each once and whole, in the file's order; the uploader has three ways of its own.

    1.0.48 never sends its `session.shutdown`. 1.0.102 sends `system.message` events that are not on disk at all, and
    sends what is on disk with more in it: a tool's result with its details, and `parentId` naming such a message.
    """
    ids = [line.event_id for line in arrived]
    assert len(ids) == len(set(ids))
    stored = {line.event_id: _event(line) for line in arrived}
    expected = {line.event_id: _event(line) for line in recorded}
    missing = [event["type"] for event_id, event in expected.items() if event_id not in stored]
    assert set(missing) <= {"session.shutdown"}
    extra = [event["type"] for event_id, event in stored.items() if event_id not in expected]
    assert set(extra) <= {"system.message"}
    assert [event_id for event_id in ids if event_id in expected] == [name for name in expected if name in stored]
    for event_id in expected.keys() & stored.keys():
        assert _holds(stored[event_id]["data"], expected[event_id]["data"]), expected[event_id]["type"]
    assert not any(event.get("ephemeral") for event in stored.values())


def _holds(sent: object, recorded: object) -> bool:
    """Whether all that was recorded is in what was sent."""
    if isinstance(recorded, dict) and isinstance(sent, dict):
        return all(name in sent and _holds(sent[name], value) for name, value in recorded.items())
    return sent == recorded


def _event(line: Line) -> dict[str, object]:
    event: dict[str, object] = json.loads(line.data)
    return event
