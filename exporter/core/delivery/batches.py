"""How one segment reaches one sink: whole, or in halves when the sink refuses it.

Order of effects, written once, here. For every segment the caller does exactly this, in this order:

1. send the batch that `ready` names;
2. hand the answer to `answered`; when that returns events to quarantine, write them there durably;
3. when `ready` says `Done`, commit the delivered ids and the mark in one transaction;
4. only then read the next segment.

So a crash at any instant repeats at most this one segment and never skips an event. A batch is never reordered:
the left half is settled before the right half is sent.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from exporter.core.delivery.verdict import Accepted, Smaller, Suspect, Verdict


@dataclass(frozen=True, slots=True)
class Send:
    """Send events `first` up to, not including, `end` of the segment."""

    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Done:
    """Every event of the segment was accepted or goes to quarantine."""


@dataclass(frozen=True, slots=True)
class QuarantineEvent:
    """The sink refuses this one event."""

    index: int
    reason: str


@dataclass(frozen=True, slots=True)
class Settled:
    """The batch was accepted."""

    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Again:
    """Ask `ready` what to send next; nothing was settled."""


@dataclass(frozen=True, slots=True)
class Leave:
    """The answer concerns the sink or the session, not these events: give the segment up and follow the verdict."""

    verdict: Verdict


# What a body holds besides its events.
_FRAME_BYTES: Final = len(b'{"events":[]}')

Outcome: TypeAlias = Settled | QuarantineEvent | Again | Leave


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What one request may hold."""

    events_max: int
    bytes_max: int
    event_bytes_max: int


@dataclass(slots=True)
class _Range:
    first: int
    end: int
    refusals: int = 0


class Delivery:
    """The machine of one segment and one sink. `sizes` are the bytes of its events as they will be sent."""

    def __init__(self, sizes: list[int]) -> None:
        self.refused: set[int] = set()
        self.batch_bytes_refused: int | None = None
        self._sizes = sizes
        self._pending = [_Range(0, len(sizes))] if sizes else []  # the next range is the last

    def ready(self, limits: BatchLimits) -> Send | QuarantineEvent | Done:
        """Say what comes next. `QuarantineEvent` means that an event is larger than the sink takes: it is settled."""
        if not self._pending:
            return Done()
        current = self._pending[-1]
        if self._fits(current, limits):
            return Send(current.first, current.end)
        if self._sizes[current.first] > limits.event_bytes_max:
            self._drop_first(current)
            return QuarantineEvent(current.first - 1, "event_too_large")
        end, size = current.first, _FRAME_BYTES
        while end < current.end and end - current.first < limits.events_max:
            following = self._sizes[end]
            too_large = following > limits.event_bytes_max
            if end > current.first and (too_large or size + following + 1 > limits.bytes_max):
                break
            size += following + 1
            end += 1
        if end < current.end:
            self._pending[-1:] = [_Range(end, current.end), _Range(current.first, end, current.refusals)]
        return Send(current.first, end)

    def _fits(self, whole: _Range, limits: BatchLimits) -> bool:
        sizes = self._sizes[whole.first : whole.end]
        frame = _FRAME_BYTES + len(sizes)
        return (
            len(sizes) <= limits.events_max
            and frame + sum(sizes) <= limits.bytes_max
            and max(sizes) <= limits.event_bytes_max
        )

    def answered(self, verdict: Verdict) -> Outcome:
        """Take the answer to the batch that `ready` named last."""
        current = self._pending[-1]
        match verdict:
            case Accepted():
                self._pending.pop()
                return Settled(current.first, current.end)
            case Smaller():
                self.batch_bytes_refused = sum(self._sizes[current.first : current.end])
                return self._halve(current, "refused_413")
            case Suspect(status):
                current.refusals += 1
                if current.refusals < 2:
                    return Again()
                return self._halve(current, f"refused_{status}")
            case _:
                return Leave(verdict)

    def _halve(self, current: _Range, reason: str) -> Outcome:
        if current.end - current.first == 1:
            self._drop_first(current)
            return QuarantineEvent(current.first - 1, reason)
        middle = (current.first + current.end) // 2
        # A half of a batch refused twice needs no second try of its own before it is halved further.
        refusals = 1 if current.refusals else 0
        self._pending[-1:] = [_Range(middle, current.end, refusals), _Range(current.first, middle, refusals)]
        return Again()

    def _drop_first(self, current: _Range) -> None:
        self.refused.add(current.first)
        current.first += 1
        if current.first == current.end:
            self._pending.pop()
