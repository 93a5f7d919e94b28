"""What a query means, which events match it, and the excerpts that are shown."""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from exporter.core.events.envelope import Envelope, decode
from exporter.missioncontrol.search.event_text import folded, text_of
from exporter.missioncontrol.search.index import Matches, Term
from exporter.missioncontrol.store.payloads import whole
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.queries import title
from exporter.missioncontrol.store.session_row import number_of

_WORD: Final = re.compile(r'"([^"]+)"|(\S+)')
_TOKEN: Final = re.compile(r"[^\W_]+")
_BEGIN, _END = r"(?<![^\W_])", r"(?![^\W_])"
_AROUND: Final = " \"'.,;:!?()[]{}<>`"
# From here on a single character is a word, or as good as one.
_IDEOGRAPHS: Final = "\u2e80"
_WORDS_MAX, _QUERY_LENGTH_MAX = 16, 400
_BEFORE, _AFTER = 80, 160
SECONDS: Final = 0.2
"""How long a page is searched for in an index."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query: terms for the index, and patterns that every result must match."""

    terms: tuple[Term, ...]
    patterns: tuple[re.Pattern[str], ...]


def understand(text: str) -> Query | None:
    """Return what a person means: all words, each the beginning of one, and "several in a row" as they stand.

    The last one in a row may be the beginning of a word too. A single letter finds words that begin with it beside
    others only: by itself it would begin too many for the index to look through, and stands for a whole word. None
    when there is no letter or digit in the query.
    """
    words = [quoted or plain for quoted, plain in _WORD.findall(folded(text[:_QUERY_LENGTH_MAX]))[:_WORDS_MAX]]
    words = [" ".join(word.split()).strip(_AROUND) for word in words if _TOKEN.search(word)]
    parts = [part for word in words for part in _terms(word)]
    if parts:
        return Query(tuple(dict.fromkeys(parts)), tuple(_pattern(word) for word in words))
    letters = dict.fromkeys(Term(letter) for word in words for letter in _TOKEN.findall(word))
    return Query(tuple(letters), tuple(_pattern(word, _END) for word in words)) if letters else None


def _terms(word: str) -> list[Term]:
    """Return the terms of an event that contains this; none for a single last letter, which may be a longer word."""
    *tokens, last = _TOKEN.findall(word)
    found = [Term(token) for token in tokens]
    if not word.endswith(last):
        return [*found, Term(last)]
    return found if len(last) == 1 and last < _IDEOGRAPHS else [*found, Term(last, is_prefix=True)]


def _pattern(word: str, end: str = "") -> re.Pattern[str]:
    # What begins with a letter begins a word; what begins with a sign may stand anywhere.
    begin = _BEGIN if _TOKEN.match(word) else ""
    return re.compile(begin + r"\s+".join(re.escape(part) for part in word.split()) + end)


def numbers(index: Matches, query: Query, below: int | None) -> Iterator[int]:
    """Yield the numbers of events that may match, newest first."""
    return index.matches(query.terms, (1 << 62) if below is None else below)


def places(query: Query, text: str) -> list[tuple[int, int]]:
    """Return the first place of each word in a text of `text_of`; none unless all words are there."""
    looked_at = folded(text)
    marks = [match.span() for pattern in query.patterns if (match := pattern.search(looked_at))]
    return sorted(marks) if len(marks) == len(query.patterns) else []


def results(
    database: Database,
    index: Matches,
    query: Query,
    below: int | None,
    *,
    session_id: str | None,
    limit: int,
    seconds: float = SECONDS,
) -> tuple[list[dict[str, Any]], int | None]:
    """Return at most `limit` results, and the number below which to continue when there may be more.

    A page is shorter when the search takes too long; the next one continues there.
    """
    of_session = None if session_id is None else _numbers_of(database, session_id, below)
    if of_session is not None:
        if not of_session:
            return [], None
        below = max(of_session) + 1
    first = min(of_session) if of_session else 0
    found: list[dict[str, Any]] = []
    end = time.monotonic() + seconds
    for number in numbers(index, query, below):
        if number < first:
            break
        if of_session is None or number in of_session:
            shown = _result(database, query, number)
            if shown is not None:
                found.append(shown)
        if len(found) == limit or time.monotonic() > end:
            return found, number
    return found, None


def _numbers_of(database: Database, session_id: str, below: int | None) -> set[int]:
    rows = database.execute("SELECT n FROM events WHERE session = ?", (number_of(database, session_id),))
    return {n for (n,) in rows if below is None or n < below}


def _result(database: Database, query: Query, number: int) -> dict[str, Any] | None:
    """Return an event as a result; None when it is hidden or does not match."""
    row = database.execute(
        "SELECT sessions.id, agent_id, body, cuts FROM events JOIN sessions ON sessions.n = events.session"
        " WHERE events.n = ? AND hidden = 0",
        (number,),
    ).fetchone()
    if row is None:
        return None
    session_id, agent, stored, cuts = row
    body = whole(database, stored, cuts)
    text = text_of(body)
    marks, envelope = places(query, text), decode(body)
    if not marks or not isinstance(envelope, Envelope):
        return None
    return {
        "session": session_id,
        "title": title(database, session_id),
        "event": envelope.id,
        "type": envelope.type,
        "timestamp": envelope.timestamp,
        "agent": agent,
        "snippet": _snippet(text, marks),
    }


def _snippet(text: str, marks: list[tuple[int, int]]) -> dict[str, Any]:
    """Return the text around the first place, and where in it the words are, as [start, end] each."""
    start = max(0, marks[0][0] - _BEFORE)
    end = min(len(text), marks[0][1] + _AFTER)
    inside = [[first - start, last - start] for first, last in marks if last <= end]
    return {"text": text[start:end], "marks": inside, "cut": [start > 0, end < len(text)]}
