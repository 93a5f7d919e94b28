"""The joined parts of one exporter, from when they are built until they are closed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from exporter.core.notice import Level, Notice, NoticeLog, NoticeName
from exporter.daemon.control_requests import ControlRequests
from exporter.daemon.control_socket import control_socket
from exporter.daemon.daemon import Daemon
from exporter.daemon.serving import tell_when_full
from exporter.daemon.status_report import Reports
from exporter.pipeline.redactors import Redactors

if TYPE_CHECKING:
    from exporter.daemon.backfill import Helpers
    from exporter.missioncontrol.http.server import ServerHandle
    from exporter.missioncontrol.store.port import Store as ReceiverStore

_LOOK_SECONDS: Final = 2.0
_CAUGHT_UP_LOOK_SECONDS: Final = 0.2


@dataclass(slots=True)
class RunningExporter:
    """See the module. `receiver` is the embedded Mission Control, `page` its page once it is served.
    `installation` is what this state directory is called, `settings` are those that receivers may compare.

    `notices` takes notices. `monitor` makes what answers monitors. `beside` are further tasks that run while it is
    served.
    """

    daemon: Daemon
    redaction: Redactors
    host: str
    line_bytes_max: int
    notices: NoticeLog
    installation: str = ""
    receiver: Any = None
    receiver_store: "ReceiverStore | None" = None
    page: "ServerHandle | None" = None
    monitor: Callable[[], AbstractAsyncContextManager[int] | None] = lambda: None
    beside: list[Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=list)
    settings: Mapping[str, str] = field(default_factory=dict)

    def answers(self, helpers: "Helpers | None" = None) -> ControlRequests:
        """Return what answers the requests of commands; `helpers` take part in a long backfill."""
        return ControlRequests(self, helpers)

    def address(self) -> str | None:
        """Return the address of the page, None while there is none. It may work only once."""
        return self.page.address() if self.page is not None else None

    @asynccontextmanager
    async def serving(
        self, state_dir: Path, open_page: "Callable[[Any], Awaitable[ServerHandle]]"
    ) -> AsyncIterator[None]:
        """While in the block: the page is there, the control socket answers, and what runs beside the daemon runs."""
        tell_when_full(self.daemon.notice)
        reports = Reports(self.daemon, self.redaction.text, self.host, self.installation, self.settings)
        if self.receiver is not None:
            self.page = await open_page(self.receiver)
        try:
            async with AsyncExitStack() as stack:
                if (monitor := self.monitor()) is not None:
                    await stack.enter_async_context(monitor)
                await stack.enter_async_context(control_socket(state_dir, self.answers().answer))
                works = [reports.run(), self._watch_state(state_dir), self._flush(), *(work() for work in self.beside)]
                tasks = [asyncio.create_task(work) for work in works]
                try:
                    yield
                finally:
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            if self.page is not None:
                await self.page.stop()

    async def _watch_state(self, state_dir: Path) -> None:
        """Warn once when the directory is no longer the one that was opened; its open files can still be used."""
        opened = _identity(state_dir)
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            if _identity(state_dir) != opened:
                break
        self.daemon.say(
            NoticeName.STATE_GONE,
            Level.ERROR,
            "the state directory was deleted or moved: delivery goes on, but no command finds this exporter, and what "
            "it delivers from now on may be forgotten when it ends; stop it and start it again",
            path=str(state_dir),
        )

    async def _flush(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self.notices.flush()

    async def say_when_caught_up(self) -> None:
        """Say once that every sink has what there was."""
        while not all(run.idle() for run in self.daemon.runs):  # noqa: ASYNC110  lanes end in many places
            await asyncio.sleep(_CAUGHT_UP_LOOK_SECONDS)
        counts = self.daemon.counts()
        self.say(NoticeName.CAUGHT_UP, "caught up", sessions=counts["sessions"], events=counts["events"])

    def say(self, name: NoticeName, message: str, **fields: object) -> None:
        """Say something about the life of the exporter."""
        self.notices(Notice(name, Level.INFO, message, fields=fields))

    async def close(self) -> None:
        """Stop the daemon, then the embedded receiver; what was gathered of faults is said."""
        await self.daemon.stop()
        self.redaction.close()
        self.notices.flush(at_once=True)
        if self.receiver_store is not None:
            self.receiver_store.close()


def _identity(directory: Path) -> tuple[int, int] | None:
    with suppress(FileNotFoundError, NotADirectoryError):
        facts = directory.stat()
        return facts.st_dev, facts.st_ino
    return None
