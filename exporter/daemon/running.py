"""The joined parts of one exporter, from when they are built until they are closed."""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exporter.core.events.live_text import TextStream
from exporter.core.events.redaction import RedactEvent
from exporter.daemon.control_requests import ControlRequests
from exporter.daemon.daemon import Daemon
from exporter.daemon.reports import Reports
from exporter.daemon.serving import ServedPage, Serving

if TYPE_CHECKING:
    from exporter.daemon.backfill_helpers import Helpers
    from exporter.missioncontrol.store.port import Store as ReceiverStore


@dataclass(frozen=True, slots=True)
class Redactors:
    """What the parts use of the redactor: one for events, one for single texts, one for texts that come in pieces.

    It is for one thread, unless no `make_another` is given. Without `stream`, no text is shown while it is written.
    """

    event: RedactEvent
    text: Callable[[str], str]
    make_another: "Callable[[], Redactors] | None" = None
    stream: Callable[[str], TextStream] | None = None

    def another(self) -> "Redactors":
        """Return the same for another thread; its rules are not compiled again."""
        return self.make_another() if self.make_another is not None else self


@dataclass(slots=True)
class RunningExporter:
    """See the module. `receiver` is the embedded Mission Control, `page` its page once it is served.

    `beside` is what else goes on while it is served.
    """

    daemon: Daemon
    redaction: Redactors
    host: str
    line_bytes_max: int
    receiver: Any = None
    receiver_store: "ReceiverStore | None" = None
    page: ServedPage | None = None
    beside: list[Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=list)

    def answers(self, helpers: "Helpers | None" = None) -> ControlRequests:
        """Return what answers the requests of commands; `helpers` take part in what is much."""
        redaction = self.redaction
        return ControlRequests(
            self.daemon,
            redaction.event,
            redaction.text,
            line_bytes_max=self.line_bytes_max,
            host=self.host,
            url=self.address,
            helpers=helpers,
        )

    def address(self) -> str | None:
        """Return what a person opens to see the page, None while there is none. It may be good for one use only."""
        return self.page.address() if self.page is not None else None

    def serving(self, state_dir: Path, open_page: Callable[[Any], Awaitable[ServedPage]]) -> Serving:
        """Return what goes on around the daemon, as a block to be in."""

        async def open_ours() -> ServedPage:
            self.page = await open_page(self.receiver)
            return self.page

        reports = Reports(self.daemon, self.redaction.text, self.host)
        beside = [reports.run, *self.beside]
        return Serving(state_dir, self.answers().answer, beside, open_ours if self.receiver is not None else None)

    async def close(self) -> None:
        """Stop the daemon, then the embedded receiver."""
        await self.daemon.stop()
        if self.receiver_store is not None:
            self.receiver_store.close()
