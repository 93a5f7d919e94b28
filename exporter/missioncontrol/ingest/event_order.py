"""Gives new events their places in the session, so that its order is the file's in any order of arrival.

Two things tell the order of a file. A request holds its events in file order, so a new event goes behind the
one before it in the request. And each line names the line before it as its parent, so a part that came late is put
between its neighbours. A session whose lines do not follow their parents is ordered by the requests alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from exporter.missioncontrol.ingest.batch import UploadedEvent, key_of
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.session_row import SessionRow, shown_events

STEP: Final = 1 << 20
"""The distance between the places of two events in sequence, so that others fit between."""
_KEYS_PER_QUERY: Final = 500
Known = dict[str, tuple[int, bool, bytes]]


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
    """Return a place for each, given those that have one; None when all places must be assigned again."""
    given: list[int] = []
    low, waiting = 0, 0
    for place in order:
        if place is None:
            waiting += 1
            continue
        if place - low <= waiting or place <= low:
            return None
        given += [low + (place - low) * (number + 1) // (waiting + 1) for number in range(waiting)]
        given.append(place)
        low, waiting = place, 0
    return given + [low + STEP * (number + 1) for number in range(waiting)]


def slices(keys: Iterable[int]) -> Iterator[tuple[int, ...]]:
    """Yield the keys in tuples small enough for one query."""
    remaining = iter(keys)
    while some := tuple(islice(remaining, _KEYS_PER_QUERY)):
        yield some


def known(database: Database, n: int, keys: dict[str, int]) -> Known:
    """Return row, hidden and hash of those ids, given with their keys, that the session has."""
    found: Known = {}
    for some in slices(keys.values()):
        condition, values = database.among("key", some)
        rows = database.execute(
            f"SELECT id, n, hidden, sha256 FROM events WHERE session = ? AND {condition}",  # noqa: S608  marks only
            (n, *values),
        )
        found.update((id, (row, bool(hidden), hashed)) for id, row, hidden, hashed in rows if id in keys)
    return found


def place_new(
    database: Database, session: SessionRow, sequence: Sequence[UploadedEvent], new: dict[str, UploadedEvent]
) -> tuple[list[int], bool]:
    """Return the place of each new event, in the batch's order, and whether all follow the stored events.

    `sequence` is the batch in the sender's order, each id once; what of it is not `new` is shown already.
    """
    placement = _Placement(database, session, sequence, new)
    if session.chained and placement.begins_again():
        session.chained = False
    if session.chained:
        orphans = database.execute("SELECT key FROM orphans WHERE session = ?", (session.n,))
        placement.missing_parents.update(key for (key,) in orphans)
    if placement.follows_on():
        first = (session.last_place or 0) + STEP
        return list(range(first, first + STEP * len(new), STEP)), True
    if session.chained and placement.has_parent_behind():
        session.chained = False
    return placement.arrange(), False


@dataclass(slots=True)
class _Placement:
    """The new events of a batch; `missing_parents` are keys of events that are not stored but named as parents."""

    database: Database
    session: SessionRow
    sequence: Sequence[UploadedEvent]
    new: dict[str, UploadedEvent]
    missing_parents: set[int] = field(default_factory=set)

    def begins_again(self) -> bool:
        """Tell whether the session has a second event without a parent, as after compaction.

        Then parents give no order.
        """
        begins = sum(event.parent is None for event in self.new.values())
        if begins != 1:
            return begins > 1
        shown = "SELECT 1 FROM events WHERE session = ? AND parent IS NULL AND hidden = 0 LIMIT 1"
        return self.database.execute(shown, (self.session.n,)).fetchone() is not None

    def has_parent_behind(self) -> bool:
        """Tell whether a line of the batch stands before its parent: the CLI now and then writes two that way."""
        numbers = {event.key: number for number, event in enumerate(self.sequence)}
        return any(numbers.get(event.parent or 0, 0) > number for number, event in enumerate(self.sequence))

    def follows_on(self) -> bool:
        """Tell whether the new events follow all that is shown; record parents that are missing."""
        session = self.session
        previous, has_new, strays = session.last_event_id, False, dict[str, UploadedEvent]()
        last_known: str | None = None
        for event in self.sequence:
            envelope = event.envelope
            if envelope.id not in self.new:
                if has_new:
                    return False
                last_known = envelope.id
                continue
            if not has_new and last_known not in (None, session.last_event_id):
                return False
            has_new = True
            if session.chained:
                if self.missing_parents and (event.key in self.missing_parents or event.parent is None):
                    return False
                if event.parent is not None and envelope.parentId is not None and envelope.parentId != previous:
                    strays[envelope.parentId] = event
            previous = envelope.id
        return not strays or self._are_orphans(strays)

    def _are_orphans(self, strays: dict[str, UploadedEvent]) -> bool:
        # By the events' own timestamps: the summary of a session ignores times in the future.
        newest = "SELECT max(timestamp) FROM events WHERE session = ? AND hidden = 0"
        latest = self.database.execute(newest, (self.session.n,)).fetchone()[0] or ""
        if any(id in self.new or event.envelope.timestamp < latest for id, event in strays.items()):
            return False
        keys = {id: key_of(id) for id in strays}
        if any(not hidden for _, hidden, _ in known(self.database, self.session.n, keys).values()):
            return False
        _note_missing(self.database, self.session.n, keys.values())
        return True

    def arrange(self) -> list[int]:
        """Return the place of each new event among those shown, some of which may be moved."""
        database, session = self.database, self.session
        rows = list(shown_events(database, session.n, "n, place, key, parent, timestamp"))
        shown = [Item(key, parent, timestamp) for _, _, key, parent, timestamp in rows]
        if session.chained and thread(shown) != shown:
            session.chained = False
        batch = [Item(event.key, event.parent, event.envelope.timestamp) for event in self.sequence]
        order = arrange(shown, batch, chained=session.chained)
        here = {row[2]: (row[0], row[1]) for row in rows}
        placed = places([here.get(item.key, (0, None))[1] for item in order])
        if placed is None:
            placed = [STEP * (number + 1) for number in range(len(order))]
        by_key = dict(zip((item.key for item in order), placed, strict=True))
        moved = [(by_key[key], session.n, n) for key, (n, place) in here.items() if by_key[key] != place]
        database.executemany("UPDATE events SET place = ? WHERE session = ? AND n = ?", moved)
        if session.chained:
            found = [(session.n, key) for key in self.missing_parents & by_key.keys()]
            database.executemany("DELETE FROM orphans WHERE session = ? AND key = ?", found)
            parents = {item.parent for item in order if item.parent is not None}
            _note_missing(database, session.n, parents - by_key.keys())
        return [by_key[event.key] for event in self.new.values()]


def _note_missing(database: Database, n: int, keys: Iterable[int]) -> None:
    database.insert("orphans", "session, key", [(n, key) for key in keys], unless_there=True)


def note_hidden_parents(database: Database, n: int, keys: Sequence[int]) -> None:
    """Record the hidden events that shown events name as their parents, because they belong before those."""
    for some in slices(keys):
        marks = ",".join("?" * len(some))
        parents = database.execute(
            f"SELECT DISTINCT parent FROM events WHERE session = ? AND hidden = 0 AND parent IN ({marks})",  # noqa: S608  marks only
            (n, *some),
        ).fetchall()
        _note_missing(database, n, (key for (key,) in parents))


def last_shown(database: Database, n: int) -> str | None:
    """Return the id of the session's last event."""
    row: Any = database.execute(
        "SELECT id FROM events WHERE session = ? AND hidden = 0 ORDER BY place DESC, n DESC LIMIT 1", (n,)
    ).fetchone()
    return row[0] if row else None
