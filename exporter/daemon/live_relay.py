"""Ephemeral events on their way to the sinks that show them: redacted, held in memory for a moment, never stored.

Their delivery is not guaranteed: the oldest are dropped when a sink is slow.
"""

import asyncio
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from exporter.core.events.envelope import REFUSALS, Envelope, decode
from exporter.core.events.live_text import LiveText
from exporter.core.events.redaction import line_of
from exporter.core.events.tool_calls import ArrivingCalls
from exporter.pipeline.sink_workers import SinkWorkers

if TYPE_CHECKING:
    from exporter.pipeline.redactors import Redactors

GATHER_SECONDS: Final = 0.02
LATER_SECONDS: Final = 0.2
HELD_SECONDS_MAX: Final = 5.0
HELD_BYTES_MAX: Final = 4 << 20
BATCH_MAX: Final = 500
RECENT_MAX: Final = 16_384

Tell: TypeAlias = Callable[[str, Envelope], None]


class _Shell(msgspec.Struct, frozen=True):
    sessionId: str = ""  # noqa: N815  the wire's own name


class LiveRelay:
    """Batches the ephemeral events of each session for each sink; drops the oldest when a sink is slow.

    `tell` receives every ephemeral event once, not redacted, to count it. `calls` know which output is that of a
    command that prints a secret; such a piece is masked as a whole.
    """

    def __init__(
        self,
        runs: Sequence[SinkWorkers],
        redaction: "Redactors",
        tell: Tell | None = None,
        calls: ArrivingCalls | None = None,
    ) -> None:
        self.dropped = 0
        self._runs = [run for run in runs if run.sink_state.feed.keep_live]
        self._redact = redaction.event
        self._commands = redaction.commands
        self._calls = calls
        self._texts = LiveText(redaction.stream)
        self._tell = tell
        self._held: dict[tuple[int, str], tuple[float, list[bytes]]] = {}
        """The events for each sink and session, and since when they are held; the oldest first."""
        self._held_bytes = 0
        self._work = asyncio.Event()
        self._recent: OrderedDict[tuple[str, str], None] = OrderedDict()

    @property
    def is_wanted(self) -> bool:
        """Tell whether a sink shows ephemeral events or they are counted."""
        return bool(self._runs) or self._tell is not None

    def add(self, session: str, lines: Sequence[bytes]) -> None:
        """Show the ephemeral ones of these events; a duplicate from a second source is ignored."""
        if self.is_wanted:
            self._hold(session, [line for one in lines if (line := self._shown(session, one)) is not None])

    def missed(self, session: str) -> None:
        """Note that ephemeral events of a session may have been missed."""
        self._texts.missed(session)
        if self._calls is not None:
            self._calls.missed(session)

    def _hold(self, session: str, shown: Sequence[bytes]) -> None:
        if not shown:
            return
        for number in range(len(self._runs)):
            self._held.setdefault((number, session), (time.monotonic(), []))[1].extend(shown)
            self._held_bytes += sum(map(len, shown))
        while self._held_bytes > HELD_BYTES_MAX and self._held:
            self._drop(next(iter(self._held)))
        self._work.set()

    def shell(self, method: str, params: bytes) -> None:
        """Show the output or the exit of a session's shell as an ephemeral event of that name."""
        try:
            session = msgspec.json.decode(params, type=_Shell).sessionId
        except REFUSALS:
            return
        if method == "shell.exit":
            for rest in self._texts.rest(session, params):
                if (shown := self._redacted(_event("shell.output", rest))) is not None:
                    self._hold(session, [shown])
        self.add(session, [_event(method, params)])

    def _shown(self, session: str, line: bytes) -> bytes | None:
        """Return the event redacted, None when it is not ephemeral, is refused, or is a duplicate."""
        envelope = decode(line)
        if not isinstance(envelope, Envelope):
            return None
        self._texts.observe(session, envelope)
        rule = self._calls.rule_at(session, envelope) if self._calls is not None else None
        if not envelope.ephemeral:
            return None
        key = (session, envelope.id)
        if key in self._recent:
            return None
        self._recent[key] = None
        if len(self._recent) > RECENT_MAX:
            self._recent.popitem(last=False)
        if self._tell is not None:
            self._tell(session, envelope)
        if not self._runs:
            return None
        shown = self._texts.shown(session, envelope, line) if rule is None else line
        return None if shown is None else self._redacted(shown, rule)

    def _redacted(self, line: bytes, rule: str | None = None) -> bytes | None:
        redacted = self._redact(line)
        if rule is not None and self._commands is not None:
            redacted = self._commands.mask(line, redacted, rule)
        shown = line_of(redacted)
        self.dropped += shown is None
        return shown

    async def run(self) -> None:
        """Send the batches until cancelled."""
        while True:
            await self._work.wait()
            await asyncio.sleep(GATHER_SECONDS)
            moved = [self._send(key) for key in list(self._held)]
            if not self._held:
                self._work.clear()
            elif not any(moved):
                await asyncio.sleep(LATER_SECONDS)

    def _send(self, key: tuple[int, str]) -> bool:
        number, session = key
        since, lines = self._held[key]
        lane, batch = self._runs[number].lanes.get(session), lines[:BATCH_MAX]
        if lane is None or not lane.show(batch):
            if time.monotonic() - since > HELD_SECONDS_MAX:
                self._drop(key)
            return False
        self._held_bytes -= sum(map(len, batch))
        if len(lines) > len(batch):
            self._held[key] = time.monotonic(), lines[BATCH_MAX:]
        else:
            del self._held[key]
        return True

    def _drop(self, key: tuple[int, str]) -> None:
        _, lines = self._held.pop(key)
        self._held_bytes -= sum(map(len, lines))
        self.dropped += len(lines)


def _event(type: str, data: bytes) -> bytes:
    event = {
        "type": type,
        "data": msgspec.Raw(data),
        "id": str(uuid.uuid4()),
        "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "parentId": None,
        "ephemeral": True,
    }
    return msgspec.json.encode(event)
