"""Events that leave quarantine reach telemetry as well, with the spans, records and counts that they lead to."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from config.settings import MissionControl, Settings
from exporter.core.events.redaction import Redacted, Refused
from exporter.errors import Exit
from exporter.pipeline.redactors import Redactors
from tests.daemon.peer import Peer
from tests.daemon.station import Station
from tests.daemon.telemetry import DEMO, delivered, demo_session, logged, settings_for, span_counts, totals
from tests.otel.receiver import Receiver
from tests.otel.reply import Reply

_CALLS: Final = "github.copilot.tool.call.count"

pytestmark = pytest.mark.anyio


class Refusing:
    """Refuses the lines it is told to, as a redactor does that ran out of time, and masks nothing."""

    def __init__(self, *refused: bytes) -> None:
        self.refused = set(refused)

    def __call__(self, line: bytes, /) -> Redacted:
        return Refused("budget_exceeded") if line in self.refused else line


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as opened:
        yield opened


def _lines_of(kind: bytes) -> list[bytes]:
    return [line for line in DEMO if b'"type":"' + kind + b'"' in line]


async def _of_a_whole_run(station: Station) -> tuple[set[bytes], dict[Any, float]]:
    """Return the ids of the spans, and the counts of tools, of the same session where nothing was ever refused.

    Their traces may be other ones: a span that was accepted before the event that begins its trace came stays there.
    """
    with Receiver() as other:
        whole = Station(station.state / "whole")
        demo_session(whole)
        await delivered(whole, settings_for(whole, other))
        await whole.close()
        return {span for _, span in span_counts(other)}, totals(other, _CALLS)


@pytest.mark.parametrize("kind", [b"tool.execution_start", b"user.message", b"system.notification"])
async def test_what_the_redactor_passes_later_reaches_telemetry(
    station: Station, receiver: Receiver, kind: bytes
) -> None:
    session = demo_session(station)
    redactor = Refusing(_lines_of(kind)[0])
    exporter = station.exporter(settings_for(station, receiver), redaction=Redactors(redactor, str))
    assert await exporter.idle() == Exit.PARTIAL
    [kept] = await exporter.quarantined()
    assert kept["event"] not in logged(receiver)
    whole, calls = await _of_a_whole_run(station)

    still = await exporter.ask("quarantine_replay", numbers=[kept["n"]])
    redactor.refused.clear()
    done = await exporter.ask("quarantine_replay", numbers=[kept["n"]])

    assert (still["done"], done["done"]) == ([], [kept["n"]])
    assert logged(receiver) == dict.fromkeys(session.durable_ids(), 1)
    assert whole <= {span for _, span in span_counts(receiver)}
    assert set(span_counts(receiver).values()) == {1}
    assert totals(receiver, _CALLS) == calls
    assert await exporter.quarantined() == []
    session.add(2)
    assert await exporter.idle() == Exit.DONE
    assert set(span_counts(receiver).values()) == set(logged(receiver).values()) == {1}


async def test_it_reaches_every_sink_at_once(station: Station, receiver: Receiver, full: Peer) -> None:
    session = demo_session(station)
    redactor = Refusing(DEMO[7])
    exporter = station.exporter(_both(station, receiver, full), redaction=Redactors(redactor, str))
    await exporter.idle()
    [kept] = await exporter.quarantined()
    redactor.refused.clear()

    assert (await exporter.ask("quarantine_replay", numbers=[kept["n"]]))["done"] == [kept["n"]]

    assert set(full.ids()) == set(session.durable_ids())
    assert logged(receiver) == dict.fromkeys(session.durable_ids(), 1)
    assert await exporter.differences() == []


def _both(station: Station, receiver: Receiver, full: Peer) -> Settings:
    otel = settings_for(station, receiver).otel
    return station.settings({"default": MissionControl(url=full.url)}, otel=otel)


async def test_it_stays_when_the_endpoint_does_not_take_it(
    station: Station, receiver: Receiver, fast_clock: float
) -> None:
    session = demo_session(station)
    redactor = Refusing(DEMO[7])
    settings = settings_for(station, receiver, give_up_seconds=100.0)
    exporter = station.exporter(settings, redaction=Redactors(redactor, str))
    await exporter.idle()
    [kept] = await exporter.quarantined()
    redactor.refused.clear()
    receiver.plan(then=Reply(503))

    left = await exporter.ask("quarantine_replay", numbers=[kept["n"]])

    assert left["left"] == [{"n": kept["n"], "reason": "answered 503"}]
    receiver.plan(then=Reply())
    await exporter.stop()
    again = station.exporter(settings)
    assert (await again.ask("quarantine_replay", numbers=[kept["n"]]))["done"] == [kept["n"]]
    assert logged(receiver) == dict.fromkeys(session.durable_ids(), 1)


async def test_an_event_that_the_file_lost_stays(station: Station, receiver: Receiver) -> None:
    session = demo_session(station)
    redactor = Refusing(DEMO[-1])
    exporter = station.exporter(settings_for(station, receiver), redaction=Redactors(redactor, str))
    await exporter.idle()
    [kept] = await exporter.quarantined()
    redactor.refused.clear()
    session.replace(*DEMO[:-1])

    answer = await exporter.ask("quarantine_replay", numbers=[kept["n"]])

    assert answer["left"] == [{"n": kept["n"], "reason": "its session's file does not hold it"}]
