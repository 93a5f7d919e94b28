"""Whatever ends when, a journal that is written from a server holds its durable events, each once and in order."""

import asyncio
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exporter.sources.rpc.session as session_module
import exporter.sources.rpc.source as module
from exporter.core.events.envelope import Envelope, decode
from exporter.sources.journals import Journals
from exporter.sources.remote import Callbacks, SourceEvent, Want
from exporter.sources.rpc.source import RpcSource
from tests.sources.rpc.server import SESSION, MadeUpServer, event, until

STEPS = st.lists(
    st.sampled_from(["event", "event", "live", "compaction", "hang up", "crash", "torn", "unload", "load"]), max_size=30
)


class Exporter:
    """The source with a journal, as one run of the program has them."""

    def __init__(self, root: Path, port: int, *, push: bool) -> None:
        self.journals = Journals(root, 1 << 30)
        callbacks = Callbacks(self.take, self.journals.mark, self.journals.known, lambda *_: Want.ALL, lambda _: None)
        source = RpcSource(
            lambda: asyncio.open_connection("127.0.0.1", port),
            lambda: None,
            callbacks,
            push=push,
            pause_seconds=(0.001, 0.005),
        )
        self.task = asyncio.create_task(source.run())

    async def take(self, session: str, events: Sequence[SourceEvent]) -> bool:
        await asyncio.sleep(0)  # a moment in which anything may end
        durable = []
        for line, is_ephemeral in events:
            envelope = decode(line)
            assert isinstance(envelope, Envelope)
            if not is_ephemeral:
                durable.append((envelope.id, line))
        taken = self.journals.append(session, durable)
        await asyncio.sleep(0)
        return taken

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.journals.close()


async def scenario(root: Path, steps: list[str], *, push: bool) -> None:
    server, path = MadeUpServer(), root / SESSION / "events.jsonl"
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    exporter = Exporter(root, port, push=push)
    for n, step in enumerate([*steps, "load", "event"]):
        if step in ("event", "live", "compaction"):
            made = [event(n, ephemeral=step == "live")]
            if step == "compaction":
                made = [event(n, type="tool.execution_start"), event(1000 + n, type="session.compaction_complete")]
                await server.compact(*made)
            else:
                server.file = [*server.file, *([] if step == "live" else made)]
                await server.add(*made)
            for one in made if push and server.loaded else ():
                server.send({"method": "session.event", "params": {"sessionId": SESSION, "event": one}})
        elif step in ("load", "unload"):
            server.loaded = step == "load"
            server.hang_up()
        elif step == "hang up":
            server.hang_up()
        else:
            await exporter.end()
            if step == "torn" and path.exists():
                path.write_bytes(path.read_bytes() + b'{"type":"x","id":"to')
            exporter = Exporter(root, port, push=push)
        for _ in range(n % 7):
            await asyncio.sleep(0.001)

    def written() -> list[str]:
        content = path.read_bytes() if path.exists() else b""
        return [json.loads(line)["id"] for line in content[: content.rfind(b"\n") + 1].splitlines()]

    expected = [one["id"] for one in server.file]
    await until(lambda: written()[-1:] == expected[-1:])
    assert written() == expected
    await exporter.end()
    server.hang_up()
    listening.close()


@pytest.mark.parametrize("push", [False, True], ids=["polled", "pushed"])
def test_the_journal_is_the_history(push: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REST_SECONDS", 0.005)
    monkeypatch.setattr(session_module, "AGAIN_SECONDS", 0.005)

    @settings(max_examples=60)
    @given(STEPS)
    def check(steps: list[str]) -> None:
        with tempfile.TemporaryDirectory() as directory:
            asyncio.run(scenario(Path(directory), steps, push=push))

    check()
