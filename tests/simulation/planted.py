"""Known defects, made by changing the real code while a test runs. The simulation has to find every one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from exporter.core.delivery import position, session_state
from exporter.core.delivery.batches import Delivery, Send, Settled
from exporter.core.delivery.gate import Gate
from exporter.core.delivery.position import START
from exporter.core.delivery.reconcile import Walk
from exporter.core.delivery.segment import SegmentBuilder
from exporter.core.delivery.session_state import TABLE, SessionEvent, SessionState
from exporter.core.delivery.verdict import Later
from exporter.core.events.redaction import Refused
from exporter.pipeline.lane import Lane
from exporter.pipeline.sink_session import SinkSession
from exporter.pipeline.sink_state import SinkState
from exporter.sinks import mission_control
from exporter.sources.files import session_file
from exporter.state.marks import StoreUnwritableError

Plant = Callable[[pytest.MonkeyPatch], None]


def marks_before_answers(patch: pytest.MonkeyPatch) -> None:
    """A batch counts as accepted when there was no answer."""
    answered = Delivery.answered

    def believing(self: Delivery, verdict: Any) -> Any:
        if isinstance(verdict, Later):
            taken = self._pending.pop()
            return Settled(taken.first, taken.end)
        return answered(self, verdict)

    patch.setattr(Delivery, "answered", believing)


def page_accepted(patch: pytest.MonkeyPatch) -> None:
    """Any 2xx is an acceptance, a sign-in page as well."""
    patch.setattr(mission_control, "acceptance_fault", lambda *_, **__: None)


def prefix_broken(patch: pytest.MonkeyPatch) -> None:
    """What was read ahead is sent though the segment before it was given up."""

    def take_ahead(self: Walk) -> Any:
        segment, self.ahead = self.ahead, None
        return segment

    patch.setattr(Walk, "take_ahead", take_ahead)


def right_half_first(patch: pytest.MonkeyPatch) -> None:
    """Of a segment that takes several requests the last part is sent first."""
    ready = Delivery.ready

    def swapped(self: Delivery, limits: Any) -> Any:
        found = ready(self, limits)
        if isinstance(found, Send) and len(self._pending) > 1:
            self._pending[-2:] = self._pending[:-3:-1]
            return ready(self, limits)
        return found

    patch.setattr(Delivery, "ready", swapped)


def gone_believed(patch: pytest.MonkeyPatch) -> None:
    """A 410 means that the session was deleted, whoever answers it."""
    judge = mission_control.judge
    patch.setattr(mission_control, "judge", lambda answer, *, deletes=False: judge(answer, deletes=True))


def delivered_not_stored(patch: pytest.MonkeyPatch) -> None:
    """The mark is stored without the ids that led to it."""
    commit = SinkSession.commit

    async def forgetting(self: SinkSession, mark: Any, ids: Any = None, hashes: Any = None, *rest: Any) -> None:
        await commit(self, mark, [], [], *rest)

    patch.setattr(SinkSession, "commit", forgetting)


def refused_not_kept(patch: pytest.MonkeyPatch) -> None:
    """The mark moves past an event that the receiver refuses, and it is not in quarantine."""
    patch.setattr(SinkSession, "_refuse", lambda *_: None)


def rewind_not_told(patch: pytest.MonkeyPatch) -> None:
    """The receiver is not told what is gone from the file."""

    async def silent(self: SinkSession, gone: list[str]) -> bool:
        return True

    patch.setattr(SinkSession, "rewound", silent)


def rewind_answer_ignored(patch: pytest.MonkeyPatch) -> None:
    """What is gone from the file counts as hidden whatever the answer says."""
    send = mission_control.MissionControlSink.send

    async def trusting(self: Any, remote_id: str, ids: Any, lines: Any, rewound: Any = ()) -> Any:
        sent = await send(self, remote_id, ids, lines, rewound)
        return replace(sent, trusted=True, count=None) if rewound else sent

    patch.setattr(mission_control.MissionControlSink, "send", trusting)


def capabilities_forgotten(patch: pytest.MonkeyPatch) -> None:
    """An empty answer to the first question after a start means that the receiver has no capabilities."""
    patch.setattr(SinkState, "__post_init__", lambda _: None)


def mark_not_read(patch: pytest.MonkeyPatch) -> None:
    """After a crash the file is sent again from its begin."""
    carry_out = SinkSession._carry_out

    def from_start(self: SinkSession, effect: Any, *rest: Any) -> None:
        carry_out(self, effect, *rest)
        if effect is session_state.Effect.READ_FROM_MARK:
            self.walk.position = START

    patch.setattr(SinkSession, "_carry_out", from_start)


def retry_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A session whose request failed is taken to have nothing to do."""
    deliver = Lane._deliver

    async def once(self: Lane, segment: Any) -> bool:
        before = self._session.walk.position
        more = await deliver(self, segment)
        return self._settle() if self._session.walk.position == before else more

    patch.setattr(Lane, "_deliver", once)


def probe_never_ends(patch: pytest.MonkeyPatch) -> None:
    """After a failure the gate waits for a probe that nobody makes."""
    failed = Gate.failed

    def stuck(self: Gate, *values: Any, **named: Any) -> None:
        failed(self, *values, **named)
        self._hold_until = float("inf")

    patch.setattr(Gate, "failed", stuck)


def stale_walk(patch: pytest.MonkeyPatch) -> None:
    """A file that was replaced is read on where the one before it was left."""
    patch.setattr(session_file, "rewritten", lambda *_: None)
    patch.setattr(position.Position, "follows", lambda *_: True)


def tail_not_compared(patch: pytest.MonkeyPatch) -> None:
    """The bytes before a mark are not looked at."""
    patch.setattr(position.Position, "follows", lambda *_: True)


def count_ignored(patch: pytest.MonkeyPatch) -> None:
    """The receiver says another number of events than we know, and nobody asks why."""
    patch.setitem(TABLE, SessionEvent.COUNT_DIFFERS, TABLE[SessionEvent.COUNT_AGREES])
    agreeing = {(event, state): to for (event, state), to in session_state._AGREEMENTS.items()}
    for (event, state), to in session_state._AGREEMENTS.items():
        if event is SessionEvent.COUNT_AGREES:
            agreeing[SessionEvent.COUNT_DIFFERS, state] = to
    agreeing[SessionEvent.COUNT_DIFFERS, session_state.Agreement.REGISTERED] = session_state.Agreement.REGISTERED
    patch.setattr(session_state, "_AGREEMENTS", agreeing)


def acknowledgement_ignored(patch: pytest.MonkeyPatch) -> None:
    """An acceptance counts, whatever it acknowledges."""
    acknowledged = mission_control.acknowledged

    def trusting(ack: Any, ids: Any) -> Any:
        return replace(acknowledged(ack, ids), trusted=True)

    patch.setattr(mission_control, "acknowledged", trusting)
    answered = SinkSession._answered

    def unquestioned(self: Any, segment: Any, delivery: Any, sent: Any, first: int, end: int) -> bool:
        return answered(self, segment, delivery, replace(sent, trusted=True), first, end)

    patch.setattr(SinkSession, "_answered", unquestioned)


def mark_moves_too_early(patch: pytest.MonkeyPatch) -> None:
    """The mark moves while a file is compared from its begin, so that a crash ends the comparison."""
    mark_after = SessionState.mark_after

    def moved(self: SessionState, end: Any, last_id: Any, identity: Any) -> Any:
        mark = mark_after(self, end, last_id, identity)
        return mark if identity is None else replace(mark, position=end, identity=identity)

    patch.setattr(SessionState, "mark_after", moved)


def unanswered_forgotten(patch: pytest.MonkeyPatch) -> None:
    """What was sent and has no answer is taken not to be there, though the file has changed meanwhile."""
    agreements, state = dict(session_state._AGREEMENTS), session_state.Agreement
    agreements[SessionEvent.LATER, state.REGISTERED] = agreements[SessionEvent.LATER, state.UNANSWERED] = (
        state.REGISTERED
    )
    patch.setattr(session_state, "_AGREEMENTS", agreements)


def full_disk_ignored(patch: pytest.MonkeyPatch) -> None:
    """What cannot be stored is taken for stored."""

    async def careless(self: SinkSession, mark: Any, ids: Any = None, hashes: Any = None, *_: Any, **__: Any) -> None:
        sink_state = self._sink_state
        try:
            store = sink_state.store
            self.state.recorded(store.commit(self._session, sink_state.sink_id, mark, ids or [], hashes or [], {}))
        except StoreUnwritableError:
            self.state.recorded(replace(mark, delivered=mark.delivered + len(ids or [])))

    patch.setattr(SinkSession, "commit", careless)


def restored_store_believed(patch: pytest.MonkeyPatch) -> None:
    """A store that may have gone back is believed to hold what it has confirmed."""

    def believed(self: SinkState) -> None:
        self._epoch, self.sink.went_back = self.sink.epoch, False

    patch.setattr(SinkState, "_doubt", believed)


def compared_unredacted(patch: pytest.MonkeyPatch) -> None:
    """What is read from the first event on, to be compared, is not redacted."""
    begin = SegmentBuilder.__post_init__

    def careless(self: SegmentBuilder) -> None:
        begin(self)
        self.redact = (lambda line, /: line) if self.seen is not None else self.redact

    patch.setattr(SegmentBuilder, "__post_init__", careless)


def refusal_sent(patch: pytest.MonkeyPatch) -> None:
    """What cannot be redacted is sent as it is."""
    begin = SegmentBuilder.__post_init__

    def careless(self: SegmentBuilder) -> None:
        begin(self)
        redact = self.redact
        self.redact = lambda line, /: line if isinstance(redact(line), Refused) else redact(line)

    patch.setattr(SegmentBuilder, "__post_init__", careless)


PLANTED: Final[tuple[Plant, ...]] = (
    *(marks_before_answers, page_accepted, prefix_broken, right_half_first, gone_believed, delivered_not_stored),
    *(refused_not_kept, rewind_not_told, mark_not_read, retry_forgotten, probe_never_ends, stale_walk),
    *(tail_not_compared, count_ignored, acknowledgement_ignored, mark_moves_too_early, unanswered_forgotten),
    *(full_disk_ignored, restored_store_believed),
    *(rewind_answer_ignored, capabilities_forgotten, compared_unredacted, refusal_sent),
)
