"""A telemetry endpoint that is away while a hundred thousand events are written: no memory, no loss, no harm."""

import os
import re
import time
from collections import Counter
from importlib.resources import files
from typing import Final

import pytest

from tests.otel.receiver import Receiver, text_of
from tests.otel.reply import Reply
from tests.program.driver import Machine, Running
from tests.program.waiting import until

_DEMO: Final = files("exporter.demo").joinpath("session.jsonl").read_bytes()
_EVENTS: Final = _DEMO.count(b"\n")
_SESSIONS: Final = 61
_COPIES: Final = 7
_RESIDENT_MAX: Final = 120_000_000
_GROWTH_MAX: Final = 12_000_000
_AN_ID: Final = re.compile(rb'"[0-9a-f]{8}-([0-9a-f-]{27}")')

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def _write(machine: Machine, half: int) -> None:
    """Write sessions of eight hundred events each, every event with an id of its own."""
    for number in range(_SESSIONS):
        directory = machine.home / "session-state" / f"h{half}-{number}"
        directory.mkdir()
        copies = (_AN_ID.sub(rb'"%08x-\1' % copy, _DEMO) for copy in range(_COPIES))
        (directory / "events.jsonl").write_bytes(b"".join(copies))


def _until_quiet(running: Running) -> None:
    """Wait until the process does next to nothing for some seconds."""
    ticks: list[int] = []

    def is_quiet() -> bool:
        with open(f"/proc/{running.process.pid}/stat", encoding="ascii") as file:  # noqa: PTH123  it is no file of ours
            ticks.append(sum(map(int, file.read().rpartition(")")[2].split()[11:13])))
        time.sleep(1.0)
        return len(ticks) > 4 and ticks[-1] - ticks[-4] <= os.sysconf("SC_CLK_TCK") // 3

    until(is_quiet, "the exporter waits for the endpoint", seconds=120)


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
@pytest.mark.parametrize("away", ["nobody there", "503"])
def test_an_outage_costs_no_memory_and_no_event(machine: Machine, protocol: str, away: str) -> None:
    with Receiver(with_grpc=True) as here:
        machine.environment["EXPORTER_OTEL__ENDPOINT"] = here.grpc_url if protocol == "grpc" else here.url
        machine.environment["EXPORTER_OTEL__HISTORY_DAYS"] = "36500"
        machine.environment["EXPORTER_OTEL__PROTOCOL"] = protocol
        here.plan(then=Reply(503))
        if away == "nobody there":
            here.close()
        running = machine.start("run")
        resident = []
        for half in range(2):
            _write(machine, half)
            _until_quiet(running)
            resident.append(running.resident_bytes())

        assert running.alive
        print(f"resident with {_SESSIONS * _COPIES * _EVENTS} events and twice as many: {resident}")
        assert resident[1] - resident[0] < _GROWTH_MAX, resident
        assert resident[1] < _RESIDENT_MAX, resident
        here.close()
    with Receiver(with_grpc=True, port=here.port, grpc_port=here.grpc_port) as back:
        until(lambda: _has_all(machine), "all is sent", seconds=200)
        logged = Counter(text_of(record, "gen_ai.conversation.id") for record in back.logs())
        assert set(logged.values()) == {_COPIES * _EVENTS}
        assert len(logged) == 2 * _SESSIONS
        assert running.resident_bytes() < _RESIDENT_MAX
    running.stop()


def _has_all(machine: Machine) -> bool:
    time.sleep(1.0)
    return all(not sink["lag_events"] and not sink["sums_wait"] for sink in machine.json("status")["sinks"])
