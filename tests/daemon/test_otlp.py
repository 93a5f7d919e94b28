"""OTLP endpoints as sinks: nothing lost, nothing twice, through crashes, refusals and outages."""

import asyncio
import json
import os
import random
import socket
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from config.settings import Otel
from exporter.app import make_redaction
from exporter.errors import Exit
from exporter.sinks.otlp import Otlp
from tests.daemon.station import Station, until
from tests.daemon.telemetry import (
    DEMO,
    attributes_of,
    delivered,
    demo_session,
    logged,
    settings_for,
    span_counts,
    totals,
)
from tests.otel.receiver import Receiver
from tests.otel.reply import LOSE, Reply

_SECRET: Final = "ghp_" + "".join(random.Random(4).choices("abcdefghijkmnopqrstuvwxyzABCDEFGH0123456789", k=36))
_LONG_AGO: Final = 30.0

pytestmark = pytest.mark.anyio


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as opened:
        yield opened


async def test_every_signal_of_a_session_arrives_once(station: Station, receiver: Receiver) -> None:
    session = demo_session(station)

    await delivered(station, settings_for(station, receiver))

    assert set(logged(receiver)) == set(session.durable_ids())
    assert set(logged(receiver).values()) == {1}
    spans = receiver.spans()
    assert spans and set(span_counts(receiver).values()) == {1}
    assert {span.name.split()[0] for span in spans} >= {"invoke_agent", "chat", "execute_tool"}
    assert sum(totals(receiver, "github.copilot.system.notification.count").values()) == 3


async def test_a_second_run_sends_nothing(station: Station, receiver: Receiver) -> None:
    demo_session(station)
    settings = settings_for(station, receiver)
    await (await delivered(station, settings)).stop()
    before = len(receiver.requests)

    again = await delivered(station, settings)
    answer = await again.ask("backfill", sessions=["s"], sinks=["otel"])

    assert answer["exit"] == Exit.DONE
    assert len(receiver.requests) == before


async def test_followed_live_or_afterwards_is_the_same(station: Station, receiver: Receiver, tmp_path: Path) -> None:
    session = station.session()
    exporter = station.exporter(settings_for(station, receiver))
    rng = random.Random(7)
    left = list(DEMO)
    while left:
        some = rng.randint(1, 9)
        session.append(*left[:some])
        del left[:some]
        await asyncio.sleep(0.02)
    assert await exporter.idle() == Exit.DONE
    await exporter.stop()

    with Receiver() as other:
        afterwards = Station(tmp_path / "afterwards")
        demo_session(afterwards)
        await delivered(afterwards, settings_for(afterwards, other))
        await afterwards.close()
        assert _known(other) == _known(receiver)
        assert logged(other) == logged(receiver)
        assert set(span_counts(receiver).values()) == {1}


def _known(receiver: Receiver) -> dict[bytes, bytes]:
    """Return every span by its id, as bytes."""
    return {span.span_id: span.SerializeToString(deterministic=True) for span in receiver.spans()}


async def test_ten_crashes_change_nothing_but_lost_answers(station: Station, receiver: Receiver) -> None:
    session = station.session()
    settings = settings_for(station, receiver)
    rng = random.Random(11)
    left = list(DEMO)
    for life in range(10):
        exporter = station.exporter(settings)
        session.append(*left[: len(DEMO) // 10])
        del left[: len(DEMO) // 10]
        if life % 2:
            receiver.plan(*(rng.choice((Reply(), Reply(503), LOSE)) for _ in range(rng.randint(1, 4))))
        await asyncio.sleep(rng.random() * 0.2)
        await exporter.crash()
    session.append(*left)
    receiver.plan()

    await delivered(station, settings)

    assert set(logged(receiver)) == set(session.durable_ids())
    spans = _known(receiver)
    assert len({span.SerializeToString(deterministic=True) for span in receiver.spans()}) == len(spans)
    with Receiver() as other:
        whole = Station(station.state / "whole")
        demo_session(whole)
        await delivered(whole, settings_for(whole, other))
        await whole.close()
        assert spans == _known(other)
        name = "github.copilot.tool.call.count"
        assert totals(receiver, name) == totals(other, name)
        assert totals(other, name)


async def test_an_outage_loses_nothing(station: Station, receiver: Receiver, fast_clock: float) -> None:
    session = demo_session(station)
    receiver.plan(then=Reply(503))
    exporter = station.exporter(settings_for(station, receiver, give_up_seconds=86_400.0))
    await until(lambda: len(receiver.requests) >= 6)
    assert not receiver.spans()

    receiver.plan(then=Reply())

    assert await exporter.idle() == Exit.DONE
    assert set(logged(receiver)) == set(session.durable_ids())
    assert set(span_counts(receiver).values()) == {1}
    assert receiver.metrics()


async def test_what_could_not_be_sent_between_two_sendings_is_counted_once(station: Station, fast_clock: float) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        session = demo_session(station)
        otel = {"default": Otel(endpoint=f"http://127.0.0.1:{port}", signals=("logs",), history_days=36_500)}
        exporter = station.exporter(station.settings({}, otel=otel))
        await asyncio.to_thread(_take_and_hang_up, listening)
    sink = exporter.running.daemon.runs[0].sink_state
    await until(lambda: sink.retries >= 3)

    with Receiver(port=port) as back:
        assert await exporter.idle() == Exit.DONE

    assert logged(back) == dict.fromkeys(session.durable_ids(), 1)
    assert isinstance(sink.sink, Otlp)
    assert sink.sink.repeated == len(session.durable_ids())


def _take_and_hang_up(listening: socket.socket) -> None:
    """Read one request whole; nobody listens any more when its connection is closed."""
    connection, _ = listening.accept()
    with connection, connection.makefile("rb") as source:
        lines = dict(line.lower().split(b":", 1) for line in iter(source.readline, b"\r\n") if b": " in line)
        source.read(int(lines[b"content-length"]))
        listening.close()


async def test_a_refused_record_is_kept_apart(station: Station, receiver: Receiver) -> None:
    session = demo_session(station)
    victim = session.durable_ids()[5]
    # Its own record and not the next one, which names it as its parent.
    receiver.plan(then=Reply(400, unless=b"\x08event.id\x12\x26\x0a\x24" + victim.encode()))

    exporter = station.exporter(settings_for(station, receiver, signals=("logs",)))

    assert await exporter.idle() == Exit.PARTIAL
    assert set(logged(receiver)) == set(session.durable_ids()) - {victim}
    [kept] = await exporter.quarantined()
    assert (kept["event"], kept["sink"], kept["reason"]) == (victim, "otel:logs", "refused_400")
    receiver.plan(then=Reply())
    answer = await exporter.ask("quarantine_replay", numbers=[kept["n"]])
    assert answer["done"] == [kept["n"]]
    assert set(logged(receiver)) == set(session.durable_ids())


async def test_a_refused_token_waits_for_another(station: Station, receiver: Receiver, tmp_path: Path) -> None:
    demo_session(station)
    headers = tmp_path / "headers"
    headers.write_text("authorization=Bearer old\n")
    receiver.plan(then=Reply(401))
    exporter = station.exporter(settings_for(station, receiver, headers_file=str(headers)))
    assert await exporter.idle() == Exit.REFUSED

    receiver.plan(then=Reply())
    headers.write_text("authorization=Bearer new\n")

    await until(lambda: receiver.spans() and receiver.logs() and receiver.metrics(), 20)
    assert receiver.requests[-1].headers["authorization"] == "Bearer new"


@pytest.mark.parametrize("content", ["none", "metadata", "redacted"])
async def test_secrets_never_leave_and_texts_only_when_asked(
    station: Station, receiver: Receiver, content: str
) -> None:
    lines = [line.replace(b'"content":"', b'"content":"PLAINTEXT ' + _SECRET.encode() + b" ", 1) for line in DEMO]
    demo_session(station, lines=lines)
    settings = settings_for(station, receiver, content=content)
    exporter = station.exporter(settings, redaction=make_redaction(settings))

    assert await exporter.idle() == Exit.DONE

    sent = b"".join(request.body for request in receiver.requests)
    assert _SECRET.encode() not in sent
    assert _SECRET[8:30].encode() not in sent
    assert (b"PLAINTEXT" in sent) is (content == "redacted")
    assert (b"REDACTED" in sent) is (content == "redacted")


async def test_what_a_killed_process_left_open_is_closed(station: Station, receiver: Receiver) -> None:
    starts = [json.loads(line)["type"] for line in DEMO].index("tool.execution_start")
    session = demo_session(station, lines=DEMO[: starts + 1])
    for name in ("lock", "hold"):
        (session.directory / f"inuse.4194300.{name}").write_text("4194300")
        os.utime(session.directory / f"inuse.4194300.{name}", (session.path.stat().st_mtime - 60,) * 2)
    os.utime(session.path, (session.path.stat().st_mtime - 60,) * 2)

    exporter = await delivered(station, settings_for(station, receiver))

    orphans = [span for span in receiver.spans() if attributes_of(span).get("error.type") == "process_crash"]
    assert {span.name.split()[0] for span in orphans} == {"invoke_agent", "execute_tool"}
    await exporter.stop()
    before = span_counts(receiver)
    await (await delivered(station, settings_for(station, receiver))).stop()
    session.append(*DEMO[starts + 1 :])
    await delivered(station, settings_for(station, receiver))
    assert before.keys() <= span_counts(receiver).keys()
    assert set(span_counts(receiver).values()) == {1}


async def test_a_rewound_session_repeats_no_span(station: Station, receiver: Receiver) -> None:
    session = demo_session(station)
    exporter = await delivered(station, settings_for(station, receiver))
    before = span_counts(receiver)
    kept = len(DEMO) // 2

    session.replace(*DEMO[:kept])
    session.add(3)

    await until(lambda: len(logged(receiver)) == len(DEMO) + 3)
    assert await exporter.idle() == Exit.DONE
    assert set(logged(receiver).values()) == {1}
    again = Counter({span: count for span, count in span_counts(receiver).items() if count > 1})
    assert not again
    assert before.keys() <= span_counts(receiver).keys()


async def test_history_goes_out_under_the_name_of_its_run(station: Station, receiver: Receiver) -> None:
    for name in ("a", "b"):
        demo_session(station, name).age(_LONG_AGO)
    exporter = station.exporter(settings_for(station, receiver, history_days=0, user_name=False))
    await exporter.idle()
    assert not receiver.requests

    answer = await exporter.ask("backfill", all=True, sinks=["otel"])

    assert answer["exit"] == Exit.DONE
    assert {(row["sink"], row["events"]) for row in answer["sessions"]} == {
        (f"otel:{signal}", len(DEMO)) for signal in ("traces", "metrics", "logs")
    }
    traces, metrics = _instances(receiver, "traces"), _instances(receiver, "metrics")
    assert len(traces) == 1 and metrics == {f"{run}@1.0.102" for run in traces}
    assert _instances(receiver, "logs") == {f"{run}/0" for run in traces}  # of the hour in which both were
    assert sum(totals(receiver, "github.copilot.system.notification.count").values()) == 6


def _instances(receiver: Receiver, signal: Any) -> set[str]:
    return {str(attributes_of(resource)["service.instance.id"]) for resource in receiver.resources(signal)}


async def test_points_are_in_the_order_of_time(station: Station, receiver: Receiver) -> None:
    for number, days in enumerate((3, 9, 1, 20)):
        moved = [line.replace(b"T1", b"T0") if number % 2 else line for line in DEMO]
        demo_session(station, f"s{number}", moved).age(_LONG_AGO + days)
    exporter = station.exporter(settings_for(station, receiver))
    await exporter.ask("backfill", all=True)

    newest: dict[tuple[Any, ...], int] = {}
    for metric in receiver.metrics():
        for point in metric.sum.data_points:
            series = (metric.name, *sorted(attributes_of(point).items()))
            assert point.time_unix_nano > newest.get(series, 0)
            newest[series] = point.time_unix_nano
    assert newest


async def test_a_delta_is_what_came_since(station: Station, receiver: Receiver) -> None:
    session = station.session()
    exporter = station.exporter(settings_for(station, receiver, temporality="delta"))
    session.append(*DEMO[:60])
    assert await exporter.idle() == Exit.DONE
    session.append(*DEMO[60:])
    await until(lambda: len(logged(receiver)) == len(DEMO))
    assert await exporter.idle() == Exit.DONE

    counted = [
        point.as_int or point.as_double
        for metric in receiver.metrics()
        if metric.name == "github.copilot.system.notification.count"
        for point in metric.sum.data_points
    ]
    assert sum(counted) == 3


async def test_status_says_how_far_each_signal_is(station: Station, receiver: Receiver) -> None:
    demo_session(station)
    exporter = await delivered(station, settings_for(station, receiver))

    for signal in ("traces", "metrics", "logs"):
        status = await exporter.sink_status(f"otel:{signal}")
        assert (status["state"], status["lag_events"]) == ("ok", 0)
    [described] = (await exporter.ask("sessions"))["sessions"]
    assert {sink["name"]: sink["lag_events"] for sink in described["sinks"]} == {
        "otel:traces": 0,
        "otel:metrics": 0,
        "otel:logs": 0,
    }


async def test_grpc_takes_the_same(station: Station, receiver: Receiver) -> None:
    with Receiver(with_grpc=True) as other:
        session = demo_session(station)
        settings = station.settings(
            {},
            otel={
                "http": Otel(endpoint=receiver.url, history_days=36_500, content="redacted"),
                "grpc": Otel(endpoint=other.grpc_url, history_days=36_500, protocol="grpc", content="redacted"),
            },
        )
        await delivered(station, settings)

        assert _known(other) == _known(receiver) != {}
        assert set(logged(other)) == set(session.durable_ids())
        name = "github.copilot.tool.call.count"
        assert totals(other, name) == totals(receiver, name) != {}


async def test_an_endpoint_that_hangs_holds_no_other_back(station: Station, receiver: Receiver) -> None:
    with Receiver() as stuck:
        stuck.plan(then=Reply(act="hang"))
        session = demo_session(station)
        endpoints = {
            "well": Otel(endpoint=receiver.url, history_days=36_500),
            "stuck": Otel(endpoint=stuck.url, history_days=36_500, timeout_seconds=60),
        }
        station.exporter(station.settings({}, otel=endpoints))

        await until(lambda: set(logged(receiver)) == set(session.durable_ids()) and bool(receiver.spans()))

        assert not stuck.spans()


@pytest.mark.parametrize("backfill", [False, True])
async def test_history_keeps_its_times_after_a_restart(station: Station, receiver: Receiver, backfill: bool) -> None:
    demo_session(station).age(_LONG_AGO if backfill else 0.5)
    receiver.always(metrics=Reply(503))
    settings = settings_for(station, receiver)
    exporter = station.exporter(settings)
    asked = asyncio.create_task(exporter.ask("backfill", all=True)) if backfill else None
    [run] = [run for run in exporter.running.daemon.runs if run.name == "otel:metrics"]
    await until(lambda: bool(run.lanes) and all(lane.settled and lane.mark.delivered for lane in run.lanes.values()))
    if asked is not None:
        asked.cancel()
    await exporter.stop()
    receiver.always()

    assert await station.exporter(settings).idle() == Exit.DONE

    points = [point for one in receiver.metrics() for point in (*one.sum.data_points, *one.histogram.data_points)]
    assert points
    assert max(point.time_unix_nano for point in points) < time.time_ns() - 3_600 * 10**9


async def test_history_is_announced_where_it_may_be_dropped(station: Station, receiver: Receiver) -> None:
    demo_session(station).age(_LONG_AGO)
    settings = station.settings(
        {}, otel={"default": Otel(endpoint=f"{receiver.url}/insert/opentelemetry", history_days=36_500)}
    )
    exporter = station.exporter(settings)

    answer = await exporter.ask("backfill", all=True, dry_run=True)

    assert [note.partition(" at ")[0] for note in answer["notes"]] == [
        "otel:logs: VictoriaLogs or VictoriaTraces",
        "otel:metrics: nobody",
        "otel:traces: VictoriaLogs or VictoriaTraces",
    ]
    assert not receiver.requests


@pytest.mark.parametrize(("reply", "code"), [(Reply(404), Exit.UNREACHABLE), (Reply(401), Exit.REFUSED)])
async def test_sums_that_were_not_taken_are_not_done(
    station: Station, receiver: Receiver, reply: Reply, code: Exit, fast_clock: float
) -> None:
    demo_session(station).age(_LONG_AGO)
    receiver.plan(then=reply)
    exporter = station.exporter(settings_for(station, receiver, signals=("metrics",), give_up_seconds=100.0))

    answer = await exporter.ask("backfill", all=True)

    assert answer["exit"] == code
    [row] = answer["sessions"]
    assert str(reply.status) in row["why"]
    receiver.plan(then=Reply())
    if code is Exit.UNREACHABLE:
        assert (await exporter.ask("backfill", all=True))["exit"] == Exit.DONE
        assert receiver.metrics()


async def test_sums_wait_as_long_as_they_are_told(station: Station, receiver: Receiver, fast_clock: float) -> None:
    demo_session(station)
    receiver.plan(Reply(429, retry_after="3"))

    await delivered(station, settings_for(station, receiver, signals=("metrics",)))

    assert receiver.requests[0].reply.status == 429
    assert receiver.metrics()


async def test_one_name_stands_for_all_endpoints(station: Station, receiver: Receiver) -> None:
    demo_session(station).age(_LONG_AGO)
    exporter = station.exporter(station.settings({}, otel={"main": Otel(endpoint=receiver.url, history_days=36_500)}))

    for name in ("otel", "otel.main", "otel.main:logs"):
        assert (await exporter.ask("backfill", all=True, sinks=[name]))["exit"] == Exit.DONE
