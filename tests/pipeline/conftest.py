"""Parts of a pipeline, and servers on loopback for its sinks."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.daemon.peer import Peer
from tests.daemon.receivers import Floor, Full
from tests.pipeline.parts import Parts


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Peer]:
    """The project's own receiver with every capability."""
    with Peer(Full(tmp_path / "receiver.db")) as peer:
        yield peer


@pytest.fixture
def floor() -> Iterator[Peer]:
    """A receiver that speaks the floor of the wire only."""
    with Peer(Floor()) as peer:
        yield peer


@pytest.fixture
async def parts(own_home: Path, full: Peer) -> AsyncIterator[Parts]:
    """Parts whose sink speaks to `full`."""
    made = Parts(own_home, full)
    try:
        yield made
    finally:
        await made.close()


@pytest.fixture
async def floor_parts(own_home: Path, floor: Peer) -> AsyncIterator[Parts]:
    """Parts whose sink speaks to `floor`."""
    made = Parts(own_home, floor)
    try:
        yield made
    finally:
        await made.close()
