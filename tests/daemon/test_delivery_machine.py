"""Whatever happens to the file, the exporter, the wire and the receiver: in the end the receiver shows the file."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from config.settings import MissionControl
from tests.daemon import clock
from tests.daemon.exchange import Reply
from tests.daemon.peer import Peer
from tests.daemon.receivers import Behind, Floor, Full
from tests.daemon.sessions import event
from tests.daemon.station import Exporter, Station, until

Result = TypeVar("Result")
_ODD = (
    b'{"type":"tool.x","data":{"n":1e400,"m":9223372036854775809},"id":"%s","timestamp":"t","parentId":null}',
    b'{"type":"tool.x","data":{"text":"\\ud800 half a pair"},"id":"%s","timestamp":"t","parentId":null}',
    b'{"type":"tool.x","data":{"a":1,"a":2},"id":"%s","timestamp":"t","new_field":[1]}',
    b'{"id":"%s","data":{"text":"\xe2\x80\xa8"},"type":"unheard.of"}',
    b'  {"type":"tool.x","data":{"deep":' + b"[" * 200 + b"]" * 200 + b'},"id":"%s","timestamp":"t"} \r',
)
_GARBAGE = (b"no json at all", b"\0" * 40, b'{"type":"tool.x","data":{}}', b"\xff\xfe", b"{", b"")
_SIZES = st.sampled_from((0, 0, 150, 400, 200_000))


class DeliveryMachine(RuleBasedStateMachine):
    """`sent` are the events that the file should have delivered, as (id, bytes) in file order."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="xp-"))
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(time, "monotonic", clock.fast_monotonic)
        self.runner = asyncio.Runner(loop_factory=clock.fast_loop)
        self.peer = Peer(self.receiver())
        self.peer.__enter__()
        self.station = Station(self.home)
        self.file = self.station.session()
        self.lines: list[tuple[bytes, str | None]] = []
        self.unfinished: tuple[bytes, bytes, str] | None = None
        self.removed: list[tuple[bytes, str]] = []
        self.ever_removed: set[str] = set()
        self.count = 0
        self.refused = False
        self.marks_lost = False
        self.exporter: Exporter

    def receiver(self) -> Behind:
        return Full(self.home / "receiver.db")

    # ---- means ----------------------------------------------------------------------------------------------

    def run(self, story: Coroutine[Any, Any, Result]) -> Result:
        return self.runner.run(story)

    async def start_exporter(self) -> None:
        settings = self.station.settings({"default": MissionControl(url=self.peer.url)}, give_up_seconds=86_400.0)
        self.exporter = self.station.exporter(settings)

    def new_id(self) -> str:
        self.count += 1
        return f"e{self.count}"

    def write(self, line: bytes, identity: str | None) -> None:
        self.finish()
        self.file.append(line)
        self.lines.append((line, identity))

    def finish(self) -> None:
        """Write the rest of a line that was begun."""
        if self.unfinished is not None:
            begun, rest, identity = self.unfinished
            self.file.append_raw(rest + b"\n")
            self.lines.append((begun + rest, identity))
            self.unfinished = None

    def cut(self, keep: int) -> list[bytes]:
        """Forget all but the first lines; return those."""
        self.unfinished = None
        keep = min(keep, len(self.lines))
        gone = [(line, identity) for line, identity in self.lines[keep:] if identity is not None]
        self.removed += gone
        self.ever_removed |= {identity for _, identity in gone}
        del self.lines[keep:]
        return [line for line, _ in self.lines]

    def fresh(self, count: int, size: int) -> list[bytes]:
        made = [(event(identity, size=size), identity) for identity in (self.new_id() for _ in range(count))]
        self.lines += made
        return [line for line, _ in made]

    # ---- what happens ---------------------------------------------------------------------------------------

    @initialize()
    def begin(self) -> None:
        self.run(self.start_exporter())

    @rule(count=st.integers(1, 4), size=_SIZES)
    def append(self, count: int, size: int) -> None:
        for _ in range(count):
            identity = self.new_id()
            self.write(event(identity, size=size), identity)

    @rule()
    def append_ephemeral(self) -> None:
        self.write(event(self.new_id(), ephemeral=True), None)

    @rule(form=st.sampled_from(_ODD))
    def append_odd(self, form: bytes) -> None:
        identity = self.new_id()
        self.write(form.replace(b"%s", identity.encode()), identity)

    @rule(garbage=st.sampled_from(_GARBAGE))
    def append_garbage(self, garbage: bytes) -> None:
        self.write(garbage, None)

    @rule(at=st.integers(1, 60))
    def append_torn(self, at: int) -> None:
        self.finish()
        identity = self.new_id()
        line = event(identity)
        self.file.append_raw(line[:at])
        self.unfinished = (line[:at], line[at:], identity)

    @rule(keep=st.integers(0, 8), count=st.integers(0, 3), size=_SIZES, regret=st.booleans())
    def rewind(self, keep: int, count: int, size: int, regret: bool) -> None:
        kept = self.cut(keep)
        added = self.fresh(count, size)
        if regret and self.removed:
            line, identity = self.removed.pop(0)
            if identity not in {one for _, one in self.lines}:
                self.lines.append((line, identity))
                added.append(line)
        self.file.replace(*kept, *added)

    @rule(keep=st.integers(0, 8), count=st.integers(1, 6), size=_SIZES)
    def truncate_and_refill(self, keep: int, count: int, size: int) -> None:
        kept = self.cut(keep)
        self.file.overwrite(*kept, *self.fresh(count, size))

    @rule(looks=st.integers(1, 30))
    def let_it_work(self, looks: int) -> None:
        async def work() -> None:
            for _ in range(looks):
                await asyncio.sleep(0.02)

        self.run(work())

    @rule()
    def kill(self) -> None:
        self.run(self.exporter.crash(self.peer))
        self.run(self.start_exporter())

    @rule()
    def stop_and_start(self) -> None:
        self.run(self.exporter.stop())
        self.run(self.start_exporter())

    @rule()
    def lose_the_marks(self) -> None:
        self.run(self.exporter.crash(self.peer))
        for path in self.station.state.glob("marks.db*"):
            path.unlink()
        self.marks_lost = True
        self.run(self.start_exporter())

    @rule(reply=st.sampled_from((Reply(lost=True), Reply(heard=False, lost=True), Reply(503), Reply(429), Reply(400))))
    def trouble_on_the_wire(self, reply: Reply) -> None:
        if reply.status == 400:
            if self.refused:
                return  # refused twice, the event would rightly go to quarantine
            self.refused = True
        if len(self.peer.next_replies) < 3:
            self.peer.next_replies.append(reply)

    @rule()
    def restart_the_receiver(self) -> None:
        self.run(until(lambda: not self.peer.busy()))
        if isinstance(self.peer.behind, Full):
            self.peer.behind.close()
            self.peer.behind.open()

    @rule()
    def settle(self) -> None:
        self.run(self.all_is_there())
        self.refused = bool(self.peer.next_replies)

    # ---- what holds -----------------------------------------------------------------------------------------

    async def all_is_there(self) -> None:
        wanted = [identity for _, identity in self.lines if identity is not None]
        if self.marks_lost and not wanted:
            # Nothing here says that the receiver ever had something of this session; the next event will.
            self.append(1, 0)
            wanted = [identity for _, identity in self.lines if identity is not None]
        try:
            await until(lambda: sorted(self.peer.ids()) == sorted(wanted), 6.0)
        except AssertionError:
            shown = self.peer.ids()
            raise AssertionError(
                f"missing {sorted(set(wanted) - set(shown))}, too many {sorted(set(shown) - set(wanted))}"
            ) from None
        await self.exporter.idle()
        held = self.peer.behind.held("s")
        kept_ids = [identity for identity, _ in held if identity not in self.ever_removed]
        assert kept_ids == [identity for identity in wanted if identity not in self.ever_removed]
        bodies = {identity: line.strip(b" \t\r") for line, identity in self.lines if identity is not None}
        assert dict(held) == bodies
        if wanted:
            assert await self.exporter.differences() == []
        self.marks_lost = False

    def teardown(self) -> None:
        try:
            if hasattr(self, "exporter"):
                self.run(self.all_is_there())
        finally:
            self.run(self.station.close())
            self.runner.close()
            self.peer.__exit__(None, None, None)
            self.patch.undo()
            shutil.rmtree(self.home, ignore_errors=True)


class FloorMachine(DeliveryMachine):
    """The same at the floor of the wire, where nothing can be hidden: everything of the file is there, once."""

    def receiver(self) -> Behind:
        return Floor()

    async def all_is_there(self) -> None:
        wanted = [identity for _, identity in self.lines if identity is not None]
        try:
            await until(lambda: set(wanted) <= set(self.peer.ids()), 6.0)
        except AssertionError:
            raise AssertionError(f"missing {sorted(set(wanted) - set(self.peer.ids()))}") from None
        await self.exporter.idle()
        never_gone = [identity for identity in wanted if identity not in self.ever_removed]
        assert [identity for identity in self.peer.ids() if identity in never_gone] == never_gone
        every = {identity for _, identity in self.lines} | self.ever_removed
        assert set(self.peer.ids()) <= every
        if wanted:
            assert [row for row in await self.exporter.differences() if row["missing"]] == []


_BOUNDS = settings(
    max_examples=100,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
TestDelivery = DeliveryMachine.TestCase
TestDelivery.settings = _BOUNDS
TestDeliveryAtTheFloor = FloorMachine.TestCase
TestDeliveryAtTheFloor.settings = _BOUNDS


def test_what_was_on_its_way_while_the_file_was_cut_is_hidden() -> None:
    """The mark stood before what was sent, and the file up to there was the same."""
    machine = DeliveryMachine()
    try:
        machine.begin()
        for _ in range(4):
            machine.append_ephemeral()
        machine.append_torn(at=18)
        machine.append_odd(form=b'{"type":"tool.x","data":{"a":1,"a":2},"id":"%s","timestamp":"t","new_field":[1]}')
        machine.rewind(count=3, keep=6, regret=False, size=400)
        machine.truncate_and_refill(count=5, keep=2, size=200_000)
        machine.kill()
        machine.append(count=3, size=200_000)
        machine.append(count=3, size=200_000)
        machine.append_ephemeral()
        machine.append_garbage(garbage=b"no json at all")
        machine.append_ephemeral()
        machine.append_ephemeral()
        machine.stop_and_start()
        machine.append_garbage(garbage=b"\0" * 40)
        machine.truncate_and_refill(count=1, keep=7, size=150)
        machine.restart_the_receiver()
    finally:
        machine.teardown()
