"""Entries as HTML: each is a list item with a place and a link of its own, and its events as JSON behind links."""

from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Final

from exporter.missioncontrol.pages.markup import (
    address,
    anchor,
    duration,
    escape,
    marked,
    moment,
    parsed,
    rich,
    session_path,
)
from exporter.missioncontrol.pages.timeline.days import heading
from exporter.missioncontrol.pages.timeline.entry import Block, Entry

AGENT_COLOURS: Final = 6
NO_RESULT: Final = "no result"
CUT: Final = "cut here; all of it is in the session's JSON lines"


def entry_items(session_id: str, entries: Sequence[Entry], names: dict[str, str], *, alone: bool = False) -> str:
    """Return the list items of a timeline; `names` are what the sub-agents are called.

    What stands `alone`, in a file of its own, has no links but to itself.
    """
    path = "" if alone else session_path(session_id)
    spans = _interactions(entries)
    return "".join(_item(entry, path, names, span) for entry, span in zip(entries, spans, strict=True))


Span = tuple[datetime, float] | None


def _interactions(entries: Sequence[Entry]) -> list[Span]:
    """Return for each entry when the interaction that it is part of began and how many seconds it took."""
    spans: list[Span] = []
    start = 0
    for number, entry in enumerate([*entries, None]):
        if entry is None or (entry.kind == "user" and entry.agent is None and number > start):
            spans += [_span(entries[start:number])] * (number - start)
            start = number
    return spans


def _span(entries: Sequence[Entry]) -> Span:
    told = (entry for entry in entries if entry.kind in ("user", "assistant", "tool", "turn"))
    times = [moment for entry in told for text in (entry.at, entry.end) if (moment := parsed(text)) and moment.tzinfo]
    if not times:
        return None
    first = min(times)
    return first, (max(times) - first).total_seconds()


def _item(entry: Entry, path: str, names: dict[str, str], span: Span) -> str:
    classes = " ".join(
        part
        for part in ("entry", entry.kind, entry.level, "running" if entry.is_running and path else "", _colour(entry))
        if part
    )
    place = f"#{anchor(entry.id)}"
    link = f"{address(path, at=entry.id)}{place}" if entry.ids and path else place
    # An end that was joined to its beginning is still a place that links lead to.
    raw = "".join(
        f'<a class="raw"{_place_of_end(id) if number else ""} href="{address(path + "/event", id=id)}"'
        f' aria-label="JSON of {escape(entry.type)}{", its end" if number else ""}">{{ }}</a>'
        for number, id in enumerate(entry.ids if path else ())
    )
    return (
        f'<li id="{anchor(entry.id)}" class="{classes}" data-v="{entry.version}"{_looked_for(entry)} tabindex="-1">'
        f"{heading(entry)}"
        f'<a class="at" href="{link}" title="Link to this event">{moment(entry.at, short=True, zone=False)}</a>'
        f'<div class="what">{_content(entry, path)}</div>'
        f'<span class="links">{_agent(entry, names)}{_waterfall(entry, path)}{raw}</span>{_bar(entry, span)}</li>'
    )


def _place_of_end(id: str) -> str:
    return f' id="{anchor(id)}"'


def _looked_for(entry: Entry) -> str:
    """Return by which id text that streams finds its entry, and which of the keys that jump stop at it."""
    call = f' data-call="{escape(entry.key)}"' if entry.key else ""
    return call + (f' data-stop="{" ".join(entry.stops)}"' if entry.stops else "")


def _content(entry: Entry, path: str) -> str:
    facts = "".join(f'<span class="fact">{marked(fact)}</span>' for fact in entry.facts if fact)
    blocks = "".join(_block(block, path) for block in entry.blocks)
    took = f'<span class="took">{duration(entry.seconds)}</span>' if entry.seconds is not None else ""
    title = f'<span class="title">{escape(entry.title)}</span>'
    if entry.kind == "tool":
        # In a file nothing goes on: what has not ended there has no result.
        state = "running" if path else NO_RESULT
        running = f'<span class="fact">{state}</span>' if entry.is_running else ""
        described = f'<p class="quiet">{marked(entry.text)}</p>' if entry.text else ""
        return (
            f'<details><summary>{title}<span class="line">{marked(entry.line)}</span>{running}{facts}{took}</summary>'
            f"{described}{blocks}</details>"
        )
    if entry.kind in ("user", "assistant"):
        return f'<div class="who">{title}{facts}</div><div class="said">{rich(entry.text)}</div>{blocks}'
    if entry.kind in ("turn", "other"):
        return f"{title}{facts}{took}{blocks}"
    words = f'<div class="said"><p>{marked(entry.text)}</p></div>' if entry.text else ""
    return f'<div class="who">{title}{facts}</div>{words}{blocks}'


def _block(block: Block, path: str) -> str:
    whole = ""
    if block.is_cut or not block.text:
        link = f'<a class="whole" href="{address(path + "/event", id=block.event)}">all of it</a>'
        whole = link if path else f'<small class="whole">{CUT}</small>'
    if block.label == "reasoning":
        text = f'<pre tabindex="0">{marked(block.text)}</pre>'
        return f'<details class="reasoning"><summary>reasoning</summary>{text}{whole}</details>'
    kind = block.label if block.label in ("before", "after", "command", "result") else "plain"
    text = f'<pre class="{kind}" tabindex="0">{marked(block.text)}</pre>' if block.text else ""
    return f'<div class="block"><span class="label">{escape(block.label)}</span>{text}{whole}</div>'


def _bar(entry: Entry, span: Span) -> str:
    """Return when in its interaction this was and how long it took.

    The script draws it anew, on the axis of the waterfall and as the interaction grows.
    """
    start = parsed(entry.at)
    if span is None or entry.kind not in ("tool", "turn") or start is None or start.tzinfo is None:
        return ""
    whole, took = max(span[1], 0.001), entry.seconds or 0.0
    left = min(100.0, max(0.0, (start - span[0]).total_seconds() / whole * 100))
    width = min(100 - left, max(0.4, took / whole * 100))
    return (
        f'<svg class="bar" viewBox="0 0 100 2" preserveAspectRatio="none" aria-hidden="true"'
        f' data-took="{took * 1000:.0f}">'
        f'<rect x="{left:.2f}" width="{width:.2f}" height="2"/></svg>'
    )


def _waterfall(entry: Entry, path: str) -> str:
    if entry.kind != "user" or entry.agent is not None or not path:
        return ""
    return f'<a class="spans" href="{address(path + "/waterfall", at=entry.id)}">waterfall</a>'


def _agent(entry: Entry, names: dict[str, str]) -> str:
    if entry.agent is None:
        return ""
    return f'<span class="agent">{escape(names.get(entry.agent) or entry.agent[:12])}</span>'


def colour_of(agent: str) -> str:
    """Return the class of an agent's colour, the same wherever it is shown."""
    return f"agent-{blake2b(agent.encode('utf-8', 'replace'), digest_size=1).digest()[0] % AGENT_COLOURS}"


def _colour(entry: Entry) -> str:
    return "" if entry.agent is None else f"child {colour_of(entry.agent)}"
