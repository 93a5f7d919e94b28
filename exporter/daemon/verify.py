"""Checks that a sink holds exactly what the files hold, and repairs what it lacks.

A sink that can be inspected from here (`Sink.inspect`) is read to its last byte; any other is asked what it holds.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from exporter.core.delivery.position import START, Mark
from exporter.core.delivery.session_state import SETBACKS, STOPS, SessionEvent
from exporter.core.delivery.verdict import Deleted, Foreign, Gone, Later, Missing, Unauthorized, Verdict
from exporter.core.events.digest import total
from exporter.daemon.offline_status import iso
from exporter.errors import Exit, worst
from exporter.pipeline.lane import Lane
from exporter.sinks.sink import Inspection, Items, Registered, Registration
from exporter.status import DELETED, DIFFERENT, EQUAL, FOREIGN, REFUSED, UNKNOWN, UNREACHABLE, VerifyRow

LOST: Final = "the receiver has not this session any more; --repair sends it again"
_ENDS: Final = {
    DIFFERENT: Exit.FINDINGS,
    REFUSED: Exit.REFUSED,
    UNREACHABLE: Exit.UNREACHABLE,
    UNKNOWN: Exit.PARTIAL,
    FOREIGN: Exit.PARTIAL,
}
FLOOR: Final = "this receiver cannot be asked; it accepted {} of {} events"


class _Everything:
    """Contains every id, so that a reader skips every event."""

    def __contains__(self, _: object) -> bool:
        return True


async def ids_in_file(lane: Lane) -> tuple[set[str], int]:
    """Return the ids of the durable events of a session file, and how many lines repeat one.

    They are read from whole lines, without being redacted. Of a journal, whose front may be cut off, those that were
    delivered count as being in it.
    """
    sink_state, session = lane.sink_state, lane.file.session
    seen = set(sink_state.store.delivered(session, sink_state.sink_id)) if lane.file.is_journal else set()
    position, lines = START, 0
    while True:
        segment = await lane.sink_state.reader.segment(lane.file, position, skip=_Everything(), seen=seen)
        if segment is None:
            return seen, 0 if lane.file.is_journal else lines - len(seen)
        position, lines = segment.end, lines + segment.skipped


def _differ(at_receiver: bytes, remembered: bytes) -> bool:
    """Tell whether an event has other bytes there; hashes of another length cannot be compared."""
    return len(remembered) == len(at_receiver) and remembered != at_receiver


@dataclass(slots=True)
class _Comparison:
    """One session at one sink: the ids in the file, those of them that it should hold, and what is remembered of it."""

    lane: Lane
    in_file: set[str]
    wanted: set[str]
    delivered: dict[str, bytes]
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    receiver: int | None = None
    details: list[str] = field(default_factory=list)
    others: set[str] = field(default_factory=set)
    is_damaged: bool = False
    unasked: str | None = None  # the verdict, where the receiver did not say what it has
    cannot_be_asked: bool = False

    def cannot(self, answer: Verdict) -> None:
        """Record an answer that does not say what the receiver holds."""
        self.missing, self.extra = [], []
        match answer:
            case Deleted():
                self.unasked = DELETED
                self.details.append("only `backfill --from-start` sends it again")
            case Foreign():
                self.unasked = FOREIGN
                self.details.append(STOPS[SessionEvent.FOREIGN][1])
            case Gone():
                self.unasked = UNKNOWN
                self.details.append(SETBACKS[SessionEvent.GONE])
            case Unauthorized(status):
                self.unasked = REFUSED
                self.details.append(f"the receiver answered {status}")
            case _:
                self.unasked = UNREACHABLE
                self.details.append(answer.reason if isinstance(answer, Later) else type(answer).__name__.lower())

    @property
    def verdict(self) -> str:
        """Return the verdict."""
        differs = self.missing or self.extra or self.different or self.is_damaged
        return self.unasked or (DIFFERENT if differs else UNKNOWN if self.cannot_be_asked else EQUAL)

    async def ask(self, *, mend: bool) -> Registration | None:
        """Ask the receiver what it holds of the session, and note what differs; return its answer."""
        sink_state, session = self.lane.sink_state, self.lane.file.session
        mark = sink_state.store.mark(session, sink_state.sink_id) or Mark()
        if self.lane.stopped:
            self.cannot(Foreign() if self.lane.stopped_by is SessionEvent.FOREIGN else Deleted())
            return None
        if mark.remote_id is None and not self.wanted:
            return None
        answer = await sink_state.sink.register(session, mark.remote_id or session)
        if mark.remote_id is None and isinstance(answer, Registered | Missing):
            self.details.append("never delivered")
        elif isinstance(answer, Missing):
            self.missing, self.receiver = sorted(self.wanted), 0
            self.details += [LOST] if self.wanted else []
        elif not isinstance(answer, Registered):
            self.cannot(answer)
        elif answer.ack is None:
            self.cannot_be_asked = True
            self.details.append(FLOOR.format(len(self.wanted & self.delivered.keys()), len(self.wanted)))
            if sink_state.last_success:
                self.details.append(f"its last accepting answer came at {iso(sink_state.last_success)}")
        elif isinstance(inspected := await sink_state.sink.inspect(answer.remote_id, mend=mend), Inspection):
            faults = inspected.faults if self.delivered or inspected.items else ()
            self.is_damaged, self.receiver = bool(faults), len(inspected.items)
            self.details += [*faults, *inspected.notes]
            self._compare(inspected.items)
        elif inspected is not None:
            self.cannot(inspected)
        else:
            self.receiver = answer.ack.count
            if answer.ack.digest != total(self.delivered.items()) or answer.ack.count != len(self.delivered):
                self._compare(await sink_state.sink.items(answer.remote_id))
        return answer

    def _compare(self, items: dict[str, bytes] | Verdict) -> None:
        if not isinstance(items, dict):
            self.cannot(items)
            return
        both = items.keys() & self.delivered.keys()
        if isinstance(items, Items):
            self.others = set(items.others) - (self.delivered.keys() - self.others)
        extra = items.keys() - self.in_file
        self.missing, self.extra = sorted(self.wanted - items.keys()), sorted(extra - self.others)
        if strange := len(extra & self.others):
            self.details.append(f"{strange} of another installation")
        self.different = sorted(one for one in both if _differ(items[one], self.delivered[one]))
        if not self.missing and not self.extra and self.different and not self.delivered.keys() - items.keys():
            self.details.append("same ids, other bytes")


def ended(rows: Iterable[VerifyRow], *, named: bool) -> Exit:
    """Return the exit code of a comparison: a known difference weighs more than an unknown state.

    A session that was deleted there counts only where a person `named` it.
    """
    ends = _ENDS | ({DELETED: Exit.PARTIAL} if named else {})
    return worst(Exit.DONE, *(ends[row.verdict] for row in rows if row.verdict in ends))


async def verify(lane: Lane, silent: dict[str, Verdict], *, repair: bool) -> VerifyRow:
    """Compare the file, the marks and the receiver for one session; with `repair` begin to send what is missing.

    A receiver that does not answer, or refuses the token, is noted in `silent` by its name and is not asked again.
    """
    sink_state, session = lane.sink_state, lane.file.session
    in_file, duplicates = await ids_in_file(lane)
    delivered = sink_state.store.delivered(session, sink_state.sink_id)
    wanted = in_file - sink_state.quarantine.ids(session, sink_state.sink.name)
    found = _Comparison(lane, in_file, wanted, delivered, sorted(wanted - delivered.keys()))
    found.others = sink_state.store.others(session, sink_state.sink_id)
    found.extra = sorted(delivered.keys() - in_file - found.others)
    if sink_state.sink.name in silent and not lane.stopped:
        found.cannot(silent[sink_state.sink.name])
    else:
        answer = await found.ask(mend=repair)
        if isinstance(answer, Later | Unauthorized):
            silent[sink_state.sink.name] = answer
    if repair and found.verdict == DIFFERENT:
        await lane.repair(found.different)
    quarantined = sink_state.quarantine.count(session=session, sink=sink_state.sink.name)
    if quarantined:
        found.details.append(f"{quarantined} in quarantine")
    if duplicates:
        found.details.append(f"{duplicates} lines repeat an id" if duplicates > 1 else "1 line repeats an id")
    return VerifyRow(
        session, sink_state.sink.name, found.verdict == EQUAL, len(in_file), len(delivered), found.receiver,
        found.missing, found.extra, found.different, quarantined, "; ".join(found.details) or None, found.verdict,
        duplicates,
    )  # fmt: skip
