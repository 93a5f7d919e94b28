"""Asking the index and showing what was found: which words a query means, which events hold them, and where."""

import re
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from exporter.core.envelope import Envelope, decode
from exporter.missioncontrol.index import matches
from exporter.missioncontrol.payloads import whole
from exporter.missioncontrol.session_row import number_of
from exporter.missioncontrol.texts import folded, text_of

_WORD: Final = re.compile(r'"([^"]+)"|(\S+)')
_TOKEN: Final = re.compile(r"[^\W_]+")
_WORDS_MAX, _QUERY_LENGTH_MAX = 16, 400
_BEFORE, _AFTER = 80, 160
_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for: an expression for the index, and what every text found must match."""

    expression: str
    patterns: tuple[re.Pattern[str], ...]


def understand(text: str) -> Query | None:
    """Return what a person means: all words, each the beginning of one, "several in a row" as they stand.

    None when there is no letter or digit in the query.
    """
    tokens: list[str] = []
    patterns: list[re.Pattern[str]] = []
    for quoted, plain in _WORD.findall(folded(text[:_QUERY_LENGTH_MAX]))[:_WORDS_MAX]:
        found = _TOKEN.findall(quoted or plain)
        if not found:
            continue
        tokens += [f'"{token}"' for token in found[:-1]]
        # A single character begins too many words for the index to look through.
        tokens.append(f'"{found[-1]}"' + ("" if quoted or len(found[-1]) < 2 else "*"))
        middle = r"\s+".join(re.escape(part) for part in (quoted or plain).strip("\"'.,;:!?()[]{}<>`").split())
        # What begins with a letter begins a word; what begins with a sign may stand anywhere.
        begin = r"(?<![^\W_])" if _TOKEN.match(middle) else ""
        patterns.append(re.compile(begin + middle))
    return Query(" AND ".join(dict.fromkeys(tokens)), tuple(patterns)) if tokens else None


def numbers(index: sqlite3.Connection, query: Query, below: int | None) -> Iterator[int]:
    """Yield the numbers of events that may match, newest first."""
    return matches(index, query.expression, (1 << 62) if below is None else below)


def results(
    database: sqlite3.Connection,
    index: sqlite3.Connection,
    query: Query,
    below: int | None,
    *,
    session_id: str | None,
    limit: int,
) -> tuple[list[dict[str, Any]], int | None]:
    """Return what matches, at most `limit`, and the number to go on below when there may be more.

    A page is cut short when looking takes too long; the next one goes on from there.
    """
    of_session = None if session_id is None else _numbers_of(database, session_id, below)
    if of_session is not None:
        if not of_session:
            return [], None
        below = max(of_session) + 1
    first = min(of_session) if of_session else 0
    found: list[dict[str, Any]] = []
    end = time.monotonic() + _SECONDS
    for number in numbers(index, query, below):
        if number < first:
            break
        if of_session is None or number in of_session:
            row = _row(database, number)
            shown = row and _result(query, *row)
            if shown:
                found.append(shown)
        if len(found) == limit or time.monotonic() > end:
            return found, number
    return found, None


def _numbers_of(database: sqlite3.Connection, session_id: str, below: int | None) -> set[int]:
    session, limit = number_of(database, session_id), (1 << 62) if below is None else below
    return {n for (n,) in database.execute("SELECT n FROM events WHERE session = ?", (session,)) if n < limit}


def _row(database: sqlite3.Connection, number: int) -> tuple[str, str | None, str | None, bytes] | None:
    row: tuple[str, str | None, str | None, bytes, bytes | None] | None = database.execute(
        "SELECT sessions.id, coalesce(json_extract(report, '$.title'), json_extract(summary, '$.title')), agent_id,"
        " body, cuts FROM events JOIN sessions ON sessions.n = events.session WHERE events.n = ? AND hidden = 0",
        (number,),
    ).fetchone()
    return row and (*row[:3], whole(database, *row[3:]))


def _result(query: Query, session_id: str, title: str | None, agent: str | None, body: bytes) -> dict[str, Any] | None:
    text = text_of(body)
    looked_at = folded(text)
    marks = [match.span() for pattern in query.patterns if (match := pattern.search(looked_at))]
    envelope = decode(body)
    if len(marks) < len(query.patterns) or not isinstance(envelope, Envelope):
        return None
    return {
        "session": session_id,
        "title": title,
        "event": envelope.id,
        "type": envelope.type,
        "timestamp": envelope.timestamp,
        "agent": agent,
        "snippet": _snippet(text, sorted(marks)),
    }


def _snippet(text: str, marks: list[tuple[int, int]]) -> dict[str, Any]:
    """Return the text around the first place, and where in it the words are, as [start, end] each."""
    start = max(0, marks[0][0] - _BEFORE)
    end = min(len(text), marks[0][1] + _AFTER)
    inside = [[first - start, last - start] for first, last in marks if last <= end]
    return {"text": text[start:end], "marks": inside, "cut": [start > 0, end < len(text)]}
