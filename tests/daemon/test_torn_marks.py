"""A process may die in the middle of writing its marks: it finds the old ones or the new ones, never a mixture."""

import random
import shutil
from pathlib import Path

import pytest

from exporter.errors import Exit
from tests.daemon.peer import Peer
from tests.daemon.station import Station, until

pytestmark = pytest.mark.anyio
_CUTS = 12


def _copy(state: Path, target: Path) -> None:
    """Copy the marks as they are on disk at this instant, as a kill would leave them."""
    target.mkdir()
    for path in state.glob("marks.db*"):
        if not path.name.endswith("-shm"):
            shutil.copy(path, target / path.name)


def _put_back(state: Path, source: Path, cut: int) -> None:
    """Restore the copied marks with so many bytes of their log only."""
    for path in state.glob("marks.db*"):
        path.unlink()
    for path in source.iterdir():
        shutil.copy(path, state / path.name)
    with (state / "marks.db-wal").open("r+b") as log:
        log.truncate(cut)


async def test_a_log_of_the_marks_cut_anywhere_loses_nothing_and_stores_nothing_twice(
    station: Station, full: Peer, tmp_path: Path
) -> None:
    session = station.session()
    first = station.exporter(full)
    for _ in range(6):
        session.add(20)
        await until(lambda: full.ids() == session.durable_ids())
        await first.idle()
    _copy(station.state, tmp_path / "killed")
    await first.stop()
    size = (tmp_path / "killed" / "marks.db-wal").stat().st_size
    chosen = random.Random(7)

    for cut in [0, size, *(chosen.randrange(size) for _ in range(_CUTS))]:
        _put_back(station.state, tmp_path / "killed", cut)
        exporter = station.exporter(full)
        assert await exporter.idle() == Exit.DONE
        assert full.ids() == session.durable_ids()
        assert await exporter.differences() == []
        await exporter.stop()
    session.add(1)
    await station.exporter(full).idle()
    assert full.ids() == session.durable_ids()


async def test_a_kill_after_every_single_answer_repeats_at_most_that_batch(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(3_000, size=600)
    lives = []

    while len(floor.ids()) < 3_000:
        answered = len(floor.event_requests())
        lives.append(answered)
        exporter = station.exporter(floor)
        await until(lambda answered=answered: len(floor.event_requests()) > answered)  # type: ignore[misc]
        await exporter.crash(floor)
    lives.append(len(floor.event_requests()))
    last = station.exporter(floor)
    await last.idle()

    requests, before = [set(one.ids()) for one in floor.event_requests()], set[str]()
    for begin, end in zip(lives, [*lives[1:], len(requests)], strict=True):
        assert sum(1 for ids in requests[begin:end] if before & ids) <= 1
        before.update(*requests[begin:end])
    assert len(lives) > 3
    assert floor.ids() == session.durable_ids()
    assert await last.differences() == []
