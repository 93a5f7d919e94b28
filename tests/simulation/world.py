"""What happens in a schedule, step by step, and what must hold meanwhile and at the end."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Final, TypeAlias

from exporter.core.delivery.position import Mark, Position, tail_hash
from exporter.pipeline.lane import Lane
from tests.daemon import sessions
from tests.simulation.clock import VirtualLoop
from tests.simulation.disk import Disk
from tests.simulation.exporters import Databases, Exporter
from tests.simulation.network import Wire
from tests.simulation.receiver import POISON, Receiver, common_order
from tests.simulation.redactor import MASK, REFUSED, SECRET, UNSAFE

PATIENCE_SECONDS: Final = 900.0
"""How long everything may take once all is well: the longest waits are 300 s (Retry-After) and 60 s (our own)."""
event = cache(sessions.event)


@cache
def line_of(identity: str, size: int = 0) -> bytes:
    """Return an event's line. Every fifth has a secret, and those named so cannot be redacted."""
    if identity.startswith(UNSAFE):
        return event(identity, said=REFUSED.decode())
    return event(identity, size=size, said=SECRET.decode()) if identity[-1] in "05" else event(identity, size=size)


Step: TypeAlias = tuple[str | int | float, ...]


class ViolationError(AssertionError):
    """Something that must hold does not."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """What happens. `receivers` say of each whether it has capabilities, and whether it declares what 410 means."""

    seed: int
    receivers: tuple[tuple[bool, bool], ...]
    sessions: int
    steps: tuple[Step, ...]


@dataclass(slots=True)
class Written:
    """What a session's file holds and held. `removed` is what was cut off it, `moved` what may be out of order."""

    lines: list[tuple[bytes, str | None]] = field(default_factory=list)
    rest: tuple[bytes, str] | None = None
    removed: list[tuple[bytes, str]] = field(default_factory=list)
    moved: set[str] = field(default_factory=set)
    unseen: bool = False
    count: int = 0


class World:
    """One schedule: a disk, the receivers, and an exporter, sometimes a clone of it."""

    def __init__(self, schedule: Schedule, loop: VirtualLoop) -> None:
        self.loop = loop
        self.disk = Disk()
        self.violations: list[str] = []
        chance = Random(schedule.seed)
        self.wires = [
            Wire(Receiver(is_full=full, declares=declares), self.violations.append, chance)
            for full, declares in schedule.receivers
        ]
        self.written = {f"s{number}": Written() for number in range(schedule.sessions)}
        self.names = list(self.written)
        self.exporter: Exporter | None = None
        self.clone: Exporter | None = None
        self.backup: Databases | None = None
        self.restored: set[str] = set()
        """Sessions whose deletion was taken back since the copy of the state directory was made."""
        self.outdated: set[str] = set()
        """Sessions of which the exporter may remember a deletion that was taken back, because its state went back."""
        self.restarts = 0

    # ---- the exporter

    def start(self, databases: Databases) -> None:
        self.exporter = self._launch(databases)

    def _launch(self, databases: Databases) -> Exporter:
        made = Exporter(self.disk, self.names, self.wires, databases)
        made.tokens = [wire.receiver.token for wire in self.wires]
        made.store.watch = lambda session, sink, mark, ids: self._committed(made, session, sink, mark, ids)
        made.store.watch_rest = lambda session, sink, kept: self._kept(made, session, sink, kept)
        made.start()
        self.restarts += 1
        return made

    async def running(self) -> Exporter:
        """Return the exporter, started again if it has died."""
        if self.exporter is not None and self.exporter.images is not None:
            await self._bury()
        assert self.exporter is not None
        return self.exporter

    async def _bury(self, databases: Databases | None = None) -> None:
        dead = self.exporter
        assert dead is not None
        dead.kill()
        assert dead.images is not None
        await asyncio.sleep(0)
        for wire in self.wires:
            wire.known.clear()
        await asyncio.sleep(0)
        dead.close()
        self.start(databases or dead.images)

    # ---- what happens to the file

    def _lines(self, name: str, count: int, size: int, kind: str = "e") -> list[tuple[bytes, str | None]]:
        written = self.written[name]
        numbers = range(written.count + 1, written.count + count + 1)
        written.count += count
        return [(line_of(f"{kind}{number}", size), f"{kind}{number}") for number in numbers]

    def _append(self, name: str, lines: Iterable[tuple[bytes, str | None]]) -> None:
        written = self.written[name]
        if name not in self.disk.files:
            self.disk.put(name)
        if written.rest is not None:
            rest, begun = written.rest
            written.rest = None
            self.disk.write(name, rest, begun)
            written.lines.append((line_of(begun), begun))
        for line, identity in lines:
            self.disk.write(name, line, identity)
            written.lines.append((line, identity))
        written.unseen = True

    def append(self, number: int, count: int, size: int) -> None:
        self._append(self.names[number], self._lines(self.names[number], count, size))

    def poison(self, number: int) -> None:
        name = self.names[number]
        self._append(name, self._lines(name, 1, 0, POISON) + self._lines(name, 1, 0, UNSAFE))

    def ephemeral(self, number: int) -> None:
        self._append(self.names[number], [(event("live", ephemeral=True), None), (b"no json", None)])

    def torn(self, number: int, at: int) -> None:
        name = self.names[number]
        self._append(name, [])
        [(line, identity)] = self._lines(name, 1, 0)
        assert identity is not None
        self.disk.files[name].data += line[:at]
        self.written[name].rest = (line[at:], identity)

    def rewrite(self, number: int, keep: int, count: int, how: str) -> None:
        """Replace the file, or overwrite it in place, by its first lines, others, and maybe one that was cut off."""
        name = self.names[number]
        written = self.written[name]
        cut = [(line, one) for line, one in written.lines[keep:] if one is not None]
        lines = written.lines[:keep] + self._lines(name, count, 0)
        back = written.removed[:1] if "regret" in how else []
        lines += back
        written.removed = written.removed[len(back) :] + cut
        written.moved |= {one for _, one in cut}
        for wire in self.wires:
            if not wire.receiver.is_full:
                for known in (wire.firm, wire.known):
                    known.get(name, set()).difference_update(one for _, one in cut + back)
        written.rest, written.lines = None, []
        self.disk.put(name, in_place="in place" in how, reuse="reuse" in how)
        self._append(name, lines)

    async def look(self) -> None:
        exporter = await self.running()
        for one in (exporter, self.clone) if self.clone is not None else (exporter,):
            for name in self.names:
                one.look(name)
        for written in self.written.values():
            written.unseen = False

    # ---- what happens to the exporter

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def kill(self) -> None:
        await self.running()
        await self._bury()

    async def stop(self) -> None:
        await (await self.running()).stop()
        await self._bury()

    async def crash(self, when: str) -> None:
        """Let the exporter die before or after its next transaction."""
        (await self.running()).store.crash = when

    async def lose_marks(self) -> None:
        exporter = await self.running()
        exporter.kill()
        assert exporter.images is not None
        self._forget(self.wires)
        await self._bury(Databases(None, exporter.images.quarantine))

    async def keep(self) -> None:
        """Copy the state directory."""
        exporter = await self.running()
        self.backup = Databases(exporter.store.copied(), exporter.quarantine.copied())
        self.restored.clear()

    async def roll_back(self) -> None:
        """Start with the copy of the state directory: what a power loss or a restored backup leaves."""
        if self.backup is not None:
            await self.running()
            self._forget(self.wires)
            self.outdated |= self.restored  # the copy may remember a deletion that a person took back since
            await self._bury(self.backup.copied())

    async def twin(self) -> None:
        """Start a second exporter from a copy of the state directory, beside the first one."""
        if self.clone is None and self.backup is not None:
            self._excuse(self.wires)
            for wire in self.wires:
                wire.is_shared = True
            self.clone = self._launch(self.backup.copied())

    async def disk_full(self, full: int) -> None:
        (await self.running()).store.full = bool(full)

    async def doubt(self) -> None:
        for _, run, lane in (await self.running()).lanes():
            if lane.doubt():
                run.ask(lane)

    async def start_over(self, number: int) -> None:
        exporter = await self.running()
        for wire, run, lane in exporter.lanes():
            if lane.file.session == self.names[number] and not (exporter.store.full or exporter.store.crash):
                wire.forget(self.names[number])
                wire.rolled.discard(self.names[number])
                wire.unmarked.add(self.names[number])
                self.restored.add(lane.file.session)
                lane.start_over()
                run.ask(lane)

    # ---- what happens to a receiver, or on the way to it

    def fault(self, number: int, kind: str) -> None:
        wire = self.wires[number]
        if kind == "400" and "400" in wire.faults:
            return  # refused twice in a row, an event would rightly be quarantined
        if kind == "410" and wire.receiver.declares and wire.receiver.is_full:
            return  # such a receiver means it
        if kind == "empty" and not wire.receiver.is_full:
            return  # an acceptance at the floor
        wire.faults.append(kind)

    def _forget(self, wires: Iterable[Wire]) -> None:
        """Expect that everything may be sent again: what was remembered of it is gone."""
        for wire in wires:
            wire.unmarked |= set(self.names)
            for name in self.names:
                wire.forget(name)

    def _excuse(self, wires: Iterable[Wire], *, rolled_back: bool = False) -> None:
        """Expect that nobody knows what is there, until the receiver is asked."""
        for one in wires:
            one.rolled = set(self.names) - one.excused | one.rolled if rolled_back else set()
            one.excused |= set(self.names)
        self._forget(wires)

    def lose(self, number: int, how: str) -> None:
        """Let a receiver forget everything, go back to a backup, or delete a session."""
        wire = self.wires[number]
        receiver = wire.receiver
        match how:
            case "backup":
                receiver.keep_backup()
                return
            case "rollback":
                if not receiver.is_full or not receiver.restore_backup(keeps_epoch=False):
                    return
            case "reset":
                receiver.reset()
            case _:
                receiver.delete(self.names[0])
        self._excuse([wire], rolled_back=how == "rollback")
        for written in self.written.values():
            written.moved |= {one for _, one in written.lines if one is not None}

    def revoke(self, number: int) -> None:
        """Let a receiver refuse the token from now on."""
        self.wires[number].receiver.token += 1

    # ---- what must hold

    @staticmethod
    def _kept(exporter: Exporter, session: str, sink: int, kept: set[str]) -> None:
        """Note what counts as delivered. At the floor nothing is hidden; what comes back to the file is sent again."""
        for wire, run, _ in exporter.lanes():
            if run.sink_state.sink_id == sink and not wire.receiver.is_full:
                wire.firm.get(session, set()).intersection_update(kept)

    def _committed(self, exporter: Exporter, session: str, sink: int, mark: Mark, ids: list[str]) -> None:
        """Check a transaction: it remembers nothing that the receiver has not, nor a place behind what is pending."""
        run = next(one for one in exporter.runs if one.sink_state.sink_id == sink)
        wire = exporter.wires[exporter.runs.index(run)]
        ever = wire.receiver.ever.get(session, set())
        if unknown := set(ids) - ever:
            self.violations.append(f"remembered as delivered, and never stored there: {sorted(unknown)}")
        file = self.disk.files.get(session)
        moved = file is not None and mark.position != run.lanes[session].mark.position
        wire.remembered(session, {*ids, *(file.ids(mark.position.offset) if file is not None and moved else ())})
        if file is None or mark.identity is None or mark.identity.inode != file.number:
            return
        offset = mark.position.offset
        before = bytes(file.data[max(0, offset - 256) : offset])
        if mark.position == Position(offset, tail_hash(before)) and not self.written[session].unseen:
            passed = set(file.ids(offset)) - ever
            if passed and (passed := passed - run.sink_state.quarantined_ids(session)):
                self.violations.append(f"the mark moved past {sorted(passed)}")

    def check(self) -> None:
        for exporter in (self.exporter, self.clone):
            if exporter is None or exporter.images is not None:
                continue
            for wire, _, lane in exporter.lanes():
                if lane.progress.problem == "defect":
                    self.violations.append(f"a defect: {lane.progress.why}")
                self._check_claim(wire, lane, exporter)
            if excess := exporter.excess():
                self.violations.append(excess)
        self.violations += self.loop.errors
        if self.violations:
            raise ViolationError(self.violations[0])

    def _check_claim(self, wire: Wire, lane: Lane, exporter: Exporter) -> None:
        """Check that a session that is said to be up to date is."""
        name = lane.file.session
        if not lane.settled or lane.busy or lane.asked or lane.in_doubt or lane.file.identity is None:
            return
        if lane.stopped:
            is_deleted = any(one.partition("~")[0] == name for one in wire.receiver.deleted)
            if not is_deleted and name not in wire.excused | self.outdated:
                self.violations.append(f"{name} is said to be deleted there and is not")
            return
        wire.rests(name)
        # What a restored store has lost is excused, until the exporter has heard of the store's age.
        heard = lane.sink_state.sink.epoch == str(wire.receiver.epoch) and not lane.sink_state.is_news
        is_claimed = name in wire.rolled and heard and lane.mark.is_confirmed
        if (is_claimed or name not in wire.excused) and not self.written[name].unseen:
            wanted, visible = set(self.disk.files[name].ids()), set(wire.receiver.held(name).visible())
            lacking = wanted - visible
            if lacking and (lacking := lacking - exporter.quarantine.ids(name, lane.sink_state.sink.name)):
                self.violations.append(f"{name} is said to be up to date, and lacks {sorted(lacking)}")
            sure = wire.receiver.is_full and name not in wire.excused | wire.unmarked
            # After a kill it says so only of what was confirmed since; an empty file says nothing of what was there.
            said = lane.mark.is_confirmed or not exporter.after_kill
            if sure and wanted and said and (extra := visible - wanted):
                self.violations.append(f"{name} is said to be up to date, and shows {sorted(extra)}")

    # ---- the end

    async def settle(self) -> None:
        """Let all be well; then everything has to be delivered, once and in order, within a bounded time."""
        await self._end_clone()
        exporter = await self.running()
        exporter.store.full, exporter.store.crash = False, None
        exporter.tokens = [wire.receiver.token for wire in self.wires]
        for wire in self.wires:
            wire.faults.clear()
            await asyncio.sleep(max(0.0, wire.quiet_from - self.loop.now))
        for name in self.names:
            # Nobody notices soon what was lost of an idle session, but that a store was restored, once it has answered.
            first = name == self.names[0]
            doubted = any(
                name in wire.excused - wire.rolled | wire.unmarked or (wire.rolled and first) for wire in self.wires
            )
            if doubted or (name in self.disk.files and not self.disk.files[name].ids()):
                self._append(name, self._lines(name, 1, 0))
        await self.look()
        await self._rest(exporter)
        await self._confirmed(exporter)
        for wire, run, lane in exporter.lanes():
            if lane.stopped:
                wire.forget(lane.file.session)
                self.restored.add(lane.file.session)
                lane.start_over()
                run.ask(lane)
        await self._rest(exporter)
        for wire, run, lane in exporter.lanes():
            if self._differs_unseen(wire, lane.file.session, exporter):
                await lane.repair([])
                run.ask(lane)
        await self._rest(exporter)
        self.outdated.clear()
        for wire in self.wires:
            wire.excused.clear()
            wire.rolled.clear()
            wire.unmarked.clear()
            wire.is_shared = False
        self.check()
        for wire, _, lane in exporter.lanes():
            self._check_end(wire, lane, exporter)
        if self.violations:
            raise ViolationError(self.violations[0])

    async def _end_clone(self) -> None:
        clone, self.clone = self.clone, None
        if clone is not None:
            clone.kill()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            clone.close()

    async def _rest(self, exporter: Exporter) -> None:
        pause, until = 0.05, self.loop.now + PATIENCE_SECONDS
        while not exporter.at_rest():
            await asyncio.sleep(pause)
            pause = min(5.0, pause * 3)
            if self.violations or self.loop.errors:
                self.check()
            if self.loop.now > until:
                raise ViolationError("all is well, and nothing is delivered")

    async def _confirmed(self, exporter: Exporter) -> None:
        """Wait until every receiver that was restored, or all after a kill, has confirmed every session that it has."""
        until = self.loop.now + PATIENCE_SECONDS
        while any(
            (wire.rolled or exporter.after_kill)
            and lane.sink_state.sink.capabilities.digest
            and lane.mark.delivered
            and not lane.stopped
            and not lane.mark.is_confirmed
            for wire, _, lane in exporter.lanes()
        ):
            await asyncio.sleep(5.0)
            self.check()
            if self.loop.now > until:
                raise ViolationError("what a receiver has is not confirmed")

    def _differs_unseen(self, wire: Wire, name: str, exporter: Exporter) -> bool:
        """Tell whether a receiver lost as many events as it has too many: its count shows nothing, its digest would."""
        if name not in wire.excused | wire.unmarked or not wire.receiver.is_full:
            return False
        wanted = set(self.disk.files[name].ids()) - exporter.quarantine.ids(name, "")
        visible = set(wire.receiver.held(name).visible())
        lane = exporter.runs[self.wires.index(wire)].lanes[name]
        return visible != wanted and len(visible) == lane.mark.delivered

    def _check_end(self, wire: Wire, lane: Lane, exporter: Exporter) -> None:
        name, held = lane.file.session, wire.receiver.held(lane.file.session)
        written = self.written[name]
        wanted, visible = self.disk.files[name].ids(), held.visible()
        quarantined = exporter.quarantine.ids(name, lane.sink_state.sink.name)
        if wrongly := [one for one in quarantined - wire.refused if not one.startswith((POISON, UNSAFE))]:
            self.violations.append(f"quarantined without a reason: {sorted(wrongly)}")
        if missing := set(wanted) - set(visible) - quarantined:
            self.violations.append(f"lost: {sorted(missing)}")
        if wire.receiver.is_full and (extra := set(visible) - set(wanted)):
            self.violations.append(f"shown and in the file no more: {sorted(extra)}")
        # What a receiver refuses, and takes when it is sent again, comes late.
        fixed = [one for one in wanted if one not in written.moved | wire.refused_alone]
        if not common_order(fixed, held.bodies):
            self.violations.append(f"out of order: {[one for one in held.bodies if one in fixed]}")
        bodies = {one: line.replace(SECRET, MASK) for line, one in written.lines if one is not None}
        if any(held.bodies[one] != bodies[one] for one in bodies.keys() & held.bodies.keys()):
            self.violations.append("stored with other bytes")
        if wire.receiver.is_full and held.copies != len(held.bodies):
            self.violations.append("stored twice")

    def finish(self, playing: "asyncio.Task[None]") -> None:
        """Stop whatever still runs and release everything."""
        tasks = [task for task in asyncio.all_tasks(self.loop) if not task.done()]
        for task in tasks:
            task.cancel()
        for exporter in (self.exporter, self.clone):
            if exporter is not None:
                exporter.kill()
        if tasks:
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        for exporter in (self.exporter, self.clone):
            if exporter is not None:
                exporter.close()
