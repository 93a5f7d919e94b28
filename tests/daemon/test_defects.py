"""An error of ours while telemetry is made: a person sees it in the log, in `status` and in the figures."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from config.settings import Otel
from exporter.core.notice import Level
from exporter.errors import Exit
from otel.machines.traces import machine
from tests.daemon.station import Station, until
from tests.daemon.telemetry import demo_session, logged
from tests.otel.receiver import Receiver

pytestmark = pytest.mark.anyio


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as opened:
        yield opened


def _broken(*_: Any) -> Any:
    raise ZeroDivisionError


async def test_defects_of_every_endpoint_are_told_with_their_place(
    station: Station, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(machine.HANDLERS, "system.notification", _broken)
    session = demo_session(station)
    events = session.path.read_bytes().count(b'"type":"system.notification"')
    endpoints = {
        "one": Otel(endpoint=receiver.url, history_days=36_500, health=True),
        "two": Otel(endpoint=receiver.url, history_days=36_500, signals=("logs",), content="redacted"),
    }
    exporter = station.exporter(station.settings({}, otel=endpoints))
    [health] = exporter.running.beside
    sending = asyncio.create_task(health())

    assert await exporter.idle() == Exit.DONE

    assert logged(receiver) == dict.fromkeys(session.durable_ids(), 2)
    defects = (await exporter.ask("status"))["daemon"]["defects"]
    [(place, count)] = defects.items()
    assert (place.partition(":")[0], count) == ("test_defects.py", 2 * events)
    await until(lambda: any("defect" in notice.message for notice in exporter.notices))
    assert [(one.level, one.fields["at"]) for one in exporter.alarms()] == [(Level.ERROR, place)]
    sending.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await sending
    told = [metric for metric in receiver.metrics() if metric.name == "session_exporter.defects"]
    assert told[-1].sum.data_points[0].as_int == 2 * events
