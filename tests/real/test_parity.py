"""Our spans against the CLI's own, in sessions that the real CLI makes now."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.parity.compare import Comparison, compare, p95
from tests.parity.everything import differences
from tests.parity.explained import rows, unexplained
from tests.parity.oracle import load
from tests.parity.table import table
from tests.real import install
from tests.real.cli import Copilot, Interruption
from tests.real.conftest import MakeCopilot

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

NEW_ONLY = ("sub_nest", "edit", "badtool", "many", "err500", "reason", "sub_fail")
PLAYED = [
    *((version, name) for version in (install.NEW, install.OLD) for name in
      ("hello", "bash", "bgshell", "bgboth", "sub_bg", "sub_sync", "sub_two", "instr", "resume", "kill9", "term")),
    *((install.NEW, name) for name in NEW_ONLY),
]  # fmt: skip
Comparisons = dict[tuple[str, str], Future[Comparison]]


def _play(copilot: Copilot, scenario: str, directory: Path) -> Comparison:
    """Play a scenario and compare; some are more than one run, or end before their time."""
    first, second = (replace(copilot, telemetry=directory / f"{run}.jsonl") for run in ("first", "second"))
    if scenario == "resume":
        run = first.play("hello")
        run = second.play("bash", resume=run.session_id)
    elif scenario == "kill9":
        run = first.play("slow", interruption=Interruption(b'"tool.execution_start"'))
        run = second.play("hello", resume=run.session_id)
    elif scenario == "term":
        run = first.play("slow", interruption=Interruption(b'"tool.execution_start"', signal.SIGTERM))
    else:
        run = first.play(scenario)
    files = [copilot_run.telemetry for copilot_run in (first, second) if copilot_run.telemetry is not None]
    return compare(load(scenario, copilot.version, run.events, *files))


@pytest.fixture(scope="module")
def comparisons(make_copilot: MakeCopilot, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Comparisons]:
    """Every session of `PLAYED`, being played and compared."""
    copilots = {version: make_copilot(version, f"parity-{version}") for version in (install.NEW, install.OLD)}

    def play(version: str, scenario: str) -> Comparison:
        return _play(copilots[version], scenario, tmp_path_factory.mktemp(f"telemetry-{scenario}"))

    # One at a time: what runs beside a session shifts the times that are compared.
    pool = ThreadPoolExecutor(1)
    yield {(version, scenario): pool.submit(play, version, scenario) for version, scenario in PLAYED}
    pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize(("version", "scenario"), PLAYED)
def test_nothing_that_can_be_derived_is_missing(version: str, scenario: str, comparisons: Comparisons) -> None:
    result = comparisons[version, scenario].result()

    print(table([result]))
    assert result.session.cli != [] or scenario == "kill9"
    assert [span.name for span in result.missing] == []
    assert result.other_parents + result.other_names + result.other_tokens + result.other_notifications == []


@pytest.mark.parametrize(("version", "scenario"), PLAYED)
def test_every_difference_has_a_reason(version: str, scenario: str, comparisons: Comparisons) -> None:
    result = comparisons[version, scenario].result()

    assert unexplained(differences(result), result.session) == []


def test_every_reason_that_only_fresh_sessions_have_explains_something(comparisons: Comparisons) -> None:
    results = [one.result() for one in comparisons.values()]
    found = [(result.session, differences(result)) for result in results]

    fresh = [row for row in rows() if row.fresh and not row.at_times]

    assert [row for row in fresh if not any(row.explains(each, by) for by, some in found for each in some)] == []


@pytest.mark.parametrize(
    ("operation", "edge", "apart_ms_max"),
    [("execute_tool", "start_ns", 5), ("execute_tool", "end_ns", 5), ("chat", "start_ns", 12), ("chat", "end_ns", 12)],
)
def test_times_are_as_close_as_the_log_allows(
    operation: str, edge: str, apart_ms_max: float, comparisons: Comparisons
) -> None:
    apart = [value for each in comparisons.values() for value in each.result().apart_ms(operation, edge)]

    assert len(apart) > 20
    assert p95(apart) <= apart_ms_max
