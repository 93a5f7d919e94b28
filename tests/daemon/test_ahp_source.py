"""Sessions of agent hosts: every turn arrives once or a gap says so, whatever ends in between, whoever else has it."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Literal

import pytest

import exporter.daemon.remote_sources as observing_module
import exporter.sources.rpc.source as rpc_module
from config.errors import ConfigError
from config.settings import MissionControl, Otel, Settings, Source
from exporter.core.events.redaction import Masked, Redacted
from exporter.errors import Exit
from exporter.pipeline.redactors import Redactors
from tests.core.ahp.scripted import SESSION_NAME, STEPS, ScriptedHost
from tests.core.ahp.test_properties import gaps, happened, told
from tests.daemon.exchange import Request
from tests.daemon.peer import Peer
from tests.daemon.station import Exporter, Station, never, until
from tests.otel.receiver import Receiver
from tests.otel.reply import Reply
from tests.sources.ahp.server import TOKEN, Server, serving
from tests.sources.rpc.server import SESSION as RPC_SESSION
from tests.sources.rpc.server import MadeUpServer
from tests.sources.rpc.server import event as rpc_event

pytestmark = pytest.mark.anyio
BOTH = pytest.mark.parametrize("version", [1, "0.9.0"], ids=["classic", "chat"])
CLI_SESSION = "0d1b8f5e-6c3f-4a53-9d1e-b9a5c0c3a001"


class Held:
    """What a receiver holds of a session, for what a host is compared with."""

    def __init__(self, peer: Peer, session: str = SESSION_NAME) -> None:
        self._peer = peer
        self._session = session

    def durable(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self._peer.behind.held(self._session)]


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exporter.sources.remote.PAUSE_SECONDS", (0.01, 0.05))
    monkeypatch.setattr(rpc_module, "REST_SECONDS", 0.01)
    monkeypatch.setattr(observing_module, "HOUSEKEEPING_SECONDS", 0.05)


def settings_of(station: Station, peer: Peer, *servers: Server, live: bool = False, **changes: Any) -> Settings:
    token = station.state.parent / "token"
    if not token.exists():
        token.write_text(TOKEN + "\n")
    sources = tuple(Source(url=url_of(server), token_file=str(token)) for server in servers)
    sinks = {"default": MissionControl(url=peer.url, live=live)}
    return station.settings(sinks, **{"source": sources, **changes})


def url_of(server: Server) -> str:
    return f"ahp+ws://127.0.0.1:{server.port}/"


async def status_of(exporter: Exporter, server: Server) -> dict[str, Any]:
    [found] = [one for one in (await exporter.ask("status"))["sources"] if one["name"] == url_of(server)]
    return dict(found)


async def watched(exporter: Exporter, host: ScriptedHost) -> None:
    """Wait until the conversation is known as it is, and all that there was of it."""
    observing = exporter.running.daemon.observing
    assert observing is not None
    await until(lambda: host.chat in host._subscribed and not observing.catching_up())


async def says(exporter: Exporter, server: Server, words: str) -> None:
    """Wait until the status of a source says so, or of one of its sessions."""
    async with asyncio.timeout(15):
        while True:
            status = await status_of(exporter, server)
            if words in " ".join([status["state"], *(problem["kind"] for problem in status["problems"])]):
                return
            await asyncio.sleep(0.02)


def live(peer: Peer, session: str) -> list[Request]:
    return [one for one in list(peer.requests) if one.path.endswith(f"/{session}/live")]


@BOTH
async def test_every_turn_arrives_once_whatever_ends_in_between(
    version: str | int, station: Station, full: Peer
) -> None:
    host, held = ScriptedHost(version, buffer=5, window=2), Held(full)
    async with serving(host) as server:
        exporter = station.exporter(settings_of(station, full, server))
        await watched(exporter, host)
        for number in range(9):
            server.do("start", "think", "write", "call", "ready")
            if number % 3 == 0:
                server.drop()
            server.do("complete", "write", "end")
            if number == 4:
                host.restart()
                server.drop()
            if number == 6:
                await until(lambda: len(told(held)) >= 3)
                await exporter.crash(full)
                server.drop()
                host.restart()  # ids are others when somebody looks again
                exporter = station.exporter(settings_of(station, full, server))
        await until(lambda: told(held) == happened(host))

        assert await exporter.idle() is Exit.DONE
        assert gaps(held) == []
        assert await exporter.differences() == []
        ids = [event["id"] for event in held.durable()]
        assert len(ids) == len(set(ids))


async def test_what_a_host_has_lost_is_a_gap_at_the_receiver(station: Station, full: Peer) -> None:
    host, held = ScriptedHost("0.9.0"), Held(full)
    async with serving(host) as server:
        exporter = station.exporter(settings_of(station, full, server))
        await watched(exporter, host)
        server.do("start", "write", "end", "start", "write", "end")
        await until(lambda: len(told(held)) == 2)

        server.drop()
        host.turns.pop()
        host.restart()

        await until(lambda: gaps(held))
        assert [(gap["fromTurn"], gap["toTurn"], gap["recovered"]) for gap in gaps(held)] == [(1, 2, False)]


async def test_what_passes_is_shown_and_never_delivered(station: Station, full: Peer) -> None:
    def redact(line: bytes, /) -> Redacted:
        return Masked(line.replace(b"text-", b"***-"), ("password",)) if b"text-" in line else line

    host, held = ScriptedHost("0.9.0"), Held(full)
    async with serving(host) as server:
        settings = settings_of(station, full, server, live=True)
        exporter = station.exporter(settings, redaction=Redactors(redact, lambda text: text))
        await watched(exporter, host)
        server.do("start", "write", "write", "end", "start", "write", "write", "write")
        await until(lambda: any(b"message_start" in one.body for one in live(full, SESSION_NAME)))
        server.do("end")
        await until(lambda: len(told(held)) == 2)

        await exporter.idle()
        bodies = b"".join(request.body for request in full.event_requests())
        journal = (station.state / "journals" / SESSION_NAME / "events.jsonl").read_bytes()
        assert b'"ephemeral"' not in bodies + journal
        assert b"text-" not in journal + bodies + b"".join(one.body for one in live(full, SESSION_NAME))


@pytest.mark.parametrize("rests", [False, True], ids=["at once", "after a rest"])
async def test_a_session_of_the_cli_that_has_a_file_is_delivered_from_the_file_alone(
    rests: bool, station: Station, full: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host names the CLI's session with the first use of the model, however late that comes."""
    if rests:
        monkeypatch.setattr("exporter.core.ahp.session.HOLD_SECONDS", 0.1)
    host = ScriptedHost("0.9.0", provider="copilotcli")
    async with serving(host) as server:
        exporter = station.exporter(settings_of(station, full, server, live=True))
        await watched(exporter, host)
        if rests:
            await asyncio.sleep(0.5)
        session = station.session(CLI_SESSION)
        session.add(3)
        server.do("start", "write")
        host.use(CLI_SESSION)
        server.do("write", "write", "end")
        await until(lambda: live(full, CLI_SESSION))
        await until(lambda: len(full.ids(CLI_SESSION)) == 3)

        await never(lambda: full.ids(SESSION_NAME) or len(full.ids(CLI_SESSION)) != 3, 0.3)
        assert await exporter.idle() is Exit.DONE
        assert list((station.state / "journals").iterdir()) == []
        await exporter.stop()
        server.drop()

        again = station.exporter(settings_of(station, full, server))  # its history names the session too
        await watched(again, host)
        await again.idle()
        assert (len(full.ids(SESSION_NAME)), len(full.ids(CLI_SESSION))) == (0, 3)


async def test_a_classic_session_that_has_a_file_is_delivered_from_the_file_alone(station: Station, full: Peer) -> None:
    host = ScriptedHost(1, provider="copilot")
    async with serving(host) as server:
        exporter = station.exporter(settings_of(station, full, server, live=True))
        await watched(exporter, host)
        server.do("start", "write")
        await never(lambda: full.ids(SESSION_NAME), 0.2)
        station.session(SESSION_NAME).add(2)  # written when the CLI has its first message, after we were told of it
        server.do("write", "write", "end")
        await until(lambda: live(full, SESSION_NAME))
        await until(lambda: len(full.ids(SESSION_NAME)) == 2)

        await exporter.idle()
        assert full.ids(SESSION_NAME) == ["e0", "e1"]


async def test_a_journal_that_a_host_began_stays_the_hosts_when_a_file_appears(station: Station, full: Peer) -> None:
    host, held = ScriptedHost(1), Held(full)
    async with serving(host) as server:
        exporter = station.exporter(settings_of(station, full, server))
        await watched(exporter, host)
        server.do("start", "write", "end")
        await until(lambda: told(held) == happened(host))
        station.session(SESSION_NAME).add(2)
        await never(lambda: "e0" in full.ids(SESSION_NAME), 0.3)
        await exporter.stop()
        server.drop()

        exporter = station.exporter(settings_of(station, full, server))
        await watched(exporter, host)
        server.do("start", "write", "end")
        await until(lambda: told(held) == happened(host))

        await exporter.idle()
        assert "e0" not in full.ids(SESSION_NAME)
        assert await exporter.differences() == []


async def test_a_session_that_a_cli_server_has_too_is_delivered_from_the_server_alone(
    station: Station, full: Peer
) -> None:
    cli, host = MadeUpServer(), ScriptedHost(1, name=RPC_SESSION, provider="copilot")
    cli.history = [rpc_event(1), rpc_event(2)]
    listening = await asyncio.start_server(cli.serve, "127.0.0.1", 0)
    async with serving(host) as server:
        rpc = Source(url=f"rpc://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
        sources = (*settings_of(station, full, server).source, rpc)
        settings = settings_of(station, full, server, source=sources)
        exporter = station.exporter(settings)
        await until(lambda: host._subscribed)
        server.do("start", "write", "write", "end")
        await until(lambda: full.ids(RPC_SESSION) == ["e1", "e2"])

        await never(lambda: full.ids(RPC_SESSION) != ["e1", "e2"], 0.3)
        await exporter.stop()
        cli.hang_up()
        server.drop()
        exporter = station.exporter(settings)  # the journal is the server's, whoever comes first now
        await until(lambda: host._subscribed)
        server.do("start", "write", "end")
        await cli.add(rpc_event(3))
        await until(lambda: full.ids(RPC_SESSION) == ["e1", "e2", "e3"])
        assert await exporter.differences() == []
    cli.hang_up()
    listening.close()


@BOTH
async def test_what_was_there_before_is_delivered_before_a_wait_ends(
    version: str | int, station: Station, full: Peer
) -> None:
    host, held = ScriptedHost(version, window=2), Held(full)
    for step in ("start", "write", "call", "ready", "complete", "end") * 7:
        STEPS[step](host)
    async with serving(host) as server:
        exporter = station.exporter(settings_of(station, full, server))

        assert await exporter.idle() is Exit.DONE
        assert told(held) == happened(host)


async def test_a_session_that_rests_is_read_when_it_is_named_and_only_then(
    station: Station, full: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, held = ScriptedHost("0.9.0"), Held(full)
    for step in ("start", "write", "end"):
        STEPS[step](host)
    answer, rests = host.answer, [{"resource": host.session, "status": 1, "modifiedAt": 1000}]

    def resting(method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"result": {"items": rests}} if method == "listSessions" else answer(method, params)

    monkeypatch.setattr(host, "answer", resting)
    async with serving(host) as server:
        settings = settings_of(station, full, server)
        unnamed = station.exporter(settings)
        await unnamed.idle()
        assert host.session not in host._subscribed
        await unnamed.stop()
        server.drop()

        named = station.exporter(settings, session_ids=(SESSION_NAME,))
        await named.idle()

        assert told(held) == happened(host)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (-32005, "update the exporter, or the host"),
        (-32007, "no session before a sign-in"),
        (-32008, "does not know us"),
        (-32009, "denies access"),
    ],
)
async def test_what_a_host_refuses_is_explained_in_the_status(
    code: int, said: str, station: Station, full: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = ScriptedHost("0.9.0")
    answer = host.answer

    def refuse(method: str, params: dict[str, Any]) -> dict[str, Any]:
        is_refused = method == "initialize" if code == -32005 else params.get("channel") == host.session
        if is_refused:
            data = {"supportedVersions": ["^7.0.0"]} if code == -32005 else {}
            return {"error": {"code": code, "message": f"no {TOKEN}", "data": data}}
        return answer(method, params)

    monkeypatch.setattr(host, "answer", refuse)
    async with serving(host) as server:
        exporter = station.exporter(settings_of(station, full, server))

        await says(exporter, server, said)

        everything = json.dumps(await exporter.ask("status")) + repr(exporter.notices)
        assert TOKEN not in everything and "made%2Fup" not in everything
        assert str(code) in everything or "^7.0.0" in everything


async def test_a_wrong_token_is_explained_and_a_new_one_picked_up(station: Station, full: Peer) -> None:
    host, held, token = ScriptedHost("0.9.0"), Held(full), station.state.parent / "token"
    token.write_text("not-" + TOKEN)
    async with serving(host) as server:
        exporter = station.exporter(settings_of(station, full, server))
        await says(exporter, server, "refused the token (HTTP 403)")
        assert TOKEN not in json.dumps(await exporter.ask("status")) + repr(exporter.notices)

        token.write_text(TOKEN)

        await watched(exporter, host)
        server.do("start", "write", "end")
        await until(lambda: told(held) == happened(host))
        assert (await status_of(exporter, server))["state"] == "following"
    assert not [path for path in station.state.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]


async def test_a_missing_package_is_named_before_anything_starts(
    station: Station, full: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)
    server = Server(ScriptedHost("0.9.0"))
    server.port = 1

    with pytest.raises(ConfigError) as refused:
        station.exporter(settings_of(station, full, server))

    assert "pip install 'session-exporter[ahp]'" in refused.value.hint


@pytest.mark.parametrize("content", ["redacted", "metadata"])
async def test_what_a_host_logs_goes_to_the_endpoints_that_may_have_texts(
    content: Literal["redacted", "metadata"], station: Station, full: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def redact(line: bytes, /) -> Redacted:
        return Masked(line.replace(b"hunter2", b"***"), ("password",)) if b"hunter2" in line else line

    host = ScriptedHost("0.9.0")
    answer, told, channel = host.answer, host.told, "ahp-otlp://logs/info"

    def with_logs(method: str, params: dict[str, Any]) -> dict[str, Any]:
        found = answer(method, params)
        if method == "initialize":
            found["result"]["telemetry"] = {"logs": "ahp-otlp://logs/{level}"}
        elif method == "subscribe" and params["channel"] == channel:
            for text in ("started", "the password is hunter2"):
                logs = {"scopeLogs": [{"logRecords": [{"body": {"stringValue": text}, "severityNumber": 9}]}]}
                frame = {
                    "method": "otlp/exportLogs",
                    "params": {"channel": channel, "payload": {"resourceLogs": [logs]}},
                }
                told.append({"jsonrpc": "2.0", **frame})
        return found

    monkeypatch.setattr(host, "answer", with_logs)
    monkeypatch.setattr("exporter.wiring.telemetry.PAUSE_SECONDS", (0.01, 0.01))
    with Receiver() as receiver:
        receiver.plan(Reply(status=503))
        otel = {"default": Otel(endpoint=receiver.url, signals=("logs",), content=content)}
        async with serving(host) as server:
            exporter = station.exporter(
                settings_of(station, full, server, otel=otel), redaction=Redactors(redact, lambda text: text)
            )
            beside = [asyncio.ensure_future(one()) for one in exporter.running.beside]
            await watched(exporter, host)
            if content == "metadata":
                assert channel not in host._subscribed
            else:
                await until(lambda: len(receiver.logs()) == 2)
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
        texts = [record.body.string_value for record in receiver.logs() if record.body.string_value]

    assert texts == (["started", "the password is ***"] if content == "redacted" else [])
