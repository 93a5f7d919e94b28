"""Backfill of telemetry on several cores: the same records as on one, also when a helper or everything is killed."""

import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.bench import conversations
from tests.otel.receiver import Receiver, text_of
from tests.otel.reply import Reply
from tests.program.driver import Machine
from tests.program.waiting import until

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or len(os.sched_getaffinity(0)) < 2, reason="one core: there are no helpers"
)

_SESSIONS: Final = 14
_EVENTS: Final = 1_500
_BACKFILL: Final = ("backfill", "--all", "--sink", "otel")


@pytest.fixture
def telling(machine: Machine, receiver: Receiver) -> Machine:
    """A machine with much history that sends telemetry, and nothing else."""
    machine.environment["EXPORTER_OTEL__ENDPOINT"] = receiver.url
    machine.environment["EXPORTER_OTEL__HISTORY_DAYS"] = "36500"
    for seed in range(1, _SESSIONS + 1):
        session, lines, _ = conversations.lines(_EVENTS, seed)
        directory = machine.home / "session-state" / session
        directory.mkdir()
        (directory / "events.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    return machine


def _lines_in(machine: Machine) -> int:
    return sum(path.read_bytes().count(b"\n") for path in machine.home.glob("session-state/*/events.jsonl"))


def _spans(receiver: Receiver) -> Counter[bytes]:
    return Counter(span.SerializeToString(deterministic=True) for span in receiver.spans())


def _logs(receiver: Receiver) -> Counter[str]:
    return Counter(
        text_of(record, "event.id") + text_of(record, "gen_ai.conversation.id") for record in receiver.logs()
    )


def _sums(receiver: Receiver) -> dict[str, float]:
    """Return what every counter's newest points come to, per instrument."""
    newest: dict[tuple[str, ...], tuple[int, float]] = {}
    for metric in receiver.metrics():
        for point in metric.sum.data_points:
            series = (metric.name, *sorted(f"{one.key}={one.value}" for one in point.attributes))
            value = point.as_int if point.HasField("as_int") else point.as_double
            newest[series] = max(newest.get(series, (0, 0.0)), (point.time_unix_nano, value))
    sums: Counter[str] = Counter()
    for (name, *_), (_, value) in newest.items():
        sums[name] += round(value, 6)  # type: ignore[assignment]
    return dict(sums)


def _runs(receiver: Receiver) -> set[str]:
    """Return the names of the streams of metrics."""
    return {
        one.value.string_value
        for resource in receiver.resources("metrics")
        for one in resource.attributes
        if one.key == "service.instance.id"
    }


def _helpers_of(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
    return [int(one) for one in listed.split()]


def _at_work(process: int) -> bool:
    """Tell whether a process has opened the database of marks, as a helper does with its first session."""
    try:
        return any("marks" in str(one.readlink()) for one in Path(f"/proc/{process}/fd").iterdir())
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_helpers_send_what_one_process_sends(telling: Machine, receiver: Receiver) -> None:
    ended = telling.exporter(*_BACKFILL, "--json")
    assert ended.returncode == 0, ended.stderr

    with Receiver() as other:
        telling.environment["EXPORTER_OTEL__ENDPOINT"] = other.url
        telling.environment["EXPORTER_OTEL__HISTORY_DAYS"] = "36500"
        one_core = {min(os.sched_getaffinity(0))}
        alone = telling.exporter(*_BACKFILL, "--json", prepare=lambda: os.sched_setaffinity(0, one_core))
        assert alone.returncode == 0, alone.stderr

        assert _spans(receiver) == _spans(other)
        assert set(_spans(receiver).values()) == {1}
        assert _logs(receiver) == _logs(other)
        assert set(_logs(receiver).values()) == {1}
        assert _sums(receiver) == pytest.approx(_sums(other))
    assert len(_runs(receiver)) == 1
    assert _totals(ended.stdout) == _totals(alone.stdout)


def _totals(answer: str) -> Counter[str]:
    """Return how many events the answer of a backfill tells of, by sink."""
    found: Counter[str] = Counter()
    for row in json.loads(answer)["sessions"]:
        found[row["sink"]] += row["events"]
    return found


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_helper_that_dies_loses_nothing(telling: Machine, receiver: Receiver) -> None:
    running = telling.start(*_BACKFILL)
    until(lambda: any(_at_work(one) for one in _helpers_of(running.process.pid)), "a helper at work")
    [helper] = [one for one in _helpers_of(running.process.pid) if _at_work(one)][:1]
    os.kill(helper, signal.SIGKILL)

    assert running.process.wait(200) == 0, running.text()
    assert len(_logs(receiver)) == _lines_in(telling)
    assert sum(count - 1 for count in _spans(receiver).values()) <= 4 * 512  # the batches that were on their way


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_helpers_end_with_the_exporter_and_its_lock_lasts_as_long(telling: Machine, receiver: Receiver) -> None:
    running = telling.start(*_BACKFILL)
    until(lambda: any(_at_work(one) for one in _helpers_of(running.process.pid)), "a helper at work")
    helpers = _helpers_of(running.process.pid)
    running.kill()

    until(lambda: not any(_at_work(one) for one in helpers), "the helpers' end")
    ended = telling.exporter(*_BACKFILL)
    assert ended.returncode == 0, ended.stderr
    assert len(_logs(receiver)) == _lines_in(telling)
    assert set(_logs(receiver).values()) <= {1, 2}


@pytest.mark.timeout(120)
def test_a_sink_that_refuses_is_told_as_without_helpers(telling: Machine, receiver: Receiver) -> None:
    receiver.plan(then=Reply(status=401))

    ended = telling.exporter(*_BACKFILL)

    assert ended.returncode == 5, ended.stderr
    assert "refused" in ended.stdout
    assert "0 events (0 B) delivered" in ended.stdout
