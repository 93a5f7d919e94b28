"""A signal or a sink that is away holds no other back, in a backfill of many sessions by the installed command."""

import time
from collections.abc import Iterator, Sequence
from typing import Final

import pytest

from tests.otel.many import EVENTS, SPANS, write_sessions
from tests.otel.receiver import Receiver, text_of
from tests.otel.reply import Reply
from tests.program.driver import Machine

_SESSIONS: Final = 600
_FEW_SESSIONS: Final = 150
_DAY: Final = 86_400.0
_HOUR_NS: Final = 3_600_000_000_000


def _points(receiver: Receiver) -> float:
    """Return how many tool calls the newest points count."""
    newest: dict[tuple[str, ...], tuple[int, float]] = {}
    for metric in receiver.metrics():
        for point in metric.sum.data_points if metric.name == "github.copilot.tool.call.count" else ():
            series = tuple(sorted(f"{one.key}={one.value}" for one in point.attributes))
            newest[series] = max(newest.get(series, (0, 0.0)), (point.time_unix_nano, point.as_int))
    return sum(value for _, value in newest.values())


def _history(machine: Machine, receiver: Receiver, sessions: int, hours: Sequence[float] = (3.0,)) -> Machine:
    """Give the machine sessions that overlap, and telemetry."""
    machine.environment["EXPORTER_OTEL__ENDPOINT"] = receiver.url
    machine.environment["EXPORTER_OTEL__HISTORY_DAYS"] = "36500"
    machine.settings["give_up_seconds"] = 3
    write_sessions(machine.home, sessions, first=time.time() - 2 * _DAY, last_hours=hours)
    return machine


@pytest.mark.slow
def test_a_signal_that_waits_holds_no_other_back(machine: Machine, receiver: Receiver) -> None:
    history = _history(machine, receiver, _SESSIONS)
    receiver.always(logs=Reply(503, retry_after="0"))

    ended = history.exporter("backfill", "--all", "--sink", "otel")

    assert ended.returncode == 6, ended.stderr
    assert len({(span.trace_id, span.span_id) for span in receiver.spans()}) == len(receiver.spans())
    assert len(receiver.spans()) == _SESSIONS * SPANS
    assert _points(receiver) == _SESSIONS
    assert receiver.asked("logs") <= 40
    receiver.always()
    again = history.exporter("backfill", "--all", "--sink", "otel")
    assert again.returncode == 0, again.stderr
    assert len(receiver.logs()) == _SESSIONS * EVENTS
    assert len(receiver.spans()) == _SESSIONS * SPANS
    assert _points(receiver) == _SESSIONS


@pytest.mark.slow
def test_another_sink_that_is_away_holds_no_telemetry_back(machine: Machine, receiver: Receiver) -> None:
    history = _history(machine, receiver, _FEW_SESSIONS)
    floor = history.with_floor().floor
    assert floor is not None
    floor.close()

    ended = history.exporter("backfill", "--all")

    assert ended.returncode == 6, ended.stderr
    assert len(receiver.spans()) == _FEW_SESSIONS * SPANS
    assert len(receiver.logs()) == _FEW_SESSIONS * EVENTS
    assert _points(receiver) == _FEW_SESSIONS


@pytest.mark.slow
def test_log_records_of_overlapping_sessions_come_as_log_stores_take_them(machine: Machine, receiver: Receiver) -> None:
    history = _history(machine, receiver, _SESSIONS, hours=(1.0, 0.1, 4.0, 11.0))

    ended = history.exporter("backfill", "--all", "--sink", "otel")

    assert ended.returncode == 0, ended.stderr
    newest: dict[str, int] = {}
    behind = 0
    for stream, time_ns in _logged(receiver):
        behind += newest.get(stream, 0) - time_ns > _HOUR_NS
        newest[stream] = max(newest.get(stream, 0), time_ns)
    print(f"{len(newest)} streams, {behind} records behind, {receiver.asked('logs')} requests")
    assert len(receiver.logs()) == _SESSIONS * EVENTS
    assert len({text_of(record, "event.id") for record in receiver.logs()}) == _SESSIONS * EVENTS
    assert len(newest) <= 16
    assert behind == 0
    assert receiver.asked("logs") <= 120


def _logged(receiver: Receiver) -> Iterator[tuple[str, int]]:
    """Yield the stream and the time of every record, as they came."""
    for request in receiver.requests:
        for part in request.decoded().resource_logs if request.kept and request.signal == "logs" else ():
            for scope in part.scope_logs:
                for record in scope.log_records:
                    yield text_of(part.resource, "service.instance.id"), record.time_unix_nano
