"""What all sessions on their way to one sink share: its gate, its quarantine, its store, what is reported of it."""

from dataclasses import replace

import pytest

from exporter.core.delivery.position import Mark
from exporter.core.delivery.segment import Unsendable
from exporter.core.delivery.verdict import Accepted, Deleted, Later, Unauthorized
from exporter.core.names import last_error_name
from exporter.sinks.sink import Sent
from exporter.state.marks import StoreUnwritableError
from tests.pipeline.parts import Parts

pytestmark = pytest.mark.anyio


async def test_a_failure_is_reported_and_its_end_with_how_often(parts: Parts) -> None:
    state = parts.sink_state

    state.note(Later("down"), "s")
    state.note(Later("down"), "s")
    assert (state.retries, state.last_error, state.gate.failures) == (2, "down", 2)
    state.note(Deleted(), "s")  # whatever it says of a session, it is well

    assert parts.said() == [*["the sink does not take events now; trying again"] * 2, "delivering again"]
    assert [one.session for one in parts.notices] == [None] * 3  # it is no fault of a session
    assert parts.notices[-1].fields["failures"] == 2
    assert (state.last_error, state.gate.failures) == (None, 0)
    assert state.last_success is not None


async def test_a_refused_token_closes_the_gate_until_it_changes(parts: Parts) -> None:
    state = parts.sink_state
    parts.sink.token_refused = "first"

    state.note(Unauthorized(401), "s")

    closed = [state.gate.closed]
    for token in ("first", "second"):
        state.gate.token_is(token)
        closed.append(state.gate.closed)
    assert closed == [True, True, False]
    assert state.last_error == "answered 401"


async def test_how_it_ended_is_remembered_if_anything_was_tried(parts: Parts) -> None:
    state, name = parts.sink_state, last_error_name(parts.sink_state.sink_id)

    state.remember(answered=True)
    assert parts.store.fact(name) is None
    state.note(Later("down"), "s")
    state.remember(answered=True)
    assert parts.store.fact(name) == "down"
    state.note(Accepted(), "s")
    state.remember(answered=True)
    assert parts.store.fact(name) == ""


@pytest.mark.parametrize(
    ("ended", "confirmed"), [("with all answers", True), ("without one", False), ("killed", False)]
)
async def test_what_a_sink_confirmed_counts_after_a_start_only_if_all_had_its_answer(
    parts: Parts, ended: str, confirmed: bool
) -> None:
    state = parts.sink_state
    mark = parts.store.commit("s", state.sink_id, Mark(), ["a"], [b"1" * 32], {}, confirmed_at=1.0)
    if ended != "killed":
        state.remember(answered=ended == "with all answers")

    replace(state)  # the next process
    after = parts.store.mark("s", state.sink_id)

    assert mark.is_confirmed
    assert after is not None
    assert after.is_confirmed == confirmed
    assert after.confirmed_at == 1.0


async def test_what_is_in_quarantine_is_not_sent_unless_it_is_released(parts: Parts) -> None:
    state = parts.sink_state
    for_all, for_this = Unsendable(0, b"x", 1, "malformed", "a"), Unsendable(9, b"y", 1, "refused_400", "b")

    state.put_in_quarantine("s", [for_all], for_all_sinks=True)
    state.refuse("s", for_this.id, for_this.offset, for_this.raw, for_this.reason)
    assert state.quarantined_ids("s") == {"a", "b"}
    assert [entry.sink for entry in parts.quarantine.entries()] == [None, "mission_control"]
    state.released.add("a")

    assert state.quarantined_ids("s") == {"b"}
    assert parts.said() == ["put in quarantine"] * 2


async def test_what_was_rejected_without_a_name_is_kept_as_one(parts: Parts) -> None:
    parts.sink_state.note_remarks("s", 0, [b"a", b"b"], Sent(Accepted(), unnamed=1, told="odd"))

    [entry] = parts.quarantine.entries()
    assert (entry.raw, entry.reason, entry.event) == (b"ab", "partly_rejected", None)


async def test_a_warning_is_repeated_only_when_it_changes(parts: Parts) -> None:
    for words in ("old", "old", "new"):
        parts.sink_state.note_remarks("s", 0, [b"a"], Sent(Accepted(), told=words))

    assert parts.said() == ["the sink accepts, and warns; `exporter status --json` has its words"] * 2
    assert parts.sink_state.remark == "new"
    assert not any("new" in str(notice) for notice in parts.notices)  # it may repeat an event


async def test_another_store_is_noticed_and_settled_when_every_session_was_looked_for(parts: Parts) -> None:
    state = parts.sink_state
    asked: list[int] = []
    state.on_doubt = lambda: asked.append(1)

    parts.sink.store = "one"
    assert state.check_store()
    assert (state.known_store(), asked, parts.said()) == (None, [1], [])
    state.store_checked(everywhere=False)  # the first store that was ever seen
    assert state.known_store() == "one"
    assert not state.check_store()

    parts.sink.store = "two"
    assert state.check_store()
    assert state.check_store()
    assert (asked, len(parts.notices)) == ([1, 1], 1)
    state.store_checked(everywhere=False)
    assert state.known_store() == "one"
    state.store_checked(everywhere=True)
    assert state.known_store() == "two"
    assert not state.check_store()


async def test_another_store_is_still_new_when_that_could_not_be_written(parts: Parts) -> None:
    state = parts.sink_state
    parts.sink.store = "one"
    state.check_store()
    state.store_checked(everywhere=True)
    parts.store.commit("s", state.sink_id, Mark("a"), ["a"], [bytes(32)], {}, confirmed_at=1.0)
    asked: list[int] = []
    state.on_doubt = lambda: asked.append(1)

    parts.sink.store = "two"
    with parts.locked_store(), pytest.raises(StoreUnwritableError):
        state.check_store()
    assert state.check_store()

    assert asked == [1]
    assert [mark.is_confirmed for mark in parts.store.marks(state.sink_id).values()] == [False]
    assert parts.said() == ["the receiver has another store than before; every session is looked for in it"]


@pytest.mark.parametrize("epoch", ["with a space", "x" * 100_000, "\n"])
async def test_an_epoch_of_any_text_is_remembered_as_it_was(parts: Parts, epoch: str) -> None:
    parts.sink.epoch, parts.sink.changes = epoch, 7
    parts.sink_state.check_store()
    parts.sink.epoch, parts.sink.changes = "", 0

    replace(parts.sink_state)

    assert (parts.sink.epoch, parts.sink.changes) == (epoch, 7)
