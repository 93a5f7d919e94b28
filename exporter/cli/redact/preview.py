"""`exporter redact preview`: what would be masked in a session, with the text around it."""

import asyncio
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from exporter.cli.context import CommandContext
from exporter.cli.output.table import Cell, Column, Palette, table
from exporter.cli.output.text import count, number, plain, words
from exporter.cli.registry import Example, Leaf
from exporter.cli.session_ids import resolve_id
from exporter.core.names import JOURNALS

if TYPE_CHECKING:
    from exporter.wiring.redact_preview import PreviewFinding, PreviewPiece, Withheld

BULLETS: Final = "\N{BULLET}" * 4
_COLUMNS = (Column("RULE"), Column("MASKED", right=True), Column("CONFIDENCE"))


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


def _build(parser: ArgumentParser) -> None:
    parser.add_argument("--session", required=True, metavar="ID", help="this session; any unique beginning will do")
    parser.add_argument("--diff", action="store_true", help="as a diff, with bullets where the secrets are")


def _run(invocation: CommandContext) -> int:
    args, out = invocation.args, invocation.out
    found = asyncio.run(_preview(invocation))
    text = diff_text if args.diff else preview_text
    out.result(_document(found, with_diff=args.diff), lambda: text(found, width=out.width, palette=out.palette))
    return 0


async def _preview(invocation: CommandContext) -> Previewed:
    from exporter import app
    from exporter.wiring.redact_preview import PreviewFinding, Withheld

    settings = invocation.load().settings
    roots = (Path(settings.copilot_home) / "session-state", Path(settings.state_dir) / JOURNALS)
    known = (file.parent.name for root in roots for file in root.glob("*/events.jsonl"))
    found = Previewed(resolve_id(invocation.args.session, known))
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
    finding = place.finding
    shown: dict[str, Any] = {
        "event": place.event,
        "type": place.type,
        "path": finding.path,
        "start": finding.start,
        "end": finding.end,
        "rule": finding.rule,
        "confidence": finding.confidence,
        "before": _kept(place.pieces[: place.index]),
        "marker": place.pieces[place.index].text,
        "after": _kept(place.pieces[place.index + 1 :]),
    }
    return {**shown, "removed": _hidden(place.pieces), "added": _kept(place.pieces)} if with_diff else shown


def _kept(pieces: "Sequence[PreviewPiece]") -> str:
    return "".join(piece.text for piece in pieces)


def _hidden(pieces: "Sequence[PreviewPiece]") -> str:
    return "".join(BULLETS if piece.finding else piece.text for piece in pieces)


def preview_text(found: Previewed, *, width: int | None, palette: Palette) -> str:
    """The counts by rule, then every place with the text around it."""
    lines = []
    for place in found.places:
        finding = place.finding
        lines += ["", f"{_where(place)}  {palette.paint(f'{finding.rule} ({finding.confidence})', 'warn')}"]
        lines.append("    " + _line(place.pieces, palette))
    return "\n".join([*_summary(found, width=width, palette=palette), *lines])


def diff_text(found: Previewed, *, width: int | None, palette: Palette) -> str:
    """A diff of every line that changes; the secrets in what is removed are bullets."""
    if not found.places:
        return "\n".join(_summary(found, width=width, palette=palette))
    lines = [f"--- {found.session}/events.jsonl", f"+++ {found.session}/events.jsonl, as it would be delivered"]
    shown: set[int] = set()
    for place in found.places:
        if id(place.finding) in shown:
            continue
        shown.update(id(piece.finding) for piece in place.pieces)
        lines.append(palette.paint(f"@@ {_where(place)} @@", "dim"))
        lines.append(palette.paint("-" + plain(_hidden(place.pieces)), "bad"))
        lines.append(palette.paint("+" + plain(_kept(place.pieces)), "good"))
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


def _summary(found: Previewed, *, width: int | None, palette: Palette) -> Iterator[str]:
    events = len({place.event for place in found.places})
    if not found.places:
        yield f"Nothing would be masked in the {count(found.events, 'event')} of {found.session}."
    else:
        secrets = count(len(found.places), "secret")
        yield f"{secrets} would be masked in {number(events)} of {count(found.events, 'event')} of {found.session}:"
        yield ""
        rows = [(Cell(rule), Cell(number(times)), Cell(confidence)) for rule, times, confidence in found.rules]
        yield table(_COLUMNS, rows, width=width, palette=palette)
    yield from _withheld(found)


def _withheld(found: Previewed) -> Iterator[str]:
    for one in found.withheld:
        yield f"not delivered but kept in quarantine: {plain(one.event or 'what is no event')}: {words(one.reason)}"


LEAVES = {
    "redact preview": Leaf(
        description=(
            "What would be masked in a session: how often each rule, and every place with the text around it as it "
            "would leave. No secret is ever shown, and nothing is delivered or remembered."
        ),
        examples=(
            Example("exporter redact preview --session 3f2a", "any unique beginning of the id will do"),
            Example("exporter redact preview --session 3f2a --diff", "line by line, bullets in place of the secrets"),
        ),
        build=_build,
        run=_run,
    )
}
