"""One sink's trouble is no other's: beside a sink that refuses, waits or is away, every other one gets everything.

The truth is what each good sink gets without a bad one beside it.
"""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from config.settings import MissionControl, Otel, Settings
from exporter.errors import Exit
from tests.daemon.exchange import Reply
from tests.daemon.peer import Peer
from tests.daemon.receivers import Floor
from tests.daemon.station import Station
from tests.daemon.telemetry import demo_session, logged, span_counts
from tests.otel.receiver import Receiver
from tests.otel.reply import Reply as OtlpReply

pytestmark = pytest.mark.anyio

SESSIONS: Final = 8
GIVE_UP_SECONDS: Final = 1.0


class Company:
    """A station with old sessions, a good Mission Control, a good OTLP endpoint, and a bad one of either kind."""

    def __init__(self, home: Path, stack: ExitStack) -> None:
        self.station = Station(home)
        self.sessions = [demo_session(self.station, f"s{number}") for number in range(SESSIONS)]
        for session in self.sessions:
            session.age(30.0)
        self.mission_control = stack.enter_context(Peer(Floor()))
        self.bad_mission_control = stack.enter_context(Peer(Floor()))
        self.otel = stack.enter_context(Receiver())
        self.bad_otel = stack.enter_context(Receiver())

    def settings(self, bad: str | None) -> Settings:
        mission_controls = {"good": MissionControl(url=self.mission_control.url)}
        endpoints = {"good": Otel(endpoint=self.otel.url, history_days=36_500)}
        if bad is not None and bad.startswith("mission_control"):
            mission_controls["bad"] = MissionControl(url=self.bad_mission_control.url)
        elif bad is not None:
            endpoints["bad"] = Otel(endpoint=self.bad_otel.url, history_days=36_500)
        return self.station.settings(mission_controls, otel=endpoints, give_up_seconds=GIVE_UP_SECONDS)

    def arrived(self) -> dict[str, Any]:
        """Return what the good ones have: ids by session, spans, records, and points by metric."""
        points: Counter[str] = Counter()
        for metric in self.otel.metrics():
            data = (
                metric.sum
                if metric.HasField("sum")
                else metric.histogram
                if metric.HasField("histogram")
                else metric.gauge
            )
            points[metric.name] += len(data.data_points)
        return {
            "events": {one.name: self.mission_control.ids(one.name) for one in self.sessions},
            "spans": len(span_counts(self.otel)),
            "records": sum(logged(self.otel).values()),
            "metrics": sorted(points),
        }


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.fixture
async def company(own_home: Path, stack: ExitStack) -> AsyncIterator[Company]:
    made = Company(own_home, stack)
    try:
        yield made
    finally:
        await made.station.close()


_TRUTH: dict[str, Any] = {}


@pytest.fixture
async def truth(tmp_path: Path, stack: ExitStack) -> dict[str, Any]:
    """What the good ones get when nobody is beside them; found out once."""
    if _TRUTH:
        return _TRUTH
    alone = Company(tmp_path / "alone", stack)
    answer = await alone.station.exporter(alone.settings(None)).ask("backfill", all=True)
    await alone.station.close()
    assert answer["exit"] == Exit.DONE
    arrived = alone.arrived()
    assert all(arrived["events"][one.name] == one.durable_ids() for one in alone.sessions)
    assert arrived["spans"] and arrived["records"] and arrived["metrics"]
    _TRUTH.update(arrived)
    return _TRUTH


BAD: Final = [
    ("mission_control.bad", 401, Exit.REFUSED),
    ("mission_control.bad", 503, Exit.UNREACHABLE),
    ("mission_control.bad", 302, Exit.UNREACHABLE),
    ("mission_control.bad", 0, Exit.UNREACHABLE),
    ("otel.bad", 401, Exit.REFUSED),
    ("otel.bad", 503, Exit.UNREACHABLE),
    ("otel.bad:logs", 503, Exit.UNREACHABLE),
    ("otel.bad:traces", 401, Exit.REFUSED),
    ("otel.bad:metrics", 503, Exit.UNREACHABLE),
]


@pytest.mark.parametrize(("bad", "status", "ends"), BAD)
@pytest.mark.parametrize("asked", ["backfill", "run"])
async def test_the_good_sinks_get_everything_beside_a_bad_one(
    company: Company, truth: dict[str, Any], bad: str, status: int, ends: Exit, asked: str
) -> None:
    signal: Any = bad.partition(":")[2] or None
    company.bad_mission_control.script = lambda request: Reply(status, lost=status == 0)
    company.bad_otel.plan(then=OtlpReply(status, signal=signal))
    settings = company.settings(bad)

    if asked == "backfill":
        answer = await company.station.exporter(settings).ask("backfill", all=True)
        ended, rows = answer["exit"], answer["sessions"]
        states = {(row["sink"].partition(":")[0], row["state"]) for row in rows if not row["sink"].startswith(bad)}
        assert {state for _, state in states} == {"delivered"}
        assert {row["state"] for row in rows if row["sink"].startswith(bad)} <= {"waiting", "refused"}
    else:
        for session in company.sessions:
            session.age(-30.0)
        ended = await company.station.exporter(settings).idle()

    assert ended == ends
    assert company.arrived() == truth


async def test_the_command_ends_with_the_status_of_the_worst(company: Company) -> None:
    """Refused (5) is worse than unreachable (6): a person can do something about it."""
    company.bad_mission_control.script = lambda request: Reply(503)
    company.bad_otel.plan(then=OtlpReply(401))
    settings = company.station.settings(
        {
            "good": MissionControl(url=company.mission_control.url),
            "bad": MissionControl(url=company.bad_mission_control.url),
        },
        otel={
            "good": Otel(endpoint=company.otel.url, history_days=36_500),
            "bad": Otel(endpoint=company.bad_otel.url, history_days=36_500),
        },
        give_up_seconds=GIVE_UP_SECONDS,
    )

    answer = await company.station.exporter(settings).ask("backfill", all=True)

    assert answer["exit"] == Exit.REFUSED
    assert {row["sink"].partition(":")[0] for row in answer["sessions"] if row["state"] == "delivered"} == {
        "mission_control.good",
        "otel.good",
    }
