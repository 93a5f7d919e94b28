"""The source for agent hosts, over a real WebSocket: tokens, connections that end, and what is stored before what."""

from __future__ import annotations

import asyncio
import builtins
import json
import logging
import os
import random
import shutil
import ssl
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection

from exporter.sources.ahp.connection import Address
from exporter.sources.ahp.marks import AhpMarks
from exporter.sources.ahp.source import AhpSource
from exporter.sources.remote import Callbacks, SourceEvent, Want
from tests.core.ahp.scripted import SESSION_NAME, STEPS, ScriptedHost
from tests.core.ahp.test_properties import gaps, happened, told
from tests.otel.certificates import make_certificates
from tests.sources.ahp.server import TOKEN, Server, serving

SECONDS_MAX = 20
Json = dict[str, Any]


class Store:
    """Takes events as a journal does."""

    def __init__(self) -> None:
        self.order: list[Json] = []
        self.is_full = False
        self.pages: list[int] = []
        self.refused = 0

    def durable(self) -> list[Json]:
        return [event for event in self.order if not event.get("ephemeral")]

    async def take(self, session: str, events: Sequence[SourceEvent]) -> bool:
        if self.is_full:
            self.refused += 1
            return False
        self.pages.append(len(events))
        self.order += [json.loads(event.line) for event in events]
        return True

    def callbacks(self) -> Callbacks:
        return Callbacks(
            self.take,
            lambda session: next((event["id"] for event in reversed(self.durable())), None),
            lambda session, id: any(event["id"] == id for event in self.durable()),
            lambda session, changed: Want.ALL,
            lambda session: None,
        )


def source_of(server: Server, store: Store, directory: Path, **options: Any) -> AhpSource:
    token = directory / "token"
    if not token.exists():
        token.write_text(TOKEN + "\n")
    address = Address(f"{server.scheme}://127.0.0.1:{server.port}/", lambda: token.read_text().strip())
    marks = AhpMarks(directory / "marks", address.shown)
    return AhpSource(address, store.callbacks(), marks, pause_seconds=(0.01, 0.05), **options)


@asynccontextmanager
async def observing(server: Server, store: Store, directory: Path, **options: Any) -> AsyncIterator[AhpSource]:
    source = source_of(server, store, directory, **options)
    task = asyncio.create_task(source.run())
    try:
        yield source
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def wait_for(happened: Callable[[], object], what: str) -> None:
    try:
        async with asyncio.timeout(SECONDS_MAX):
            while not happened():  # noqa: ASYNC110  it happens on threads and sockets too
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"{what} did not happen") from None


async def run_through(version: str | int, directory: Path) -> None:
    store, host = Store(), ScriptedHost(version, buffer=5, window=2)
    async with serving(host) as server, observing(server, store, directory) as source:
        await wait_for(lambda: source.state == "following", "a connection")
        for number in range(12):
            server.do("start", "think", "write", "call", "ready")
            if number % 3 == 0:
                server.drop()
            server.do("complete", "write")
            if number % 4 == 1:
                server.do("end")
                host.restart()
                server.drop()
            server.do("end")
            if number % 2:
                ends = number + 1
                await wait_for(lambda: len(told(store)) >= ends, f"{ends} turns")  # noqa: B023
        await wait_for(lambda: told(store) == happened(host), "every turn")

        assert gaps(store) == []
        assert source.connections > 3
        assert source.counts.durable == len(store.durable())


@pytest.mark.parametrize("version", [1, "0.9.0"], ids=str)
def test_every_turn_is_told_once_through_lost_connections_and_restarts(version: str | int, tmp_path: Path) -> None:
    asyncio.run(run_through(version, tmp_path))


def test_a_source_that_is_started_again_goes_on_where_it_was(tmp_path: Path) -> None:
    async def run() -> None:
        store, host = Store(), ScriptedHost("0.9.0")
        async with serving(host) as server:
            for count in (1, 2, 3):
                async with observing(server, store, tmp_path):
                    await wait_for(lambda: server.connections and host._subscribed, "a subscription")
                    server.do("start", "write", "end")
                    await wait_for(lambda: len(happened(host)) == count and told(store) == happened(host), "it")  # noqa: B023
                    server.drop()
                host.restart()  # while nobody watches: ids are others

        assert gaps(store) == []

    asyncio.run(run())
    (mark,) = (tmp_path / "marks").glob(f"*/{SESSION_NAME}.json")
    assert stat.S_IMODE(mark.stat().st_mode) == 0o600


def test_a_kill_after_a_turn_does_not_take_the_next_turn_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host loses the turn and is asked the same again: only the stored state says that this is another turn."""
    monkeypatch.setattr("exporter.sources.ahp.source.SAVE_SECONDS", 3600.0)

    async def run() -> None:
        store, host = Store(), ScriptedHost("0.9.0")
        marks, killed = tmp_path / "marks", tmp_path / "killed"
        async with serving(host) as server:
            async with observing(server, store, tmp_path):
                await wait_for(lambda: server.connections and host._subscribed, "a subscription")
                for _ in range(2):
                    server.do("start", "write", "end")
                await wait_for(lambda: len(told(store)) == 2 and told(store) == happened(host), "two turns")
                lost = host.turns.pop()
                host.restart()
                server.drop()
                await wait_for(lambda: gaps(store), "the gap")
                shutil.copytree(marks, killed)  # what a process that is killed here leaves
            shutil.rmtree(marks)
            killed.rename(marks)
            host.turns.append(lost)
            host.restart()
            async with observing(server, store, tmp_path):
                await wait_for(lambda: len(told(store)) == 3, "the turn with the same prompt")

        assert told(store)[2] == told(store)[1] == happened(host)[1]

    asyncio.run(run())


def test_a_wrong_token_is_told_of_and_a_new_one_picked_up(tmp_path: Path) -> None:
    async def run() -> None:
        store, host = Store(), ScriptedHost("0.9.0")
        (tmp_path / "token").write_text("not-" + TOKEN)
        async with serving(host) as server, observing(server, store, tmp_path) as source:
            await wait_for(lambda: "refused the token (HTTP 403)" in source.state, "a refusal")
            (tmp_path / "token").write_text(TOKEN)
            await wait_for(lambda: source.state == "following", "a connection")

    asyncio.run(run())


def test_the_token_is_in_no_log_no_status_and_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []

    async def run() -> None:
        store, host = Store(), ScriptedHost("0.9.0")
        (tmp_path / "token").write_text("not-" + TOKEN)
        async with serving(host) as server, observing(server, store, tmp_path) as source:
            await wait_for(lambda: source.connections == 0 and len(server.paths) > 2, "refusals")
            seen.append(repr(vars(source)))
            (tmp_path / "token").write_text(TOKEN)
            await wait_for(lambda: source.state == "following", "a connection")
            server.drop()
            await wait_for(lambda: source.connections > 1, "another")
            seen.append(repr(vars(source)))
            seen.append(repr(source._address) + str(source._address))

    with caplog.at_level(logging.DEBUG):
        asyncio.run(run())
    everything = caplog.text + "".join(seen)
    assert TOKEN not in everything
    assert "tkn" not in everything
    assert "made%2Fup" not in everything


@pytest.mark.parametrize("said", ["rubbish", "binary", "huge", "closed"])
def test_a_host_that_talks_rubbish_is_left_and_tried_again(said: str, tmp_path: Path) -> None:
    async def say(connection: ServerConnection) -> None:
        if said == "rubbish":
            for _ in range(200):
                await connection.send("{{{")
        elif said == "binary":
            for _ in range(200):
                await connection.send(b"\0\1")
        elif said == "huge":
            await connection.send("[" + " " * (33 << 20))
        await connection.close()

    words = {
        "rubbish": "invalid message",
        "binary": "invalid message",
        "huge": "above the size limit",
        "closed": "closed",
    }

    async def run() -> None:
        store, host = Store(), ScriptedHost("0.9.0")
        async with serving(host) as server:
            server.say = say
            async with observing(server, store, tmp_path) as source:
                await wait_for(lambda: words[said] in source.state, words[said])
                server.say = None
                await wait_for(lambda: source.state == "following", "a connection")

    asyncio.run(run())


# Frames as RFC 6455 forbids them: reserved bits, unknown kinds, masked by a server, longer than can be, cut off.
BROKEN = {
    "reserved bits": b"\xf1\x02{}",
    "an unknown kind": b"\x8b\x02{}",
    "masked": b"\x81\x82\0\0\0\0{}",
    "without end": b"\x81\x7f\x7f\xff\xff\xff\xff\xff\xff\xff" + b"x" * 65_536,
    "no UTF-8": b"\x81\x02\xff\xfe",
    "a long ping": b"\x89\x7e\x01\x00" + b"x" * 256,
    "a continuation of nothing": b"\x80\x02{}",
    "a close with half a code": b"\x88\x01\x03",
}


@pytest.mark.parametrize("broken", [*BROKEN, *range(8)], ids=str)
def test_frames_that_are_none_end_the_connection_and_another_is_made(broken: str | int, tmp_path: Path) -> None:
    async def say(connection: ServerConnection) -> None:
        sent = BROKEN[broken] if isinstance(broken, str) else random.Random(broken).randbytes(4096)
        connection.transport.write(sent)
        await asyncio.sleep(0.05)
        connection.transport.abort()

    async def run() -> None:
        store, host = Store(), ScriptedHost("0.9.0")
        async with serving(host) as server:
            server.say = say
            async with observing(server, store, tmp_path) as source:
                await wait_for(lambda: source.connections > 1, "another connection")
                server.say = None
                await wait_for(lambda: source.state == "following", "a connection")
                server.do("start", "write", "end")
                await wait_for(lambda: told(store) == happened(host), "the turn")

    asyncio.run(run())


def test_a_host_with_a_certificate_that_is_not_trusted_gets_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_certificates(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(made.server, made.server_key)

    async def run() -> None:
        store, host = Store(), ScriptedHost("0.9.0")
        async with serving(host, tls) as server:
            server.scheme = "wss"
            monkeypatch.setenv("SSL_CERT_FILE", str(made.other))
            async with observing(server, store, tmp_path) as source:
                await wait_for(lambda: "does not trust the host's certificate" in source.state, "a refusal")
                assert server.paths == []
            monkeypatch.setenv("SSL_CERT_FILE", str(made.authority))
            async with observing(server, store, tmp_path) as source:
                await wait_for(lambda: source.state == "following", "a connection")

    asyncio.run(run())


def test_what_is_no_agent_host_is_said_to_be_none(tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example.org ESMTP\r\n")
        writer.close()

    async def run() -> None:
        server = Server(ScriptedHost("0.9.0"))
        listening = await asyncio.start_server(answer, "127.0.0.1", 0)
        server.port = listening.sockets[0].getsockname()[1]
        async with listening, observing(server, Store(), tmp_path) as source:
            await wait_for(lambda: "does not speak WebSocket" in source.state, "words")
        async with observing(server, Store(), tmp_path) as source:
            await wait_for(lambda: "cannot be reached" in source.state, "words")

    asyncio.run(run())


def test_a_journal_that_is_full_is_waited_for_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exporter.sources.ahp.source.AGAIN_SECONDS", 0.01)

    async def run() -> None:
        store, host = Store(), ScriptedHost("0.9.0")
        async with serving(host) as server, observing(server, store, tmp_path) as source:
            await wait_for(lambda: source.state == "following" and host._subscribed, "a connection")
            store.is_full = True
            server.do("start", "write", "end")
            await wait_for(lambda: store.refused > 2 and "full" in source.state, "a full journal")
            server.drop()
            server.do("start", "write", "end")
            assert not list((tmp_path / "marks").glob(f"*/{SESSION_NAME}.json"))
            store.is_full = False
            await wait_for(lambda: told(store) == happened(host), "both turns")

    asyncio.run(run())


def test_what_was_not_taken_because_something_broke_is_offered_again(tmp_path: Path) -> None:
    async def run() -> None:
        store, host = Store(), ScriptedHost("0.9.0")
        take, broken = store.take, [True]

        async def sometimes(session: str, events: Sequence[SourceEvent]) -> bool:
            if broken:
                broken.pop()
                raise RuntimeError("a defect")
            return await take(session, events)

        store.take = sometimes  # type: ignore[method-assign]  # as a defect would have it
        async with serving(host) as server:
            for step in ("start", "write", "end"):
                STEPS[step](host)
            source = source_of(server, store, tmp_path)
            with pytest.raises(RuntimeError):
                await source.run()
            again = asyncio.create_task(source.run())  # as whoever watches over it does
            await wait_for(lambda: told(store) == happened(host), "the turn")
            again.cancel()
            await asyncio.gather(again, return_exceptions=True)

    asyncio.run(run())


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def without(name: str, *arguments: Any, **named: Any) -> Any:
        if name.startswith("websockets"):
            raise ImportError(name)
        return found(name, *arguments, **named)

    async def run() -> None:
        async with observing(Server(ScriptedHost("0.9.0")), Store(), tmp_path) as source:
            await wait_for(lambda: "pip install 'session-exporter[ahp]'" in source.state, "words")

    monkeypatch.setattr(builtins, "__import__", without)
    asyncio.run(run())


def test_an_address_shows_no_token() -> None:
    address = Address("ws://[::1]:3/", lambda: "x&y")

    assert (str(address), address.with_token()) == ("ws://[::1]:3/", "ws://[::1]:3/?tkn=x%26y")
    assert "tkn" not in repr(address)
    assert Address("ws://[::1]:3/").with_token() == "ws://[::1]:3/"


def test_marks_are_whole_private_and_of_one_host_only(tmp_path: Path) -> None:
    marks = AhpMarks(tmp_path, "ws://one/")
    marks.save("session", b"first")
    marks.save("session", b"second")
    marks.save("../escape", b"no")

    assert marks.load("session") == b"second"
    assert AhpMarks(tmp_path, "ws://two/").load("session") is None
    assert marks.load("../escape") is None
    assert marks.client() == AhpMarks(tmp_path, "ws://one/").client()
    assert marks.client() != AhpMarks(tmp_path, "ws://two/").client()
    (mark,) = tmp_path.glob("*/session.json")
    os.utime(mark, (0, 0))
    assert AhpMarks(tmp_path, "ws://one/").load("session") is None
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["client", "client"]
