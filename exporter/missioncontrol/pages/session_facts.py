"""What a session is, in a few facts: its place, and its figures each with the source that tells it."""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from exporter.missioncontrol.pages.markup import badge, counted, duration, escape, figure, moment, short_number
from exporter.missioncontrol.pages.timeline.windows import Figures

SOURCES: Final = {"usage_record": "usage records", "shutdown": "end of session"}
COST: Final = "Premium requests"
"""What Copilot counts the cost of a session in."""
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


def session_head(session: dict[str, Any], figures: Figures, lag: dict[str, Any] | None) -> str:
    """Return the head of a session's page."""
    title = escape(str(session["title"] or session["id"]))
    place = [session[name] for name in ("repository", "branch", "cwd", "model", "host") if session.get(name)]
    said = "".join(f"<span>{escape(str(one))}</span>" for one in place)
    facts = "".join(
        f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in _facts(session, figures, lag) if value
    )
    return (
        f'<h1>{title} {badge(str(session["state"]))}</h1><p class="place">{said}</p>'
        f'<dl class="facts">{facts}</dl><p class="quiet id">{escape(str(session["id"]))}</p>'
    )


def _facts(session: dict[str, Any], figures: Figures, lag: dict[str, Any] | None) -> list[tuple[str, str]]:
    return [
        ("Started", moment(session["started"]) if session["started"] else ""),
        ("Last activity", moment(session["last_activity"]) if session["last_activity"] else ""),
        ("Events", figure(session["events"])),
        ("Tokens", tokens(figures, long=True)),
        (COST, cost(figures, long=True)),
        ("Secrets masked", figure(session["masked"])),
        ("Upload lag", lag_of(lag)),
    ]


def tokens(figures: Figures, *, long: bool = False) -> str:
    """Return tokens by source; sources that say the same are named together, others stand below each other."""
    names = _TOKENS if long else _TOKENS_SHORT
    return _told({name: figures[name] for name in names if name in figures}, names, short_number, long)


def cost(figures: Figures, *, long: bool = False) -> str:
    """Return the cost by source."""
    return _told({"cost": figures.get("cost", {})}, {"cost": ""}, lambda value: f"{value:,.2f}", long)


def _told(figures: Figures, names: dict[str, str], shorten: Callable[[float], str], long: bool) -> str:
    """Return a line for each source, one line for sources whose numbers are equal to the last digit.

    Where two differ and would look alike when they are shortened, their digits are told.
    """
    lines: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for source in SOURCES:
        values = tuple((name, exact(told[source])) for name, told in figures.items() if source in told)
        if values:
            lines.setdefault(values, []).append(source)
    shown = {(name, exact(value)): shorten(value) for name, told in figures.items() for value in told.values()}
    looks = Counter((name, short) for (name, _), short in shown.items())
    said = {one: one[1] if looks[one[0], short] > 1 else short for one, short in shown.items()}
    return "".join(
        _sourced([f'<b title="{one[1]}">{said[one]}</b> {names[one[0]]}'.rstrip() for one in values], sources, long)
        for values, sources in lines.items()
    )


def _sourced(values: list[str], sources: list[str], long: bool) -> str:
    named = " = ".join((SOURCES if long else _SHORT)[source] for source in sources)
    return f'<span class="figure">{" · ".join(values)} <small>{named}</small></span>'


def exact(value: float) -> str:
    """Return all digits of a number, with its thousands apart; a sum of fractions has some that nobody has told."""
    rounded = round(value, _DECIMALS)
    return f"{int(rounded):,}" if rounded == int(rounded) else f"{rounded:,.{_DECIMALS}f}".rstrip("0")


def lag_of(lag: dict[str, Any] | None) -> str:
    """Return how far behind the exporter of a session is with it, and since when that is known."""
    if lag is None:
        return ""
    seconds, events = float(lag["lag_seconds"]), lag.get("lag_events")
    if not events and seconds < 1:
        return "none"
    known = f" <small>as of {moment(lag['at'], short=True)}</small>" if lag.get("at") else ""
    return (f"{duration(seconds)} · {counted(events, 'event')}" if events else duration(seconds)) + known
