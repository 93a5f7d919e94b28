"""OTLP from the installed command: killed at any instant, refused, unreachable, with variables that people have set."""

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from importlib.resources import files
from typing import Final

import pytest

from tests.otel.receiver import Receiver, text_of
from tests.otel.reply import Reply
from tests.program.driver import Machine
from tests.program.waiting import until

_DEMO: Final = files("exporter.demo").joinpath("session.jsonl").read_bytes().splitlines(keepends=True)
_SESSIONS: Final = 6
_KILLS: Final = 12


@pytest.fixture
def telling(machine: Machine, receiver: Receiver) -> Machine:
    """A machine that sends telemetry, and nothing else."""
    machine.environment["EXPORTER_OTEL__ENDPOINT"] = receiver.url
    machine.environment["EXPORTER_OTEL__HISTORY_DAYS"] = "36500"
    return machine


def _append(machine: Machine, session: str, lines: list[bytes]) -> None:
    directory = machine.home / "session-state" / session
    directory.mkdir(exist_ok=True)
    with (directory / "events.jsonl").open("ab") as file:
        file.write(b"".join(lines))


def _records(receiver: Receiver) -> Counter[tuple[str, str, bytes]]:
    """Count every span and log record by session, kind and what it is."""
    found: Counter[tuple[str, str, bytes]] = Counter()
    for span in receiver.spans():
        found[text_of(span, "gen_ai.conversation.id"), "span", span.SerializeToString(deterministic=True)] += 1
    for record in receiver.logs():
        found[text_of(record, "gen_ai.conversation.id"), "log", text_of(record, "event.id").encode()] += 1
    return found


def _repeating(receiver: Receiver) -> int:
    """Count the requests that brought a record a second time."""
    seen: set[bytes] = set()
    repeating = 0
    for request in receiver.requests:
        if request.signal == "metrics":
            continue
        body = request.decoded()
        if request.signal == "traces":
            records = {
                span.span_id for part in body.resource_spans for scope in part.scope_spans for span in scope.spans
            }
        else:
            logs = [log for part in body.resource_logs for scope in part.scope_logs for log in scope.log_records]
            records = {f"{text_of(log, 'gen_ai.conversation.id')} {text_of(log, 'event.id')}".encode() for log in logs}
        repeating += bool(records & seen)
        seen |= records
    return repeating


def _calls(receiver: Receiver) -> float:
    """Return how many calls of tools the newest points count."""
    newest: dict[tuple[str, ...], tuple[int, float]] = {}
    for metric in receiver.metrics():
        for point in metric.sum.data_points if metric.name == "github.copilot.tool.call.count" else ():
            series = tuple(sorted(f"{one.key}={one.value}" for one in point.attributes))
            newest[series] = max(newest.get(series, (0, 0.0)), (point.time_unix_nano, point.as_int))
    return sum(value for _, value in newest.values())


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_killed_again_and_again_every_record_arrives(
    telling: Machine, receiver: Receiver, record_property: Callable[[str, object], None]
) -> None:
    rng = random.Random(3)
    left = {f"s{number}": list(_DEMO) for number in range(_SESSIONS)}
    for _ in range(_KILLS):
        running = telling.start("run")
        for session, lines in left.items():
            some = rng.randint(0, 2 * len(_DEMO) // _KILLS)
            _append(telling, session, lines[:some])
            del lines[:some]
        time.sleep(rng.uniform(0.1, 1.2))
        running.kill()
    for session, lines in left.items():
        _append(telling, session, lines)

    ended = telling.exporter("run", "--until-idle")

    assert ended.returncode == 0, ended.stderr
    found = _records(receiver)
    logged = Counter(session for session, kind, _ in found if kind == "log")
    assert logged == dict.fromkeys(left, len(_DEMO))
    spans = Counter(session for session, kind, _ in found if kind == "span")
    assert len(set(spans.values())) == 1  # all sessions are the same one
    record_property(f"{_KILLS} kills: records", found.total())
    record_property("batches sent twice", _repeating(receiver))
    assert _repeating(receiver) <= _KILLS * _SESSIONS * 2  # one batch per life, session and signal
    assert _calls(receiver) == _SESSIONS * sum(json.loads(line)["type"] == "tool.execution_complete" for line in _DEMO)


def test_history_is_sent_once(telling: Machine, receiver: Receiver) -> None:
    _append(telling, "s", _DEMO)

    first = telling.exporter("backfill", "--all", "--sink", "otel")
    before = len(receiver.requests)
    second = telling.exporter("backfill", "--all", "--sink", "otel")

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert set(_records(receiver).values()) == {1}
    assert before == len(receiver.requests) > 0


def test_the_usual_variables_act_in_backfill(machine: Machine, receiver: Receiver) -> None:
    _append(machine, "s", _DEMO)
    machine.environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = receiver.url
    machine.environment["OTEL_EXPORTER_OTLP_HEADERS"] = "x-team=harbour"
    machine.environment["OTEL_RESOURCE_ATTRIBUTES"] = "deployment.environment=laptop"

    ended = machine.exporter("backfill", "--all")

    assert ended.returncode == 0, ended.stderr
    assert receiver.requests[0].headers["x-team"] == "harbour"
    for signal in ("traces", "metrics", "logs"):
        given = {one.key: one.value.string_value for one in receiver.resources(signal)[0].attributes}
        assert given["deployment.environment"] == "laptop"
        assert given["service.name"] == "github-copilot"


@pytest.mark.parametrize(("reply", "code"), [(Reply(401), 5), (Reply(503), 6)])
def test_the_exit_code_says_why_nothing_went(telling: Machine, receiver: Receiver, reply: Reply, code: int) -> None:
    _append(telling, "s", _DEMO)
    telling.settings["give_up_seconds"] = 2
    receiver.plan(then=reply)

    ended = telling.exporter("backfill", "--all", "--sink", "otel")

    assert ended.returncode == code, ended.stderr
    assert not receiver.spans()


def test_the_figures_of_the_exporter_go_out_when_asked(telling: Machine, receiver: Receiver) -> None:
    _append(telling, "s", _DEMO)
    telling.environment["EXPORTER_OTEL__HEALTH"] = "true"
    running = telling.start("run")
    until(lambda: bool(receiver.logs()), "logs arrive")

    running.stop()

    named = {metric.name for metric in receiver.metrics()}
    assert named >= {
        "session_exporter.sink.lag.events",
        "session_exporter.sink.retries",
        "session_exporter.quarantined",
        "session_exporter.defects",
    }
    [figures] = [part for part in receiver.resources("metrics") if text_of(part, "service.name") == "session-exporter"][
        :1
    ]
    assert text_of(figures, "service.instance.id")
