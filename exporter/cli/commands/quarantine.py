"""`exporter quarantine`: events that could not be sent, each with its reason."""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from exporter.cli.context import CommandContext
from exporter.cli.output.table import Cell, Column, Palette, pairs, table
from exporter.cli.output.text import ago, count, number, plain, size, words
from exporter.cli.parser import whole_number
from exporter.cli.registry import Example, Leaf
from exporter.cli.session_ids import short_ids

_COLUMNS = (
    Column("N", right=True),
    Column("REASON"),
    Column("SESSION", spare=1),
    Column("AT BYTE", right=True, spare=4),
    Column("SIZE", right=True, spare=3),
    Column("SINK", spare=2),
    Column("SINCE"),
    Column("DETAIL", flex=True),
)
_NUMBER = whole_number(0, 10**12)
_SHOWN_MAX: Final = 4_000


def _build_list(_: ArgumentParser) -> None:
    """`quarantine list` takes no arguments of its own."""


def _build_one(parser: ArgumentParser) -> None:
    parser.add_argument("number", type=_NUMBER, metavar="N", help="number from: exporter quarantine list")


def _build_many(parser: ArgumentParser) -> None:
    parser.add_argument("numbers", type=_NUMBER, nargs="+", metavar="N", help="numbers from: exporter quarantine list")


def _run_list(invocation: CommandContext) -> int:
    answer, out = invocation.ask({"do": "quarantine_list"}), invocation.out
    now = datetime.now().astimezone()
    out.result(answer, lambda: quarantine_text(answer["quarantined"], now=now, width=out.width, palette=out.palette))
    return 0


def _run_show(invocation: CommandContext) -> int:
    answer = invocation.ask({"do": "quarantine_show", "number": invocation.args.number})
    out, now = invocation.out, datetime.now().astimezone()
    is_whole = not out.on_terminal or bool(invocation.args.verbose)
    out.result(answer, lambda: entry_text(answer, now=now, palette=out.palette, is_whole=is_whole))
    return 0


def _run_replay(invocation: CommandContext) -> int:
    answer = invocation.ask({"do": "quarantine_replay", "numbers": invocation.args.numbers})
    invocation.out.result(answer, lambda: outcome_text("replayed", answer))
    return int(answer.get("exit", 0))


def _run_drop(invocation: CommandContext) -> int:
    answer = invocation.ask({"do": "quarantine_drop", "numbers": invocation.args.numbers})
    invocation.out.result(answer, lambda: outcome_text("dropped", answer))
    return int(answer.get("exit", 0))


def quarantine_text(entries: Sequence[Mapping[str, Any]], *, now: datetime, width: int | None, palette: Palette) -> str:
    """A line per entry."""
    if not entries:
        return "Nothing is quarantined."
    names = short_ids(entry["session"] for entry in entries) if width else {}
    rows = [
        (
            Cell(str(entry["n"]), "strong"),
            Cell(words(entry["reason"]), "warn"),
            Cell(names.get(entry["session"], plain(entry["session"]))),
            Cell(number(entry["offset"])),
            Cell(size(entry["size"])),
            Cell(plain(entry.get("sink") or "every sink")),
            Cell(ago(entry.get("since"), now)),
            Cell(plain(entry.get("detail") or "")),
        )
        for entry in entries
    ]
    return table(_COLUMNS, rows, width=width, palette=palette)


def entry_text(entry: Mapping[str, Any], *, now: datetime, palette: Palette, is_whole: bool = True) -> str:
    """One entry; the event itself only when `text` holds it, which it does only if redaction passed it.

    A long event is shown from its beginning alone, unless `is_whole`.
    """
    rows = [
        ("number", Cell(str(entry["n"]), "strong")),
        ("reason", Cell(words(entry["reason"]), "warn")),
        ("detail", Cell(plain(entry.get("detail") or ""))),
        ("session", Cell(plain(entry["session"]))),
        ("event", Cell(plain(entry.get("event") or ""))),
        ("place", Cell(f"byte {number(entry['offset'])}, {size(entry['size'])}")),
        ("sink", Cell(plain(entry.get("sink") or "every sink"))),
        ("since", Cell(ago(entry.get("since"), now))),
    ]
    text = entry.get("text")
    shown = plain(text) if text else palette.paint("The event itself is not shown: it does not pass redaction.", "dim")
    if not is_whole and len(shown) > _SHOWN_MAX:
        rest = f"… {count(len(shown) - _SHOWN_MAX, 'character')} more; -v or a pipe shows them all"
        shown = f"{shown[:_SHOWN_MAX]}\n{palette.paint(rest, 'dim')}"
    return f"{pairs(rows, palette=palette)}\n\n{shown}"


def outcome_text(verb: str, answer: Mapping[str, Any]) -> str:
    """What became of the numbers: how many it was done to, and why not to the others (`left`: n and reason)."""
    done, left = answer.get("done", []), answer.get("left", [])
    lines = [f"{count(len(done), 'event')} {verb}."]
    lines += [f"{entry['n']} stays in quarantine: {words(entry.get('reason') or 'no reason given')}" for entry in left]
    return "\n".join(lines)


LEAVES = {
    "quarantine list": Leaf(
        description="Events that could not be sent, kept on this machine for 30 days, each with its reason.",
        examples=(
            Example("exporter quarantine list", "all of them"),
            Example("exporter quarantine list --json", "for scripts"),
        ),
        build=_build_list,
        run=_run_list,
    ),
    "quarantine show": Leaf(
        description="One quarantined event: reason, place, size; the event itself only if redaction passes it.",
        examples=(
            Example("exporter quarantine show 3", "number 3 of the list; of a long event its beginning"),
            Example("exporter quarantine show -v 3", "all of it"),
        ),
        build=_build_one,
        run=_run_show,
    ),
    "quarantine replay": Leaf(
        description="Sends quarantined events again through redaction to the sinks they are owed to.",
        examples=(Example("exporter quarantine replay 3 4", "these two"),),
        build=_build_many,
        run=_run_replay,
    ),
    "quarantine drop": Leaf(
        description="Forgets quarantined events for good: they will not be delivered.",
        examples=(Example("exporter quarantine drop 3", "number 3 of the list"),),
        build=_build_many,
        run=_run_drop,
    ),
}
