"""Random, truncated, oversized and hostile frames: nothing raises, little is held, and what was wrong is told."""

from __future__ import annotations

import json
import random
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.core.ahp import messages, requests
from exporter.core.ahp.dialect import CHAT, CLASSIC, ONE, VERSIONS, dialect_of
from exporter.core.ahp.messages import ErrorResponse, HostNotification, HostRequest, InvalidFrame, Response, parse_frame
from tests.core.ahp.scripted import STEPS, ScriptedHost
from tests.core.ahp.watching import Watching

Json = dict[str, Any]
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
WRONG: list[Any] = [None, True, -1, 10**400, 1.5, "", "\ud800", "x" * 300, [], [[]], {}, {"type": 3}, [{"id": 1}]]


@given(st.one_of(st.text(), st.binary(), VALUE.map(json.dumps)))
@settings(max_examples=400, deadline=None)
def test_any_frame_is_read_or_refused(frame: str | bytes) -> None:
    assert isinstance(parse_frame(frame), Response | ErrorResponse | HostNotification | HostRequest | InvalidFrame)


@pytest.mark.parametrize(
    "frame", ["[" * 100_000, '{"a":' * 100_000, "\ud800", b"{}", "null", '{"id":1}', '{"id":[]}', "NaN"]
)
def test_a_hostile_frame_is_rubbish(frame: str | bytes) -> None:
    assert isinstance(parse_frame(frame), InvalidFrame)


def garbled(frame: Json, chance: random.Random) -> Any:
    """A frame with one value somewhere in it replaced, or taken out."""
    copied: Any = json.loads(json.dumps(frame))
    holder = copied
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            return copied
        key = chance.choice(keys)
        if isinstance(holder[key], dict | list) and holder[key] and chance.random() < 0.8:
            holder = holder[key]
            continue
        if isinstance(holder, dict) and chance.random() < 0.3:
            del holder[key]
        else:
            holder[key] = chance.choice(WRONG)
        return copied


@pytest.mark.parametrize("version", [1, "0.4.0", "0.9.0"], ids=str)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_a_host_that_garbles_what_it_says_stops_nothing(version: str | int, seed: int) -> None:
    chance = random.Random(seed)
    host = ScriptedHost(version, window=2)
    observed = Watching({}, version=version)
    observed.answer = lambda method, params: (
        garbled(host.answer(method, params), chance) if chance.random() < 0.3 else host.answer(method, params)
    )
    observed.begin()
    for _ in range(40):
        STEPS[chance.choice(list(STEPS))](host)
        for frame in [host.told.pop(0) for _ in list(host.told)]:
            said = garbled(frame, chance) if chance.random() < 0.3 else frame
            text = json.dumps(said)
            observed.observer.receive(
                text[: chance.randrange(len(text))] if chance.random() < 0.1 else text, observed.now
            )
        observed._pump()
    observed.answer = host.answer
    host.drop()
    observed.begin()
    while host.told:
        observed.hear(host.told.pop(0))

    assert not observed.observer.is_hopeless
    for event in observed.order:
        json.dumps(event, allow_nan=False)


def test_memory_is_bounded_whatever_a_host_sends() -> None:
    host = ScriptedHost("0.9.0")
    observed = Watching({}, version="0.9.0")
    observed.answer = host.answer
    observed.begin()
    observed.elsewhere = set()
    for number in range(30_000):
        action = {
            "type": "session/chatAdded",
            "summary": {"resource": f"ahp-chat://{number}", "origin": {"kind": "tool"}},
        }
        params = {"channel": host.session, "action": action, "serverSeq": number + 1}
        observed.observer.receive(json.dumps({"jsonrpc": "2.0", "method": "action", "params": params}), observed.now)
        summary = {"resource": f"ahp-session:/{number}", "status": 8}
        told = {"jsonrpc": "2.0", "method": "root/sessionAdded", "params": {"summary": summary}}
        observed.observer.receive(json.dumps(told), observed.now)
        observed.observer.outgoing.clear()
    subscriptions = observed.observer.subscriptions

    assert len(subscriptions.sessions) <= 1000
    assert len(subscriptions.addresses()) <= 1000 + 600
    assert len(subscriptions._summaries) <= 10_000
    assert sys.getsizeof(subscriptions.pending) < 1 << 20


def test_a_turn_without_end_is_cut_and_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exporter.core.ahp.chat_state.TURN_CHARACTERS_MAX", 100)
    host = ScriptedHost("0.9.0")
    observed = Watching({}, version="0.9.0")
    observed.answer = host.answer
    observed.begin()
    for step in ["start", *["write"] * 40, "end"]:
        STEPS[step](host)
        while host.told:
            observed.hear(host.told.pop(0))

    assert [e["type"] for e in observed.durable()].count("exporter.gap") == 1
    said = [e["data"]["content"] for e in observed.durable() if e["type"] == "assistant.message"]
    assert len("".join(said)) <= 100
    assert "assistant.turn_end" in [e["type"] for e in observed.durable()]


def test_too_much_rubbish_ends_the_connection() -> None:
    observed = Watching({})
    observed.begin()
    for _ in range(100):
        observed.observer.receive("{", observed.now)

    assert "is it an agent host?" in observed.observer.failure
    assert not observed.observer.is_hopeless


@pytest.mark.parametrize(
    "method", ["resourceRequest", "resourceRead", "resourceWrite", "anything", "ping", "tool.call"]
)
def test_a_request_of_the_host_is_refused(method: str) -> None:
    observed = Watching({})
    observed.begin()
    observed.asked.clear()
    observed.hear({"jsonrpc": "2.0", "id": "7", "method": method, "params": {"uri": "file:///etc/passwd"}})

    (answer,) = observed.asked
    assert answer["id"] == "7"
    assert answer["error"]["code"] == (-32009 if method == "resourceRequest" else -32601)


def test_nothing_can_be_written_but_what_changes_nothing() -> None:
    allowed = {
        "initialize",
        "reconnect",
        "ping",
        "listSessions",
        "subscribe",
        "unsubscribe",
        "fetchTurns",
        "resourceRead",
    }
    written = [
        requests.initialize("c"),
        requests.reconnect(ONE, "c", 5, []),
        requests.ping(CHAT),
        requests.list_sessions(CHAT),
        requests.subscribe(CHAT, "u"),
        requests.unsubscribe(CHAT, "u"),
        requests.fetch_turns(CLASSIC, "u", "t"),
        requests.fetch_turns(ONE, "u", "t"),
        requests.read_resource(ONE, "s", "u"),
    ]

    assert set(requests.REQUESTS) | set(requests.NOTIFICATIONS) == allowed
    assert {each["method"] for each in written} == allowed
    functions = {
        name for name, value in vars(requests).items() if callable(value) and name.islower() and name[0] != "_"
    }
    assert functions == {
        "initialize", "reconnect", "ping", "list_sessions", "subscribe", "unsubscribe", "fetch_turns", "read_resource",
        "refuse",
    }  # fmt: skip
    for name in ("dispatchAction", "createSession", "disposeSession", "resourceWrite", "authenticate"):
        with pytest.raises(AssertionError):
            requests._request(name, {})


@pytest.mark.parametrize(
    ("version", "name"),
    [
        (1, "classic"), ("1", "classic"), ("0.1.0", "classic"), ("0.2.0", "classic with channels"),
        ("0.3.1", "classic with channels"), ("0.4.0", "chat"), ("0.5.0", "chat"), ("0.5.1", "chat with cursors"),
        ("0.9.0", "chat with cursors"), ("1.0.0", "1.x"), ("1.1.0-dev", "1.x"), ("1.7.3", "1.x"),
        ("2.0.0", None), (True, None), (2, None), (None, None), ("", None), ("latest", None), ([], None),
    ],
)  # fmt: skip
def test_the_dialect_follows_from_the_version(version: Any, name: str | None) -> None:
    dialect = dialect_of(version)

    assert (dialect.name if dialect else None) == name


def test_every_version_that_is_offered_can_be_read() -> None:
    assert all(dialect_of(version) for version in VERSIONS)


@pytest.mark.parametrize(
    ("code", "word"), [(-32005, "update"), (-32007, "sign-in"), (-32008, "restarted"), (-32009, "denies")]
)
def test_an_error_is_explained_with_what_to_do(code: int, word: str) -> None:
    assert word in messages.explain(code)


def test_a_version_that_the_host_does_not_speak_ends_it() -> None:
    observed = Watching({})
    told = {"code": -32005, "message": "no", "data": {"supportedVersions": ["^2.0.0", "3.0.0", "<script>", {"a": 1}]}}
    observed.answer = lambda method, params: {"error": told}
    observed.begin()

    assert observed.observer.failure.startswith("the host speaks ^2.0.0, 3.0.0, this exporter")
    assert observed.observer.is_hopeless
    assert [asked["method"] for asked in observed.asked] == ["initialize"]


def test_a_session_that_may_not_be_seen_is_explained() -> None:
    """The CLI's own host: it answers, it lists, and wants a sign-in of its own before it shows a session."""
    host = ScriptedHost("1.0.0")
    observed = Watching({}, version="1.0.0")
    refused = {"error": {"code": -32007, "message": "needs secret-token"}}
    observed.answer = lambda method, params: (
        refused if method == "subscribe" and params["channel"] == host.session else host.answer(method, params)
    )
    observed.begin()

    (problem,) = observed.observer.subscriptions.problems.values()
    assert "rpc://" in problem
    assert "secret" not in problem
    assert observed.order == []


def test_what_a_host_says_with_an_error_is_kept_nowhere() -> None:
    message = messages.parse_frame(
        '{"id": 1, "error": {"code": -32000, "message": "tkn=secret", "data": {"url": "secret"}}}'
    )

    assert "secret" not in repr(message)
