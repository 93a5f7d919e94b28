"""Counts of redactions so far, read from the marks and from the embedded receiver's store; read-only."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from exporter.errors import StateError

_BUSY_SECONDS: Final = 5.0
_OURS: Final = "SELECT session, day, rule, MAX(count) FROM masked GROUP BY session, day, rule"
_REPORTED: Final = "SELECT id, report FROM sessions WHERE report IS NOT NULL"
_ON_ARRIVAL: Final = "SELECT COALESCE(SUM(masked), 0) FROM sessions"
_decode_report: Final = msgspec.json.Decoder(dict[str, Any]).decode


class Counted(NamedTuple):
    """How often a rule masked something in a session on a day (of the events' own time, UTC)."""

    session: str
    day: str
    rule: str
    times: int


class RedactionCounts(NamedTuple):
    """Everything that was counted; `on_arrival` is how many events the receiver here masked for others' uploaders."""

    counts: list[Counted]
    on_arrival: int


def read_masked(marks: Path, receiver: Path) -> RedactionCounts:
    """Read the counts; a secret redacted for several sinks, or reported to a receiver as well, counts once.

    A file that does not exist counts nothing; one that cannot be read raises `StateError`.
    """
    counts: dict[tuple[str, str, str], int] = {}
    for session, day, rule, count in [*_rows(marks, _OURS), *_reported(receiver)]:
        key = (str(session), str(day), str(rule))
        counts[key] = max(counts.get(key, 0), int(count))
    on_arrival = sum(int(row[0]) for row in _rows(receiver, _ON_ARRIVAL))
    return RedactionCounts([Counted(*key, count) for key, count in sorted(counts.items())], on_arrival)


def _reported(receiver: Path) -> Iterator[tuple[str, str, str, int]]:
    """Yield what exporters have reported of their sessions."""
    for session, report in _rows(receiver, _REPORTED):
        try:
            days = _decode_report(report).get("redactions")
        except msgspec.MsgspecError:
            continue
        for day, rules in days.items() if isinstance(days, Mapping) else ():
            if isinstance(rules, Mapping):
                yield from ((session, day, rule, count) for rule, count in rules.items() if isinstance(count, int))


def _rows(path: Path, query: str) -> list[Any]:
    if not path.exists():
        return []
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_BUSY_SECONDS)
        ) as database:
            return database.execute(query).fetchall()
    except sqlite3.Error as error:
        raise StateError(f"{path} cannot be read: {error}", hint="exporter doctor checks it") from error
