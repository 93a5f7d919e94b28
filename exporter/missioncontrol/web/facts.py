"""What a session is, in a few facts: its place, and its figures each with the source that tells it."""

from typing import Any, Final

from exporter.missioncontrol.web.markup import badge, counted, duration, escape, figure, moment, short_number
from exporter.missioncontrol.web.reading import Figures

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
    names = [name for name in _TOKENS if name in figures] if long else ["input", "output"]
    told: dict[str, list[str]] = {}
    for source in SOURCES:
        values = [
            f"<b>{short_number(figures[name][source])}</b> {_TOKENS[name].removesuffix('' if long else 'put')}"
            for name in names
            if source in figures.get(name, {})
        ]
        if values:
            told.setdefault(" · ".join(values), []).append(source)
    return "".join(_sourced(values, sources, long) for values, sources in told.items())


def cost(figures: Figures, *, long: bool = False) -> str:
    """Return the cost by source."""
    told: dict[str, list[str]] = {}
    for source, value in figures.get("cost", {}).items():
        told.setdefault(f"<b>{value:,.2f}</b>", []).append(source)
    return "".join(_sourced(value, sources, long) for value, sources in told.items())


def _sourced(value: str, sources: list[str], long: bool) -> str:
    said = " = ".join((SOURCES if long else _SHORT)[source] for source in sources)
    return f'<span class="figure">{value} <small>{said}</small></span>'


def lag_of(lag: dict[str, Any] | None) -> str:
    """Return how far behind the exporter of a session is with it, and since when that is known."""
    if lag is None:
        return ""
    seconds, events = float(lag["lag_seconds"]), lag.get("lag_events")
    if not events and seconds < 1:
        return "none"
    known = f" <small>as of {moment(lag['at'], short=True)}</small>" if lag.get("at") else ""
    return (f"{duration(seconds)} · {counted(events, 'event')}" if events else duration(seconds)) + known
