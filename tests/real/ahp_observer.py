"""The AHP source on a thread of its own, with a journal behind it, beside a real host that a test drives.

`verified` compares what an observer has left with the host's history, as the program does.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection

from exporter.core.agents.registry import AgentRegistry, EventOwner
from exporter.core.events.envelope import Envelope, decode
from exporter.sources.ahp.connection import Address, open_socket
from exporter.sources.ahp.marks import AhpMarks
from exporter.sources.ahp.source import AhpSource
from exporter.sources.journals import Journals
from exporter.sources.remote import Callbacks, SourceEvent, Want
from tests.real.ahp_host import TOKEN
from tests.real.cage import Cage
from tests.real.cli import wait_until
from tests.real.station import PROGRAM, environment

FOLLOW_SECONDS_MAX = 30
PROGRAM_SECONDS_MAX = 60
JOURNAL_BYTES_MAX = 64 << 20


class AhpObserver:
    """Follows the active sessions of the host that `connect` reaches; a context manager.

    `root` is as the program's state directory.
    """

    def __init__(
        self, root: Path, url: str, connect: Callable[[], socket.socket], *, elsewhere: frozenset[str] = frozenset()
    ) -> None:
        self.root = root
        self.ephemeral: list[dict[str, Any]] = []
        self.places: dict[str, EventOwner] = {}
        self.telemetry: list[tuple[str, bytes]] = []
        self._connect = connect
        self._is_paused = False
        self._connections: list[ClientConnection] = []
        self._agents = AgentRegistry()
        self._journals = Journals(root / "journals", JOURNAL_BYTES_MAX)
        callbacks = Callbacks(
            self._take,
            self._journals.mark,
            self._journals.known,
            lambda *_: Want.ALL,
            lambda session: None,
            elsewhere.__contains__,
        )
        shown, _, token = url.partition("?tkn=")
        address = Address(shown, lambda: token)
        marks = AhpMarks(root / "ahp", address.shown)
        self.source = AhpSource(
            address,
            callbacks,
            marks,
            on_telemetry=lambda method, frame: self.telemetry.append((method, frame)),
            connect=self._open,
            pause_seconds=(0.1, 0.5),
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def events(self, session: str) -> list[dict[str, Any]]:
        """What the journal of a session holds."""
        path = self.root / "journals" / session / "events.jsonl"
        written = path.read_bytes() if path.exists() else b""
        return [json.loads(line) for line in written[: written.rfind(b"\n") + 1].splitlines()]

    def turns(self, session: str) -> int:
        """How many turns of the session itself were told to their end."""
        ends = [e for e in self.events(session) if e["type"] == "assistant.turn_end"]
        return sum(not event.get("agentId") for event in ends)

    def wait_state(self, word: str) -> None:
        wait_until(lambda: word in self.source.state, f"the state {word!r}", FOLLOW_SECONDS_MAX)

    def wait_turns(self, session: str, count: int) -> None:
        wait_until(lambda: self.turns(session) >= count, f"{count} turns", FOLLOW_SECONDS_MAX)

    def wait_for(self, session: str, type: str, count: int) -> None:
        def came() -> bool:
            return len([event for event in self.events(session) if event["type"] == type]) >= count

        wait_until(came, f"{count} {type}", FOLLOW_SECONDS_MAX)

    def pause(self) -> None:
        """Cut the connection, and make no other until `resume`."""
        self._is_paused = True
        self.drop()
        wait_until(lambda: "no connection" in self.source.state, "the connection to be cut", FOLLOW_SECONDS_MAX)

    def resume(self) -> None:
        """Let it connect again."""
        self._is_paused = False

    def drop(self) -> None:
        """Cut the connection, as a network does."""
        transport = self._connections[-1].transport
        self._loop.call_soon_threadsafe(transport.abort)

    def __enter__(self) -> AhpObserver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(10)
        self._journals.close()

    @asynccontextmanager
    async def _open(self, address: Address) -> AsyncIterator[ClientConnection]:
        if self._is_paused:
            raise ConnectionError
        async with open_socket(address, sock=self._connect()) as connection:
            self._connections.append(connection)
            yield connection

    async def _take(self, session: str, events: Sequence[SourceEvent]) -> bool:
        self._agents.add(session)
        durable = []
        for line, is_ephemeral in events:
            envelope = decode(line)
            assert isinstance(envelope, Envelope), envelope
            self.places[envelope.id] = self._agents.attribute(session, envelope)
            if is_ephemeral:
                self.ephemeral.append(json.loads(line))
            else:
                durable.append((envelope.id, line))
        return self._journals.append(session, durable)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._task = self._loop.create_task(self.source.run())
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        finally:
            self._loop.close()


def verified(
    cage: Cage, port: int, root: Path, session: str, *, token: str = TOKEN, files: Path | None = None
) -> tuple[int, list[dict[str, Any]]]:
    """The exit status and the rows of `exporter verify --source` of a session that an observer with this root followed.

    What the journal has is delivered to an archive first. `files` is the CLI's home that is in its reach.
    """
    directory = root.parent / f"{root.name}-verified"
    (directory / "elsewhere").mkdir(parents=True, exist_ok=True)
    (directory / "token").write_text(token)
    settings = {
        **environment(directory),
        "EXPORTER_STATE_DIR": str(root),
        "EXPORTER_COPILOT_HOME": str(files or directory / "elsewhere"),
        "EXPORTER_ARCHIVE__URL": (directory / "archive").as_uri(),
        "EXPORTER_ARCHIVE__SEAL_SECONDS": "0.1",
    }

    def ended(*arguments: str) -> tuple[int, bytes]:
        program = cage.start([*PROGRAM, *arguments], environment=settings, directory=directory, stdout=subprocess.PIPE)
        stdout, _ = program.communicate(timeout=PROGRAM_SECONDS_MAX)
        return program.returncode, stdout

    if any((root / "journals").glob("*")):
        ended("run", "--until-idle")  # without the host, which would add what was missed
    settings["EXPORTER_SOURCE"] = json.dumps([{"url": f"ahp+ws://127.0.0.1:{port}/?token_file={directory / 'token'}"}])
    status, output = ended("verify", "--session", session, "--source", "--wake", "--json")
    rows: list[dict[str, Any]] = json.loads(output)["sessions"]
    return status, rows
