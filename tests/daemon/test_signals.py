"""Each signal of an OTLP endpoint by itself: what it does not take is off, what only waits holds nothing back."""

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from exporter.core.notice import Level
from exporter.errors import Exit
from tests.daemon.station import Exporter, Station, until
from tests.daemon.telemetry import DEMO, delivered, demo_session, logged, settings_for, span_counts, totals
from tests.otel.receiver import Receiver
from tests.otel.reply import Reply

_LONG_AGO: Final = 30.0
_CALLS: Final = "github.copilot.tool.call.count"

pytestmark = pytest.mark.anyio


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver(with_grpc=True) as opened:
        yield opened


def _only_traces(receiver: Receiver, status: int = 404) -> None:
    """Take spans and nothing else, as Jaeger and Phoenix do."""
    receiver.always(logs=Reply(status), metrics=Reply(status))


def _off(exporter: Exporter) -> list[dict[str, Any]]:
    """Return what was told of signals that are off."""
    told = [notice for notice in exporter.notices if "which are off" in notice.message]
    return [{"sink": one.sink, "level": one.level, "url": one.url, **one.fields} for one in told]


@pytest.mark.parametrize(
    ("protocol", "status", "shown"),
    [("http/protobuf", 404, 404), ("http/protobuf", 405, 405), ("http/protobuf", 415, 415), ("http/protobuf", 501, 501),
     ("grpc", 404, 404)],
)  # fmt: skip
async def test_an_endpoint_of_traces_alone_works_with_the_default_settings(
    station: Station, receiver: Receiver, protocol: str, status: int, shown: int
) -> None:
    demo_session(station)
    _only_traces(receiver, status)
    exporter = station.exporter(settings_for(station, receiver, protocol=protocol))

    assert await exporter.idle() == Exit.DONE

    address = receiver.grpc_url if protocol == "grpc" else receiver.url
    assert span_counts(receiver) and set(span_counts(receiver).values()) == {1}
    assert sorted(_off(exporter), key=lambda one: str(one["sink"])) == [
        {
            "sink": f"otel:{signal}",
            "level": Level.WARNING,
            "url": address if protocol == "grpc" else f"{address}/v1/{signal}",
            "status": shown,
        }
        for signal in ("logs", "metrics")
    ]
    assert "`signals`" in next(notice.message for notice in exporter.notices if "which are off" in notice.message)
    assert exporter.alarms() == []
    for signal in ("logs", "metrics"):
        told = await exporter.sink_status(f"otel:{signal}")
        assert (told["state"], told["lag_events"], told["lag_bytes"]) == (f"off ({shown})", 0, 0)
        assert told["sums_wait"] is False


async def test_a_signal_that_is_off_is_asked_at_each_start_and_goes_on_from_its_mark(
    station: Station, receiver: Receiver
) -> None:
    session = demo_session(station)
    settings = settings_for(station, receiver)
    receiver.always(logs=Reply(404))
    exporter = station.exporter(settings)
    assert await exporter.idle() == Exit.DONE
    session.add(2)
    assert await exporter.idle() == Exit.DONE
    asked = receiver.asked("logs")
    await exporter.stop()
    again = station.exporter(settings)
    assert await again.idle() == Exit.DONE
    assert receiver.asked("logs") > asked
    assert len(_off(again)) == 1
    await again.stop()
    receiver.always()

    last = station.exporter(settings)

    assert await last.idle() == Exit.DONE
    assert logged(receiver) == dict.fromkeys(session.durable_ids(), 1)
    assert (await last.sink_status("otel:logs"))["state"] == "ok"
    assert set(span_counts(receiver).values()) == {1}


async def test_a_signal_that_is_off_is_left_alone_for_a_day(station: Station, receiver: Receiver) -> None:
    session = demo_session(station)
    receiver.always(logs=Reply(404))
    exporter = station.exporter(settings_for(station, receiver))
    assert await exporter.idle() == Exit.DONE
    asked = receiver.asked("logs")
    gate = next(run.sink_state.gate for run in exporter.running.daemon.runs if run.name == "otel:logs")

    again_at = gate.ready(time.monotonic())

    assert again_at is not None
    assert 86_000 < again_at - time.monotonic() <= 86_400
    session.add(5)
    assert await exporter.idle() == Exit.DONE
    assert receiver.asked("logs") == asked <= 4  # one for each session that is sent at a time


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
async def test_an_endpoint_that_takes_no_signal_is_a_wrong_address(
    station: Station, receiver: Receiver, protocol: str, fast_clock: float
) -> None:
    demo_session(station).age(_LONG_AGO)
    receiver.plan(then=Reply(404))
    exporter = station.exporter(settings_for(station, receiver, protocol=protocol, give_up_seconds=100.0))

    answer = await exporter.ask("backfill", all=True)

    assert answer["exit"] == Exit.UNREACHABLE
    assert _off(exporter) == []
    address = receiver.grpc_url if protocol == "grpc" else f"{receiver.url}/v1/traces"
    assert any(str(alarm.fields["why"]).startswith(f"{address} answered 404") for alarm in exporter.alarms())
    assert (await exporter.sink_status("otel:traces"))["state"] == "waiting"


async def test_a_signal_that_was_accepted_before_waits_with_an_alarm(
    station: Station, receiver: Receiver, fast_clock: float
) -> None:
    session = demo_session(station)
    settings = settings_for(station, receiver, give_up_seconds=100.0)
    exporter = station.exporter(settings)
    assert await exporter.idle() == Exit.DONE
    await exporter.stop()
    receiver.always(logs=Reply(404))
    session.add(1)

    exporter = station.exporter(settings)

    assert await exporter.idle() == Exit.UNREACHABLE
    assert _off(exporter) == []
    assert "/v1/logs answered 404" in str(exporter.alarms()[0].fields["why"])
    told = await exporter.sink_status("otel:logs")
    assert (told["state"], told["lag_events"]) == ("waiting", 1)


@pytest.mark.parametrize("signal", ["logs", "metrics"])
async def test_a_signal_that_an_older_version_delivered_was_accepted_before(
    station: Station, receiver: Receiver, fast_clock: float, signal: str
) -> None:
    session = demo_session(station)
    settings = settings_for(station, receiver, give_up_seconds=100.0)
    exporter = station.exporter(settings)
    assert await exporter.idle() == Exit.DONE
    await exporter.stop()
    with contextlib.closing(sqlite3.connect(station.state / "marks.db", isolation_level=None)) as marks:
        assert marks.execute("DELETE FROM facts WHERE name LIKE 'accepted at sink %'").rowcount == 3
    receiver.always(**{signal: Reply(404)})
    session.add(1)

    exporter = station.exporter(settings)

    assert await exporter.idle() == Exit.UNREACHABLE
    assert _off(exporter) == []
    assert (await exporter.sink_status(f"otel:{signal}"))["state"] == "waiting"


async def test_what_is_off_ends_no_backfill_late_and_is_no_failure(station: Station, receiver: Receiver) -> None:
    for number in range(5):
        demo_session(station, f"s{number}").age(_LONG_AGO)
    _only_traces(receiver)
    exporter = station.exporter(settings_for(station, receiver))

    answer = await exporter.ask("backfill", all=True)

    assert answer["exit"] == Exit.DONE
    assert {(row["sink"], row["state"]) for row in answer["sessions"]} == {
        ("otel:traces", "delivered"), ("otel:logs", "off (404)"), ("otel:metrics", "off (404)"),
    }  # fmt: skip
    assert {one["sink"] for one in _off(exporter)} == {"otel:logs", "otel:metrics"}


@pytest.mark.parametrize(("compression", "encoding"), [("auto", None), ("gzip", "gzip"), ("none", None)])
async def test_nothing_is_compressed_on_loopback_unless_that_is_set(
    station: Station, receiver: Receiver, compression: str, encoding: str | None
) -> None:
    demo_session(station)

    await delivered(station, settings_for(station, receiver, compression=compression))

    assert {request.headers.get("content-encoding") for request in receiver.requests} == {encoding}


async def test_415_is_answered_without_compression_first(station: Station, receiver: Receiver) -> None:
    session = demo_session(station)
    took = receiver.took

    def without_gzip(signal: Any, path: str, headers: Any, body: bytes, connection: str) -> Reply:
        receiver.always(**({signal: Reply(415)} if headers.get("content-encoding") == "gzip" else {}))
        return took(signal, path, headers, body, connection)

    receiver.http.took = without_gzip
    exporter = station.exporter(settings_for(station, receiver, signals=("logs",), compression="gzip"))

    assert await exporter.idle() == Exit.DONE
    session.add(2)
    await until(lambda: len(logged(receiver)) == len(session.durable_ids()))

    assert logged(receiver) == dict.fromkeys(session.durable_ids(), 1)
    assert [request.reply.status for request in receiver.requests].count(415) <= 4
    assert len(DEMO) < len(logged(receiver))
    assert exporter.alarms() == []
    assert _off(exporter) == []


async def test_metrics_that_are_taken_again_are_all_there(station: Station, receiver: Receiver) -> None:
    demo_session(station)
    settings = settings_for(station, receiver)
    receiver.always(metrics=Reply(501))
    exporter = station.exporter(settings)
    assert await exporter.idle() == Exit.DONE
    await exporter.stop()
    demo_session(station, "later")
    receiver.always()

    assert await station.exporter(settings).idle() == Exit.DONE

    both = sum(totals(receiver, _CALLS).values())
    assert both == 2 * sum(b'"type":"tool.execution_complete"' in line for line in DEMO)
