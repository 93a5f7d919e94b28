"""The state of one session at one sink: what is known, what has to be done first, and what every answer changes.

Theory of operation
-------------------
Two questions have to be answered before an event is sent. They have a state each, and one table moves both.

**Does the sink have what we believe it has?** (`Agreement`, the letters of the table)

- `U` UNREGISTERED: not asked since the start of the exporter. The session is registered before its first event is sent.
- `D` DOUBTED: the sink may have lost the session. It is registered at the next turn, though nothing is to be sent.
- `Q` QUESTIONED: what the sink has is to be asked, and the session is to be registered before that.
- `O` STARTING_OVER: a person wants everything sent again. The session is registered; the count that is answered says
  nothing, because what the sink has is not believed. A file without events ends this: then the count says something.
- `T` RESTORING: the same, after the session was deleted there: the registration undoes the deletion.
- `R` REGISTERED: the sink has exactly what we remember.
- `N` UNANSWERED: registered, but what was sent last has no answer, and the sink may have it.
- `A` ASKING: registered; what the sink has is asked before anything else is sent.
- `S` STOPPED: the session was deleted there, or is another token's. Nothing is sent until a person starts it over.

Every event that is sent is sent in `R` or `N`. Whatever contradicts what we remember (another count, an
acknowledgement of something else, a conflict) leads to `A` or `Q`, and from there only the sink's own list of items
leads back. A sink that has no such list is taken to have nothing, or, of records, what we remember.

**From where is the file read?** (`Reading`)

- `U` UNPLACED: not known since the start, or since our store was lost.
- `F` FOLLOWING: from the mark on. The mark moves with every segment.
- `C` RECONCILING: from the first event, compared by id with what the sink has. The mark does not move before the end
  of the file; the delivered ids do, so that a crash repeats nothing that was acknowledged.

A change of the file's past is no state: the generation of the file differs from that of the walk, and the place is
taken again by `MARK_HOLDS` or `MARK_BROKEN`.

The executor does what `due` says, in its order, and reports what happens as an event. For every event it first carries
out the effects of the transition, in their order, and enters the new states only when all of them succeeded: when an
effect fails, for example because the disk is full, the state is what it was, and the same thing happens again. The
order of effects of one segment is stated in `batches`.
"""

from collections.abc import Container
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final, TypeVar

from exporter.core.delivery.position import DELETED_THERE, FOREIGN_THERE, Identity, Mark, Position
from exporter.core.delivery.reconcile import Walk
from exporter.core.delivery.verdict import (
    ALARM_WAIT_SECONDS,
    Conflict,
    Deleted,
    Foreign,
    Gone,
    Later,
    Missing,
    Unauthorized,
    Unrestorable,
    Unsupported,
    Verdict,
)


class Agreement(Enum):
    """Whether the sink has what we believe it has; see the module."""

    UNREGISTERED = "U"
    DOUBTED = "D"
    QUESTIONED = "Q"
    STARTING_OVER = "O"
    RESTORING = "T"
    REGISTERED = "R"
    UNANSWERED = "N"
    ASKING = "A"
    STOPPED = "S"


class Reading(Enum):
    """From where the file is read; see the module."""

    UNPLACED = "U"
    FOLLOWING = "F"
    RECONCILING = "C"


class SessionEvent(Enum):
    """What happens."""

    STORE_LOST = auto()  # our own: the mark was read again from the new one
    START_OVER = auto()  # a person wants everything sent again
    RESTORE = auto()  # the same, of a session that was deleted there, which may come out only when it is registered
    DOUBT = auto()  # the sink may have lost the session
    REPAIR = auto()  # a person wants the sink to hold what the file holds
    COUNT_AGREES = auto()  # registered; the sink says as many events as we, or cannot say
    COUNT_DIFFERS = auto()  # registered, or a segment is committed, and the sink says another number, or none but could
    ITEMS = auto()  # the sink has exactly these ids
    ACKNOWLEDGED = auto()  # a batch
    MISTRUSTED = auto()  # a batch, or what is gone, was accepted, and something else acknowledged
    REWINDING = auto()  # the ids that are gone from the file are about to be sent
    REWOUND = auto()  # all of them were accepted, and as many events are left there as we know
    UNTOLD = auto()  # they were accepted, and something else was acknowledged by a sink that cannot say what it has
    CHANGED_UNANSWERED = auto()  # the file's past changed in UNANSWERED, and the sink can say what it has
    MARK_HOLDS = auto()  # the bytes before the mark are the same, or nothing was delivered ever
    MARK_BROKEN = auto()  # they are not
    RECONCILED = auto()  # the end of the file is reached, and the mark is there
    LATER = auto()
    UNAUTHORIZED = auto()
    MISSING = auto()
    DELETED = auto()
    FOREIGN = auto()
    UNRESTORABLE = auto()
    GONE = auto()
    CONFLICT = auto()


class Effect(Enum):
    """What the executor does before it enters the next state."""

    NOTE = auto()  # report to the sink's gate what the answer shows: healthy, failing, or the token refused
    STEADY = auto()  # forget the setbacks
    SET_BACK = auto()  # beginning again did not help: try this session less often
    SAY_MISSING = auto()
    STOP = auto()  # remember, durably, that nothing more is sent there, and say why
    RECORD = auto()  # remember, durably, exactly these ids as what the sink has, and no position
    RECORD_NOTHING = auto()  # the same of no ids; the session has no id there any more
    DISBELIEVE = auto()  # remember, durably, that the mark's position holds no more
    READ_FROM_MARK = auto()
    READ_FROM_START = auto()  # with these ids as what the sink has
    READ_ON = auto()  # where the reconciliation came to


class Due(Enum):
    """What has to be done before the session is read, or sent."""

    NOTHING = auto()
    REGISTER = auto()
    ASK = auto()


_E, _F = SessionEvent, Effect
_AGAIN: Final = (_F.RECORD, _F.READ_FROM_START)
# fmt: off
TABLE: Final[dict[SessionEvent, tuple[str, str, tuple[Effect, ...]]]] = {
    # The next state in the column of the present one; "-": it cannot happen; "": this question is not touched.
    #                       U D Q O T R N A S    U F C
    _E.STORE_LOST:         ("U D Q O T U U Q U", "U U U", ()),
    _E.START_OVER:         ("O O O O T O O O -", "C C C", _AGAIN),
    _E.RESTORE:            ("- - - T - - - - T", "C C C", (_F.RECORD_NOTHING, _F.READ_FROM_START)),
    _E.DOUBT:              ("D D Q O T D D Q S", "",      ()),
    _E.REPAIR:             ("Q Q Q Q T A A A S", "",      ()),
    _E.COUNT_AGREES:       ("R R A R R - - - -", "",      ()),
    _E.COUNT_DIFFERS:      ("A A A R R A - - -", "",      ()),
    _E.ITEMS:              ("- - - - - - - R -", "C C C", _AGAIN),
    _E.ACKNOWLEDGED:       ("- - - - - R R - -", "",      (_F.NOTE, _F.STEADY)),
    _E.MISTRUSTED:         ("- - - - - A A - -", "",      (_F.NOTE, _F.SET_BACK)),
    _E.REWINDING:          ("- - - - - N N - -", "",      ()),
    _E.REWOUND:            ("- - - - - - R - -", "",      (_F.NOTE, _F.STEADY)),
    _E.UNTOLD:             ("- - - - - - N - -", "",      (_F.NOTE, _F.SET_BACK)),
    _E.CHANGED_UNANSWERED: ("- - - - - - A - -", "",      ()),
    _E.MARK_HOLDS:         ("",                  "F F F", (_F.READ_FROM_MARK,)),
    _E.MARK_BROKEN:        ("",                  "C C C", (_F.DISBELIEVE, _F.READ_FROM_START)),
    _E.RECONCILED:         ("U - - U T R N - -", "- - F", (_F.READ_ON,)),
    _E.LATER:              ("U D Q O T N N Q -", "",      (_F.NOTE,)),
    _E.UNAUTHORIZED:       ("U D Q O T R N Q -", "",      (_F.NOTE,)),
    _E.MISSING:            ("U D U O - U U U -", "C C C",
                            (_F.NOTE, _F.SAY_MISSING, _F.SET_BACK, _F.RECORD_NOTHING, _F.READ_FROM_START)),
    _E.DELETED:            ("S S S S S S S S -", "",      (_F.NOTE, _F.STOP)),
    _E.FOREIGN:            ("S S S S S S S S -", "",      (_F.NOTE, _F.STOP)),
    _E.UNRESTORABLE:       ("S S S S S S S S -", "",      (_F.NOTE, _F.STOP)),
    _E.GONE:               ("U D Q O T R N Q -", "",      (_F.NOTE, _F.SET_BACK)),
    _E.CONFLICT:           ("Q Q Q Q T A A Q -", "",      (_F.NOTE, _F.SET_BACK)),
}
# fmt: on

SETBACKS: Final = {
    SessionEvent.MISTRUSTED: "the receiver acknowledged something else than was sent",
    SessionEvent.UNTOLD: "the receiver does not acknowledge what is gone from the file",
    SessionEvent.MISSING: "the session is made and then not found",
    SessionEvent.GONE: "the receiver answers 410 and has not declared that this means deleted",
    SessionEvent.CONFLICT: "the receiver says that it holds something else",
}
"""Why a session is set back."""

STOPS: Final = {
    SessionEvent.DELETED: (DELETED_THERE, "the session was deleted there; it is not sent again"),
    SessionEvent.FOREIGN: (FOREIGN_THERE, "the session belongs to another token there; it is not sent"),
    SessionEvent.UNRESTORABLE: (
        DELETED_THERE,
        "the session was deleted there; an administrator of the receiver restores it with: exporter mission-control"
        " restore {session}",
    ),
}
"""How the mark says that a session is stopped, and why it is."""
_STOPPED_BY: Final = {DELETED_THERE: SessionEvent.DELETED, FOREIGN_THERE: SessionEvent.FOREIGN}

_VERDICTS: Final[dict[type[Verdict], SessionEvent]] = {
    Later: SessionEvent.LATER,
    Unauthorized: SessionEvent.UNAUTHORIZED,
    Unsupported: SessionEvent.LATER,
    Missing: SessionEvent.MISSING,
    Deleted: SessionEvent.DELETED,
    Foreign: SessionEvent.FOREIGN,
    Unrestorable: SessionEvent.UNRESTORABLE,
    Gone: SessionEvent.GONE,
    Conflict: SessionEvent.CONFLICT,
}
S = TypeVar("S", bound=Enum)


def _cells(states: type[S], part: int) -> dict[tuple[SessionEvent, S], S]:
    """Return where each event leads from each state in which it can happen."""
    return {
        (event, state): states(letter)
        for event, row in TABLE.items()
        for state, letter in zip(states, str(row[part]).split(), strict=False)
        if letter != "-"
    }


_AGREEMENTS: Final = _cells(Agreement, 0)
_READINGS: Final = _cells(Reading, 1)
_IN_QUESTION: Final = frozenset((Agreement.DOUBTED, Agreement.QUESTIONED))
_UNREGISTERED: Final = frozenset((Agreement.UNREGISTERED, Agreement.STARTING_OVER, Agreement.RESTORING))


@dataclass(frozen=True, slots=True)
class Transition:
    """Where an event leads, and what is done on the way."""

    agreement: Agreement
    reading: Reading
    effects: tuple[Effect, ...]


class SessionState:
    """The two states and the mark. `mark` is None where the sink never had anything of the session.

    `stopped_by` is what stopped the session last.
    """

    def __init__(self, mark: Mark | None) -> None:
        self.stopped_by = _STOPPED_BY.get(mark.state) if mark is not None else None
        self.agreement = Agreement.UNREGISTERED if self.stopped_by is None else Agreement.STOPPED
        self.reading = Reading.UNPLACED
        self.is_recorded = mark is not None
        self.mark = mark or Mark()

    @property
    def stopped(self) -> bool:
        """Tell whether nothing will be sent until a person asks for it."""
        return self.agreement is Agreement.STOPPED

    @property
    def restores(self) -> bool:
        """Tell whether a registration is to undo a deletion there."""
        return self.agreement is Agreement.RESTORING

    @property
    def in_doubt(self) -> bool:
        """Tell whether the sink is still to be asked if it has the session."""
        return self.agreement in _IN_QUESTION

    @property
    def follows(self) -> bool:
        """Tell whether the sink has everything before the place that is reached."""
        return self.reading is Reading.FOLLOWING and self.due(sending=False) is Due.NOTHING

    def due(self, *, sending: bool) -> Due:
        """Say what has to be done before the session is read, or before something of it is sent."""
        if self.agreement in _IN_QUESTION or (sending and self.agreement in _UNREGISTERED):
            return Due.REGISTER
        return Due.ASK if self.agreement is Agreement.ASKING else Due.NOTHING

    def on(self, event: SessionEvent) -> Transition:
        """Look an event up in the table; raises ValueError for what cannot happen."""
        agreements, readings, effects = TABLE[event]
        agreement = _AGREEMENTS.get((event, self.agreement)) if agreements else self.agreement
        reading = _READINGS.get((event, self.reading)) if readings else self.reading
        if agreement is None or reading is None:
            raise ValueError(f"{event.name} in {self.agreement.name}, {self.reading.name}")
        return Transition(agreement, reading, effects)

    def enter(self, transition: Transition) -> None:
        """Take the states of a transition, all of whose effects were carried out."""
        self.agreement, self.reading = transition.agreement, transition.reading

    def recorded(self, mark: Mark | None) -> None:
        """Note the mark as our store has it."""
        self.is_recorded, self.mark = mark is not None, mark or Mark()

    # ---- the mark -------------------------------------------------------------------------------------------

    def mark_after(self, end: Position, last_id: str | None, identity: Identity | None) -> Mark:
        """Return the mark once everything before `end` is delivered; no `identity`: the file has changed meanwhile.

        Then what was sent lies behind the mark and may be in the file no more.
        """
        if identity is None:
            return replace(self.mark, identity=None)
        if self.reading is not Reading.FOLLOWING:
            return self.mark
        return replace(self.mark, position=end, identity=identity, last_id=last_id or self.mark.last_id)

    def mark_at_end(self, walk: Walk, gone: Container[str], identity: Identity | None) -> Mark:
        """Return the mark at the end of a reconciliation, where `gone` is hidden; `identity` as in `mark_after`.

        What the sink has hidden is hidden, even if the file has changed again meanwhile; the position needs the file.
        """
        last_id = walk.last_id or self.mark.last_id
        mark = replace(self.mark, last_id=None if last_id in gone else last_id)
        return mark if identity is None else replace(mark, position=walk.position, identity=identity)


def event_of(verdict: Verdict, remote_id: str | None) -> tuple[SessionEvent, Verdict]:
    """Return what an answer about the session means, and the verdict to note.

    An answer that would be about events leaves nothing to halve or to doubt here: it is as good as none. So is "not
    found" for a session that was never there.
    """
    if isinstance(verdict, Missing) and remote_id is None:
        verdict = Later("no Mission Control at this address (404)", ALARM_WAIT_SECONDS, alarm=True)
    elif type(verdict) not in _VERDICTS:
        reason = f"unexpected answer: {type(verdict).__name__.lower()}"
        verdict = Later(reason, ALARM_WAIT_SECONDS, alarm=True)
    return _VERDICTS[type(verdict)], verdict
