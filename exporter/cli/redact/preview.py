"""`exporter redact preview`: what would be redacted in a session, with the text around it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from exporter.cli.command import CommandContext, command, option
from exporter.cli.output.table import Column, Palette, TerminalView, table
from exporter.cli.output.text import count, number, plain, words
from exporter.cli.session_ids import resolve_id
from exporter.cli.values import SessionId, sessions_on_disk

if TYPE_CHECKING:
    from exporter.wiring.redact_commands import PreviewFinding, PreviewPiece, Withheld

BULLETS: Final = "\N{BULLET}" * 4
_COLUMNS = (
    Column("RULE", itemgetter(0)),
    Column("REDACTED", lambda rule: number(rule[1]), right=True),
    Column("CONFIDENCE", itemgetter(2)),
)


@dataclass(slots=True)
class Previewed:
    """What was found in a session."""

    session: str
    events: int = 0
    places: "list[PreviewFinding]" = field(default_factory=list)
    withheld: "list[Withheld]" = field(default_factory=list)

    @property
    def rules(self) -> list[tuple[str, int, str]]:
        """Rule, how often, confidence; the most frequent first."""
        found = Counter((place.finding.rule, place.finding.confidence) for place in self.places)
        return [(rule, times, confidence) for (rule, confidence), times in found.most_common()]


@command(usage="--session ID [OPTIONS]")
@option("--session", required=True, type=SessionId(), help="session id or a unique prefix")
@option("--diff", is_flag=True, help="show a diff with bullets in place of secrets")
def preview(context: CommandContext, session: str, diff: bool) -> int:
    """Shows what would be redacted in a session: a count per rule, and each place with the redacted text around it.

    Never shows a secret. Nothing is delivered or stored.

    Examples:
    exporter redact preview --session 3f2a  # any unique prefix of the id
    exporter redact preview --session 3f2a --diff  # as a diff, with bullets in place of secrets
    """
    import asyncio  # what redacts an input does without it

    found = asyncio.run(_preview(context, session))
    text = diff_text if diff else preview_text
    return context.report(_document(found, with_diff=diff), lambda view: text(found, view))


async def _preview(context: CommandContext, session: str) -> Previewed:
    from exporter import app
    from exporter.wiring.redact_commands import PreviewFinding, Withheld

    settings = context.load(sessions=True).settings
    found = Previewed(resolve_id(session, sessions_on_disk(settings)))
    async for one in app.preview(settings, found.session):
        match one:
            case PreviewFinding():
                found.places.append(one)
            case Withheld():
                found.withheld.append(one)
            case events:
                found.events += events
    return found


def _document(found: Previewed, *, with_diff: bool) -> dict[str, Any]:
    return {
        "session": found.session,
        "events": found.events,
        "masked": len(found.places),
        "rules": [{"rule": rule, "count": times, "confidence": confidence} for rule, times, confidence in found.rules],
        "places": [_place(place, with_diff=with_diff) for place in found.places],
        "withheld": [{"event": one.event, "reason": one.reason} for one in found.withheld],
    }


def _place(place: "PreviewFinding", *, with_diff: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "event": place.event,
        "type": place.type,
        **finding_fields(place.finding),
        "before": _kept(place.pieces[: place.index]),
        "marker": place.pieces[place.index].text,
        "after": _kept(place.pieces[place.index + 1 :]),
    }
    return {**shown, "removed": _hidden(place.pieces), "added": _kept(place.pieces)} if with_diff else shown


def finding_fields(finding: object) -> dict[str, Any]:
    """A finding as JSON has it."""
    return {name: getattr(finding, name) for name in ("path", "start", "end", "rule", "confidence")}


def _kept(pieces: "Sequence[PreviewPiece]") -> str:
    return "".join(piece.text for piece in pieces)


def _hidden(pieces: "Sequence[PreviewPiece]") -> str:
    return "".join(BULLETS if piece.finding else piece.text for piece in pieces)


def preview_text(found: Previewed, view: TerminalView) -> str:
    """The counts by rule, then every place with the text around it."""
    lines = []
    for place in found.places:
        finding = place.finding
        lines += ["", f"{_where(place)}  {view.palette.paint(f'{finding.rule} ({finding.confidence})', 'warn')}"]
        lines.append("    " + _line(place.pieces, view.palette))
    return "\n".join([*_summary(found, view), *lines])


def diff_text(found: Previewed, view: TerminalView) -> str:
    """A diff of every line that changes; the secrets in what is removed are bullets."""
    if not found.places:
        return "\n".join(_summary(found, view))
    lines = [f"--- {found.session}/events.jsonl", f"+++ {found.session}/events.jsonl, as it would be delivered"]
    shown: set[int] = set()
    for place in found.places:
        if id(place.finding) in shown:
            continue
        shown.update(id(piece.finding) for piece in place.pieces)
        lines.append(view.palette.paint(f"@@ {_where(place)} @@", "dim"))
        lines.append(view.palette.paint("-" + plain(_hidden(place.pieces)), "bad"))
        lines.append(view.palette.paint("+" + plain(_kept(place.pieces)), "good"))
    return "\n".join([*lines, *_withheld(found)])


def _where(place: "PreviewFinding") -> str:
    return " ".join(plain(part) for part in (place.type, place.event, place.finding.path) if part)


def _line(pieces: "Sequence[PreviewPiece]", palette: Palette) -> str:
    return "".join(
        palette.paint(piece.text, "strong") if piece.finding else _without_breaks(piece.text) for piece in pieces
    )


def _without_breaks(text: str) -> str:
    """The text made safe, with the blanks at its ends, which belong between it and a marker."""
    safe = plain(text)
    return f"{' ' * text[:1].isspace()}{safe}{' ' * text[-1:].isspace()}" if safe else " "


def _summary(found: Previewed, view: TerminalView) -> Iterator[str]:
    events = len({place.event for place in found.places})
    if not found.places:
        yield f"Nothing would be redacted in the {count(found.events, 'event')} of {found.session}."
    else:
        secrets = count(len(found.places), "secret")
        yield f"{secrets} would be redacted in {number(events)} of {count(found.events, 'event')} of {found.session}:"
        yield ""
        yield table(_COLUMNS, found.rules, view)
    yield from _withheld(found)


def _withheld(found: Previewed) -> Iterator[str]:
    for one in found.withheld:
        yield f"quarantined, not delivered: {plain(one.event or 'not an event')}: {words(one.reason)}"
