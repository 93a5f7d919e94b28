"""Every LogQL query of every dashboard, in a real Loki, compared with what is counted in the files of the sessions."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from tests.backends.lost import LosesAnswers
from tests.backends.month import CROWD, Host, Truth, counted, month, now
from tests.backends.servers import Server, loki, needs
from tests.dashboards.boards import asked, filled
from tests.real.cli import wait_until

pytestmark = [pytest.mark.real, needs("loki")]

SESSIONS: Final = 24
ARRIVAL_SECONDS_MAX: Final = 90
_LOGS: Final = {"EXPORTER_OTEL__SIGNALS": '["logs"]'}
_OF_ANY_SESSION: Final = '{service_name=~"github-copilot"}'

# A panel, and how many lines it must have.
LINES: Final[dict[tuple[str, str], Callable[[Truth], int]]] = {
    ("session", "Compactions and truncations"): lambda truth: (
        truth.kinds["session.compaction_start"]
        + truth.kinds["session.compaction_complete"]
        + truth.kinds["session.truncation"]
    ),
    ("session", "Events"): lambda truth: truth.events,
    ("tools", "Denials"): lambda truth: truth.kinds["permission.completed"],
    ("notifications", "Trouble"): lambda truth: truth.kinds["system.notification"],
    ("notifications", "Sub-agents and notifications in order"): lambda truth: (
        truth.kinds["subagent.started"] + truth.kinds["subagent.failed"] + truth.kinds["system.notification"]
    ),
}


def lines(server: Server, query: str, days: int = 30) -> list[str]:
    """The lines of a query over the last days, oldest first."""
    ends = now() + timedelta(minutes=5)
    span = {"start": int((ends - timedelta(days=days)).timestamp() * 1e9), "end": int(ends.timestamp() * 1e9)}
    answer = server.get("/loki/api/v1/query_range", query=query, limit=5000, direction="forward", **span)
    found = [(moment, line) for stream in answer["data"]["result"] for moment, line in stream["values"]]
    return [line for _, line in sorted(found)]


def _query(board: str, panel: str) -> str:
    (found,) = [each for each in asked("loki") if (each.board, each.panel) == (board, panel)]
    return found.text


def of_session(server: Server, session: str) -> list[str]:
    """The lines of a session, as its panel asks for them."""
    return lines(server, filled(_query("session", "Events").replace("$session", session)))


def holds(server: Server, expected: int) -> None:
    """Wait until a store holds so many records, and no more."""
    wait_until(
        lambda: len(lines(server, _OF_ANY_SESSION)) == expected, f"{expected} records in Loki", ARRIVAL_SECONDS_MAX
    )


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Host:
    """The sessions of a month."""
    return month(tmp_path_factory.mktemp("month"), SESSIONS, until=now())


@pytest.fixture(scope="module")
def store(told: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A store that the month was delivered to."""
    with loki(tmp_path_factory.mktemp("loki") / "store") as server:
        assert "keeps logs of any age, which is enough for 27 days" in told.backfill(server.endpoint, **_LOGS)
        yield server


def test_every_record_is_found_before_and_after_a_restart(store: Server, told: Host) -> None:
    holds(store, counted(told).events)

    store.restart()

    holds(store, counted(told).events)


def test_every_panel_has_the_lines_of_its_session_and_no_other(store: Server, told: Host) -> None:
    session, _ = next(told.events())
    holds(store, counted(told).events)
    truth = counted(told, session=session)
    every = counted(told)

    for (board, panel), expected in LINES.items():
        query = _query(board, panel).replace("$session", session)
        assert len(lines(store, filled(query))) == expected(truth if "$session" in _query(board, panel) else every), (
            panel
        )


def test_a_line_says_what_happened(store: Server, told: Host) -> None:
    session, _ = next(told.events())
    holds(store, counted(told).events)

    said = [line.split(None, 1) for line in of_session(store, session)]

    assert ["tool.execution_complete", "tool bash: ok: exit 5 after 5 s"] in said
    assert all(len(parts) == 2 for parts in said)


def test_sessions_with_activity_are_counted(store: Server, told: Host) -> None:
    holds(store, counted(told).events)
    query = filled(_query("fleet", "Sessions with activity").replace("$__range", "720h"))

    answer = store.get("/loki/api/v1/query", query=query, time=int(now().timestamp() * 1e9))

    assert [series["value"][1] for series in answer["data"]["result"]] == [str(SESSIONS)]


def test_two_hosts_and_a_session_after_four_quiet_weeks_have_all_their_records(tmp_path: Path) -> None:
    hosts = [Host(tmp_path / name) for name in ("one", "other")]
    with loki(tmp_path / "store") as server:
        for host in hosts:
            host.write("before", now() - timedelta(days=28))
            host.backfill(server.endpoint, **_LOGS)
        for host in hosts:
            host.write("after", now() - timedelta(hours=1))
            host.backfill(server.endpoint, **_LOGS)

        holds(server, counted(*hosts).events)


def test_records_whose_answer_was_lost_are_there_once(tmp_path: Path) -> None:
    host = month(tmp_path / "host", 4, until=now())
    with loki(tmp_path / "store") as server, LosesAnswers(server.endpoint) as between:
        host.backfill(between.endpoint, **_LOGS)

        assert between.lost > 0
        holds(server, counted(host).events)


@pytest.mark.timeout(900)
def test_7000_small_sessions_at_once_are_16_streams_at_most(tmp_path: Path) -> None:
    host = Host(tmp_path / "crowd")
    host.crowd(CROWD, until=now())
    with loki(tmp_path / "store") as server:
        host.backfill(server.endpoint, **_LOGS)
        query = f"sum(count_over_time({_OF_ANY_SESSION}[24h]))"

        def records() -> list[str]:
            answer = server.get("/loki/api/v1/query", query=query, time=int(now().timestamp() * 1e9))
            return [series["value"][1] for series in answer["data"]["result"]]

        wait_until(lambda: records() == [str(8 * CROWD)], f"{8 * CROWD} records in Loki", ARRIVAL_SECONDS_MAX)
        begins = int((now() - timedelta(days=1)).timestamp() * 1e9)
        asked: dict[str, str | int] = {"match[]": _OF_ANY_SESSION, "start": begins}
        streams = server.get("/loki/api/v1/series", **asked)["data"]

        assert 1 < len(streams) <= 16


def test_a_live_session_and_an_outage(tmp_path: Path) -> None:
    host = Host(tmp_path / "live")
    with loki(tmp_path / "store") as server, host.running(server.endpoint, **_LOGS):
        host.play("first")
        holds(server, counted(host).events)
        server.stop()
        host.play("meanwhile")
        server.start()

        holds(server, counted(host).events)
