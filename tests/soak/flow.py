"""A daemon and two receivers while a hundred sessions are written, with whatever goes wrong: does anything grow?

The first part of the run kills the daemon and the receiver, copies the receiver's store while it is open and puts the
copy back. Then the same processes go on among outages, and what they take is judged. At the end everything must have
been delivered. `python -m tests.soak.flow` runs twenty minutes, in which as much happens as else in two hours.
"""

import argparse
import json
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.program.driver import Machine, Running
from tests.program.floor import GOOD, Reply
from tests.program.session_files import SessionFile, event_id
from tests.program.team import Team
from tests.program.waiting import until
from tests.soak.figures import Series, descriptors, memory_bytes, other_bytes
from tests.soak.flapping import MODES, Flapping

SESSIONS: Final = 100
LIVE: Final = 20
HISTORY_EVENTS: Final = 120
EVENTS_PER_SECOND: Final = 2
"""Of each live session: about six times what an agent at work writes."""
_SETTLED: Final = 0.4
"""From which part of the run on is judged: nothing is started after that."""
_SETTLED_MAX: Final = 0.6
_KEPT: Final = ("marks.db", "quarantine.db")
_MIB: Final = 1 << 20
_DEFAULT: Final = Path(".cache", "soak", "flow.json")


@dataclass(slots=True)
class Author:
    """Writes the sessions. `ids` are those of a live session's events, in the order of its file."""

    machine: Machine
    chance: Random
    live: list[SessionFile] = field(default_factory=list)
    ids: dict[str, list[str]] = field(default_factory=dict)
    shown: int = 0
    """How many durable events all files hold now."""

    def begin(self) -> None:
        """Write what is there before the daemon starts."""
        for number in range(SESSIONS):
            session = self.machine.session()
            if number < LIVE:
                self.live.append(session)
            self.add(session, 1 if number < LIVE else HISTORY_EVENTS)

    def add(self, session: SessionFile, count: int) -> None:
        lines = [session.event() for _ in range(count)]
        session.append([*lines, session.event(ephemeral=True)])
        self.ids.setdefault(session.id, []).extend(map(event_id, lines))
        self.shown += count

    def rewind(self) -> None:
        """Take the last events of one session out of its file, as a person does."""
        session = self.chance.choice(self.live)
        kept = session.durable()[:-3]
        self.shown -= len(self.ids[session.id]) - len(kept)
        self.ids[session.id] = list(map(event_id, kept))
        session.replace(kept)


class Flow:
    """The run. `prefix` starts the daemon with a defect."""

    def __init__(self, root: Path, seconds: float, beat_seconds: float, prefix: Sequence[str] = ()) -> None:
        self.seconds, self._beat, self._prefix = seconds, beat_seconds, prefix
        self.machine = Machine(root).with_team().with_floor(keep_bytes=False)
        self._proxy = Flapping(self._team.port)
        self.machine.tables["team"]["url"] = f"http://127.0.0.1:{self._proxy.port}/agents"
        self._chance = Random(1)
        self._author = Author(self.machine, self._chance)
        self._daemon: Running | None = None
        self._copy = root / "copy.db"
        per_second = LIVE * EVENTS_PER_SECOND
        self.series = {
            "daemon memory": Series("daemon memory", "MiB", _MIB, 12.0),
            "receiver memory": Series("receiver memory", "MiB", _MIB, 16.0),
            "daemon descriptors": Series("daemon descriptors", "", 1, 4.0),
            "receiver descriptors": Series("receiver descriptors", "", 1, 8.0),
            "state, not kept events": Series("state, not kept events", "MiB", _MIB, 4.0),
            "lag at the receiver": Series("lag at the receiver", "events", 1, per_second * 5.0),
            "lag at the floor": Series("lag at the floor", "events", 1, per_second * 5.0),
        }
        self.happened: list[tuple[float, str]] = []

    @property
    def _team(self) -> Team:
        assert self.machine.team is not None
        return self.machine.team

    @property
    def judged(self) -> range:
        """The points in which nothing was started any more, and what had piled up until then was delivered."""
        lag = self.series["lag at the receiver"]
        first, last = (round(len(lag.points) * part) for part in (_SETTLED, _SETTLED_MAX))
        return range(next((n for n in range(first, last) if lag.points[n] <= lag.bound), last), len(lag.points))

    def run(self) -> None:
        """Let it all happen, and wait for everything at the end."""
        self._author.begin()
        self._start()
        begun = time.monotonic()
        plan = self._plan()
        while (now := time.monotonic() - begun) < self.seconds:
            while plan and plan[0][0] <= now:
                _, name, what = plan.pop(0)
                self.happened.append((now, name))
                what()
            self._write(now)
            self._measure()
            time.sleep(max(0.0, self._beat - (time.monotonic() - begun - now)))
        self._finish()

    def close(self) -> None:
        self._proxy.close()
        self.machine.close()

    # ---- what happens

    def _plan(self) -> list[tuple[float, str, Callable[[], None]]]:
        """Return what happens when: kills and the copy in the first part, outages all the time."""
        first, period = self.seconds * (_SETTLED - 0.1), max(5.0, self.seconds / 40)
        plan: list[tuple[float, str, Callable[[], None]]] = []
        rounds = max(1, int(first / 60))
        for number in range(rounds):
            at = first * (number + 0.3) / rounds
            plan += [
                (at, "daemon killed", self._kill),
                (at + first / rounds / 3, "receiver killed", self._kill_receiver),
            ]
        plan += [(first * 0.25, "store copied", self._keep), (first * 0.9, "store restored", self._restore)]
        for number in range(int(self.seconds / period)):
            at, mode = period * (number + 0.4), MODES[number % len(MODES)]
            plan.append((at, mode, lambda mode=mode: self._proxy.turn(mode)))  # type: ignore[misc]  # mypy: lambdas
            plan.append((at + period * 0.3, "pass", lambda: self._proxy.turn("pass")))
            plan += [(at + period * 0.2, "floor 503", lambda: self._floor(503)), (at + period * 0.5, "", self._floor)]
        return sorted(plan, key=lambda one: one[0])

    def _start(self) -> None:
        self._daemon = self.machine.start("run", prefix=self._prefix)

    def _kill(self) -> None:
        assert self._daemon is not None
        self._daemon.kill()
        self._start()

    def _kill_receiver(self) -> None:
        self._team.process.kill()
        self._team.process.communicate()
        self._team.start()

    def _keep(self) -> None:
        with closing(sqlite3.connect(self._team.database)) as there, closing(sqlite3.connect(self._copy)) as copy:
            there.backup(copy)

    def _restore(self) -> None:
        self._team.process.kill()
        self._team.process.communicate()
        for ending in ("-wal", "-shm"):
            self._team.database.with_name(self._team.database.name + ending).unlink(missing_ok=True)
        shutil.copyfile(self._copy, self._team.database)
        self._team.start()

    def _floor(self, status: int = 200) -> None:
        assert self.machine.floor is not None
        reply = GOOD if status == 200 else Reply(status)
        self.machine.floor.answer = lambda _: reply

    def _write(self, now: float) -> None:
        wanted = 1 + round(now * EVENTS_PER_SECOND)
        for session in self._author.live:
            if (missing := wanted - len(self._author.ids[session.id])) > 0 and self._chance.random() < 0.8:
                self._author.add(session, min(missing, 20))
        if self._chance.random() < 0.05 and now > self._beat * 4:
            self._author.rewind()

    # ---- what is measured

    def _measure(self) -> None:
        assert self._daemon is not None and self.machine.floor is not None
        assert self._daemon.alive, self._daemon.text()
        daemon, receiver = self._daemon.process.pid, self._team.process.pid
        stored = self.machine.floor.stored
        ids = self._author.ids
        for name, value in {
            "daemon memory": memory_bytes(daemon),
            "receiver memory": memory_bytes(receiver),
            "daemon descriptors": descriptors(daemon),
            "receiver descriptors": descriptors(receiver),
            "state, not kept events": other_bytes(self.machine.state, *_KEPT),
            "lag at the receiver": self._author.shown - self._held(),
            "lag at the floor": sum(_behind(ids[one.id], stored.get(one.id, {})) for one in self._author.live),
        }.items():
            self.series[name].add(value)

    def _held(self) -> float:
        try:
            with closing(sqlite3.connect(f"{self._team.database.as_uri()}?mode=ro", uri=True)) as database:
                return float(database.execute("SELECT coalesce(sum(count), 0) FROM sessions").fetchone()[0])
        except sqlite3.Error:
            return float("nan")

    def _finish(self) -> None:
        """Let all be well; every session goes on by an event, and everything has to be there."""
        self._proxy.turn("pass")
        self._floor()
        for session in self.machine.sessions:
            self._author.add(session, 1)
        until(lambda: self._held() == self._author.shown, "everything at the receiver", seconds=180.0)
        self.machine.assert_delivered()

    # ---- the report

    def grown(self) -> list[str]:
        """Return what rises further than its bound."""
        return [name for name, one in self.series.items() if one.rise(self.judged) > one.bound]

    def told(self) -> str:
        """Return the plot."""
        counts: dict[str, int] = {}
        for _, name in self.happened:
            counts[name] = counts.get(name, 0) + 1
        what = ", ".join(f"{count} x {name}" for name, count in sorted(counts.items()) if name)
        lines = [one.told(self.judged) for one in self.series.values()]
        return "\n".join([f"{self.seconds:.0f} s, {SESSIONS} sessions, {self._author.shown} events; {what}", *lines])

    def kept(self) -> dict[str, Any]:
        """Return everything that was measured."""
        judged = self.judged
        series = {
            name: {"unit": one.unit, "points": one.points, "rise": one.rise(judged), "bound": one.bound}
            for name, one in self.series.items()
        }
        return {
            "seconds": self.seconds,
            "events": self._author.shown,
            "judged_from": judged.start,
            "happened": self.happened,
            "series": series,
        }


def _behind(ids: list[str], stored: dict[str, bytes]) -> int:
    """Return how many of the last events are not there."""
    return next((n for n, identity in enumerate(reversed(ids)) if identity in stored), len(ids))


def soak(seconds: float, beat_seconds: float, prefix: Sequence[str] = ()) -> Flow:
    """Run for so long in a directory of its own, and return what was seen."""
    root = Path(tempfile.mkdtemp(prefix="xs-")).resolve()
    flow = Flow(root, seconds, beat_seconds, prefix)
    try:
        flow.run()
        return flow
    finally:
        flow.close()
        shutil.rmtree(root, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.flow", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1_200.0)
    parser.add_argument("--json", type=Path, default=_DEFAULT, help="where to keep what was measured")
    given = parser.parse_args()
    flow = soak(given.seconds, 1.0)
    print(flow.told())
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps(flow.kept(), indent=1))
    return 1 if flow.grown() else 0


if __name__ == "__main__":
    sys.exit(main())
