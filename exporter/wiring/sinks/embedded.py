"""The embedded receiver as the sink that is in the same process."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from exporter.sinks.embedded import Embedded
from exporter.sinks.in_process import InProcessTransport
from exporter.sinks.sink import Ack
from exporter.sinks.transport import HttpAnswer

if TYPE_CHECKING:
    from starlette.applications import Starlette

_log: Final = logging.getLogger(__name__)


def embedded_sink(app: "Starlette") -> Embedded:
    """Make the sink that is this application's receiver."""
    from exporter.missioncontrol.http.responses import ApiError

    receiver = app.state.receiver

    async def hand_over(session: str, lines: Sequence[bytes], rewound: Sequence[str]) -> Ack | HttpAnswer:
        try:
            stored, rejected = await receiver.take(session, lines, rewound)
        except ApiError as error:
            return HttpAnswer(error.status, {name.lower(): value for name, value in error.headers.items()}, b"")
        except Exception as error:  # as a server answers: a defect there stops nothing here
            _log.error(
                "the embedded receiver failed", extra={"error": type(error).__name__}
            )  # its text may hold content
            return HttpAnswer(500, {}, b"")
        ack = stored.ack
        return Ack(ack.count, ack.digest, ack.last_event_id, len(stored.new), stored.duplicates, rejected)

    return Embedded(InProcessTransport(app), hand_over)
