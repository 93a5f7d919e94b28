"""The Mission Control in this process: asked as over the wire, but given its events as they are in memory."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from exporter.core.names import LOCAL
from exporter.sinks.mission_control import MissionControlSink, acknowledged
from exporter.sinks.sink import Ack, Sent
from exporter.sinks.transport import HttpAnswer, Transport

HandOver: TypeAlias = Callable[[str, Sequence[bytes], Sequence[str]], Awaitable[Ack | HttpAnswer]]
"""Gives a session's redacted events, and the ids that are gone, to the receiver; answers once they are durable."""


class Embedded(MissionControlSink):
    """See the module. What `hand_over` answers instead of an acknowledgement is judged like any answer."""

    def __init__(self, transport: Transport, hand_over: HandOver) -> None:
        super().__init__(LOCAL, LOCAL, transport, token=lambda: None, compression=False)
        self._hand_over = hand_over

    async def send(
        self, remote_id: str, ids: Sequence[str], lines: Sequence[bytes], rewound: Sequence[str] = ()
    ) -> Sent:
        """Hand over one batch in file order; `rewound` are ids that are gone from the file."""
        taken = await self._hand_over(remote_id, lines, rewound)
        return acknowledged(taken, ids) if isinstance(taken, Ack) else Sent(self._judge(taken))
