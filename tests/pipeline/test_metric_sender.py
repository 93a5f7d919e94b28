"""Sums beside the lanes: what is counted is in them once, whatever becomes of the store."""

import asyncio
import sqlite3

import pytest

from exporter.core.delivery.position import Mark
from exporter.pipeline.metric_sender import MetricSender
from exporter.state.marks import StoreDamagedError
from tests.daemon.peer import Peer
from tests.daemon.station import until
from tests.pipeline.parts import Parts

pytestmark = pytest.mark.anyio


class _Total:
    """Sums that are one number."""

    def __init__(self, state: bytes | None) -> None:
        self.value = int(state or 0)
        self.known = self.value

    @property
    def waits(self) -> bool:
        return False

    def add(self, bodies: list[bytes]) -> None:
        self.value += sum(map(int, bodies))

    def points(self, until_ns: int | None) -> list[bytes]:
        return [b'{"id":"%d","type":"x","data":{}}' % self.value] if self.value != self.known else []

    def accepted(self) -> None:
        self.known = self.value

    def state(self) -> bytes:
        return b"%d" % self.value


def _count(parts: Parts, sender: MetricSender) -> None:
    parts.store.commit("s", parts.sink_state.sink_id, Mark(), [], [], {}, [b"5"])
    sender.counted()


async def test_what_is_counted_again_in_a_new_store_is_in_the_sums_once(parts: Parts, full: Peer) -> None:
    made: list[_Total] = []

    def make(state: bytes | None) -> _Total:
        made.append(_Total(state))
        return made[-1]

    await parts.sink.register("s", None)
    sender = MetricSender(make, 0.01)
    running = asyncio.create_task(sender.run(parts.sink_state, lambda: True))
    try:
        _count(parts, sender)
        await until(lambda: made and made[-1].known == 5)
        other = sqlite3.connect(parts.marks_path, isolation_level=None)
        other.execute("DROP TABLE facts")
        other.close()
        with pytest.raises(StoreDamagedError):
            parts.store.fact("one")

        _count(parts, sender)  # the lane reads its session again from the first event
        await until(lambda: sender.settled)

        assert (made[-1].known, made[-1].value) == (5, 5)
    finally:
        running.cancel()
