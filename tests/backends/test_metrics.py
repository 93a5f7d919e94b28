"""Every PromQL query of every dashboard, in real stores, compared with what is counted in the files of the sessions."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from tests.backends.lost import LosesAnswers
from tests.backends.month import CROWD, Host, Truth, counted, month, now
from tests.backends.servers import MAKERS, Server, each_of
from tests.dashboards.boards import Asked, asked, filled
from tests.real.cli import wait_until

pytestmark = pytest.mark.real

SESSIONS: Final = 24
ARRIVAL_SECONDS_MAX: Final = 90
EDGE: Final = 0.02
"""Prometheus extrapolates an increase to the edges of the window; it was .15 % in a month."""
_RANGE: Final = {"$__range": "720h", "$__interval": "12h"}
# What only happens while the exporter runs, what nobody proves of history, or what is about another week.
_OTHER: Final = ("session_exporter_", "_live_", "_orphaned_", "offset 7d")
_METRICS: Final = {"EXPORTER_OTEL__SIGNALS": '["metrics"]'}
# An increase is extrapolated over the time since the last point: with one a minute a new series is up to half an event
# wrong for some minutes. With one a second that edge is small after one.
_LIVE: Final = {**_METRICS, "EXPORTER_OTEL__METRICS_REPEAT_SECONDS": "1"}

# A panel, and what its query must answer, by the label that tells its series apart, if one does.
TOTALS: Final[dict[tuple[str, str], Callable[[Truth], dict[str, float]]]] = {
    ("fleet", "Sessions begun"): lambda truth: {"": truth.kinds["session.start"]},
    ("fleet", "Interactions"): lambda truth: {"": truth.kinds["user.message"]},
    ("fleet", "Tokens"): lambda truth: {"": truth.tokens["inputTokens"] + truth.tokens["outputTokens"]},
    ("fleet", "Tool failures"): lambda truth: {"": _failed(truth) / truth.tools.total()},
    ("fleet", "Errors per interaction"): lambda truth: {"": truth.kinds["session.error"] / truth.kinds["user.message"]},
    ("fleet", "Cache hit"): lambda truth: {"": truth.tokens["cacheReadTokens"] / truth.tokens["inputTokens"]},
    ("tools", "Most used"): lambda truth: _by_tool(truth, (True, False)),
    ("tools", "Most failures"): lambda truth: _by_tool(truth, (False,)),
    ("tools", "Permission requests"): lambda truth: {"": truth.kinds["permission.completed"]},
    ("notifications", "Notifications"): lambda truth: {"": truth.kinds["system.notification"]},
    ("notifications", "Custom notifications"): lambda truth: {"": truth.kinds["session.custom_notification"]},
    ("agents", "Most failures"): lambda truth: {"explore": truth.kinds["subagent.failed"]},
    ("agents", "Skills used"): lambda truth: {"made-up-skill": truth.kinds["skill.invoked"]},
}


def _failed(truth: Truth) -> int:
    return sum(count for (_, good), count in truth.tools.items() if not good)


def _by_tool(truth: Truth, outcomes: tuple[bool, ...]) -> dict[str, float]:
    found: dict[str, float] = {}
    for (tool, good), count in truth.tools.items():
        if good in outcomes:
            found[tool] = found.get(tool, 0) + count
    return found


def answered(server: Server, query: str) -> dict[str, float]:
    """What a store answers now, by the values of the labels."""
    answer = server.get("/api/v1/query", query=query)
    assert answer["status"] == "success", answer
    return {
        ",".join(value for name, value in series["metric"].items() if name != "__name__"): float(series["value"][1])
        for series in answer["data"]["result"]
    }


def _query(board: str, panel: str) -> str:
    (found,) = [each for each in asked("prometheus") if (each.board, each.panel) == (board, panel)]
    return ranged(found)


def ranged(query: Asked) -> str:
    """A query over the month."""
    text = query.text
    for variable, value in _RANGE.items():
        text = text.replace(variable, value)
    return filled(text)


def wrong(server: Server, truth: Truth) -> list[Any]:
    """Every panel whose answer is not what was counted."""
    found = []
    for (board, panel), expected in TOTALS.items():
        answer = answered(server, _query(board, panel))
        if answer != pytest.approx(expected(truth), rel=EDGE):
            found.append((board, panel, answer, expected(truth)))
    return found


def is_right(server: Server, truth: Truth) -> None:
    """Wait until every panel says what was counted; fails with those that do not."""
    last: list[Any] = []

    def right() -> bool:
        last[:] = wrong(server, truth)
        return not last

    try:
        wait_until(right, "the panels say what was counted", ARRIVAL_SECONDS_MAX)
    except Exception as error:
        raise AssertionError(last) from error


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Host:
    """The sessions of a month."""
    return month(tmp_path_factory.mktemp("month"), SESSIONS, until=now())


@pytest.fixture(scope="module", params=each_of("prometheus", "victoriametrics"))
def store(request: pytest.FixtureRequest, told: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A store that the month was delivered to."""
    with MAKERS[request.param](tmp_path_factory.mktemp(request.param) / "store") as server:
        assert "keeps metrics of the last 400 days" in told.backfill(server.endpoint, **_METRICS)
        told.forget()
        yield server


@pytest.fixture(params=each_of("prometheus", "victoriametrics"))
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A store that holds nothing."""
    with MAKERS[request.param](tmp_path / "store") as server:
        yield server


def test_the_panels_say_what_was_counted_before_and_after_a_restart(store: Server, told: Host) -> None:
    truth = counted(told)
    is_right(store, truth)

    store.restart()

    is_right(store, truth)


def test_every_query_of_every_dashboard_has_an_answer(store: Server, told: Host) -> None:
    is_right(store, counted(told))
    queries = [query for query in asked("prometheus") if not any(word in query.text for word in _OTHER)]

    empty = [str(query) for query in queries if not _values(store, query)]

    assert len(queries) > 60
    assert empty == []


def _values(server: Server, query: Asked) -> list[Any]:
    """The values of a query over the month, as a chart asks for them; none that is no number."""
    at = now().timestamp()
    span = {"start": at - 29 * 86_400, "end": at, "step": 43_200}
    answer = server.get("/api/v1/query_range", query=ranged(query), **span)
    return [value for series in answer["data"]["result"] for _, value in series["values"] if value != "NaN"]


def test_two_hosts_add_up(empty: Server, tmp_path: Path) -> None:
    hosts = [month(tmp_path / name, 4, until=now()) for name in ("one", "other")]

    for host in hosts:
        host.backfill(empty.endpoint, **_METRICS)

    is_right(empty, counted(*hosts))


def test_points_whose_answer_was_lost_count_once(empty: Server, tmp_path: Path) -> None:
    host = month(tmp_path / "host", 4, until=now())
    with LosesAnswers(empty.endpoint) as between:
        host.backfill(between.endpoint, **_METRICS)

        assert between.lost > 0
        is_right(empty, counted(host))


@pytest.mark.timeout(900)
def test_7000_small_sessions_at_once_are_counted(empty: Server, tmp_path: Path) -> None:
    host = Host(tmp_path / "crowd")
    host.crowd(CROWD, until=now())
    host.backfill(empty.endpoint, **_METRICS)

    for panel in ("Sessions begun", "Interactions"):
        _is_answered(empty, _query("fleet", panel), {"": CROWD})


def test_after_31_quiet_days_only_what_is_new_counts(empty: Server, tmp_path: Path) -> None:
    host = Host(tmp_path / "quiet")
    host.write("before", now() - timedelta(days=40))
    host.backfill(empty.endpoint, **_METRICS)
    host.write("after", now() - timedelta(hours=1))
    host.backfill(empty.endpoint, **_METRICS)
    query = _query("fleet", "Interactions")

    for days, sessions in ((1, 1), (30, 1), (60, 2)):
        expected = {"": sessions * counted(host).kinds["user.message"] / 2}
        _is_answered(empty, query.replace(_RANGE["$__range"], f"{days * 24}h"), expected)


def _is_answered(server: Server, query: str, expected: dict[str, float]) -> None:
    wait_until(
        lambda: answered(server, query) == pytest.approx(expected, rel=EDGE),
        f"{expected} of {query}",
        ARRIVAL_SECONDS_MAX,
    )


@pytest.mark.timeout(400)
def test_what_happens_during_an_outage_arrives_after_it(empty: Server, tmp_path: Path) -> None:
    host = Host(tmp_path / "outage")
    with host.running(empty.endpoint, **_LIVE):
        host.play("before")
        is_right(empty, counted(host))
        empty.stop()
        host.play("meanwhile")
        empty.start()

        is_right(empty, counted(host))


@pytest.mark.timeout(400)
def test_a_live_session_is_counted_within_a_minute(empty: Server, tmp_path: Path) -> None:
    host = Host(tmp_path / "live")
    with host.running(empty.endpoint, **_LIVE):
        host.play("first")
        is_right(empty, counted(host))
        host.play("second")

        is_right(empty, counted(host))
