"""Which sessions are watched, under which name, and what of them is read beside their conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from exporter.core.ahp.subscriptions import ACTIVE_SECONDS
from tests.core.ahp.scripted import SESSION_NAME, STEPS, ScriptedHost
from tests.core.ahp.watching import NOW, Watching

Json = dict[str, Any]


def subscribed(watching: Watching) -> set[str]:
    uris = {a["params"].get("channel", "") for a in watching.asked if a.get("method") == "subscribe"}
    return uris - {"ahp-root://"}


def listing(*items: Json) -> Watching:
    watching = Watching({"ahp-session:/a": {}, "ahp-session:/b": {}})
    before = watching.answer
    watching.answer = lambda method, params: (
        {"result": {"items": list(items)}} if method == "listSessions" else before(method, params)
    )
    return watching


@pytest.mark.parametrize(
    ("summary", "is_watched"),
    [
        ({"modifiedAt": (NOW - 60) * 1000}, True),
        ({"modifiedAt": "2026-11-18T11:06:40.000Z"}, True),
        ({"modifiedAt": (NOW - ACTIVE_SECONDS - 1) * 1000}, False),
        ({"modifiedAt": (NOW - ACTIVE_SECONDS - 1) * 1000, "status": 8}, True),
        ({"status": 1}, False),
        ({}, False),
    ],
)
def test_only_sessions_active_of_late_are_subscribed_to(summary: Json, is_watched: bool) -> None:
    watching = listing({"resource": "ahp-session:/a", **summary})
    watching.begin()

    assert subscribed(watching) == ({"ahp-session:/a"} if is_watched else set())


@pytest.mark.parametrize("name", ["a", "ahp-session:/a"])
def test_a_session_that_is_named_is_subscribed_to_however_long_it_rests(name: str) -> None:
    watching = listing({"resource": "ahp-session:/a"}, {"resource": "ahp-session:/b"})
    watching.observer.subscriptions.named = frozenset({name})
    watching.begin()

    assert subscribed(watching) == {"ahp-session:/a"}


def test_a_session_that_wakes_is_subscribed_to_and_one_that_rests_is_left() -> None:
    watching = listing({"resource": "ahp-session:/a", "modifiedAt": 0})
    watching.begin()
    changes = {"session": "ahp-session:/a", "changes": {"status": 8}}
    watching.hear({"jsonrpc": "2.0", "method": "root/sessionSummaryChanged", "params": changes})
    assert subscribed(watching) == {"ahp-session:/a"}
    watching.observer.tick(watching.now + ACTIVE_SECONDS + 1)
    watching._pump()

    left = [asked["params"]["channel"] for asked in watching.asked if asked["method"] == "unsubscribe"]
    assert left == ["ahp-session:/a"]
    assert watching.observer.subscriptions.sessions == []


@pytest.mark.parametrize("wanted", ["nothing", "live", "all"])
def test_what_is_wanted_of_a_session_is_what_is_given(wanted: str) -> None:
    host = ScriptedHost("0.9.0")
    watching = Watching({}, version="0.9.0")
    watching.answer = host.answer
    watching.observer.subscriptions.wants = lambda session, changed: wanted
    watching.begin()
    for step in ("start", "write", "end"):
        STEPS[step](host)
        while host.told:
            watching.hear(host.told.pop(0))

    assert bool(watching.durable()) == (wanted == "all")
    assert bool(watching.passing()) == (wanted != "nothing")


def test_a_session_of_the_cli_that_another_source_has_gives_passing_events_under_the_clis_name() -> None:
    host = ScriptedHost("0.9.0")
    watching = Watching({}, version="0.9.0")
    watching.answer = host.answer
    watching.elsewhere = {"cli-session"}
    watching.pace = 0.1
    watching.begin()
    host.start()
    usage = {"_meta": {"vscode.modelCall": {"sdkSessionId": "cli-session", "eventId": "e"}}, "inputTokens": 3}
    host._tell({"type": "chat/usage", "turnId": "turn-1", "usage": usage})
    host.write("markdown")
    host.end()
    while host.told:
        watching.hear(host.told.pop(0))

    assert watching.durable() == []
    assert {event["type"] for event in watching.passing("cli-session")} >= {
        "assistant.usage",
        "assistant.message_delta",
    }


def test_usage_is_told_once_however_often_the_host_tells_it() -> None:
    host = ScriptedHost("0.9.0")
    watching = Watching({}, version="0.9.0")
    watching.answer = host.answer
    watching.begin()
    host.start()
    for event in ("one", "one", "two", "one"):
        usage = {"inputTokens": 3, "model": "m", "_meta": {"vscode.modelCall": {"eventId": event}}}
        host._tell({"type": "chat/usage", "turnId": "turn-1", "usage": usage})
    while host.told:
        watching.hear(host.told.pop(0))

    assert [e["type"] for e in watching.passing()].count("assistant.usage") == 2


def test_telemetry_is_passed_on_as_it_came() -> None:
    watching = Watching({})
    watching.begin()
    watching.hear({"jsonrpc": "2.0", "method": "otlp/exportLogs", "params": {"resourceLogs": []}})

    ((method, frame),) = watching.telemetry
    assert method == "otlp/exportLogs"
    assert b"resourceLogs" in frame
    assert watching.order == []


def test_a_session_that_is_disposed_of_is_shut_down_once() -> None:
    host = ScriptedHost("0.9.0")
    watching = Watching({}, version="0.9.0")
    watching.answer = host.answer
    watching.begin()
    for _ in range(2):
        watching.hear({"jsonrpc": "2.0", "method": "root/sessionRemoved", "params": {"session": host.session}})

    assert [e["type"] for e in watching.durable()] == ["session.start", "session.shutdown"]
    assert watching.durable()[-1]["data"] == {"shutdownType": "disposed"}
    assert len(watching.observer.subscriptions.gone) == 1


def test_what_a_reconnect_calls_missing_is_not_asked_for_again() -> None:
    host = ScriptedHost("0.9.0")
    watching = Watching({}, version="0.9.0")
    watching.answer = host.answer
    watching.begin()
    host.start()
    while host.told:
        watching.hear(host.told.pop(0))
    missing = {"result": {"type": "replay", "actions": [], "missing": [host.session]}}
    watching.answer = lambda method, params: missing if method == "reconnect" else {"result": {}}
    watching.asked.clear()
    watching.begin()

    assert subscribed(watching) == set()
    gaps = [event["data"] for event in watching.durable() if event["type"] == "exporter.gap"]
    reason = "the host has no such session any more"
    assert gaps == [{"reason": reason, "chat": host.chat, "fromTurn": 0, "toTurn": 1, "recovered": False}]


@pytest.mark.parametrize(
    ("part", "is_read"),
    [
        ({"kind": "contentRef", "uri": "ahp-session:/a/content/1", "contentType": "text/plain"}, True),
        ({"kind": "contentRef", "uri": "x:/1", "sizeHint": 1 << 30}, False),
        ({"kind": "contentRef", "uri": "file:///etc/passwd"}, False),
        ({"kind": "contentRef", "uri": "FILE:///etc/passwd"}, False),
        ({"kind": "markdown", "uri": "x:/1", "content": "contentRef x:/1"}, False),
        ({"kind": "toolCall", "toolCall": {"toolCallId": "c", "content": [{"type": "resource", "uri": "x:/1"}]}}, True),
        ({"kind": "toolCall", "toolCall": {"structuredContent": {"kind": "contentRef", "uri": "x:/1"}}}, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [5, 300_000])
def test_only_what_a_state_refers_to_is_read_and_only_so_much_of_it(part: Json, is_read: bool, size: int) -> None:
    host = ScriptedHost("0.9.0")
    host.turns = [{"id": "t", "message": {"text": "p"}, "responseParts": [part, part], "state": "complete"}]
    watching = Watching({}, version="0.9.0")
    content = {"result": {"data": "y" * size, "encoding": "utf-8"}}
    watching.answer = lambda method, params: content if method == "resourceRead" else host.answer(method, params)
    watching.begin()

    read = [e["data"] for e in watching.durable() if e["type"] == "exporter.content"]
    assert len(read) == is_read
    assert sum(asked["method"] == "resourceRead" for asked in watching.asked) == is_read
    for data in read:
        assert (len(data["data"]), data["isTruncated"]) == ((5, False) if size == 5 else (0, True))


@pytest.mark.parametrize(
    "action",
    [
        {"type": "chat/responsePart", "part": {"kind": "contentRef", "uri": "x:/1"}},
        {"type": "chat/toolCallContentChanged", "toolCallId": "c", "content": [{"type": "resource", "uri": "x:/1"}]},
        {
            "type": "chat/toolCallComplete",
            "toolCallId": "c",
            "result": {"success": True, "content": [{"type": "resource", "uri": "x:/1"}]},
        },
        {
            "type": "chat/turnsLoaded",
            "turns": [{"id": "old", "responseParts": [{"kind": "contentRef", "uri": "x:/1"}], "state": "complete"}],
        },
    ],
)
def test_what_an_action_refers_to_is_read_once(action: Json) -> None:
    host = ScriptedHost("0.9.0")
    watching = Watching({}, version="0.9.0")
    content = {"result": {"data": "y", "encoding": "utf-8"}}
    watching.answer = lambda method, params: content if method == "resourceRead" else host.answer(method, params)
    watching.begin()
    host.start()
    for _ in range(2):
        host._tell({"turnId": "turn-1", **action})
    while host.told:
        watching.hear(host.told.pop(0))

    assert [asked["params"]["uri"] for asked in watching.asked if asked["method"] == "resourceRead"] == ["x:/1"]


def test_content_is_told_when_it_comes_although_nothing_else_happens_then() -> None:
    host = ScriptedHost("0.9.0")
    part = {"kind": "contentRef", "uri": "x:/1", "contentType": "text/plain"}
    host.turns = [{"id": "t", "message": {"text": "p"}, "responseParts": [part], "state": "complete"}]
    watching = Watching({}, version="0.9.0")
    content = {"result": {"data": "y", "encoding": "utf-8"}}
    watching.answer = lambda method, params: content if method == "resourceRead" else host.answer(method, params)
    watching.withheld = {"resourceRead"}
    watching.begin()
    before = [event["type"] for event in watching.durable()]

    watching.answer_withheld()

    assert "exporter.content" not in before
    assert [event["type"] for event in watching.durable()] == [*before, "exporter.content"]


def test_nothing_is_read_of_an_action_that_refers_to_nothing() -> None:
    host = ScriptedHost("0.9.0")
    watching = Watching({}, version="0.9.0")
    watching.answer = host.answer
    watching.begin()
    host.start()
    host._tell({"type": "chat/usage", "turnId": "turn-1", "content": [{"type": "resource", "uri": "x:/1"}]})
    while host.told:
        watching.hear(host.told.pop(0))

    assert "resourceRead" not in {asked["method"] for asked in watching.asked}


def test_a_session_that_another_source_has_is_not_given_twice_when_it_is_disposed_of() -> None:
    """Although no turn ended, until which it is not known whose session it is."""
    host = ScriptedHost("0.9.0")
    watching = Watching({}, version="0.9.0")
    watching.answer = host.answer
    watching.pace = 0.0
    watching.begin()
    watching.elsewhere = {SESSION_NAME}
    watching.hear({"jsonrpc": "2.0", "method": "root/sessionRemoved", "params": {"session": host.session}})
    watching.now += 600
    watching._pump()

    assert watching.durable() == []
    assert watching.observer.subscriptions.gone == []


def test_a_sub_agent_of_a_sub_agent_is_told_of_before_what_it_does() -> None:
    root, outer, inner = "ahp-chat://default/r", "ahp-chat://subagent/o", "ahp-chat://subagent/i"

    def turn(name: str, call: str) -> Json:
        part = {
            "toolCallId": call,
            "toolName": "task",
            "status": "completed",
            "success": True,
            "_meta": {"subagentAgentName": name},
        }
        parts = (
            [{"kind": "toolCall", "toolCall": part}] if call else [{"kind": "markdown", "id": "m", "content": "done"}]
        )
        return {"id": f"turn-{call}", "message": {"text": "go"}, "responseParts": parts, "state": "complete"}

    chats = [
        {"resource": inner, "title": "In", "origin": {"kind": "tool", "chat": outer, "toolCallId": "c2"}},
        {"resource": outer, "title": "Out", "origin": {"kind": "tool", "chat": root, "toolCallId": "c1"}},
        {"resource": root, "origin": {"kind": "user"}},
    ]
    states: dict[str, Json] = {
        "ahp-session:/s": {"chats": chats, "defaultChat": root},
        root: {"turns": [turn("explore", "c1")]},
        outer: {"turns": [turn("task", "c2")]},
        inner: {"turns": [turn("", "")]},
    }
    watching = Watching(states)
    watching.begin()
    started = [e for e in watching.durable() if e["type"] == "subagent.started"]
    order = [(e["type"], e.get("agentId")) for e in watching.durable()]

    assert {(e["agentId"], e["data"]["toolCallId"], e["data"].get("parentId")) for e in started} == {
        (outer, "c1", None),
        (inner, "c2", outer),
    }
    for agent in (outer, inner):
        assert next(type for type, of in order if of == agent) == "subagent.started"
        assert order.count(("subagent.completed", agent)) == 1


def test_a_sub_agent_has_the_name_that_a_call_of_an_older_page_gives_it() -> None:
    root, child = "ahp-chat://default/r", "ahp-chat://subagent/o"
    call = {"toolCallId": "c1", "toolName": "task", "status": "completed", "success": True}
    parts = [{"kind": "toolCall", "toolCall": {**call, "_meta": {"subagentAgentName": "explore"}}}]
    said = [{"kind": "markdown", "id": "m", "content": "done"}]
    older, newer, own = (
        {"id": id, "message": {"text": id}, "responseParts": these, "state": "complete"}
        for id, these in (("t0", parts), ("t1", said), ("t2", said))
    )
    watching = Watching(
        {
            "ahp-session:/s": {"chats": [{"resource": root, "origin": {"kind": "user"}}], "defaultChat": root},
            root: {"turns": [newer], "turnsNextCursor": "1"},
            child: {"turns": [own]},
        }
    )
    before = watching.answer

    def told(channel: str, action: Json) -> Json:
        watching.seq += 1
        params = {"action": action, "serverSeq": watching.seq, "channel": channel}
        return {"jsonrpc": "2.0", "method": "action", "params": params}

    def answer(method: str, params: Json) -> Json:
        if method == "fetchTurns":
            action = told(root, {"type": "chat/turnsLoaded", "turns": [older]})
            watching.observer.receive(json.dumps(action), watching.now)
        return before(method, params)

    watching.answer = answer
    watching.begin()
    added = {"resource": child, "title": "Out", "origin": {"kind": "tool", "chat": root, "toolCallId": "c1"}}
    watching.hear(told("ahp-session:/s", {"type": "session/chatAdded", "summary": added}))

    (started,) = [event["data"] for event in watching.durable() if event["type"] == "subagent.started"]
    assert (started["agentName"], started["toolCallId"]) == ("explore", "c1")


@pytest.mark.parametrize("code", [-32001, -32007, -32008])
def test_a_host_that_was_just_started_and_refuses_is_asked_again(code: int) -> None:
    """It does not know its sessions yet, or waits until its owner has signed in."""
    host = ScriptedHost("0.9.0")
    watching = Watching({}, version="0.9.0")
    watching.answer = host.answer
    watching.begin()
    STEPS["start"](host)
    host.restart()
    refused = ("listSessions", "subscribe")
    failure = {"error": {"code": code, "message": "not yet"}}
    watching.answer = lambda method, params: failure if method in refused else host.answer(method, params)
    watching.begin()
    watching.observer.tick(watching.now + 60)
    watching._pump()
    assert watching.observer.subscriptions.problems
    watching.answer = host.answer
    watching.now += 120
    watching.observer.tick(watching.now)
    watching._pump()

    assert watching.observer.subscriptions.problems == {}
    assert watching.observer.notice == ""
    prompts = [event["data"]["content"] for event in watching.durable() if event["type"] == "user.message"]
    assert prompts == [host.turns[0]["message"]["text"]]


def test_a_host_that_is_asked_again_and_takes_its_time_is_asked_once() -> None:
    watching = listing({"resource": "ahp-session:/a", "status": 8})
    answers = watching.answer
    failure = {"error": {"code": -32007, "message": "not yet"}}
    watching.answer = lambda method, params: failure if method == "subscribe" else answers(method, params)
    watching.begin()
    watching.answer = answers
    watching.withheld, watching.pace = {"subscribe"}, 0.0
    for _ in range(3):
        watching.now += 2
        watching.observer.tick(watching.now)
        watching._pump()
    watching.answer_withheld()

    asked = [each["params"].get("channel") for each in watching.asked if each.get("method") == "subscribe"]
    assert asked.count("ahp-session:/a") == 2


def test_a_state_is_to_be_stored_at_once_when_a_turn_has_ended_and_its_events_were_taken() -> None:
    host = ScriptedHost("0.9.0")
    watching = Watching({}, version="0.9.0")
    watching.answer = host.answer
    watching.begin()
    subscriptions, urgent = watching.observer.subscriptions, dict[str, tuple[bool, bool, bool]]()

    for step in ("start", "write", "end"):
        STEPS[step](host)
        for frame in host.told:
            watching.observer.receive(json.dumps(frame), watching.now)
        host.told.clear()
        watching.now += 60
        before = subscriptions.is_urgent
        subscriptions.take(watching.now)
        taken = subscriptions.is_urgent
        subscriptions.save()
        urgent[step] = (before, taken, subscriptions.is_urgent)

    assert urgent["write"] == (False, False, False)
    assert urgent["end"] == (False, True, False)


def test_a_session_that_stays_unknown_is_let_go_of() -> None:
    watching = listing({"resource": "ahp-session:/gone", "status": 8})
    watching.begin()
    for _ in range(8):
        watching.now += 120
        watching.observer.tick(watching.now)
        watching._pump()

    assert watching.observer.subscriptions.sessions == []


def test_pieces_of_a_text_that_come_together_are_shown_in_one_event() -> None:
    host = ScriptedHost("0.9.0")
    watching = Watching({}, version=host.version)
    watching.answer = host.answer
    watching.begin()
    for step in ("start", "write", "write", "write", "think", "think", "think", "write"):
        STEPS[step](host)
    for frame in host.told:
        watching.observer.receive(json.dumps(frame), watching.now)
    watching._pump()

    shown = [event for event in watching.passing() if event["type"].endswith("_delta")]
    texts = [part["content"] for part in host.active["responseParts"]] if host.active else []
    by_text: dict[str, str] = {}
    for event in shown:
        identity = event["data"].get("messageId") or event["data"].get("reasoningId")
        by_text[identity] = by_text.get(identity, "") + event["data"]["deltaContent"]
    assert list(by_text.values()) == texts
    assert len(shown) == 5  # each part has a beginning of its own, and the pieces behind it, if there are any


@pytest.mark.parametrize("is_wanted", [True, False])
def test_what_a_host_tells_of_itself_is_asked_for_where_it_is_wanted(is_wanted: bool) -> None:
    watching = Watching({"ahp-session:/a": {}})
    before = watching.answer

    def answer(method: str, params: Json) -> Json:
        found = before(method, params)
        if method == "initialize":
            channels = {"logs": "ahp-otlp://logs/{level}", "traces": "file:///etc/passwd", "metrics": 7}
            found["result"]["telemetry"] = channels
        return found

    watching.answer = answer
    if not is_wanted:
        watching.observer.on_telemetry = None
    watching.begin()

    asked = {uri for uri in subscribed(watching) if not uri.startswith("ahp-session:")}
    assert asked == ({"ahp-otlp://logs/info"} if is_wanted else set())


@pytest.mark.parametrize("version", [1, "0.9.0"])
def test_a_turn_whose_end_was_not_heard_is_asked_for(version: str | int) -> None:
    """Whether the host did not tell it or told it beside the snapshot: the turn does not stay open for ever."""
    host = ScriptedHost(version)
    watching = Watching({}, version=version)
    watching.answer = host.answer
    watching.begin()
    for step in ("start", "write"):
        STEPS[step](host)
    while host.told:
        watching.hear(host.told.pop(0))
    STEPS["end"](host)
    host.told.clear()
    watching.pace = 0.0
    for _ in range(12):
        watching.now += 1
        watching.observer.tick(watching.now)
        watching._pump()

    assert [event["type"] for event in watching.durable()][-1] == "assistant.turn_end"


def test_a_sub_agent_that_begins_while_the_connection_is_made_again_is_told_once_and_no_gap() -> None:
    """It is told in an action and in the session's state; the host refuses the first of two subscriptions at once.

    The resource that a restarted host has instead is of Copilot's log, in which a running turn is not yet.
    """
    default, child = "ahp-chat://default/one", "ahp-chat://subagent/one/call-1"
    session, restored = "ahp-session:/one", "ahp-chat://default/restored"
    added = {"resource": child, "title": "Made up", "origin": {"kind": "tool", "chat": default, "toolCallId": "call-1"}}
    meta = {"toolKind": "subagent", "subagentAgentName": "made-up"}
    call = {"toolCallId": "call-1", "toolName": "task", "status": "running", "toolInput": "{}", "_meta": meta}
    turn = {"message": {"text": "prompt"}, "responseParts": [{"kind": "toolCall", "toolCall": call}]}
    before: dict[str, Json] = {
        session: {"chats": [{"resource": default}], "defaultChat": default, "provider": "made-up"},
        default: {"turns": []},
    }
    after: dict[str, Json] = {
        session: {**before[session], "chats": [{"resource": default}, added]},
        default: {"turns": [], "activeTurn": {**turn, "id": "turn-1"}},
        child: {"activeTurn": {"id": "turn-2", "message": {"text": "for one"}, "responseParts": []}},
        f"{session}/subagent/call-1": {"defaultChat": restored, "chats": []},
        restored: {"turns": []},
    }
    watching = Watching(before, seq=5)
    watching.begin()

    def tell(channel: str, action: Json) -> Json:
        watching.seq += 1
        return {"method": "action", "params": {"channel": channel, "action": action, "serverSeq": watching.seq}}

    def answer(method: str, params: Json) -> Json:
        if method == "subscribe" and params["channel"] == session and watching.states is before:
            watching.states = after
            told = tell(session, {"type": "session/chatAdded", "summary": added})
            watching.observer.receive(json.dumps(told), watching.now)
        return watching._answer(method, params)

    watching.answer = answer
    watching.begin()
    watching.hear(tell(child, {"type": "chat/turnComplete", "turnId": "turn-2"}))

    assert restored not in subscribed(watching)
    events = watching.durable()[1:]
    assert [(event["type"], event.get("agentId")) for event in events] == [
        *((type, None) for type in ("user.message", "assistant.turn_start", "tool.execution_start")),
        *((type, child) for type in ("subagent.started", "user.message", "assistant.turn_start", "assistant.turn_end")),
        ("subagent.completed", child),
    ]
    assert events[3]["data"]["agentName"] == "made-up"


@pytest.mark.parametrize("stopped_by", ["a host that refuses", "each other"])
def test_sub_agents_that_wait_for_what_does_not_come_are_read_all_the_same(stopped_by: str) -> None:
    root, (first, second, third, fourth) = "ahp-chat://default/r", [f"ahp-chat://subagent/{name}" for name in "xzyw"]

    def child(uri: str, parent: str, call: str) -> Json:
        return {"resource": uri, "title": "made up", "origin": {"kind": "tool", "chat": parent, "toolCallId": call}}

    def turn(name: str, call: str = "") -> Json:
        made = {"toolCallId": call, "toolName": "task", "status": "completed", "success": True}
        part = {"kind": "toolCall", "toolCall": {**made, "_meta": {"subagentAgentName": "explore"}}} if call else None
        parts = [part or {"kind": "markdown", "id": f"m{name}", "content": "done"}]
        return {"id": name, "message": {"text": "go"}, "responseParts": parts, "state": "complete"}

    chats = [{"resource": root, "origin": {"kind": "user"}}, child(first, root, "1"), child(second, root, "2")]
    chats += [child(third, first, "3"), child(fourth, second, "4")]  # of the first two no call is seen
    turns = {root: turn("r"), first: turn("x", "3"), second: turn("z", "4"), third: turn("y"), fourth: turn("w")}
    states: dict[str, Json] = {uri: {"turns": [each]} for uri, each in turns.items()}
    watching = Watching({"ahp-session:/s": {"chats": chats, "defaultChat": root}, **states})
    if stopped_by == "each other":
        watching.begin()
        watching.begin_anew()
        watching.begin()
    else:
        before = watching.answer
        watching.answer = lambda method, params: (
            {"error": {"code": -32603, "message": "made up"}}
            if method == "subscribe" and params.get("channel") == root
            else before(method, params)
        )
        watching.begin()

    for _ in range(8):
        watching.observer.tick(watching.now)
        watching.hear({"jsonrpc": "2.0", "method": "made/up", "params": {}})

    [session] = watching.observer.subscriptions.sessions
    unread = [uri for uri, chat in session.chats.items() if not chat.is_known]
    assert unread == ([] if stopped_by == "each other" else [root])
