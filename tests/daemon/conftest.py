"""Stations, peers and clocks for tests of the delivery path."""

import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import clock
from tests.daemon.peer import Peer
from tests.daemon.receivers import Floor, Full
from tests.daemon.station import Station


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str | tuple[str, dict[str, Any]]:
    """Whoever asks for `fast_clock` gets an event loop of that clock."""
    if "fast_clock" not in request.fixturenames:
        return "asyncio"
    monkeypatch.setattr(time, "monotonic", clock.fast_monotonic)
    return "asyncio", {"loop_factory": clock.fast_loop}


@pytest.fixture
def fast_clock() -> float:
    """Lets minutes pass in seconds; the value is how many times faster the clock runs."""
    return clock.SPEED


@pytest.fixture
async def station(own_home: Path) -> AsyncIterator[Station]:
    opened = Station(own_home)
    try:
        yield opened
    finally:
        await opened.close()


Record = Callable[[str, object], None]


def _told(peer: Peer, record_property: Record) -> Iterator[Peer]:
    """The peer, and for `make faults` what it got."""
    with peer:
        yield peer
        record_property("requests with events", len(peer.event_requests()))


@pytest.fixture
def floor(record_property: Record) -> Iterator[Peer]:
    """A receiver that speaks the floor of the wire only."""
    yield from _told(Peer(Floor()), record_property)


@pytest.fixture
def full(tmp_path: Path, record_property: Record) -> Iterator[Peer]:
    """The project's own receiver with every capability."""
    yield from _told(Peer(Full(tmp_path / "receiver.db")), record_property)
