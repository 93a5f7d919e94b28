"""An OTLP endpoint that is new is sent what begins from then on; `backfill` brings what was before, once."""

import os
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from exporter.cli.commands.status import status_text
from exporter.cli.output.table import TerminalView
from exporter.errors import Exit
from tests.daemon.station import Exporter, Station
from tests.daemon.telemetry import attributes_of, logged, settings_for, span_counts, totals
from tests.otel.default_stores import DefaultStores
from tests.otel.many import line
from tests.otel.receiver import Receiver

_CALLS: Final = "github.copilot.tool.call.count"
_SIGNALS: Final = ("traces", "metrics", "logs")

pytestmark = pytest.mark.anyio


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as opened:
        yield opened


def _asked(name: str, at: float) -> list[bytes]:
    """The beginning of an interaction, up to a tool call that runs."""
    events: tuple[tuple[str, dict[str, Any]], ...] = (
        ("user.message", {"delivery": "idle", "interactionId": name, "content": "Hi."}),
        ("assistant.turn_start", {"turnId": "0", "interactionId": name}),
        ("tool.execution_start", {"toolCallId": name, "toolName": "view"}),
    )
    return [line(f"{name}-{place}", kind, data, at + place / 10) for place, (kind, data) in enumerate(events)]


def _answered(name: str, at: float) -> list[bytes]:
    """The rest of it."""
    events: tuple[tuple[str, dict[str, Any]], ...] = (
        ("tool.execution_complete", {"toolCallId": name, "success": True}),
        ("assistant.message", {"model": "m", "content": "Done.", "toolRequests": []}),
        ("assistant.turn_end", {"turnId": "0"}),
    )
    return [line(f"{name}-{place + 3}", kind, data, at + place / 10) for place, (kind, data) in enumerate(events)]


def _whole(name: str, at: float) -> list[bytes]:
    return [*_asked(name, at), *_answered(name, at + 1)]


def _start(at: float) -> bytes:
    return line("start", "session.start", {"copilotVersion": "1.0.102"}, at)


async def _run(station: Station, receiver: Receiver, **changes: Any) -> Exporter:
    exporter = station.exporter(settings_for(station, receiver, **{"history_days": 0, **changes}))
    assert await exporter.idle() == Exit.DONE
    return exporter


def _ids(*interactions: str) -> set[str]:
    return {f"{name}-{place}" for name in interactions for place in range(6)}


async def test_what_was_before_is_not_sent_and_what_begins_is(station: Station, receiver: Receiver) -> None:
    now = time.time()
    old, going = station.session("old"), station.session("going")
    old.append(_start(now - 900), *_whole("o1", now - 800))
    going.append(_start(now - 900), *_whole("g1", now - 800))
    exporter = await _run(station, receiver)
    assert not receiver.requests

    going.append(*_whole("g2", time.time()))
    new = station.session("new")
    new.append(_start(now - 300), *_whole("n1", time.time()))  # the CLI writes its start with the first question
    assert await exporter.idle() == Exit.DONE

    assert set(logged(receiver)) == _ids("g2", "n1") | {"start"}
    assert sum(totals(receiver, _CALLS).values()) == 2
    assert sum(totals(receiver, "github.copilot.interaction.count").values()) == 2
    assert {attributes_of(span).get("gen_ai.conversation.id") for span in receiver.spans()} == {"going", "new"}
    assert set(span_counts(receiver).values()) == {1}


async def test_an_interaction_that_is_under_way_goes_whole(station: Station, receiver: Receiver) -> None:
    session, now = station.session(), time.time()
    session.append(_start(now - 900), *_whole("a", now - 800), *_asked("b", now - 400))
    exporter = await _run(station, receiver)

    session.append(*_answered("b", time.time()))
    assert await exporter.idle() == Exit.DONE

    assert set(logged(receiver)) == _ids("b")
    tools = [span for span in receiver.spans() if span.name == "execute_tool view"]
    assert [round((span.end_time_unix_nano - span.start_time_unix_nano) / 1e9) for span in tools] == [400]


async def test_an_interaction_whose_process_ended_long_ago_is_not_under_way(
    station: Station, receiver: Receiver
) -> None:
    session, now = station.session(), time.time()
    session.append(_start(now - 900), *_asked("a", now - 800))
    exporter = await _run(station, receiver)

    session.append(line("r", "session.resume", {"eventCount": 4}, time.time()), *_whole("b", time.time()))
    assert await exporter.idle() == Exit.DONE

    assert set(logged(receiver)) == {"r"} | _ids("b")


@pytest.mark.parametrize("restarts", [False, True])
async def test_backfill_brings_what_was_before_and_nothing_twice(
    station: Station, receiver: Receiver, restarts: bool
) -> None:
    now = time.time()
    session, old = station.session(), station.session("old")
    session.append(_start(now - 900), *_whole("a", now - 800))
    old.append(*_whole("o", now - 8_000))
    exporter = await _run(station, receiver)
    session.append(*_whole("b", time.time()))
    assert await exporter.idle() == Exit.DONE
    assert [(await exporter.sink_status(f"otel:{signal}"))["earlier"] for signal in _SIGNALS] == [2, 2, 2]
    if restarts:
        await exporter.stop()
        exporter = await _run(station, receiver)

    answer = await exporter.ask("backfill", all=True, sinks=["otel"])

    assert answer["exit"] == Exit.DONE
    assert set(logged(receiver)) == _ids("a", "b", "o") | {"start"}
    assert set(logged(receiver).values()) == set(span_counts(receiver).values()) == {1}
    assert sum(totals(receiver, _CALLS).values()) == 3
    assert [(await exporter.sink_status(f"otel:{signal}"))["earlier"] for signal in _SIGNALS] == [0, 0, 0]
    session.append(*_whole("c", time.time()))
    assert await exporter.idle() == Exit.DONE
    assert set(logged(receiver)) == _ids("a", "b", "c", "o") | {"start"}
    assert sum(totals(receiver, _CALLS).values()) == 4
    assert _instances_of_live_points(receiver) == 2


def _instances_of_live_points(receiver: Receiver) -> int:
    """How many instances have points: one of what happens now, and one of the history."""
    found = {attributes_of(one)["service.instance.id"] for one in receiver.resources("metrics")}
    return len({str(instance).partition("@")[0] for instance in found})


async def test_a_session_that_was_rewound_does_not_bring_its_past(station: Station, receiver: Receiver) -> None:
    session, now = station.session(), time.time()
    past = [_start(now - 900), *_whole("a", now - 800)]
    session.append(*past)
    exporter = await _run(station, receiver)
    session.append(*_whole("b", time.time()))
    assert await exporter.idle() == Exit.DONE

    session.replace(*past, *_whole("c", time.time()))
    assert await exporter.idle() == Exit.DONE

    assert set(logged(receiver)) == _ids("b", "c")


async def test_days_of_history_go_as_a_backfill_would_send_them(station: Station, receiver: Receiver) -> None:
    """Loki refuses what is more than an hour behind the newest record of its stream."""
    now = time.time()
    for number in range(12):  # overlapping sessions of two hours, given in no order
        session, at = station.session(f"s{number * 7 % 12}"), now - 86_400 + number * 1_800
        session.append(*_whole(f"{number}a", at), *_whole(f"{number}b", at + 7_200))
        os.utime(session.path, (at + 7_201, at + 7_201))
    stores = DefaultStores(receiver)

    await _run(station, receiver, history_days=3, signals=("logs",))

    assert stores.refused == []
    assert set(logged(receiver)) == _ids(*(f"{number}{half}" for number in range(12) for half in "ab"))


async def test_an_endpoint_of_an_older_version_is_not_new(station: Station, receiver: Receiver) -> None:
    """It has marks of what happened, and no day on which it was met."""
    now = time.time()
    station.session("a").append(*_whole("a", now - 700))
    exporter = await _run(station, receiver, history_days=36_500)
    states = [run.sink_state for run in exporter.running.daemon.runs]
    for state in states:
        state.store._run("DELETE FROM facts WHERE name LIKE 'met:%'")
    await exporter.stop()
    station.session("b").append(*_whole("b", now - 500))

    await _run(station, receiver)

    assert set(logged(receiver)) == _ids("a", "b")


async def test_status_says_so_and_names_the_command(station: Station, receiver: Receiver) -> None:
    station.session().append(*_whole("a", time.time() - 700))
    exporter = await _run(station, receiver)

    text = status_text(await exporter.ask("status"), TerminalView())

    assert "the past of 1 session is sent by\n    exporter backfill --all --sink otel" in text
