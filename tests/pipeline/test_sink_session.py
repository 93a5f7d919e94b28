"""What is said to one sink about one session, and what its answers lead to."""

import asyncio

import pytest
from msgspec import structs

from exporter.core.delivery.position import START, Mark
from exporter.core.delivery.reconcile import Walk
from exporter.core.delivery.segment import Segment, Unsendable
from exporter.core.delivery.session_state import Agreement, Reading, SessionEvent
from exporter.core.delivery.verdict import Accepted, Later, Missing
from exporter.pipeline.sink_session import Delivered, SinkSession, refusal
from exporter.pipeline.sink_state import LaneProgress
from exporter.sinks.sink import Sent
from exporter.sources.files.session_file import SessionFile as Followed
from exporter.state.marks import StoreUnwritableError
from tests.daemon.exchange import Reply
from tests.daemon.peer import Peer
from tests.daemon.receivers import Floor
from tests.daemon.sessions import event
from tests.daemon.station import until
from tests.pipeline.parts import LIMITS, Parts

pytestmark = pytest.mark.anyio


async def _segment(parts: Parts, file: Followed) -> Segment:
    segment = await parts.sink_state.feed.next(file, Walk(file.generation), None, LIMITS)
    assert segment is not None
    return segment


async def _nothing() -> None:
    pass


async def _deliver(parts: Parts, session: SinkSession, file: Followed) -> Delivered | None:
    assert await session.ready(sending=True)
    return await session.deliver(await _segment(parts, file), _nothing)


async def test_nothing_is_asked_before_something_is_to_be_sent(parts: Parts, full: Peer) -> None:
    _, file = parts.session(count=1)
    session = parts.sink_session(file)

    assert await session.ready(sending=False)
    assert full.requests == []
    assert await session.ready(sending=True)

    assert [one.method for one in full.requests] == ["POST"]
    assert session.remote_id == "s"
    assert parts.store.mark("s", parts.sink_state.sink_id) == Mark(remote_id="s")
    assert await session.ready(sending=True)
    assert len(full.requests) == 1


async def test_the_id_that_a_sink_returns_is_used_from_then_on(floor_parts: Parts, floor: Peer) -> None:
    _, file = floor_parts.session(count=2)
    session = floor_parts.sink_session(file)

    delivered = await _deliver(floor_parts, session, file)

    assert delivered == Delivered()
    assert floor.requests[-1].session == session.remote_id == "remote-s"


async def test_a_segment_is_read_ahead_while_the_first_request_is_under_way(parts: Parts, full: Peer) -> None:
    _, file = parts.session(count=2)
    session = parts.sink_session(file)
    assert await session.ready(sending=True)
    full.next_replies.append(Reply(delay=0.1))
    meanwhile = []

    async def note() -> None:
        meanwhile.append(full.ids())

    delivered = await session.deliver(await _segment(parts, file), note)

    assert delivered == Delivered(count=2)
    assert meanwhile == [[]]


async def test_an_event_that_is_refused_twice_is_quarantined_and_the_rest_is_delivered(
    floor_parts: Parts, floor: Peer
) -> None:
    _, file = floor_parts.session(count=2)
    session = floor_parts.sink_session(file)
    floor.script = lambda one: Reply(400) if one.is_events and "e1" in one.ids() else None

    delivered = await _deliver(floor_parts, session, file)

    assert delivered == Delivered(frozenset({1}))
    assert floor.ids() == ["e0"]
    [entry] = floor_parts.quarantine.entries()
    assert (entry.event, entry.reason, entry.sink) == ("e1", "refused_400", "mission_control")


async def test_no_answer_leaves_the_segment_to_the_next_turn(parts: Parts, full: Peer) -> None:
    _, file = parts.session(count=1)
    session = parts.sink_session(file)
    assert await session.ready(sending=True)
    full.next_replies.append(Reply(503))

    assert await session.deliver(await _segment(parts, file), _nothing) is None

    assert session.state.agreement is Agreement.UNANSWERED
    assert parts.sink_state.gate.failures == 1


async def test_a_count_that_differs_leads_to_what_the_sink_has(parts: Parts, full: Peer) -> None:
    """Somebody else sends the same session: what is there is asked, and taken for delivered."""
    _, file = parts.session(count=1)
    session = parts.sink_session(file)
    await _deliver(parts, session, file)
    assert await session.ready(sending=True)

    await session.commit(session.state.mark, ["e0"], [b"x" * 32], count=2)
    assert session.state.agreement is Agreement.ASKING
    assert not await session.ready(sending=False)

    assert session.state.reading is Reading.RECONCILING
    assert session.walk.position == START
    assert session.walk.skip == {"e0"} == set(parts.delivered())


async def test_a_sink_that_cannot_say_what_it_has_is_sent_everything_again(floor_parts: Parts) -> None:
    _, file = floor_parts.session(count=1)
    session = floor_parts.sink_session(file)
    await _deliver(floor_parts, session, file)
    await session.commit(session.state.mark, ["e0"], [b"x" * 16])

    session.take(SessionEvent.REPAIR)
    assert not await session.ready(sending=False)

    assert (session.walk.skip, floor_parts.delivered()) == (set(), [])


async def test_a_missing_session_is_made_anew_and_read_from_its_first_event(floor_parts: Parts, floor: Peer) -> None:
    _, file = floor_parts.session(count=1)
    session = floor_parts.sink_session(file)
    await _deliver(floor_parts, session, file)
    assert isinstance(floor.behind, Floor)
    floor.behind.forget("s")

    assert await session.deliver(await _segment(floor_parts, file), _nothing) is None

    assert session.state.mark.remote_id is None
    assert (session.state.agreement, session.state.reading) == (Agreement.UNREGISTERED, Reading.RECONCILING)


async def test_not_found_at_the_first_registration_is_a_wrong_address(floor_parts: Parts, floor: Peer) -> None:
    _, file = floor_parts.session(count=1)
    session = floor_parts.sink_session(file)
    floor.script = lambda one: Reply(404)

    assert not await session.ready(sending=True)

    assert floor_parts.sink_state.last_error == "no Mission Control at this address (404)"
    assert floor_parts.sink_state.gate.alarm
    assert session.state.agreement is Agreement.UNREGISTERED


async def test_an_effect_that_fails_leaves_the_state_as_it_was(parts: Parts) -> None:
    _, file = parts.session(count=1)
    session = parts.sink_session(file)
    assert await session.ready(sending=True)
    before, mark = session.state.agreement, session.state.mark

    with parts.locked_store(), pytest.raises(StoreUnwritableError):
        session.take(SessionEvent.DELETED)

    assert (session.state.agreement, session.state.mark, session.state.stopped) == (before, mark, False)
    session.take(SessionEvent.DELETED)
    assert session.state.stopped


async def test_what_is_doubted_while_the_mark_waits_for_the_disk_is_not_confirmed(parts: Parts, full: Peer) -> None:
    _, file = parts.session(count=1)
    session = parts.sink_session(file)
    await _deliver(parts, session, file)
    with parts.locked_store():
        writing = asyncio.create_task(session.commit(session.state.mark, confirms=True))
        await until(parts.said)
        session.void()
    parts.store.void_confirmations(parts.sink_state.sink_id)

    await writing

    kept = parts.store.mark("s", parts.sink_state.sink_id)
    assert kept is not None
    assert not session.state.mark.is_confirmed
    assert not kept.is_confirmed


async def test_from_the_second_setback_in_a_row_a_session_rests(parts: Parts) -> None:
    _, file = parts.session(count=1)
    session = parts.sink_session(file)
    assert await session.ready(sending=True)

    session.take(SessionEvent.CONFLICT)
    assert session.rest_until == 0.0
    session.take(SessionEvent.CONFLICT)
    assert session.rest_until > 0.0
    session.take(SessionEvent.CONFLICT)

    assert parts.said().count("the sink and this session do not agree; trying less often") == 1


async def test_what_is_gone_is_told_in_parts(parts: Parts, full: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exporter.pipeline.sink_session._REWOUND_MAX", 2)
    _, file = parts.session(count=4)
    session = parts.sink_session(file)
    await _deliver(parts, session, file)
    await session.commit(session.state.mark, [f"e{number}" for number in range(4)], [bytes(32)] * 4)

    assert await session.rewound(["e1", "e2", "e3"])

    assert full.ids() == ["e0"]
    assert [one.json().get("rewound") for one in full.event_requests()[1:]] == [["e1", "e2"], ["e3"]]
    agreements = [session.state.agreement]
    full.next_replies.append(Reply(503))
    assert not await session.rewound(["e0"])
    assert [*agreements, session.state.agreement] == [Agreement.REGISTERED, Agreement.UNANSWERED]


@pytest.mark.parametrize(
    ("answer", "offers_items", "agreement"),
    [
        (b"", True, Agreement.ASKING),
        (b"{}", True, Agreement.ASKING),
        (b'{"ack":{"count":3,"digest":""}}', True, Agreement.ASKING),
        (b'{"ack":{"count":2,"digest":"","accepted":1}}', True, Agreement.ASKING),
        (b"{}", False, Agreement.UNANSWERED),
        (b'{"ack":{"count":2,"digest":""}}', True, Agreement.REGISTERED),
    ],
)
async def test_what_is_gone_counts_as_hidden_only_when_the_answer_says_so(
    parts: Parts, full: Peer, answer: bytes, offers_items: bool, agreement: Agreement
) -> None:
    _, file = parts.session(count=3)
    session = parts.sink_session(file)
    await _deliver(parts, session, file)
    await session.commit(session.state.mark, ["e0", "e1", "e2"], [bytes(32)] * 3)
    parts.sink.capabilities = structs.replace(parts.sink.capabilities, digest=offers_items)
    full.next_replies.append(Reply(200, body=answer))

    hidden = await session.rewound(["e2"])

    assert (hidden, session.state.agreement) == (agreement is Agreement.REGISTERED, agreement)


async def test_an_empty_answer_to_a_registration_leads_to_the_question_what_is_there(parts: Parts, full: Peer) -> None:
    _, file = parts.session(count=1)
    first = parts.sink_session(file)
    await _deliver(parts, first, file)
    again = parts.sink_session(file)
    full.script = lambda one: Reply(200, body=b"") if "ids" not in one.path else None

    await again.ready(sending=True)

    assert [one.path for one in full.requests[2:]] == ["/agents/sessions/s", "/agents/sessions/s?ids=1"]
    assert again.state.agreement is Agreement.REGISTERED


async def test_one_event_out_of_quarantine_is_sent_by_itself(parts: Parts, full: Peer) -> None:
    _, file = parts.session()
    session = parts.sink_session(file)
    one = Unsendable(0, event("q"), 10, "why", "q")
    full.next_replies.append(Reply(503))

    assert await session.send_event(one) == "the sink does not take it now: answered 503"
    assert await session.send_event(one) is None
    assert await session.send_event(one) is None

    assert full.ids() == parts.delivered() == ["q"]
    assert session.state.mark.delivered == 1


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (Sent(Accepted()), None),
        (Sent(Later("no")), "the sink does not take it now: no"),
        (Sent(Missing()), "the sink refuses it: missing"),
        (Sent(Accepted(), ("a",), told="bad"), "the sink rejects it: bad"),
        (Sent(Accepted(), unnamed=3), "the sink rejects 3 of it"),
    ],
)
async def test_why_a_sink_has_it_not(sent: Sent, why: str | None) -> None:
    assert refusal(sent) == why


async def test_trouble_of_a_session_is_reported_once_with_its_end(parts: Parts) -> None:
    _, file = parts.session()
    progress = LaneProgress()
    session = SinkSession(file, parts.sink_state, None, progress)

    session.troubled("quarantine_full", "it is full", size=1)
    since = progress.troubled_since
    session.troubled("quarantine_full", "it is full", size=1)
    assert (progress.why, progress.troubled_since) == ("it is full: 1", since)
    session.relieved()
    session.relieved()

    assert parts.said() == ["it is full", "the session goes on"]
    assert (progress.problem, progress.why, progress.troubled_since) == (None, None, None)
