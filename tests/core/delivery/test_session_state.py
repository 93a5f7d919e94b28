"""The state of one session at one sink: every row of the table by a scenario, and what holds whatever happens."""

from collections.abc import Iterable
from enum import Enum
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from exporter.core.delivery.position import DELETED_THERE, FOREIGN_THERE, START, Identity, Mark, Position
from exporter.core.delivery.reconcile import Reconciliation, Walk
from exporter.core.delivery.segment import Segment
from exporter.core.delivery.session_state import (
    SETBACKS,
    STOPS,
    TABLE,
    Agreement,
    Due,
    Effect,
    Reading,
    SessionEvent,
    SessionState,
    Transition,
    event_of,
)
from exporter.core.delivery.verdict import (
    Accepted,
    Conflict,
    Deleted,
    Foreign,
    Gone,
    Later,
    LessCompression,
    Missing,
    Smaller,
    Suspect,
    Unauthorized,
    Unrestorable,
    Verdict,
)
from tests.core.scenario import COMMAND, check, scenarios

FILE = Identity(1, 2)


class Script:
    """The language of the scenarios: `given AGREEMENT READING`, an event, `due`, or a mark that is to be computed."""

    def __init__(self) -> None:
        self.state = SessionState(None)
        self.visited: set[tuple[SessionEvent, Enum]] = set()

    def __call__(self, words: list[str]) -> list[str]:
        state = self.state
        match words:
            case ["new", *how]:
                marks = {"": None, "marked": Mark("e1", Position(9, b""), FILE), "deleted": Mark(state=DELETED_THERE)}
                marks["foreign"] = Mark(state=FOREIGN_THERE)
                self.state = SessionState(marks["".join(how)])
                return [told(self.state)]
            case ["given", *names, reading]:
                state.enter(Transition(Agreement[_name(names)], Reading[reading.upper()], ()))
                return []
            case ["due"]:
                return [f"to read: {_words(state.due(sending=False))}; to send: {_words(state.due(sending=True))}"]
            case ["delivered", offset, last_id, *changed]:
                return [_mark(state.mark_after(Position(int(offset), b""), last_id, None if changed else FILE))]
            case _:
                return self.play(SessionEvent[_name(words)])

    def play(self, event: SessionEvent) -> list[str]:
        state = self.state
        before = state.agreement, state.reading
        try:
            transition = state.on(event)
        except ValueError as error:
            return [f"impossible: {error}"]
        self.visited |= {(event, one) for one in before}
        state.enter(transition)
        effects = ", ".join(map(_words, transition.effects))
        return [told(state) + (f": {effects}" if effects else "")]


def told(state: SessionState) -> str:
    return f"{_words(state.agreement)}, {_words(state.reading)}"


def _words(one: Enum) -> str:
    return one.name.lower().replace("_", " ")


def _name(words: Iterable[str]) -> str:
    return "_".join(words).upper()


def _mark(mark: Mark) -> str:
    return f"mark at {mark.position.offset}, {mark.last_id}, {'file known' if mark.identity else 'file not known'}"


@pytest.mark.parametrize("path", scenarios("session"), ids=lambda path: path.stem)
def test_scenario(path: Path, rewrite: bool) -> None:
    check(path, Script(), rewrite)


# ---- every row ----------------------------------------------------------------------------------------------


def rows() -> set[tuple[SessionEvent, Enum]]:
    """Every event in every state in which it can happen, for each of the two questions that it touches."""
    found: set[tuple[SessionEvent, Enum]] = set()
    for event, (agreements, readings, _) in TABLE.items():
        for states, column in ((Agreement, agreements), (Reading, readings)):
            found |= {(event, one) for one, cell in zip(states, column.split(), strict=False) if cell != "-"}
    return found


def visited(paths: Iterable[Path]) -> set[tuple[SessionEvent, Enum]]:
    found: set[tuple[SessionEvent, Enum]] = set()
    for path in paths:
        script = Script()
        for line in path.read_text().splitlines():
            if line.startswith(COMMAND):
                script(line.removeprefix(COMMAND).split())
        found |= script.visited
    return found


def test_every_row_of_the_table_has_a_scenario() -> None:
    assert rows() - visited(scenarios("session")) == set()


def test_a_row_without_a_scenario_is_found() -> None:
    """The control: without any one of the files something is not reached."""
    paths = scenarios("session")

    for path in paths:
        assert rows() - visited(one for one in paths if one != path), path.name


def test_the_table_is_whole() -> None:
    """Every event has a row, every row as many columns as there are states, and no state is without a way out."""
    assert set(TABLE) == set(SessionEvent)
    for agreements, readings, effects in TABLE.values():
        assert len(agreements.split()) in (0, len(Agreement))
        assert len(readings.split()) in (0, len(Reading))
        assert len(set(effects)) == len(effects)
    left = {
        (state, cell)
        for agreements, _, _ in TABLE.values()
        for state, cell in zip(Agreement, agreements.split(), strict=False)
        if cell not in ("-", state.value)
    }
    assert {state for state, _ in left} == set(Agreement)
    assert {event for event, row in TABLE.items() if Effect.SET_BACK in row[2]} == set(SETBACKS)
    assert {event for event, row in TABLE.items() if Effect.STOP in row[2]} == set(STOPS)


@pytest.mark.parametrize("event", [SessionEvent.RESTORE, SessionEvent.ITEMS, SessionEvent.ACKNOWLEDGED])
def test_what_cannot_happen_is_refused_and_changes_nothing(event: SessionEvent) -> None:
    state = SessionState(None)

    with pytest.raises(ValueError, match=rf"{event.name} in UNREGISTERED, UNPLACED"):
        state.on(event)

    assert told(state) == "unregistered, unplaced"


@pytest.mark.parametrize(
    ("verdict", "remote_id", "event"),
    [
        (Later("x"), "r", SessionEvent.LATER),
        (Unauthorized(401), None, SessionEvent.UNAUTHORIZED),
        (Missing(), "r", SessionEvent.MISSING),
        (Missing(), None, SessionEvent.LATER),
        (Deleted(), None, SessionEvent.DELETED),
        (Foreign(), None, SessionEvent.FOREIGN),
        (Unrestorable(), None, SessionEvent.UNRESTORABLE),
        (Gone(), "r", SessionEvent.GONE),
        (Gone(), None, SessionEvent.GONE),
        (Conflict(), "r", SessionEvent.CONFLICT),
        (Accepted(), "r", SessionEvent.LATER),
        (Smaller(), "r", SessionEvent.LATER),
        (Suspect(400), "r", SessionEvent.LATER),
        (LessCompression(), "r", SessionEvent.LATER),
    ],
)
def test_what_an_answer_about_a_session_means(verdict: Verdict, remote_id: str | None, event: SessionEvent) -> None:
    happened, noted = event_of(verdict, remote_id)

    assert happened is event
    if event is not SessionEvent.LATER or isinstance(verdict, Later):
        assert noted is verdict
    else:  # nobody expects the sink to get well by itself
        assert isinstance(noted, Later) and noted.alarm and noted.after_seconds == 60.0


@pytest.mark.parametrize("reached", ["e4", None])
@pytest.mark.parametrize("gone", [{"e1"}, {"e4"}, set[str]()])
@pytest.mark.parametrize("identity", [FILE, None])
def test_the_mark_at_the_end_names_no_event_that_is_gone(
    reached: str | None, gone: set[str], identity: Identity | None
) -> None:
    before = Mark("e1", Position(9, b""), Identity(9, 9), "r")
    state, end = SessionState(before), Position(5, b"")
    last_id = reached or "e1"

    mark = state.mark_at_end(Walk(0, end, reached), gone, identity)

    assert mark.last_id == (None if last_id in gone else last_id)
    assert (mark.position, mark.identity) == ((end, FILE) if identity else (before.position, before.identity))
    assert mark.remote_id == "r"


# ---- whatever happens ---------------------------------------------------------------------------------------

_ANSWERS = st.sampled_from((Later("x"), Unauthorized(401), Missing(), Deleted(), Gone(), Conflict(), Suspect(400)))


class SessionMachine(RuleBasedStateMachine):
    """A sink that loses, forgets and lies, a file that is rewritten, and an executor that does what is due.

    `there` is what the sink has, `ours` what our store says that it has; effects may fail as on a full disk.
    """

    def __init__(self) -> None:
        super().__init__()
        self.state = SessionState(None)
        self.stored: Mark | None = None
        self.ours: set[int] = set()
        self.there: set[int] | None = None
        self.deleted = False
        self.file = list(range(5))
        self.next_event = 5
        self.generation = 0
        self.walk = Walk()
        self.disk_full = False
        self.lost_there = False  # what the sink lost without a word
        self.lost_here = False  # what we knew of it
        self.lost_answer = False

    # ---- the executor, with sets instead of files, requests and a store

    def take(self, event: SessionEvent, known: set[int] | None = None) -> bool:
        transition = self.state.on(event)
        for effect in transition.effects:
            if effect in (Effect.RECORD, Effect.RECORD_NOTHING, Effect.DISBELIEVE, Effect.STOP) and self.disk_full:
                return False
            self.carry_out(effect, known or set())
        self.state.enter(transition)
        return True

    def carry_out(self, effect: Effect, known: set[int]) -> None:
        mark = self.state.mark
        match effect:
            case Effect.RECORD:
                self.store(Mark(remote_id=mark.remote_id), known)
            case Effect.RECORD_NOTHING:
                self.store(Mark(), set())
            case Effect.DISBELIEVE:
                self.store(_changed(mark, identity=None), self.ours)
            case Effect.STOP:
                self.store(_changed(mark, state=DELETED_THERE), self.ours)
            case Effect.READ_FROM_MARK:
                self.walk = Walk(self.generation, mark.position, mark.last_id)
            case Effect.READ_FROM_START:
                ids = {str(one): b"" for one in known}
                self.walk = Walk(self.generation, START, None, Reconciliation(ids, ()))
                assert self.walk.reconciliation is not None
                assert self.walk.reconciliation.skip == set(ids)
            case Effect.READ_ON:
                self.walk.reconciliation = None
            case Effect.NOTE | Effect.STEADY | Effect.SET_BACK | Effect.SAY_MISSING:
                pass

    def store(self, mark: Mark, ours: set[int]) -> None:
        self.stored, self.ours = mark, set(ours)
        self.state.recorded(mark)

    def answer(self, verdict: Verdict) -> None:
        if isinstance(verdict, Missing | Deleted):
            self.lose_all_there(isinstance(verdict, Deleted) or self.deleted)
        self.take(event_of(verdict, self.state.mark.remote_id)[0])

    def do_due(self, *, sending: bool, refused: Verdict | None) -> bool:
        """Do one request that is due; return whether nothing is."""
        match self.state.due(sending=sending):
            case Due.NOTHING:
                return not self.state.stopped
            case Due.REGISTER:
                self.register(refused)
            case Due.ASK:
                if refused is None and self.there is None:
                    refused = Deleted() if self.deleted else Missing()
                if refused is not None:
                    self.answer(refused)
                else:
                    assert self.there is not None
                    self.take(SessionEvent.ITEMS, set(self.there))
        return False

    def register(self, refused: Verdict | None) -> None:
        state = self.state
        if refused is None and self.deleted and not state.restores:
            refused = Deleted()
        if refused is None and self.there is None and state.mark.remote_id is not None:
            refused = Missing()
        if refused is not None:
            self.answer(refused)
            return
        self.deleted = False
        self.there = set() if self.there is None else self.there
        agrees = len(self.there) == state.mark.delivered
        self.store(_changed(state.mark, remote_id="r"), self.ours)
        self.take(SessionEvent.COUNT_AGREES if agrees else SessionEvent.COUNT_DIFFERS)

    # ---- what happens

    @rule(refused=st.none() | _ANSWERS)
    def turn(self, refused: Verdict | None) -> None:
        if self.state.stopped or not self.do_due(sending=False, refused=refused):
            return
        if self.walk.generation != self.generation and not self.place():
            return
        if self.walk.position.offset >= len(self.file):
            self.at_end()
        elif self.do_due(sending=True, refused=refused):
            self.send(refused)

    def place(self) -> bool:
        if self.state.agreement is Agreement.UNANSWERED:
            self.take(SessionEvent.CHANGED_UNANSWERED)
            return False
        believed = self.stored is None or self.stored.identity == Identity(0, self.generation)
        return self.take(SessionEvent.MARK_HOLDS if believed else SessionEvent.MARK_BROKEN, self.ours)

    def send(self, refused: Verdict | None) -> None:
        assert self.state.agreement in (Agreement.REGISTERED, Agreement.UNANSWERED)
        if self.there is None:
            self.answer(Deleted() if self.deleted else Missing())
            return
        offset = self.walk.position.offset
        event = self.file[offset]
        compared = self.walk.reconciliation
        if compared is None or str(event) not in compared.skip:
            if refused is not None and not isinstance(refused, Later):
                self.answer(refused)
                return
            self.there.add(event)
            if refused is not None:
                self.lost_answer = True
                self.answer(refused)
                return
            self.take(SessionEvent.ACKNOWLEDGED)
            taken = {event}
        else:
            taken = set()
        end = Position(offset + 1, b"")
        mark = self.state.mark_after(end, str(event), Identity(0, self.generation))
        self.store(_changed(mark, delivered=len(self.ours | taken)), self.ours | taken)
        if taken and len(self.there) != len(self.ours):
            self.take(SessionEvent.COUNT_DIFFERS)
        self.walk.advance(Segment(self.walk.position, end, seen={str(event)}, last_id=str(event)))

    def at_end(self) -> None:
        if self.walk.reconciliation is None or not self.do_due(sending=True, refused=None):
            return
        gone = {int(one) for one in self.walk.reconciliation.gone()}
        if gone and self.there is not None:
            self.take(SessionEvent.REWINDING)
            self.there -= gone
            self.take(SessionEvent.REWOUND)
        mark = self.state.mark_at_end(self.walk, {str(one) for one in gone}, Identity(0, self.generation))
        self.store(_changed(mark, delivered=len(self.ours - gone)), self.ours - gone)
        self.take(SessionEvent.RECONCILED)

    @rule(count=st.integers(1, 3))
    def append(self, count: int) -> None:
        self.file += range(self.next_event, self.next_event + count)
        self.next_event += count

    @rule(keep=st.integers(0, 6), count=st.integers(0, 2))
    def rewrite(self, keep: int, count: int) -> None:
        self.generation += 1
        del self.file[keep:]
        self.append(count)

    @rule()
    def rewind_what_has_no_answer(self) -> None:
        for refused in (None, None, None, Later("x")):
            self.turn(refused)
        self.rewrite(self.walk.position.offset, 0)

    @rule()
    def lose_one_there(self) -> None:
        self.lost_there = True
        if self.there:
            self.there.pop()

    @rule(deleted=st.booleans())
    def lose_all_there(self, deleted: bool) -> None:
        self.there, self.deleted, self.lost_there = None, deleted, True

    @rule()
    def restart(self) -> None:
        self.state, self.walk, self.lost_here = SessionState(self.stored), Walk(), True

    @rule()
    def lose_the_store(self) -> None:
        self.stored, self.ours, self.lost_here = None, set(), True
        self.state.recorded(None)
        self.walk.generation = None
        self.take(SessionEvent.STORE_LOST)

    @rule(event=st.sampled_from((SessionEvent.DOUBT, SessionEvent.REPAIR)))
    def ask_for(self, event: SessionEvent) -> None:
        self.take(event)

    @rule()
    def start_over(self) -> None:
        self.lost_here = True
        self.take(SessionEvent.RESTORE if self.state.stopped else SessionEvent.START_OVER)

    @rule(full=st.booleans())
    def fill_the_disk(self, full: bool) -> None:
        self.disk_full = full

    @precondition(lambda self: not self.disk_full)
    @rule()
    def settle(self) -> None:
        """Once nothing goes wrong any more the sink has what the file has, and the mark is at the end.

        What was lost without a word shows in the count at the next event. Where an answer is missing as well the
        counts may agree by chance, and a person has to ask.
        """
        if self.lost_there or self.lost_here:
            if self.lost_answer:
                self.take(SessionEvent.REPAIR)
            else:
                self.append(1)
        self.lost_there = self.lost_here = self.lost_answer = False
        for _ in range(60):
            self.turn(None)
        if self.state.stopped:
            return
        assert self.state.follows
        assert self.state.mark.position.offset == len(self.file)
        assert self.ours == set(self.file)
        assert (self.there or set()) == set(self.file)

    # ---- what holds

    @invariant()
    def the_state_knows_what_is_stored(self) -> None:
        assert self.state.mark == (self.stored or Mark())
        assert self.state.is_recorded == (self.stored is not None)

    @invariant()
    def the_mark_is_never_ahead(self) -> None:
        """What stands before a mark that is believed was delivered, as far as we can know."""
        mark = self.state.mark
        if mark.identity == Identity(0, self.generation):
            assert set(self.file[: mark.position.offset]) <= self.ours

    @invariant()
    def nothing_is_left_to_hide_once_the_mark_is_believed(self) -> None:
        """Else a crash would make us follow, and the sink would never be told what is gone from the file."""
        if self.state.mark.identity == Identity(0, self.generation):
            assert self.ours <= set(self.file)

    @invariant()
    def a_stopped_session_wants_nothing(self) -> None:
        if self.state.stopped:
            assert self.state.due(sending=True) is Due.NOTHING
            assert not self.state.follows or self.state.reading is Reading.FOLLOWING

    @invariant()
    def a_walk_compares_while_it_reconciles_and_only_then(self) -> None:
        if self.state.reading is not Reading.UNPLACED:
            assert (self.walk.reconciliation is not None) == (self.state.reading is Reading.RECONCILING)


def _changed(mark: Mark, **changes: object) -> Mark:
    return Mark(**{**{name: getattr(mark, name) for name in Mark.__slots__}, **changes})


TestSessionMachine = SessionMachine.TestCase
TestSessionMachine.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize("agreement", Agreement)
def test_a_sink_is_in_doubt_as_long_as_it_must_be_asked_before_the_session_is_read(agreement: Agreement) -> None:
    state = SessionState(None)

    state.enter(Transition(agreement, Reading.UNPLACED, ()))

    assert state.in_doubt is (state.due(sending=False) is Due.REGISTER)
