"""Tokens and cost of a session, each with the source that tells it, and how far behind its exporter is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec

from exporter.missioncontrol.pages.formats import counted, duration, short_number
from exporter.missioncontrol.store.amounts import amount
from exporter.missioncontrol.store.port import Database

SOURCES: Final = {"usage_record": "usage records", "shutdown": "end of session"}
_SHORT: Final = {"usage_record": "records", "shutdown": "at end"}
_TOKENS: Final = {
    "input": "input",
    "output": "output",
    "cache_read": "read from cache",
    "cache_write": "written to cache",
    "reasoning": "reasoning",
}
_TOKENS_SHORT: Final = {"input": "in", "output": "out"}
_DECIMALS: Final = 6
Figures = dict[str, dict[str, float]]
"""Numbers by what they count, and of each by the source that tells it."""


class _Sums(msgspec.Struct):
    """The part of a summary that is read here."""

    recorded: dict[str, float] = {}
    totals: dict[str, float] = {}


def figures_of(database: Database, session_ids: Sequence[str]) -> dict[str, Figures]:
    """Return tokens and cost of sessions, side by side as each source tells them; they are never added."""
    told: dict[str, Figures] = {}
    if not session_ids:
        return told
    rows = database.execute(
        f"SELECT id, summary FROM sessions WHERE id IN ({','.join('?' * len(session_ids))})",  # noqa: S608  marks only
        session_ids,
    )
    for id, stored in rows:
        summary = msgspec.json.decode(stored, type=_Sums)
        found = told.setdefault(id, {})
        for source, values in (("usage_record", summary.recorded), ("shutdown", summary.totals)):
            for name, value in values.items():
                found.setdefault(name, {})[source] = value
    return told


@dataclass(frozen=True, slots=True)
class Lags:
    """How far behind exporters say they are: with each session that they name, and at worst with those of their host.

    An exporter that names sessions is level with all others of its host.
    """

    sessions: dict[str, dict[str, Any]]
    hosts: dict[str, dict[str, Any]]

    def of(self, session: dict[str, Any]) -> dict[str, Any] | None:
        """Return how far behind the exporter of a session is with it; None when no exporter has said."""
        return self.sessions.get(session["id"]) or self.hosts.get(str(session.get("host")))


def lags_of(reports: list[dict[str, Any]]) -> Lags:
    """Return what the newest reports of all exporters say of lags."""
    sessions: dict[str, dict[str, Any]] = {}
    hosts: dict[str, dict[str, Any]] = {}
    for report in reports:
        host, sinks, behind = report.get("host"), report.get("sinks"), report.get("behind")
        if isinstance(behind, dict):
            for id, lag in behind.items():
                if isinstance(lag, dict) and (known := _lag(lag)):
                    sessions.setdefault(id, {**known, "at": report.get("reported_at")})
        if not isinstance(host, str) or host in hosts or not isinstance(sinks, list):
            continue
        usable = [known for sink in sinks if isinstance(sink, dict) and (known := _lag(sink))]
        if isinstance(behind, dict):
            hosts[host] = {"lag_seconds": 0.0, "lag_events": 0}
        elif usable:
            hosts[host] = max(usable, key=lambda lag: lag["lag_seconds"])
    return Lags(sessions, hosts)


def _lag(told: dict[str, Any]) -> dict[str, float] | None:
    seconds = amount(told.get("lag_seconds"))
    return None if seconds is None else {"lag_seconds": seconds, "lag_events": amount(told.get("lag_events")) or 0}


Number = tuple[bool, str, str, str]
"""Whether another number stands before it; all digits, how it is shown, and what it counts."""


class SourcedFigure(NamedTuple):
    """What some sources tell in common."""

    numbers: list[Number]
    sources: str


def tokens(figures: Figures, *, long: bool = False) -> list[SourcedFigure]:
    """Return tokens by source; sources that say the same are named together, others stand below each other."""
    names = _TOKENS if long else _TOKENS_SHORT
    return _told({name: figures[name] for name in names if name in figures}, names, short_number, long)


def cost(figures: Figures, *, long: bool = False) -> list[SourcedFigure]:
    """Return the cost by source."""
    return _told({"cost": figures.get("cost", {})}, {"cost": ""}, lambda value: f"{value:,.2f}", long)


def _told(figures: Figures, names: dict[str, str], shorten: Callable[[float], str], long: bool) -> list[SourcedFigure]:
    """Return a line for each source, one line for sources whose numbers are equal to the last digit.

    Where the two differ and would look alike when they are shortened, their digits are told.
    """
    numbers: dict[str, list[Number]] = {}
    for name, told in figures.items():
        digits = {source: exact(value) for source, value in told.items()}
        shown = {source: shorten(value) for source, value in told.items()}
        if len({*shown.values()}) < len({*digits.values()}):
            shown = digits
        for source in told:
            line = numbers.setdefault(source, [])
            line.append((bool(line), digits[source], shown[source], names[name]))
    named = SOURCES if long else _SHORT
    lines = [SourcedFigure(numbers[source], named[source]) for source in SOURCES if source in numbers]
    if len(lines) == 2 and lines[0].numbers == lines[1].numbers:
        return [SourcedFigure(lines[0].numbers, f"{lines[0].sources} = {lines[1].sources}")]
    return lines


def exact(value: float) -> str:
    """Return all digits of a number, with its thousands apart; digits that come from adding fractions are left out."""
    rounded = round(value, _DECIMALS)
    return f"{int(rounded):,}" if rounded == int(rounded) else f"{rounded:,.{_DECIMALS}f}".rstrip("0")


def lag_text(lag: dict[str, Any]) -> str:
    """Return how far behind the exporter of a session is with it."""
    seconds, events = float(lag["lag_seconds"]), lag.get("lag_events")
    if not events and seconds < 1:
        return "none"
    return f"{duration(seconds)} · {counted(events, 'event')}" if events else duration(seconds)
