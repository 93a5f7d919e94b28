"""Makes schedules from seeds, runs them, and finds the smallest part of one that still fails."""

import multiprocessing
from dataclasses import dataclass, replace
from itertools import accumulate
from random import Random
from typing import Final

from tests.simulation.clock import StalledError, virtual_time
from tests.simulation.disk import mounted
from tests.simulation.exporters import Databases
from tests.simulation.network import FAULTS
from tests.simulation.world import Schedule, Step, ViolationError, World

_RECEIVERS: Final = (
    ((True, True),),
    ((True, False),),
    ((False, False),),
    ((True, True), (False, False)),
)
_OFTEN: Final = ("lost", "answer lost", "answer lost", "answer lost", "answer lost", "503", "503", "no ack")
_SEEN_AT_ONCE: Final = 0.7
_STRUCK: Final = 0.2
_PART: Final = 250
_WAITS: Final = (0.005, 0.02, 0.05, 0.2, 1.0, 10.0)


def schedule(seed: int) -> Schedule:
    """Return the schedule of a seed."""
    chance = Random(seed)
    receivers, sessions = chance.choice(_RECEIVERS), chance.choice((1, 1, 2))
    steps = [_step(chance, sessions, len(receivers)) for _ in range(chance.randint(4, 16))]
    for place in range(len(steps) - 1, -1, -1):
        is_struck = steps[place][0] == "rewrite" and chance.random() < _STRUCK
        before = _strike(chance, steps[place], len(receivers)) if is_struck else []
        if steps[place][0] in ("append", "rewrite") and chance.random() < _SEEN_AT_ONCE:
            steps[place + 1 : place + 1] = [("look",), ("wait", chance.choice(_WAITS))]
        steps[place:place] = before
    return Schedule(seed, receivers, sessions, (("append", 0, chance.randint(1, 5), 0), ("look",), *steps))


def _strike(chance: Random, rewrite: Step, receivers: int) -> list[Step]:
    """Return what goes wrong just before a rewrite: the answer to what is cut off next, or that to the rewind."""
    receiver = chance.randrange(receivers)
    if chance.random() < 0.5:
        return [("fault", receiver, chance.choice((chance.choice(_OFTEN), "empty")))]
    return [("append", rewrite[1], 4, 0), ("fault", receiver, "answer lost"), ("look",), ("wait", 0.2)]


def _step(chance: Random, sessions: int, receivers: int) -> Step:
    session, receiver = chance.randrange(sessions), chance.randrange(receivers)
    kind = chance.choices(_KINDS, cum_weights=_WEIGHTS)[0]
    match kind:
        case "append":
            return kind, session, chance.randint(1, 5), chance.choice((0, 0, 300))
        case "torn":
            return kind, session, chance.randint(1, 60)
        case "poison" | "ephemeral" | "start_over":
            return kind, session
        case "rewrite":
            how = chance.choice(("replaced", "reuse", "in place")) + chance.choice(("", "", " regret"))
            keep = chance.choice((chance.randint(0, 6), -chance.randint(1, 4)))  # of its begin, or all but the last
            return kind, session, keep, chance.choice((0, 0, 0, 1, 2, 4, 6)), how
        case "wait":
            return kind, chance.choice(_WAITS)
        case "crash":
            return kind, chance.choice(("before", "after"))
        case "disk_full":
            return kind, chance.randrange(2)
        case "fault":
            return kind, receiver, chance.choice(_OFTEN + FAULTS)
        case "lose":
            return kind, receiver, chance.choice(("backup", "rollback", "rollback", "reset", "delete"))
        case "revoke":
            return kind, receiver
        case _:
            return (kind,)


_STEPS: Final[dict[str, float]] = {
    **{"append": 6, "torn": 1, "poison": 0.5, "ephemeral": 1, "rewrite": 3, "look": 3, "wait": 5},
    **{"kill": 1.5, "stop": 0.5, "crash": 1.5, "lose_marks": 0.3, "keep": 0.7, "roll_back": 0.5, "twin": 0.4},
    **{"disk_full": 0.5, "doubt": 0.5, "start_over": 0.3, "fault": 7, "lose": 1, "revoke": 0.2, "settle": 1},
}
_KINDS: Final = (*_STEPS,)
_WEIGHTS: Final = (*accumulate(_STEPS.values()),)


@dataclass(frozen=True, slots=True)
class Result:
    """How a schedule ended. `why` is the violation, None where everything held."""

    why: str | None
    requests: int = 0
    restarts: int = 0


async def _play(world: World, steps: tuple[Step, ...]) -> None:
    world.start(Databases())
    for name, *values in steps:
        done = getattr(world, str(name))(*values)
        if done is not None:
            await done
        world.check()
    await world.settle()
    exporter = await world.running()
    exporter.kill()


def run(given: Schedule) -> Result:
    """Play a schedule in its own time."""
    with virtual_time(given.seed) as loop:
        world = World(given, loop)
        why = None
        with mounted(world.disk):
            playing = loop.create_task(_play(world, given.steps))
            try:
                loop.run_until_complete(playing)
            except (ViolationError, StalledError) as error:
                why = str(error) or "everybody waits for ever"
            world.finish(playing)
        return Result(why, sum(wire.requests for wire in world.wires), world.restarts)


def smallest(given: Schedule) -> Schedule:
    """Return a schedule with as few steps as possible that fails as well."""
    steps, size = list(given.steps), max(1, len(given.steps) // 2)
    while True:
        first, shrunk = 0, False
        while first < len(steps):
            tried = steps[:first] + steps[first + size :]
            if run(replace(given, steps=tuple(tried))).why is not None:
                steps, shrunk = tried, True
            else:
                first += size
        if size == 1 and not shrunk:
            return replace(given, steps=tuple(steps))
        size = max(1, size // 2)


def told(given: Schedule) -> str:
    """Describe a schedule and how it fails, in a form that can be run again."""
    lines = [f"seed {given.seed}: {run(given).why}", f"  receivers {given.receivers}, {given.sessions} sessions"]
    return "\n".join([*lines, *(f"  {step!r}," for step in given.steps)])


def _play_some(seeds: range) -> tuple[list[int], int, int, int]:
    """Return the seeds that fail, and how many schedules, requests and starts of an exporter there were."""
    results = [(seed, run(schedule(seed))) for seed in seeds]
    failed = [seed for seed, result in results if result.why is not None]
    return failed, len(seeds), sum(one.requests for _, one in results), sum(one.restarts for _, one in results)


def play(first: int, count: int, *, workers: int) -> tuple[list[int], int, int, int]:
    """Play schedules from a seed on, in several processes; stop soon after some fail."""
    parts = [range(one, min(one + _PART, first + count)) for one in range(first, first + count, _PART)]
    failed, played, requests, starts = list[int](), 0, 0, 0
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for wrong, *numbers in pool.imap_unordered(_play_some, parts):
            failed += wrong
            played, requests, starts = (a + b for a, b in zip((played, requests, starts), numbers, strict=True))
            if failed:
                break
    return sorted(failed), played, requests, starts
