"""What passes and is in no file, on its way to the sinks that show it: redacted, held for a moment, owed to nobody."""

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
from exporter.core.events.redaction import Masked, Refused
from exporter.pipeline.sink_workers import SinkWorkers

if TYPE_CHECKING:
    from exporter.daemon.running import Redactors

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
    """Gathers for some milliseconds what is to be shown of each session at each sink, and drops the oldest if slow.

    `tell` is given every event that passes, once, not redacted: for who counts them.
    """

    def __init__(self, runs: Sequence[SinkWorkers], redaction: "Redactors", tell: Tell | None = None) -> None:
        self.dropped = 0
        self._runs = [run for run in runs if run.sink_state.feed.keep_live]
        self._redact = redaction.event
        self._texts = LiveText(redaction.stream)
        self._tell = tell
        self._held: OrderedDict[tuple[int, str], list[bytes]] = OrderedDict()
        self._since: dict[tuple[int, str], float] = {}
        self._held_bytes = 0
        self._work = asyncio.Event()
        self._recent: OrderedDict[tuple[str, str], None] = OrderedDict()

    @property
    def is_wanted(self) -> bool:
        """Tell whether somebody shows or counts what passes."""
        return bool(self._runs) or self._tell is not None

    def add(self, session: str, lines: Sequence[bytes]) -> None:
        """Show the ephemeral ones of these events; one that came by two sources is shown once."""
        if self.is_wanted:
            self._hold(session, [line for one in lines if (line := self._passed(session, one)) is not None])

    def missed(self, session: str) -> None:
        """Note that events of a session may have passed unseen."""
        self._texts.missed(session)

    def _hold(self, session: str, shown: Sequence[bytes]) -> None:
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
        if method == "shell.exit":
            for rest in self._texts.rest(session, params):
                if (shown := self._redacted(_event("shell.output", rest))) is not None:
                    self._hold(session, [shown])
        self.add(session, [_event(method, params)])

    def _passed(self, session: str, line: bytes) -> bytes | None:
        """Return the event as it may be shown, None when it may not or has been."""
        envelope = decode(line)
        if not isinstance(envelope, Envelope):
            return None
        self._texts.observe(session, envelope)
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
        shown = self._texts.shown(session, envelope, line)
        return None if shown is None else self._redacted(shown)

    def _redacted(self, line: bytes) -> bytes | None:
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
