"""Answers of commands that print secrets, in batches that are redacted here: their calls are looked up in the store."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from operator import itemgetter
from typing import Final

import msgspec

from exporter.core.events.digest import item
from exporter.core.events.envelope import Envelope, decode
from exporter.core.events.redaction import Masked, Refused
from exporter.core.events.tool_calls import (
    ANSWERS,
    CALL_STARTS,
    HOOK,
    CallTold,
    Commands,
    Key,
    key_of,
    rule_of_hook,
    told_by,
)
from exporter.missioncontrol.ingest.batch import Batch, UploadedEvent
from exporter.missioncontrol.store import payloads
from exporter.missioncontrol.store.port import Database

_STARTS_MAX: Final = 4096
"""How many of the newest stored starts are looked at."""
_LAST: Final = 1 << 62

# Its place, and what it tells of its answers.
_Start = tuple[int, CallTold]


def mask_answers(
    database: Database, session: int, batch: Batch, new: Sequence[UploadedEvent], placed: Sequence[int]
) -> tuple[list[UploadedEvent], list[int]]:
    """Return the new events with their places, answers of printing commands masked, and mask the ephemeral ones.

    What cannot be masked is rejected. A batch that was redacted by its sender stays as it is.
    """
    if batch.commands is None:
        return list(new), list(placed)
    calls = _Calls(database, session, batch.commands)
    for event, place in zip(new, placed, strict=True):
        if event.envelope.type == CALL_STARTS:
            calls.add(event.envelope, place)
    kept = [(calls.masked(event, place), place) for event, place in zip(new, placed, strict=True)]
    batch.rejected += (old.envelope.id for old, (now, _) in zip(new, kept, strict=True) if now is None)
    shown = [calls.masked_line(line, decode(line), _LAST) for line in batch.ephemeral]
    batch.ephemeral = [line for line, _ in filter(None, shown)]
    batch.calls_unknown += calls.unknown
    whole = [(event, place) for event, place in kept if event is not None]
    return [event for event, _ in whole], [place for _, place in whole]


class _Calls:
    """The starts of a session's calls, of the batch and of the store, newest last."""

    def __init__(self, database: Database, session: int, commands: Commands) -> None:
        self.unknown = 0
        self._commands = commands
        self._starts: dict[Key, list[_Start]] = {}
        self._stored = self._read(database, session)

    def add(self, envelope: Envelope, place: int) -> None:
        """Note the start of a call."""
        for key, told in told_by(self._commands, envelope):
            self._starts.setdefault(key, []).append((place, told))

    def masked(self, event: UploadedEvent, place: int) -> UploadedEvent | None:
        """Return an event as it is stored at a place, None for one that must not be."""
        found = self.masked_line(event.body, event.envelope, place)
        if found is None or found[0] is event.body:
            return event if found is not None else None
        body, rules = found
        hashed = sha256(body).digest()
        return msgspec.structs.replace(
            event,
            body=body,
            sha256=hashed,
            item=item(event.envelope.id, hashed),
            rules=event.rules + rules,
            large=payloads.find(body),
        )

    def masked_line(self, line: bytes, envelope: object, place: int) -> tuple[bytes, tuple[str, ...]] | None:
        """Return a line as it may be shown, and the rules by which it was masked; None if it may not."""
        rule = None
        if isinstance(envelope, Envelope) and envelope.type in ANSWERS:
            rule = self._rule_of(key_of(envelope), place)
        elif isinstance(envelope, Envelope) and envelope.type == HOOK:
            rule = rule_of_hook(self._commands, envelope)
        masked = line if rule is None else self._commands.mask(line, line, rule)
        if isinstance(masked, Refused):
            return None
        return (masked.line, masked.rules) if isinstance(masked, Masked) else (masked, ())

    def _rule_of(self, key: Key, place: int) -> str | None:
        told = self._told_of(key, place)
        if told is not None and told.rule is None and told.shell is not None:
            told = self._told_of(told.shell, place)
        if told is None:
            self.unknown += 1
            return None
        return told.rule

    def _told_of(self, key: Key, place: int) -> CallTold | None:
        while not (before := [start for start in self._starts.get(key, ()) if start[0] < place]):
            if next(self._stored, None) is None:
                return None
        return max(before, key=itemgetter(0))[1]

    def _read(self, database: Database, session: int) -> Iterator[bool]:
        """Add the starts that are stored, newest first, one at a time."""
        rows = database.execute(
            "SELECT n, place FROM events WHERE session = ? AND hidden = 0 AND type = ?"
            " ORDER BY place DESC, n DESC LIMIT ?",
            (session, CALL_STARTS, _STARTS_MAX),
        ).fetchall()
        for row, place in rows:
            stored = database.execute(
                "SELECT body, cuts FROM events WHERE session = ? AND n = ?", (session, row)
            ).fetchone()
            envelope = decode(payloads.whole(database, *stored))
            if isinstance(envelope, Envelope):
                self.add(envelope, place)
            yield True
