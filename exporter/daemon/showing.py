"""What passes and is in no file, on its way to the sinks that show it: redacted, held for a moment, owed to nobody."""

import asyncio
import time
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from exporter.core.envelope import REFUSALS, Envelope, decode
from exporter.core.redacted import Masked, RedactEvent, Refused
from exporter.daemon.sink_run import SinkRun

GATHER_SECONDS: Final = 0.02
LATER_SECONDS: Final = 0.2
HELD_SECONDS_MAX: Final = 5.0
HELD_BYTES_MAX: Final = 4 << 20
BATCH_MAX: Final = 500
RECENT_MAX: Final = 16_384


class _Shell(msgspec.Struct, frozen=True):
    sessionId: str = ""  # noqa: N815  the wire's own name


class Showing:
    """Gathers for some milliseconds what is to be shown of each session at each sink, and drops the oldest if slow."""

    def __init__(self, runs: Sequence[SinkRun], redact: RedactEvent) -> None:
        self.shown = 0
        self.dropped = 0
        self._runs = [run for run in runs if run.outlet.keep_live]
        self._redact = redact
        self._held: OrderedDict[tuple[int, str], list[bytes]] = OrderedDict()
        self._since: dict[tuple[int, str], float] = {}
        self._held_bytes = 0
        self._work = asyncio.Event()
        self._recent: OrderedDict[tuple[str, str], None] = OrderedDict()

    @property
    def is_wanted(self) -> bool:
        """Tell whether some sink shows what passes."""
        return bool(self._runs)

    def add(self, session: str, lines: Sequence[bytes]) -> None:
        """Show ephemeral events; one that came by two sources is shown once."""
        if not self._runs:
            return
        shown = [line for one in lines if (line := self._passed(session, one)) is not None]
        if not shown:
            return
        for number in range(len(self._runs)):
            key = (number, session)
            self._held.setdefault(key, []).extend(shown)
            self._since.setdefault(key, time.monotonic())
            self._held_bytes += sum(map(len, shown))
        while self._held_bytes > HELD_BYTES_MAX and self._held:
            self._drop(next(iter(self._held)))
        self._work.set()

    def shell(self, method: str, params: bytes) -> None:
        """Show what a shell of a session has put out, as an event of that name."""
        try:
            session = msgspec.json.decode(params, type=_Shell).sessionId
        except REFUSALS:
            return
        event = {
            "type": method,
            "data": msgspec.Raw(params),
            "id": str(uuid.uuid4()),
            "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "parentId": None,
            "ephemeral": True,
        }
        self.add(session, [msgspec.json.encode(event)])

    def _passed(self, session: str, line: bytes) -> bytes | None:
        """Return the event as it may be shown, None when it may not or has been."""
        envelope = decode(line)
        if not isinstance(envelope, Envelope) or not envelope.ephemeral:
            return None
        key = (session, envelope.id)
        if key in self._recent:
            return None
        self._recent[key] = None
        if len(self._recent) > RECENT_MAX:
            self._recent.popitem(last=False)
        shown = self._redact(line)
        if isinstance(shown, Refused):
            self.dropped += 1
            return None
        return shown.line if isinstance(shown, Masked) else shown

    async def run(self) -> None:
        """Hand over until cancelled."""
        while True:
            await self._work.wait()
            await asyncio.sleep(GATHER_SECONDS)
            moved = [self._hand_over(key) for key in list(self._held)]
            if not self._held:
                self._work.clear()
            elif not any(moved):
                await asyncio.sleep(LATER_SECONDS)

    def _hand_over(self, key: tuple[int, str]) -> bool:
        number, session = key
        lane = self._runs[number].lanes.get(session)
        batch = self._held[key][:BATCH_MAX]
        if lane is None or not lane.show(batch):
            if time.monotonic() - self._since[key] > HELD_SECONDS_MAX:
                self._drop(key)
            return False
        self.shown += len(batch)
        rest = self._held[key][BATCH_MAX:]
        self._held_bytes -= sum(map(len, batch))
        if rest:
            self._held[key], self._since[key] = rest, time.monotonic()
        else:
            del self._held[key], self._since[key]
        return True

    def _drop(self, key: tuple[int, str]) -> None:
        lines = self._held.pop(key)
        del self._since[key]
        self._held_bytes -= sum(map(len, lines))
        self.dropped += len(lines)
