"""A machine with sessions on it and an exporter that is started, stopped, killed and asked."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from config.settings import Limits, MissionControl, Settings
from exporter.app import build
from exporter.core.notice import Level, Notice
from exporter.daemon.running import RunningExporter
from exporter.errors import Exit
from exporter.pipeline.redactors import Redactors
from exporter.sinks.http_transport import HttpTransport
from exporter.sinks.mission_control import MissionControlSink
from tests.daemon.peer import Peer
from tests.daemon.sessions import SessionFile
from tests.shared import CACHE

PASS_THROUGH = Redactors(lambda line, /: line, lambda text: text)
"""Finds nothing; for tests that are about delivery and not about secrets."""


async def until(fact: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until something is so; fail when it does not come to be."""
    end = time.perf_counter() + seconds
    while not fact():
        assert time.perf_counter() < end, "what the test waits for did not happen"
        await asyncio.sleep(0.005)


async def never(fact: Callable[[], object], seconds: float) -> None:
    """Watch for some time that something does not happen."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        assert not fact(), "what must not happen did"
        await asyncio.sleep(0.005)


class Exporter:
    """One life of the exporter, from its start to its stop or its crash."""

    def __init__(
        self,
        settings: Settings,
        *,
        redaction: Redactors | None = PASS_THROUGH,
        local: bool = False,
        session_ids: tuple[str, ...] = (),
    ) -> None:
        self.notices: list[Notice] = []
        self._others = asyncio.all_tasks()
        self.running: RunningExporter = build(
            settings, self.notices.append, redaction=redaction, local=local, session_ids=session_ids
        )
        self._ended = False

    def compress(self) -> "Exporter":
        """Compress as if the sink were not on loopback, where nothing is compressed."""
        for run in self.running.daemon.runs:
            url = run.sink_state.sink.url
            transport = HttpTransport(url, connections=4, timeout_seconds=10.0)
            run.sink_state.sink = MissionControlSink(run.name, url, transport, token=lambda: None, compression=True)
        return self

    def start(self) -> "Exporter":
        self.running.daemon.start()
        return self

    async def idle(self, seconds: float = 1_500.0) -> Exit:
        """Wait until all is delivered, or until the daemon says why not; seconds are of the clock in use."""
        return await asyncio.wait_for(self.running.daemon.until_idle(), seconds)

    async def stop(self) -> None:
        """End as a person would have it."""
        if not self._ended:
            self._ended = True
            await self.running.close()

    async def crash(self, *peers: Peer) -> None:
        """End at once: nothing is drained, nothing more is written down. What is on the wire still arrives."""
        if self._ended:
            return
        self._ended = True
        tasks = asyncio.all_tasks() - self._others - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.running.daemon.source.close()
        if self.running.daemon.observing is not None:
            await self.running.daemon.observing.stop()
        self.running.daemon.store.close()
        self.running.daemon.quarantine.close()
        if self.running.receiver_store is not None:
            self.running.receiver_store.close()
        await until(lambda: not any(peer.busy() for peer in peers))

    async def ask(self, what: str, **fields: Any) -> dict[str, Any]:
        """Ask as the command line does."""
        return await asyncio.wait_for(self.running.answers().answer({"do": what, **fields}, lambda _: None), 1_500)

    async def differences(self) -> list[dict[str, Any]]:
        """Return what `verify` finds, only rows with a difference, or of which it should be known if they are equal."""
        rows: list[dict[str, Any]] = (await self.ask("verify", all=True))["sessions"]
        assert rows
        return [row for row in rows if row["verdict"] not in ("equal", "unknown")]

    async def quarantined(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.ask("quarantine_list"))["quarantined"]
        return found

    async def sink_status(self, name: str = "mission_control") -> dict[str, Any]:
        """Return what `status` says of one sink."""
        [found] = [one for one in (await self.ask("status"))["sinks"] if one["name"] == name]
        return dict(found)

    def alarms(self) -> list[Notice]:
        """Return what asks for a person."""
        return [notice for notice in self.notices if notice.level >= Level.ERROR]


class Station:
    """Where the sessions are and what the exporter remembers; exporters come and go."""

    def __init__(self, home: Path) -> None:
        self.copilot = home / "copilot"
        self.state = home / "state"
        (self.copilot / "session-state").mkdir(parents=True)
        self.state.mkdir(mode=0o700)
        self.exporters: list[Exporter] = []

    def session(self, name: str = "s") -> SessionFile:
        """Make a session directory, without events yet."""
        return SessionFile(self.copilot, name)

    def settings(self, sinks: dict[str, MissionControl], **changes: Any) -> Settings:
        """Return settings with these Mission Controls and these changes; a sink alone is called `default`."""
        facts: dict[str, Any] = {
            "copilot_home": str(self.copilot),
            "state_dir": str(self.state),
            "cache_dir": str(CACHE),
            "mission_control": sinks,
            "limits": Limits(poll_seconds=0.1),
            "host_name": "laptop",
        }
        return Settings(**{**facts, **changes})

    def exporter(self, peer: Peer | Settings, **options: Any) -> Exporter:
        """Start an exporter for this peer, with the wire's defaults; options of `Exporter` go through."""
        if isinstance(peer, Peer):
            mission_control = {
                key: options.pop(key) for key in list(options) if key in MissionControl.__struct_fields__
            }
            settings = self.settings({"default": MissionControl(url=peer.url, **mission_control)})
        else:
            settings = peer
        compress = options.pop("compress", False)
        exporter = Exporter(settings, **options)
        self.exporters.append(exporter.compress() if compress else exporter)
        return exporter.start()

    async def close(self) -> None:
        for exporter in self.exporters:
            await exporter.stop()
