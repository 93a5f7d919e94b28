"""Live sessions against stores with their default settings: nothing is refused, and every figure is exact."""

import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from exporter.errors import Exit
from tests.daemon.station import Station, until
from tests.daemon.telemetry import logged, settings_for, span_counts, totals
from tests.otel.default_stores import DefaultStores
from tests.otel.many import line
from tests.otel.receiver import Receiver

_ROUNDS: Final = 4
_SESSIONS: Final = 3

pytestmark = pytest.mark.anyio


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as opened:
        yield opened


def _round(session: int, number: int) -> list[bytes]:
    """One interaction with a tool call, as it happens now; it began some seconds ago, those of other sessions later."""
    at = time.time() - 8 + 2 * session
    name = f"{session}-{number}"
    events: tuple[tuple[str, dict[str, Any]], ...] = (
        ("user.message", {"delivery": "idle", "interactionId": name, "content": "Hi."}),
        ("assistant.turn_start", {"turnId": "0", "interactionId": name}),
        ("tool.execution_start", {"toolCallId": name, "toolName": f"tool{number % 2}"}),
        ("tool.execution_complete", {"toolCallId": name, "success": True}),
        ("assistant.turn_end", {"turnId": "0"}),
    )
    return [line(f"{name}-{place}", kind, data, at + place) for place, (kind, data) in enumerate(events)]


@pytest.mark.parametrize("restarts", [False, True])
async def test_no_live_request_is_refused_and_every_figure_is_exact(
    station: Station, receiver: Receiver, restarts: bool
) -> None:
    stores = DefaultStores(receiver)
    settings = settings_for(station, receiver)
    exporter = station.exporter(settings)
    sessions = [station.session(f"s{number}") for number in range(_SESSIONS)]
    for number in range(_ROUNDS):
        for place, session in enumerate(sessions):
            session.append(*_round(place, number))
            assert await exporter.idle() == Exit.DONE
        if restarts:
            await exporter.stop()
            exporter = station.exporter(settings)

    assert await exporter.idle() == Exit.DONE

    assert stores.refused == []
    calls = totals(receiver, "github.copilot.tool.call.count")
    assert sum(calls.values()) == sum(totals(receiver, "github.copilot.interaction.count").values()) == 12
    assert sorted(calls.values()) == [6, 6]
    assert len(logged(receiver)) == _SESSIONS * _ROUNDS * 5
    assert len(span_counts(receiver)) == _SESSIONS * (2 * _ROUNDS - 1)  # the last interaction may still go on
    assert set(span_counts(receiver).values()) == set(logged(receiver).values()) == {1}


async def test_a_request_has_one_time_which_grows_and_one_point_of_a_series(
    station: Station, receiver: Receiver
) -> None:
    exporter = station.exporter(settings_for(station, receiver, signals=("metrics",)))
    sessions = [station.session(f"s{number}") for number in range(_SESSIONS)]
    for number in range(_ROUNDS):
        for place, session in enumerate(sessions):
            session.append(*_round(place, number))
        assert await exporter.idle() == Exit.DONE

    newest = 0
    for request in receiver.requests:
        points = [
            (metric.name, str(sorted(map(str, point.attributes))), point.time_unix_nano)
            for part in request.decoded().resource_metrics
            for scope in part.scope_metrics
            for metric in scope.metrics
            for point in (*metric.sum.data_points, *metric.histogram.data_points)
        ]
        [collected] = {at for _, _, at in points}
        assert collected > newest
        assert len({(name, labels) for name, labels, _ in points}) == len(points)
        newest = collected


async def test_figures_are_repeated_while_the_exporter_lives_and_go_on_after_a_restart(
    station: Station, receiver: Receiver
) -> None:
    stores = DefaultStores(receiver)
    settings = settings_for(station, receiver, signals=("metrics",), metrics_repeat_seconds=1.0)
    exporter = station.exporter(settings)
    station.session().append(*_round(0, 0))
    assert await exporter.idle() == Exit.DONE
    first = _calls(receiver)

    await until(lambda: len(_calls(receiver)) >= len(first) + 2, 60)
    await exporter.stop()
    exporter = station.exporter(settings)
    before = len(_calls(receiver))
    await until(lambda: len(_calls(receiver)) > before, 60)

    assert stores.refused == []
    assert len({start for start, _ in _calls(receiver)}) == 1
    assert [value for _, value in _calls(receiver)[len(first) :]] == [1] * (len(_calls(receiver)) - len(first))


def _calls(receiver: Receiver) -> list[tuple[int, int]]:
    """Return start and value of every point of the calls of a tool."""
    points = [
        point
        for metric in receiver.metrics()
        if metric.name == "github.copilot.tool.call.count"
        for point in metric.sum.data_points
    ]
    return [(point.start_time_unix_nano, int(point.as_int or point.as_double)) for point in points]
