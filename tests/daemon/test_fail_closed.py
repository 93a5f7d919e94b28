"""Redaction on the way: nothing that the redactor has not vouched for leaves, and nothing is lost."""

import re
from collections.abc import AsyncIterator

import pytest

from exporter.core.events.redaction import Masked, Redacted, Refused
from exporter.errors import Exit
from exporter.pipeline.redactors import Redactors
from tests.daemon.exchange import Reply
from tests.daemon.peer import Peer
from tests.daemon.sessions import event
from tests.daemon.station import Station, until

pytestmark = pytest.mark.anyio

SECRET = b"hunter2"


class Masking:
    """Masks one word, and refuses what it is told to."""

    def __init__(self) -> None:
        self.refuse: bytes | None = None

    def __call__(self, line: bytes, /) -> Redacted:
        if self.refuse is not None and self.refuse in line:
            return Refused("budget_exceeded")
        found = line.count(SECRET)
        return Masked(line.replace(SECRET, b"***"), ("password",) * found) if found else line


def _text(text: str) -> str:
    return text.replace(SECRET.decode(), "***")


def _no_secret_left(peer: Peer) -> bool:
    return not any(SECRET in request.text() for request in peer.requests)


async def test_a_refused_event_goes_to_quarantine_and_never_out(station: Station, full: Peer) -> None:
    redactor = Masking()
    redactor.refuse = b'"id":"bad"'
    session = station.session()
    session.add(5)
    session.append(event("bad", note="hunter2"))
    session.add(5)
    exporter = station.exporter(full, redaction=Redactors(redactor, _text))

    ended = await exporter.idle()

    assert ended == Exit.PARTIAL
    assert [(one["event"], one["reason"]) for one in await exporter.quarantined()] == [("bad", "budget_exceeded")]
    assert full.ids() == [f"e{number}" for number in range(10)]
    assert not any(b'"bad"' in request.body for request in full.requests)
    assert await exporter.differences() == []


async def test_a_refused_event_is_shown_to_nobody_until_the_redactor_passes_it(station: Station, full: Peer) -> None:
    redactor = Masking()
    redactor.refuse = b'"id":"bad"'
    session = station.session()
    session.append(event("bad", note="hunter2"))
    exporter = station.exporter(full, redaction=Redactors(redactor, _text))
    await exporter.idle()
    [entry] = await exporter.quarantined()

    hidden = await exporter.ask("quarantine_show", number=entry["n"])
    redactor.refuse = None
    shown = await exporter.ask("quarantine_show", number=entry["n"])

    assert hidden["text"] is None
    assert "***" in shown["text"] and "hunter2" not in shown["text"]


async def test_a_replay_sends_what_the_redactor_passes_now(station: Station, full: Peer) -> None:
    redactor = Masking()
    redactor.refuse = b'"id":"bad"'
    session = station.session()
    session.add(3)
    session.append(event("bad", note="hunter2"))
    exporter = station.exporter(full, redaction=Redactors(redactor, _text))
    await exporter.idle()
    [entry] = await exporter.quarantined()

    still = await exporter.ask("quarantine_replay", numbers=[entry["n"]])
    redactor.refuse = None
    done = await exporter.ask("quarantine_replay", numbers=[entry["n"]])

    assert (still["exit"], done["exit"]) == (Exit.PARTIAL, Exit.DONE)
    assert full.ids() == ["e0", "e1", "e2", "bad"]
    assert _no_secret_left(full)
    assert await exporter.quarantined() == []
    assert await exporter.differences() == []


async def test_a_masked_event_is_delivered_masked_and_verifies_equal(station: Station, full: Peer) -> None:
    session = station.session()
    for number in range(40):
        session.append(event(f"m{number}", note="hunter2 and hunter2" if number % 3 == 0 else "nothing"))
    exporter = station.exporter(full, redaction=Redactors(Masking(), _text))

    ended = await exporter.idle()

    assert ended == Exit.DONE
    assert full.ids() == session.durable_ids()
    assert _no_secret_left(full)
    assert [body for _, body in full.behind.held("s")] == [line.replace(SECRET, b"***") for line in session.lines()]
    assert await exporter.differences() == []
    [row] = (await exporter.ask("sessions"))["sessions"]
    assert row["masked"] == 28


async def test_what_was_masked_is_counted_once_however_often_it_is_sent(station: Station, full: Peer) -> None:
    session = station.session()
    for number in range(10):
        session.append(event(f"m{number}", note="hunter2"))
    full.next_replies += [Reply(heard=True, lost=True), Reply(503)]
    first = station.exporter(full, redaction=Redactors(Masking(), _text))
    await first.idle()
    await first.stop()

    exporter = station.exporter(full, redaction=Redactors(Masking(), _text))
    await exporter.idle()

    [row] = (await exporter.ask("sessions"))["sessions"]
    assert row["masked"] == 10


async def test_what_was_masked_is_counted_anew_when_a_person_has_everything_sent_again(
    station: Station, full: Peer
) -> None:
    session = station.session()
    for number in range(10):
        session.append(event(f"m{number}", note="hunter2"))
    exporter = station.exporter(full, redaction=Redactors(Masking(), _text))
    await exporter.idle()

    result = await exporter.ask("backfill", sessions=["s"], from_start=True)

    assert result["exit"] == Exit.DONE
    [row] = (await exporter.ask("sessions"))["sessions"]
    assert row["masked"] == 10


async def test_ephemeral_events_are_redacted_before_they_are_shown(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(1)
    redactor = Masking()
    redactor.refuse = b"refused"
    exporter = station.exporter(full, redaction=Redactors(redactor, _text), live=True)
    await exporter.idle()

    session.append(event("x", ephemeral=True, note="hunter2"), event("y", ephemeral=True, note="refused hunter2"))

    await until(lambda: any(request.path.endswith("/live") for request in full.requests))
    [shown] = [request for request in full.requests if request.path.endswith("/live")]
    assert [one["id"] for one in shown.json()["events"]] == ["x"]
    assert _no_secret_left(full)


async def test_a_redactor_that_breaks_holds_its_session_and_sends_nothing_raw(
    station: Station, full: Peer, fast_clock: float
) -> None:
    broken = [True]

    def redact(line: bytes, /) -> Redacted:
        if broken[0] and b"hunter2" in line:
            raise RuntimeError("defect")
        return Masking()(line)

    session, other = station.session(), station.session("other")
    session.append(event("a", note="hunter2"))
    exporter = station.exporter(full, redaction=Redactors(redact, _text))
    await until(lambda: bool(exporter.alarms()))
    other.add(3)

    await until(lambda: full.ids("other") == other.durable_ids())
    assert full.ids() == []
    assert not any("hunter2" in str(notice) for notice in exporter.notices)
    broken[0] = False

    await until(lambda: full.ids() == ["a"], 10.0)
    assert _no_secret_left(full)


TOKEN = "ghp_" + "0123456789abcdefghijklmnopqrstuvwxyzAB"[:36]


@pytest.fixture
async def real_engine(station: Station, full: Peer) -> AsyncIterator[None]:
    """A session with a real-looking token, delivered through the engine of the program."""
    session = station.session()
    session.add(3)
    session.append(event("secret", command=f"curl -H 'Authorization: token {TOKEN}' https://example.test"))
    session.append(b'{"id":"torn","type":"x","note":"' + TOKEN.encode() + b'"')
    session.append(b'{"type":"x","no_id":"' + TOKEN.encode() + b'"}')
    await station.exporter(full, redaction=None).idle()
    yield


async def test_the_engine_of_the_program_masks_on_the_way(station: Station, full: Peer, real_engine: None) -> None:
    [exporter] = station.exporters

    assert full.ids() == ["e0", "e1", "e2", "secret"]
    assert not any(TOKEN.encode() in request.text() for request in full.requests)
    assert await exporter.differences() == []


async def test_no_answer_to_a_command_prints_a_secret(station: Station, full: Peer, real_engine: None) -> None:
    [exporter] = station.exporters
    entries = await exporter.quarantined()

    answers = [await exporter.ask("quarantine_show", number=entry["n"]) for entry in entries]
    answers += [await exporter.ask(what) for what in ("status", "sessions", "quarantine_list")]

    assert len(entries) == 2
    assert re.search(re.escape(TOKEN), str(answers)) is None
    assert not any(TOKEN in str(notice) for notice in exporter.notices)
