"""The RPC source against a made-up server with every fault: nothing lost, nothing twice, and the status says why."""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exporter.sources.rpc.session as session_module
import exporter.sources.rpc.source as module
from exporter.sources.remote import Want
from exporter.sources.rpc.framing import frame
from exporter.sources.rpc.messages import BadMessageError, read_message, read_page, read_pushed
from exporter.sources.rpc.session import State
from exporter.sources.rpc.source import NOTIFICATIONS
from tests.sources.rpc.server import SESSION, MadeUpServer, Refusal, Taker, event, observed, until


def play(scenario: Callable[[MadeUpServer, Taker], Awaitable[None]]) -> None:
    async def run() -> None:
        await scenario(MadeUpServer(), Taker())

    asyncio.run(run())


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REST_SECONDS", 0.01)
    monkeypatch.setattr(session_module, "AGAIN_SECONDS", 0.01)


COMPACTION = "session.compaction_complete"


def ids(*numbers: int) -> list[str]:
    return [f"e{n}" for n in numbers]


def test_history_comes_once_and_then_what_happens() -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        server.history = [event(1), event(2, ephemeral=True), event(3)]
        async with observed(server, taker) as source:
            await until(lambda: source.sessions.get(SESSION) is State.LIVE)
            await server.add(event(4, ephemeral=True), event(5))
            await until(lambda: "e5" in taker.durable)

            assert (taker.durable, taker.ephemeral) == (ids(1, 3, 5), ids(4))
            assert source.version == "9.9"
            assert source.state == "following"

    play(scenario)


def test_events_close_behind_each_other_are_asked_for_together_and_none_waits_long() -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        async with observed(server, taker) as source:
            await until(lambda: source.sessions.get(SESSION) is State.LIVE)
            asked, slowest, loop = len(server.calls), 0.0, asyncio.get_running_loop()
            for number in range(1, 101):
                added = loop.time()
                await server.add(event(number, ephemeral=number % 2 == 0))
                if number % 10 == 0:
                    await until(lambda: len(taker.durable) + len(taker.ephemeral) == number)  # noqa: B023
                    slowest = max(slowest, loop.time() - added)

            assert len(server.calls) - asked <= 40
            assert slowest < 1.0

    play(scenario)


@pytest.mark.parametrize("push", [False, True])
def test_a_connection_that_breaks_again_and_again_loses_nothing(push: bool) -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        async with observed(server, taker, push=push) as source:
            for n in range(0, 60, 2):
                await server.add(event(n), event(n + 1, ephemeral=True))
                if push:
                    server.send({"method": "session.event", "params": {"sessionId": SESSION, "event": event(n)}})
                if n % 6 == 0:
                    server.hang_up()
                    before = source.connections
                    await until(lambda: source.connections > before)  # noqa: B023  waited for here
            await until(lambda: taker.durable[-1:] == ["e58"])

            assert taker.durable == ids(*range(0, 60, 2))
            assert len(taker.ephemeral) == len(set(taker.ephemeral))

    play(scenario)


def test_a_cursor_that_expired_is_made_up_for_from_the_file_in_its_order() -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        taker.durable = ids(1, 2, 99)  # 99 was rewound away while nobody looked
        server.file = [event(n) for n in (1, 2, 3, 4)]
        server.history = [event(n) for n in (1, 2, 3, 4, 5)]
        server.page_max = 2
        async with observed(server, taker) as source:
            await until(lambda: "e5" in taker.durable)

            assert taker.durable == ids(1, 2, 99, 3, 4, 5)
            assert source.counts.expired == 1

    play(scenario)


def test_a_server_that_lets_every_cursor_expire_is_not_asked_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        monkeypatch.setattr(session_module, "AGAIN_SECONDS", 0.2)
        server.history = [event(1)]
        waits: list[float] = []

        def read(params: dict[str, Any]) -> Any:
            if not params.get("waitMs"):
                return {"events": [], "cursor": "e1|1", "hasMore": False, "cursorStatus": "ok"}
            waits.append(time.monotonic())
            return {"events": [], "cursor": "e1|1", "hasMore": False, "cursorStatus": "expired"}

        server.hooks["session.eventLog.read"] = read
        async with observed(server, taker):
            await until(lambda: len(waits) >= 5)

        assert waits[4] - waits[0] >= 4 * 0.2

    play(scenario)


def test_a_session_that_is_not_loaded_is_read_from_its_file_and_not_loaded() -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        server.loaded = False
        server.file = [event(n) for n in range(2500)]
        async with observed(server, taker, push=True) as source:
            await until(lambda: source.sessions.get(SESSION) is State.COLD)

            assert taker.durable == ids(*range(2500))
            assert "session.resume" not in [method for method, _ in server.calls]
            server.loaded, server.history = True, [*server.file, event(2500)]
            server.send({"method": "session.lifecycle", "params": {"type": "session.updated", "sessionId": SESSION}})
            await until(lambda: "e2500" in taker.durable)
            assert len(taker.durable) == 2501

    play(scenario)


def test_what_only_the_file_tells_stays_when_the_session_is_loaded_again() -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        server.loaded, taker.rewinds = False, True
        server.file = [event(1), event(2), event(3, type="session.usage_record")]
        async with observed(server, taker) as source:
            await until(lambda: source.sessions.get(SESSION) is State.COLD)
            assert taker.durable == ids(1, 2, 3)
            # What the server adds is written to the file a little later.
            server.loaded, server.history = True, [event(1), event(2), event(4, type="session.resume")]
            server.send({"method": "session.lifecycle", "params": {"type": "session.updated", "sessionId": SESSION}})
            await until(lambda: "e4" in taker.durable)

            assert (taker.durable, taker.rewound) == (ids(1, 2, 3, 4), [])

    play(scenario)


def compacted(first: int) -> list[dict[str, Any]]:
    """A turn with a tool call that ends in a compaction: five events."""
    types = ("user.message", "tool.execution_start", "tool.execution_complete", "assistant.turn_end")
    return [*(event(first + n, type=type) for n, type in enumerate(types)), event(first + 4, type=COMPACTION)]


@pytest.mark.parametrize("page_max", [1000, 2], ids=["one page", "pages of two"])
def test_starts_that_a_compaction_took_out_of_the_log_come_from_the_file(page_max: int) -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        server.page_max, taker.rewinds = page_max, True
        server.history = server.file = [event(1), event(2)]
        async with observed(server, taker) as source:
            await until(lambda: source.sessions.get(SESSION) is State.LIVE)
            await server.compact(*compacted(3))  # between two questions of ours
            await until(lambda: "e7" in taker.durable)
            server.hang_up()
            await server.compact(*compacted(8), *compacted(13))  # while nobody asks
            await server.add(event(18), event(19, ephemeral=True))
            await until(lambda: "e18" in taker.durable)
            await server.add(event(20, ephemeral=True))
            await until(lambda: "e20" in taker.ephemeral)

            assert taker.durable == ids(*range(1, 19))
            assert taker.rewound == []

    play(scenario)


def test_a_system_message_behind_a_compaction_is_no_repetition_of_one_before_it() -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        first, second, third, fourth = (event(n, type="system.message", content="one") for n in (1, 3, 4, 9))
        server.history, server.file = [first, event(2), second], [first, event(2)]
        async with observed(server, taker) as source:
            await until(lambda: source.sessions.get(SESSION) is State.LIVE)
            await server.compact(third, event(5, type="tool.execution_start"), event(6), event(7, type=COMPACTION))
            server.file.remove(third)
            await until(lambda: "e7" in taker.durable)
            server.hang_up()
            await until(lambda: source.connections == 2 and source.sessions.get(SESSION) is State.LIVE)
            await server.add(event(8, type="system.message", content="one"), fourth)
            await until(lambda: source.counts.repeats == 2)

            assert taker.durable == ids(1, 2, 5, 6, 7, 8)

    play(scenario)


@pytest.mark.parametrize("is_written", [True, False], ids=["a little later", "never"])
def test_a_file_that_ends_before_the_compaction_is_waited_for_and_not_for_long(is_written: bool) -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        server.history = server.file = [event(1), event(2)]
        reads: list[int] = []

        def persisted(params: dict[str, Any]) -> Any:
            reads.append(len(taker.durable))
            is_late = "e7" not in taker.durable and (not is_written or reads.count(2) == 1)
            server.file = server.file if "cursor" in params else whole[:5] if is_late else whole
            return server._persisted(params)

        async with observed(server, taker) as source:
            await until(lambda: source.sessions.get(SESSION) is State.LIVE)
            await server.compact(*compacted(3))
            whole = list(server.file)
            server.hooks["sessions.readPersistedEvents"] = persisted
            await until(lambda: "e7" in taker.durable)

            assert taker.durable == (ids(*range(1, 8)) if is_written else ids(1, 2, 3, 5, 6, 7))

    play(scenario)


def test_a_loaded_session_that_tells_nothing_yet_takes_nothing_out() -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        taker.rewinds, taker.durable = True, ids(1, 2, 3)
        server.file = [event(n) for n in (1, 2, 3)]
        async with observed(server, taker) as source:
            await until(lambda: source.sessions.get(SESSION) is State.LIVE)

            assert (taker.durable, taker.rewound) == (ids(1, 2, 3), [])

    play(scenario)


def test_a_history_that_is_rewound_while_it_is_read_is_read_again() -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        server.page_max, taker.rewinds, pending = 2, True, [True]
        server.history = server.file = [event(n) for n in range(1, 7)]
        taker.durable = ids(*range(1, 7), 99)  # 99 was rewound away while nobody looked

        async def read(params: dict[str, Any]) -> Any:
            if params.get("cursor") == "e4|4" and "types" not in params and pending:
                pending.pop()
                await server.rewind(2, event(7), event(8))
            return await server._read(params)

        server.hooks["session.eventLog.read"] = read
        async with observed(server, taker) as source:
            await until(lambda: source.sessions.get(SESSION) is State.LIVE)

            assert pending == []
            assert taker.durable == ids(1, 2, 7, 8)

    play(scenario)


def test_a_snapshot_that_is_dropped_while_it_is_read_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "PAGE_EVENTS", 10)

    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        server.loaded, server.page_max = False, 10
        server.file = [event(n) for n in range(50)]
        drops = [True, True]

        def persisted(params: dict[str, Any]) -> Any:
            if "cursor" in params and len(taker.durable) >= 20 and drops:
                drops.pop()
                server._snapshots.clear()
            return server._persisted(params)

        server.hooks["sessions.readPersistedEvents"] = persisted
        async with observed(server, taker):
            await until(lambda: len(taker.durable) >= 50)

        assert taker.durable == ids(*range(50))
        assert drops == []

    play(scenario)


def test_a_system_message_that_is_repeated_is_taken_once() -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        texts = ["one", "one", "two", "two", "one"]
        server.history = [event(n, type="system.message", content=text) for n, text in enumerate(texts)]
        async with observed(server, taker) as source:
            await until(lambda: source.sessions.get(SESSION) is State.LIVE)
            server.hang_up()
            await until(lambda: source.connections == 2)
            await server.add(event(7, type="system.message", content="one"), event(8))
            await until(lambda: "e8" in taker.durable)

            assert taker.durable == ids(0, 2, 4, 8)
            assert source.counts.repeats == 3

    play(scenario)


def test_only_live_events_are_taken_when_another_source_has_the_rest() -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        server.history = [event(1), event(2, ephemeral=True)]
        taker.want = Want.LIVE
        async with observed(server, taker) as source:
            await until(lambda: source.sessions.get(SESSION) is State.LIVE)
            await server.add(event(3), event(4, ephemeral=True))
            await until(lambda: taker.ephemeral == ids(4))

            assert taker.durable == []

    play(scenario)


def test_nothing_is_read_of_a_session_that_nobody_wants() -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        taker.want = Want.NOTHING
        async with observed(server, taker) as source:
            await until(lambda: source.state == "following")
            await until(lambda: len(server.calls) == 2)

            assert [method for method, _ in server.calls] == ["connect", "session.list"]
            assert server.calls[0][1] == {"token": "the-token"}

    play(scenario)


@pytest.mark.parametrize(
    ("method", "code"),
    [
        *(("tool.call", None), ("permission.request", -32601), ("userInput.request", -32601)),
        *(("hooks.invoke", -32601), ("sessionFs.readFile", -32601), ("anything", -32601)),
    ],
)
@pytest.mark.parametrize("id", [1, "text", 2.5])
def test_a_request_to_us_is_answered_and_nothing_is_decided(method: str, code: int | None, id: object) -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        async with observed(server, taker) as source:
            await until(lambda: source.state == "following")
            server.send({"id": id, "method": method, "params": {"sessionId": SESSION, "toolName": "save"}})
            await until(lambda: bool(server.answers))

            [answer] = server.answers
            assert answer["id"] == id
            if code is None:
                text = "Tool 'save' is not supported by this client instance."
                assert answer["result"]["result"]["textResultForLlm"] == text
                assert answer["result"]["result"]["resultType"] == "failure"
            else:
                assert answer["error"]["code"] == code and "result" not in answer
            assert source.server_requests == 1

    play(scenario)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak the CLI's JSON-RPC"),
        (b"\x15\x03\x03\x00\x02" * 20, "does not speak the CLI's JSON-RPC"),
        (frame(b"[]"), "does not speak the CLI's JSON-RPC"),
        (frame(b'{"hunter2'), "does not speak the CLI's JSON-RPC"),
        (frame(b"\xff"), "does not speak the CLI's JSON-RPC"),
    ],
)
def test_what_is_no_cli_server_is_said_and_tried_again(raw: bytes, said: str) -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        server.raw = [raw]
        async with observed(server, taker) as source:
            await until(lambda: said in source.state)
            assert "hunter2" not in source.state
            server.raw = []
            await until(lambda: source.state == "following")

    play(scenario)


@pytest.mark.parametrize(("protocol", "ok"), [(1, False), (2, True), (3, True), (4, False)])
def test_the_protocols_it_speaks(protocol: int, ok: bool) -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        server.protocol = protocol
        async with observed(server, taker) as source:
            said = "following" if ok else f"protocol {protocol}, this exporter 2 to 3"
            await until(lambda: said in source.state)

    play(scenario)


@pytest.mark.parametrize(
    ("code", "said"), [(-32001, "requires a token"), (-32002, "refused the token"), (-1, "error -1")]
)
def test_a_refusal_is_said_without_the_servers_words(code: int, said: str) -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        def refuse(_: object) -> None:
            raise Refusal(code)

        server.hooks["connect"] = refuse
        async with observed(server, taker) as source:
            await until(lambda: said in source.state)
            assert "hunter2" not in source.state
            del server.hooks["connect"]
            await until(lambda: source.state == "following")

    play(scenario)


def test_an_answer_that_is_too_long_is_asked_for_in_smaller_parts() -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        server.history = [event(n, content="x" * 1000) for n in range(100)]
        async with observed(server, taker, body_bytes_max=20_000):
            await until(lambda: len(taker.durable) == 100)

            assert taker.durable == ids(*range(100))

    play(scenario)


def test_one_event_that_is_too_long_stops_its_session_and_says_so() -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        server.history = [event(1, content="x" * 30_000)]
        async with observed(server, taker, body_bytes_max=20_000) as source:
            await until(lambda: source.sessions.get(SESSION) is State.TOO_LONG)

            assert source.state == "following"

    play(scenario)


def test_events_keep_their_bytes_even_those_that_are_hard_to_read() -> None:
    texts = [
        '{"type":"x","id":"e1","timestamp":"t","data":{"text":"\\ud800"}}',
        f'{{"type":"x","id":"e2","timestamp":"t","data":{"[" * 3000 + "]" * 3000}}}',
        '{ "type":"x","id":"e3","big":123456789012345678901234567890,"data":{} }',
        '{"no":"id"}',
    ]
    answer = f'{{"jsonrpc":"2.0","id":7,"result":{{"events":[{",".join(texts)}],"cursor":"|9","hasMore":true}}}}'
    page = read_page(read_message(answer.encode()).result)

    assert [bytes(one).decode() for one in page.events] == texts
    assert (page.cursor, page.hasMore, page.expired) == ("|9", True, False)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10) | st.sampled_from(["ok", "expired", SESSION]),
    lambda one: st.lists(one, max_size=4) | st.dictionaries(st.sampled_from(["events", "id", "x", "cursor"]), one),
    max_leaves=12,
)
FIELDS = ("jsonrpc", "id", "method", "params", "result", "error", "events", "cursor", "hasMore", "sessionId", "event")


@given(st.dictionaries(st.sampled_from(FIELDS), JSON) | JSON, st.booleans(), st.integers(0, 200), st.binary(max_size=4))
def test_messages_of_any_shape_are_read_or_refused(message: object, hard: bool, at: int, damage: bytes) -> None:
    text = json.dumps(message if not hard else {"x": "\ud800", "message": message}).encode()
    for body in (text, text[:at] + damage + text[at + len(damage) :]):
        for read in (read_message, lambda one: read_page(msgspec.Raw(one)), lambda one: read_pushed(msgspec.Raw(one))):
            try:
                read(body)
            except BadMessageError as error:
                assert "\ud800" not in str(error)


@settings(max_examples=25)
@given(
    st.lists(st.binary(min_size=1, max_size=300) | JSON.map(lambda one: frame(json.dumps(one).encode())), max_size=5)
)
def test_a_hostile_server_is_survived(raw: list[bytes]) -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        server.raw = raw
        server.history = [event(1)]
        async with observed(server, taker) as source:
            await until(lambda: source.connections > 0)
            await asyncio.sleep(0)
            server.raw = []
            server.hang_up()
            await until(lambda: taker.durable == ids(1))

    play(scenario)


def test_pushed_events_that_come_faster_than_they_are_taken_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "QUEUE_EVENTS_MAX", 5)

    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        async with observed(server, taker, push=True) as source:
            await until(lambda: source.sessions.get(SESSION) is State.LIVE)
            for n in range(50):
                server.history.append(event(n))
                server.send({"method": "session.event", "params": {"sessionId": SESSION, "event": event(n)}})
            await until(lambda: "e49" in taker.durable)

            assert taker.durable == ids(*range(50))
            assert source.counts.dropped > 0

    play(scenario)


def test_a_session_that_is_deleted_is_told() -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        async with observed(server, taker) as source:
            await until(lambda: source.state == "following")
            server.send({"method": "session.lifecycle", "params": {"type": "session.deleted", "sessionId": SESSION}})
            server.send({"method": "session.lifecycle", "params": {"type": "session.created", "sessionId": "../.."}})
            await until(lambda: taker.gone == [SESSION])

    play(scenario)


def test_what_shells_print_is_live() -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        heard: list[tuple[str, Any]] = []
        async with observed(
            server, taker, on_shell=lambda name, text: heard.append((name, json.loads(text)))
        ) as source:
            await until(lambda: source.state == "following")
            for name in ("shell.output", "shell.exit", "host.event"):
                server.send({"method": name, "params": {"n": 1}})
            await until(lambda: len(heard) == 2)

            assert heard == [("shell.output", {"n": 1}), ("shell.exit", {"n": 1})]
            assert taker.durable == taker.ephemeral == []

    play(scenario)


def test_a_callback_that_fails_ends_the_source_loudly() -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        server.history = [event(1)]

        taker.fails = True
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        source = module.RpcSource(
            lambda: asyncio.open_connection("127.0.0.1", port), lambda: None, taker.callbacks(), pause_seconds=(0, 0)
        )
        with pytest.raises(RuntimeError, match="disk"):
            await asyncio.wait_for(source.run(), 5)
        listening.close()

    play(scenario)


def test_a_server_without_an_event_log_is_said_to_be_too_old() -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        def refuse(_: object) -> None:
            raise Refusal(-32601)

        server.hooks["session.eventLog.tail"] = refuse
        async with observed(server, taker) as source:
            await until(lambda: source.sessions.get(SESSION) is State.TOO_OLD)

    play(scenario)


def test_types_that_are_in_no_list_are_counted() -> None:
    async def scenario(server: MadeUpServer, taker: Taker) -> None:
        server.history = [event(1, type="brand.new"), event(2), event(3, type="brand.new")]
        async with observed(server, taker) as source:
            await until(lambda: len(taker.durable) == 3)

            assert dict(source.counts.unknown_types) == {"brand.new": 2}

    play(scenario)


def test_every_method_that_is_called_is_listed() -> None:
    called = set()
    for path in Path(module.__file__).parent.glob("*.py"):
        called |= set(re.findall(r'(?:call|_paged|_call)\(\s*"([A-Za-z.]+)"', path.read_text(encoding="utf-8")))

    assert called == set(re.findall(r"^- `([A-Za-z.]+)`", str(module.__doc__), re.MULTILINE))
    assert called.isdisjoint(NOTIFICATIONS)
