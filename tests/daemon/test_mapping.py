"""Machines that make records of sessions: many of them, thrown away and made again, or held up by one dead signal."""

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans

from exporter.daemon.status_report import sink_status
from exporter.errors import Exit
from exporter.pipeline import record_feed
from otel.bridge import Bridge, SignalOptions
from otel.names import Content
from tests.daemon.station import Station, until
from tests.daemon.telemetry import DEMO, logged, settings_for, span_counts, totals
from tests.otel.receiver import Receiver
from tests.otel.reply import Reply

_OPEN: Final = 22
"""So many events of the demo's session leave an interaction, a turn and a tool open."""
_MACHINES_MAX: Final = 40
_CALLS: Final = "github.copilot.tool.call.count"

pytestmark = pytest.mark.anyio


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as opened:
        yield opened


def _copy(lines: list[bytes], number: int) -> list[bytes]:
    """Return the events with ids of their own."""
    return [re.sub(rb'"[0-9a-f]{8}-([0-9a-f-]{27}")', rb'"%08x-\1' % number, line) for line in lines]


def _mapped_at_once(session: str, lines: list[bytes], content: Content = Content.METADATA) -> dict[bytes, bytes]:
    """Return the spans of a session by id, made by one machine that is never interrupted."""
    made = b"".join(data for _, _, data in Bridge(session, SignalOptions(content=content)).take(lines, 1)["traces"])
    return {span.span_id: span.SerializeToString(deterministic=True) for span in ScopeSpans.FromString(made).spans}


def _received(receiver: Receiver) -> dict[bytes, bytes]:
    return {span.span_id: span.SerializeToString(deterministic=True) for span in receiver.spans()}


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.parametrize(("count", "parts"), [(_MACHINES_MAX + 20, (_OPEN, 29, 66)), (30, (105, 106, 118))])
async def test_machines_that_are_thrown_away_make_the_same_when_they_are_needed_again(
    station: Station, receiver: Receiver, count: int, parts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of sessions with something open no more than 256 machines are kept, here 40, of others 16."""
    monkeypatch.setattr(record_feed, "_MACHINES_MAX", _MACHINES_MAX)
    sessions = {station.session(f"s{number}"): _copy(DEMO, number) for number in range(count)}
    exporter = station.exporter(settings_for(station, receiver))
    before = 0
    for part in parts:
        for session, lines in sessions.items():
            session.append(*lines[before:part])
        before = part
        await until(lambda part=part: len(logged(receiver)) == count * part, 90)  # type: ignore[misc]
        assert await exporter.idle() == Exit.DONE

    expected: dict[bytes, bytes] = {}
    for session, lines in sessions.items():
        expected |= _mapped_at_once(session.name, lines[:before])
    assert _received(receiver) == expected
    assert set(span_counts(receiver).values()) == {1}
    assert set(logged(receiver).values()) == {1}
    calls = sum(line.count(b'"type":"tool.execution_complete"') for line in DEMO[:before])
    assert sum(totals(receiver, _CALLS).values()) == count * calls


@pytest.mark.parametrize("dead", ["traces", "metrics", "logs"])
async def test_a_signal_that_is_refused_holds_the_others_up_no_longer_than_a_moment(
    station: Station, receiver: Receiver, dead: Any
) -> None:
    copies = 80
    lines = [line for number in range(copies) for line in _copy(DEMO, number)]
    session = station.session()
    session.append(*lines)
    receiver.plan(then=Reply(503, signal=dead))
    exporter = station.exporter(settings_for(station, receiver, content="redacted"))

    runs = {run.name.partition(":")[2]: run for run in exporter.running.daemon.runs}
    well = runs.keys() - {dead}
    await until(lambda: not any(sink_status(runs[signal]).lag_events for signal in well), 30)
    assert not {"traces": receiver.spans, "metrics": receiver.metrics, "logs": receiver.logs}[dead]()
    await until(lambda: sink_status(runs[dead]).state == "waiting")
    receiver.plan(then=Reply())
    assert await exporter.idle() == Exit.DONE
    assert _received(receiver) == _mapped_at_once(session.name, lines, Content.REDACTED)
    assert logged(receiver) == dict.fromkeys(session.durable_ids(), 1)
    assert set(span_counts(receiver).values()) == {1}
    assert receiver.metrics()


async def test_a_rewind_over_ten_thousand_events_repeats_none(station: Station, receiver: Receiver) -> None:
    """The machine knows the latest thousands of ids; what was delivered is known to the lane, however long ago."""
    session = station.session()
    copies = [_copy(DEMO, number) for number in range(90)]
    session.append(*(line for copy in copies for line in copy))
    exporter = station.exporter(settings_for(station, receiver))
    assert await exporter.idle() == Exit.DONE
    before = set(session.durable_ids())
    counted = sum(totals(receiver, _CALLS).values())

    session.replace(*copies[0], *copies[1], *copies[89], *_copy(DEMO, 90))
    now = set(session.durable_ids())

    await until(lambda: len(logged(receiver)) == len(before | now))
    assert await exporter.idle() == Exit.DONE
    assert set(logged(receiver).values()) == {1}
    assert set(span_counts(receiver).values()) == {1}
    calls = sum(b'"type":"tool.execution_complete"' in line for line in DEMO)
    assert (counted, sum(totals(receiver, _CALLS).values())) == (90 * calls, 91 * calls)
