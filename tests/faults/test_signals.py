"""Signals that an OTLP endpoint does not take, to the installed command, in place of F12, F16 and F21 for it."""

import time
from collections.abc import Iterator
from importlib.resources import files
from typing import Any, Final

import pytest

from tests.faults.clock import DAY_SECONDS, speed_up
from tests.faults.conftest import Fact
from tests.otel.receiver import Receiver
from tests.otel.reply import Reply
from tests.program.driver import Machine
from tests.program.waiting import until

_DEMO: Final = files("exporter.demo").joinpath("session.jsonl").read_bytes()
_SPEED: Final = 2_400

pytestmark = [pytest.mark.faults, pytest.mark.timeout(180)]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as opened:
        yield opened


def _telling(machine: Machine, receiver: Receiver, sessions: int = 1) -> None:
    machine.environment["EXPORTER_OTEL__ENDPOINT"] = receiver.url
    machine.environment["EXPORTER_OTEL__HISTORY_DAYS"] = "36500"
    for number in range(sessions):
        directory = machine.home / "session-state" / f"s{number}"
        directory.mkdir()
        (directory / "events.jsonl").write_bytes(_DEMO)


@pytest.mark.parametrize("status", [404, 405, 415, 501])
def test_a_signal_that_is_not_taken_is_off_and_the_others_arrive(
    machine: Machine, receiver: Receiver, fact: Fact, status: int
) -> None:
    _telling(machine, receiver, 3)
    receiver.always(logs=Reply(status), metrics=Reply(status))

    started = time.monotonic()
    ended = machine.exporter("backfill", "--all", "--sink", "otel")

    fact(f"{status}: seconds", time.monotonic() - started)
    fact(f"{status}: spans", len(receiver.spans()))
    assert ended.returncode == 0, ended.stderr
    assert receiver.spans()
    for signal in ("logs", "metrics"):
        [told] = [line for line in ended.stderr.splitlines() if f"takes no {signal}" in line]
        assert f"{receiver.url}/v1/{signal}" in told
        assert "`signals`" in told


def test_a_signal_that_is_off_is_asked_again_once_a_day_and_goes_on_from_its_mark(
    machine: Machine, receiver: Receiver, fact: Fact
) -> None:
    _telling(machine, receiver)
    machine.environment["EXPORTER_OTEL__TIMEOUT_SECONDS"] = "600"  # a quarter of a second of the true clock
    receiver.always(logs=Reply(404))
    speed_up(machine, _SPEED)
    begun = time.monotonic()
    running = machine.start()
    until(lambda: bool(receiver.asked("logs") and receiver.spans()), "spans, and a question for logs", seconds=60)
    sinks = {sink["name"]: sink for sink in machine.json("status")["sinks"]}
    asked = receiver.asked("logs")
    until(lambda: receiver.asked("logs") > asked, "another question", seconds=90)
    waited = (time.monotonic() - begun) * _SPEED

    receiver.always()
    until(lambda: bool(receiver.logs()), "logs after they are taken", seconds=90)

    fact("asked again after", f"{waited / 3_600:.0f} h")
    fact("lost", _DEMO.count(b"\n") - len(receiver.logs()))
    assert (sinks["otel:logs"]["state"], sinks["otel:logs"]["lag_events"]) == ("off (404)", 0)
    assert waited >= 0.9 * DAY_SECONDS
    until(lambda: len(receiver.logs()) == _DEMO.count(b"\n"), "all of them")
    assert running.text().count("which are off") == 1


def test_an_endpoint_that_takes_no_signal_is_an_alarm_and_gives_up_nothing(
    machine: Machine, receiver: Receiver, fact: Fact
) -> None:
    _telling(machine, receiver)
    machine.settings["give_up_seconds"] = 3
    receiver.plan(then=Reply(404))

    refused = machine.exporter("backfill", "--all", "--sink", "otel")
    asked = len(receiver.requests)
    receiver.plan(then=Reply())
    ended = machine.exporter("backfill", "--all", "--sink", "otel")

    fact("requests", asked)
    fact("lost", _DEMO.count(b"\n") - len(receiver.logs()))
    assert refused.returncode == 6, refused.stderr
    assert f"{receiver.url}/v1/traces answered 404" in refused.stderr
    assert "which are off" not in refused.stderr
    assert asked <= 40
    assert ended.returncode == 0, ended.stderr
    assert len(receiver.logs()) == _DEMO.count(b"\n")


def test_an_endpoint_that_takes_no_gzip_gets_everything_without(
    machine: Machine, receiver: Receiver, fact: Fact
) -> None:
    _telling(machine, receiver)
    took = receiver.took

    def without_gzip(signal: Any, path: str, headers: Any, body: bytes, connection: str) -> Reply:
        receiver.always(**({signal: Reply(415)} if headers.get("content-encoding") == "gzip" else {}))
        return took(signal, path, headers, body, connection)

    receiver.http.took = without_gzip

    ended = machine.exporter("backfill", "--all", "--sink", "otel")

    fact("refused", sum(request.reply.status == 415 for request in receiver.requests))
    assert ended.returncode == 0, ended.stderr
    assert len(receiver.logs()) == _DEMO.count(b"\n")
    assert receiver.spans()
    assert receiver.metrics()
    assert "which are off" not in ended.stderr
