"""What OTLP endpoints answer, over HTTP and gRPC: nothing is lost, and nothing is sent twice that was taken."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from config.settings import Limits
from exporter.core.delivery.segment import Unsendable
from exporter.core.notice import Level
from exporter.errors import Exit
from tests.daemon.sessions import SessionFile
from tests.daemon.station import Exporter, Station, until
from tests.daemon.telemetry import demo_session, logged, settings_for, span_counts
from tests.otel.receiver import Receiver
from tests.otel.reply import LOSE, Reply

SIGNALS: Final = ("traces", "metrics", "logs")
PROTOCOLS: Final = ("http/protobuf", "grpc")

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("protocol", PROTOCOLS)]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver(with_grpc=True) as opened:
        yield opened


def _holds_all_once(receiver: Receiver, session: SessionFile) -> bool:
    assert set(logged(receiver).values()) <= {1}
    assert set(span_counts(receiver).values()) <= {1}
    return set(logged(receiver)) == set(session.durable_ids()) and bool(receiver.spans()) and bool(receiver.metrics())


async def _refused_in_part(station: Station, receiver: Receiver, protocol: str, signal: str) -> Exporter:
    """Let an endpoint take all but two of the first request of a signal."""
    receiver.plan(Reply(rejected=2, message="too old"))
    return station.exporter(settings_for(station, receiver, protocol=protocol, signals=(signal,)))


@pytest.mark.parametrize("signal", SIGNALS)
async def test_a_request_that_is_taken_in_part_is_kept_as_one_and_not_sent_again(
    station: Station, receiver: Receiver, protocol: str, signal: str
) -> None:
    demo_session(station)
    exporter = await _refused_in_part(station, receiver, protocol, signal)

    assert await exporter.idle() == Exit.PARTIAL

    bodies = [_records(request) for request in receiver.requests]
    assert len({record for body in bodies for record in body}) == sum(map(len, bodies)) > 0
    [kept] = await exporter.quarantined()
    assert (kept["sink"], kept["reason"], kept["event"]) == (f"otel:{signal}", "partly_rejected", None)
    assert kept["detail"] == "2 of these were not taken: too old"
    assert (await exporter.ask("quarantine_show", number=kept["n"]))["text"] is None
    assert _sink(exporter, signal).rejected == 2
    assert (await exporter.sink_status(f"otel:{signal}"))["quarantined"] == 1


@pytest.mark.parametrize("signal", SIGNALS)
async def test_what_was_taken_in_part_is_not_sent_again_for_lack_of_room(
    station: Station, receiver: Receiver, protocol: str, signal: str
) -> None:
    session = demo_session(station)
    receiver.plan(then=Reply(rejected=1, message="too old"))
    limits = Limits(poll_seconds=0.1, quarantine_bytes=1 << 20)
    exporter = station.exporter(settings_for(station, receiver, protocol=protocol, signals=(signal,), limits=limits))
    exporter.running.daemon.quarantine.add("other", None, [Unsendable(0, b"x" * (1 << 20), 1 << 20, "made_up", None)])

    assert await exporter.idle() == Exit.DONE

    assert exporter.alarms()[0].message == "the quarantine is full; what was rejected is not kept"
    bodies = [_records(request) for request in receiver.requests]
    assert len({record for body in bodies for record in body}) == sum(map(len, bodies)) > 0
    if signal == "logs":
        assert logged(receiver) == dict.fromkeys(session.durable_ids(), 1)


@pytest.mark.parametrize("signal", SIGNALS)
async def test_a_person_sends_what_was_taken_in_part_again(
    station: Station, receiver: Receiver, protocol: str, signal: str
) -> None:
    demo_session(station)
    exporter = await _refused_in_part(station, receiver, protocol, signal)
    await exporter.idle()
    [kept] = await exporter.quarantined()
    receiver.plan(Reply(rejected=1, message="still too old"))

    again = await exporter.ask("quarantine_replay", numbers=[kept["n"]])
    done = await exporter.ask("quarantine_replay", numbers=[kept["n"]])

    assert again["left"] == [{"n": kept["n"], "reason": "the sink rejects 1 of it: still too old"}]
    assert done["done"] == [kept["n"]]
    assert await exporter.quarantined() == []
    assert _records(receiver.requests[0]) == _records(receiver.requests[-1])


async def test_what_was_taken_in_part_stays_delivered_when_a_person_drops_it(
    station: Station, receiver: Receiver, protocol: str
) -> None:
    session = demo_session(station)
    exporter = await _refused_in_part(station, receiver, protocol, "logs")
    await exporter.idle()
    [kept] = await exporter.quarantined()
    await exporter.ask("quarantine_drop", numbers=[kept["n"]])

    session.replace(*session.lines()[:-2])  # a rewind, after which the session is compared with what is there
    session.add(1)

    await until(lambda: len(logged(receiver)) == len(session.durable_ids()) + 2)
    assert await exporter.idle() == Exit.DONE
    assert set(logged(receiver).values()) == {1}


@pytest.mark.parametrize("signal", SIGNALS)
async def test_when_all_of_a_request_is_rejected_each_record_is_kept(
    station: Station, receiver: Receiver, protocol: str, signal: str
) -> None:
    session = demo_session(station)
    receiver.plan(then=Reply(rejected=1_000_000, message="not today"))
    exporter = station.exporter(settings_for(station, receiver, protocol=protocol, signals=(signal,)))

    assert await exporter.idle() == Exit.PARTIAL

    bodies = [_records(request) for request in receiver.requests]
    assert len({record for body in bodies for record in body}) == sum(map(len, bodies)) > 0
    kept = await exporter.quarantined()
    assert {(one["reason"], one["detail"]) for one in kept} == {("rejected", "not today")}
    assert _sink(exporter, signal).rejected == sum(map(_weight, receiver.requests))
    if signal == "logs":
        assert {one["event"] for one in kept} == set(session.durable_ids())
    receiver.plan(then=Reply())
    done = await exporter.ask("quarantine_replay", numbers=[one["n"] for one in kept])
    assert done["left"] == []
    assert await exporter.quarantined() == []


async def test_a_warning_of_an_endpoint_is_told_once(station: Station, receiver: Receiver, protocol: str) -> None:
    session = demo_session(station)
    receiver.plan(then=Reply(message="use fewer attributes"))
    exporter = station.exporter(settings_for(station, receiver, protocol=protocol, signals=("logs",)))
    assert await exporter.idle() == Exit.DONE
    session.add(3)

    await until(lambda: len(logged(receiver)) == len(session.durable_ids()))

    told = [notice for notice in exporter.notices if "warns" in notice.message]
    assert [notice.level for notice in told] == [Level.WARNING]
    assert (await exporter.sink_status("otel:logs"))["remark"] == "use fewer attributes"  # its words are in no log
    assert len(receiver.requests) > 1


async def test_one_record_that_is_refused_is_kept_and_the_others_arrive(
    station: Station, receiver: Receiver, protocol: str
) -> None:
    session = demo_session(station)
    victim = session.durable_ids()[5]
    receiver.plan(then=Reply(400, unless=b"\x08event.id\x12\x26\x0a\x24" + victim.encode()))
    exporter = station.exporter(settings_for(station, receiver, protocol=protocol))

    assert await exporter.idle() == Exit.PARTIAL

    assert set(logged(receiver)) == set(session.durable_ids()) - {victim}
    assert [one["event"] for one in await exporter.quarantined()] == [victim]
    receiver.plan(then=Reply())
    [kept] = await exporter.quarantined()
    assert (await exporter.ask("quarantine_replay", numbers=[kept["n"]]))["done"] == [kept["n"]]
    assert _holds_all_once(receiver, session)


@pytest.mark.parametrize("refusal", [Reply(429, retry_after="2"), Reply(429), Reply(503)], ids=str)
async def test_an_endpoint_that_is_busy_gets_everything_later(
    station: Station, receiver: Receiver, protocol: str, refusal: Reply, fast_clock: float
) -> None:
    session = demo_session(station)
    receiver.plan(*(refusal for _ in range(5)))
    exporter = station.exporter(settings_for(station, receiver, protocol=protocol))

    assert await exporter.idle() == Exit.DONE

    assert _holds_all_once(receiver, session)
    assert [request.reply.status for request in receiver.requests[:5]] == [refusal.status] * 5


async def test_an_endpoint_that_is_not_there_for_days_gets_everything(
    station: Station, protocol: str, fast_clock: float
) -> None:
    with Receiver(with_grpc=True) as gone:
        settings = settings_for(station, gone, protocol=protocol, give_up_seconds=300.0)
    session = demo_session(station)
    exporter = station.exporter(settings)
    assert await exporter.idle() == Exit.UNREACHABLE
    assert (await exporter.sink_status("otel:traces"))["state"] == "waiting"
    await exporter.stop()

    session.add(2)
    exporter = station.exporter(settings)
    await until(lambda: exporter.running.daemon.runs[0].sink_state.retries)
    with Receiver(with_grpc=True, port=gone.port, grpc_port=gone.grpc_port) as back:
        assert await exporter.idle() == Exit.DONE
        assert _holds_all_once(back, session)


async def test_what_could_not_be_sent_is_not_counted_as_sent_again(
    station: Station, protocol: str, fast_clock: float
) -> None:
    with Receiver(with_grpc=True) as gone:
        settings = settings_for(station, gone, protocol=protocol, signals=("logs",))
    session = demo_session(station)
    exporter = station.exporter(settings)
    await until(lambda: exporter.running.daemon.runs[0].sink_state.retries >= 3)

    with Receiver(with_grpc=True, port=gone.port, grpc_port=gone.grpc_port) as back:
        assert await exporter.idle() == Exit.DONE

    assert logged(back) == dict.fromkeys(session.durable_ids(), 1)
    assert _sink(exporter, "logs").repeated == 0


async def test_what_was_taken_without_an_answer_is_counted_when_it_is_sent_again(
    station: Station, receiver: Receiver, protocol: str
) -> None:
    session = demo_session(station)
    receiver.plan(LOSE)
    exporter = station.exporter(settings_for(station, receiver, protocol=protocol, signals=("logs",)))

    assert await exporter.idle() == Exit.DONE

    assert logged(receiver) == dict.fromkeys(session.durable_ids(), 2)
    assert _sink(exporter, "logs").repeated == len(session.durable_ids())


async def test_a_token_that_expired_is_replaced_and_everything_goes(
    station: Station, receiver: Receiver, protocol: str, tmp_path: Path
) -> None:
    session = demo_session(station)
    headers = tmp_path / "headers"
    headers.write_text("authorization=Bearer old\n")
    exporter = station.exporter(settings_for(station, receiver, protocol=protocol, headers_file=str(headers)))
    assert await exporter.idle() == Exit.DONE
    receiver.plan(then=Reply(401))
    session.add(3)
    await until(lambda: receiver.requests[-1].reply.status == 401)
    refused = len(receiver.requests)

    receiver.plan(then=Reply())
    headers.write_text("authorization=Bearer new\n")

    await until(lambda: _holds_all_once(receiver, session), 20)
    assert {request.headers["authorization"] for request in receiver.requests[refused + 3 :]} <= {"Bearer new"}
    assert await exporter.quarantined() == []


def _records(request: Any) -> list[bytes]:
    """Return the records of a request as bytes."""
    kind = {"traces": "spans", "logs": "logs", "metrics": "metrics"}[request.signal]
    records = "log_records" if kind == "logs" else kind
    return [
        record.SerializeToString(deterministic=True)
        for part in getattr(request.decoded(), f"resource_{kind}")
        for scope in getattr(part, f"scope_{kind}")
        for record in getattr(scope, records)
    ]


def _weight(request: Any) -> int:
    """Count what a receiver counts when it rejects: spans, records, points."""
    if request.signal != "metrics":
        return len(_records(request))
    metrics = [
        metric
        for part in request.decoded().resource_metrics
        for scope in part.scope_metrics
        for metric in scope.metrics
    ]
    return sum(len(metric.sum.data_points) + len(metric.histogram.data_points) for metric in metrics)


def _sink(exporter: Exporter, signal: str) -> Any:
    [run] = [run for run in exporter.running.daemon.runs if run.name == f"otel:{signal}"]
    return run.sink_state.sink


async def test_a_record_that_is_rejected_in_a_request_of_several_sessions_is_told_once(
    station: Station, receiver: Receiver, protocol: str
) -> None:
    for number in range(6):
        demo_session(station, f"s{number}").age(30.0)
    exporter = station.exporter(settings_for(station, receiver, protocol=protocol, signals=("logs",), history_days=0))
    receiver.plan(Reply(rejected=1, message="too old"))

    answer = await exporter.ask("backfill", all=True)

    assert answer["exit"] == Exit.PARTIAL
    [kept] = await exporter.quarantined()
    assert kept["detail"] == "1 of these were not taken: too old"
    [first, *_] = receiver.requests
    assert kept["size"] > 1_000 and first.decoded().resource_logs
    assert _sink(exporter, "logs").rejected == 1
