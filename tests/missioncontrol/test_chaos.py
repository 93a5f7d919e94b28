"""Nothing that any receiver acknowledged is lost or stored twice, whatever is killed; the session's lock is why."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.missioncontrol.chaos import Plan, play
from tests.missioncontrol.postgres import Server

pytestmark = pytest.mark.anyio
SIZES: dict[str, Any] = {
    name: int(os.environ[f"CHAOS_{name.upper()}"])
    for name in ("sessions", "events", "uploaders", "receivers", "faults", "seed")
    if f"CHAOS_{name.upper()}" in os.environ
}


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(max_connections=200) as server:
        yield server


@pytest.mark.slow
@pytest.mark.timeout(1000)
async def test_receivers_that_are_killed_on_a_server_that_crashes_keep_all_they_acknowledged_once(
    server: Server, record_property: Callable[[str, object], None]
) -> None:
    outcome = await play(server, server.migrated("mc"), Plan(**SIZES))

    assert outcome.wrong == []
    assert sum(outcome.faults.values()) == Plan(**SIZES).faults
    told = f"{outcome.acknowledged} batches acknowledged, {outcome.refused} refused, {dict(outcome.faults)}"
    record_property(f"{outcome.seconds:.0f} s: {told}", "")
    print(told, f"{outcome.seconds:.0f} s")


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_without_the_lock_of_the_session_the_same_goes_wrong(server: Server) -> None:
    """Nothing is killed here: the lock alone is missing."""
    outcome = await play(server, server.migrated("mc"), Plan(sessions=3, uploaders=6, faults=0, is_locked=False))

    assert outcome.wrong
