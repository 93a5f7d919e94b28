"""The Mission Control in this process."""

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from exporter.wiring.sinks.kind import BuiltSink, SinkKind, SinkParts

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from exporter.sinks.embedded import Embedded
    from exporter.sinks.sink import Ack
    from exporter.sinks.transport import HttpAnswer

LANES: Final = 2
_log: Final = logging.getLogger(__name__)


def embedded_sink(app: "Starlette") -> "Embedded":
    """Return the sink of this application's receiver."""
    from exporter.missioncontrol.http.responses import ApiError
    from exporter.sinks.embedded import Embedded, InProcessTransport
    from exporter.sinks.sink import Ack
    from exporter.sinks.transport import HttpAnswer

    receiver = app.state.receiver
    epoch = receiver.store.epoch

    async def hand_over(session: str, lines: Sequence[bytes], rewound: Sequence[str]) -> "Ack | HttpAnswer":
        try:
            stored, rejected = await receiver.take(session, lines, rewound)
        except ApiError as error:
            return HttpAnswer(error.status, {name.lower(): value for name, value in error.headers.items()}, b"")
        except Exception as error:  # like a server: its defect must not stop the exporter; its text may hold content
            _log.error("the embedded receiver failed", extra={"error": type(error).__name__})
            return HttpAnswer(500, {}, b"")
        ack = stored.ack
        counts = len(stored.new), stored.duplicates, rejected
        return Ack(ack.count, ack.digest, ack.last_event_id, *counts, epoch, stored.changes)

    return Embedded(InProcessTransport(app), hand_over)


def _build(_: str, __: None, parts: SinkParts) -> Iterator[BuiltSink]:
    assert parts.receiver is not None
    from exporter.pipeline.feed import EventFeed

    yield BuiltSink(embedded_sink(parts.receiver), LANES, EventFeed(parts.reader, keep_live=True))


KIND: Final = SinkKind(
    section="",
    what="every event, to the Mission Control that `exporter up` starts on this machine",
    build=_build,
    unprobed="it is a file in the state directory, which is checked as that",
)
