"""`exporter quarantine`: events that could not be sent, each with its reason."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from exporter.cli.command import argument, command
from exporter.cli.context import CommandContext
from exporter.cli.output.table import Cell, Column, View, pairs, table
from exporter.cli.output.text import ago, count, number, plain, size, words
from exporter.cli.session_ids import shown_ids
from exporter.cli.values import WholeNumber

_COLUMNS: Final = (
    Column("N", right=True),
    Column("REASON"),
    Column("SESSION", spare=1),
    Column("AT BYTE", right=True, spare=4),
    Column("SIZE", right=True, spare=3),
    Column("SINK", spare=2),
    Column("SINCE"),
    Column("DETAIL", flex=True),
)
_NUMBER: Final = WholeNumber(0, 10**12)
_SHOWN_MAX: Final = 4_000
_numbers: Final = argument(
    "numbers", type=_NUMBER, nargs=-1, required=True, metavar="N...", help="numbers from: exporter quarantine list"
)


@command(
    examples={"exporter quarantine list": "all of them", "exporter quarantine list --json": "for scripts"},
)
def list_entries(context: CommandContext) -> int:
    """Events that could not be sent, kept on this machine for 30 days, each with its reason."""
    answer = context.ask({"do": "quarantine_list"})
    return context.report(answer, lambda view: quarantine_text(answer["quarantined"], view))


@command(
    examples={
        "exporter quarantine show 3": "number 3 of the list; of a long event its beginning",
        "exporter quarantine show -v 3": "all of it",
    }
)
@argument("number", type=_NUMBER, metavar="N", help="number from: exporter quarantine list")
def show(context: CommandContext, number: int) -> int:
    """One quarantined event: reason, place, size; the event itself only if redaction passes it."""
    answer = context.ask({"do": "quarantine_show", "number": number})
    is_whole = context.verbose or not context.out.on_terminal
    return context.report(answer, lambda view: entry_text(answer, view, is_whole=is_whole))


@command(examples={"exporter quarantine replay 3 4": "these two"})
@_numbers
def replay(context: CommandContext, numbers: tuple[int, ...]) -> int:
    """Sends quarantined events again through redaction to the sinks they are owed to."""
    answer = context.ask({"do": "quarantine_replay", "numbers": list(numbers)})
    return context.report(answer, lambda _: outcome_text("replayed", answer))


@command(examples={"exporter quarantine drop 3": "number 3 of the list"})
@_numbers
def drop(context: CommandContext, numbers: tuple[int, ...]) -> int:
    """Forgets quarantined events for good: they will not be delivered."""
    answer = context.ask({"do": "quarantine_drop", "numbers": list(numbers)})
    return context.report(answer, lambda _: outcome_text("dropped", answer))


def quarantine_text(entries: Sequence[Mapping[str, Any]], view: View) -> str:
    """A line per entry."""
    if not entries:
        return "Nothing is quarantined."
    names = shown_ids(entries, view)
    rows = [
        (
            Cell(str(entry["n"]), "strong"),
            Cell(words(entry["reason"]), "warn"),
            names[entry["session"]],
            number(entry["offset"]),
            size(entry["size"]),
            entry.get("sink") or "every sink",
            ago(entry.get("since"), view.now),
            entry.get("detail"),
        )
        for entry in entries
    ]
    return table(_COLUMNS, rows, view)


def entry_text(entry: Mapping[str, Any], view: View, *, is_whole: bool = True) -> str:
    """One entry; the event itself only when `text` holds it, which it does only if redaction passed it.

    A long event is shown from its beginning alone, unless `is_whole`.
    """
    rows = [
        ("number", Cell(str(entry["n"]), "strong")),
        ("reason", Cell(words(entry["reason"]), "warn")),
        ("detail", entry.get("detail")),
        ("session", entry["session"]),
        ("event", entry.get("event")),
        ("place", f"byte {number(entry['offset'])}, {size(entry['size'])}"),
        ("sink", entry.get("sink") or "every sink"),
        ("since", ago(entry.get("since"), view.now)),
    ]
    text, paint = entry.get("text"), view.palette.paint
    shown = plain(text) if text else paint("The event itself is not shown: it does not pass redaction.", "dim")
    if not is_whole and len(shown) > _SHOWN_MAX:
        rest = f"… {count(len(shown) - _SHOWN_MAX, 'character')} more; -v or a pipe shows them all"
        shown = f"{shown[:_SHOWN_MAX]}\n{paint(rest, 'dim')}"
    return f"{pairs(rows, view)}\n\n{shown}"


def outcome_text(verb: str, answer: Mapping[str, Any]) -> str:
    """What became of the numbers: how many it was done to, and why not to the others (`left`: n and reason)."""
    done, left = answer.get("done", []), answer.get("left", [])
    lines = [f"{count(len(done), 'event')} {verb}."]
    lines += [f"{entry['n']} stays in quarantine: {words(entry.get('reason') or 'no reason given')}" for entry in left]
    return "\n".join(lines)
