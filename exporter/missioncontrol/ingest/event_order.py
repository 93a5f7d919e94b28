"""The file order of events that arrive in another order, from the requests and the parents of the events.

Two things tell the order of a file. A request holds its events in file order, so a new event goes behind the
one before it in the request. And each line names the line before it as its parent, so a part that came late is put
between its neighbours. A session whose lines do not follow their parents is ordered by the requests alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

STEP: Final = 1 << 20
"""The distance between the places of two events in sequence, so that others fit between."""


@dataclass(frozen=True, slots=True)
class Item:
    """One event: its key, that of its parent, and its timestamp."""

    key: int
    parent: int | None
    timestamp: str


def arrange(shown: Sequence[Item], batch: Iterable[Item], *, chained: bool) -> list[Item]:
    """Return the events in file order: those shown, which are in order, and those of the batch that are new."""
    merged = merge(shown, batch)
    return thread(merged) if chained else merged


def merge(shown: Sequence[Item], batch: Iterable[Item]) -> list[Item]:
    """Put what is new in the batch behind (or, at its beginning, before) the known events around it.

    What comes last in the batch and is not older than everything known goes to the end: a line that a file repeats is
    not where the file went on.
    """
    known = {item.key for item in shown}
    leading: list[Item] = []
    before: dict[int, list[Item]] = {}
    behind: dict[int, list[Item]] = {}
    anchor: int | None = None
    for item in batch:
        if item.key not in known:
            (leading if anchor is None else behind.setdefault(anchor, [])).append(item)
            continue
        if anchor is None and leading:
            before[item.key], leading = leading, []
        anchor = item.key
    if not before and not behind:
        return [*shown, *leading]
    newest: list[Item] = []
    if anchor in behind and shown and all(item.timestamp >= shown[-1].timestamp for item in behind[anchor]):
        newest = behind.pop(anchor)
    merged: list[Item] = []
    for item in shown:
        merged += before.get(item.key, ())
        merged.append(item)
        merged += behind.get(item.key, ())
    return merged + leading + newest


def thread(items: Sequence[Item]) -> list[Item]:
    """Put every event behind its parent. What begins the file comes first, then parts without it, oldest first."""
    keys = {item.key for item in items}
    children: dict[int, list[Item]] = {}
    roots: list[tuple[bool, str, int]] = []
    for index, item in enumerate(items):
        if item.parent is None or item.parent not in keys:
            is_orphan = item.parent is not None
            roots.append((is_orphan, item.timestamp if is_orphan else "", index))
        else:
            children.setdefault(item.parent, []).append(item)
    threaded: list[Item] = []
    for _, _, index in sorted(roots):
        waiting = [items[index]]
        while waiting:
            item = waiting.pop()
            threaded.append(item)
            waiting.extend(reversed(children.pop(item.key, ())))
    if len(threaded) < len(items):  # a cycle of parents
        placed = {item.key for item in threaded}
        threaded += (item for item in items if item.key not in placed)
    return threaded


def places(order: Sequence[int | None]) -> list[int] | None:
    """Return a place for each, given those that have one; None when they must all be given out anew."""
    given: list[int] = []
    low, waiting = 0, 0
    for place in order:
        if place is None:
            waiting += 1
            continue
        if place - low <= waiting or place <= low:
            return None
        given += _between(low, place, waiting)
        given.append(place)
        low, waiting = place, 0
    return given + [low + STEP * (number + 1) for number in range(waiting)]


def _between(low: int, high: int, count: int) -> list[int]:
    return [low + (high - low) * (number + 1) // (count + 1) for number in range(count)]
