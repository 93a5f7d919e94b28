"""`exporter quarantine`: events that could not be sent, each with its reason."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from exporter.cli.command import CommandContext, argument, command
from exporter.cli.output.table import Cell, Column, TerminalView, pairs, table
from exporter.cli.output.text import ago, count, number, plain, size, words
from exporter.cli.session_ids import shown_ids
from exporter.cli.values import WholeNumber

_NUMBER: Final = WholeNumber(0, 10**12)
_SHOWN_MAX: Final = 4_000
_numbers: Final = argument(
    "numbers", type=_NUMBER, nargs=-1, required=True, metavar="N...", help="numbers shown by: exporter quarantine list"
)


@command()
def list_entries(context: CommandContext) -> int:
    """Lists events that could not be sent and why. They are kept on this machine for 30 days.

    Examples:
    exporter quarantine list  # all entries
    exporter quarantine list --json  # for scripts
    """
    answer = context.ask({"do": "quarantine_list"})
    return context.report(answer, lambda view: quarantine_text(answer["quarantined"], view))


@command()
@argument("number", type=_NUMBER, metavar="N", help="number shown by: exporter quarantine list")
def show(context: CommandContext, number: int) -> int:
    """Shows one quarantined event: reason, position and size, and the event itself if it can be redacted.

    Examples:
    exporter quarantine show 3  # entry 3; a long event is cut
    exporter quarantine show -v 3  # entry 3 in full
    """
    answer = context.ask({"do": "quarantine_show", "number": number})
    is_whole = context.verbose or not context.out.on_terminal
    return context.report(answer, lambda view: entry_text(answer, view, is_whole=is_whole))


@command()
@_numbers
def replay(context: CommandContext, numbers: tuple[int, ...]) -> int:
    """Redacts quarantined events again and sends them to the sinks that do not have them.

    Examples:
    exporter quarantine replay 3 4  # entries 3 and 4
    """
    answer = context.ask({"do": "quarantine_replay", "numbers": list(numbers)})
    return context.report(answer, lambda _: outcome_text("replayed", answer))


@command()
@_numbers
def drop(context: CommandContext, numbers: tuple[int, ...]) -> int:
    """Deletes quarantined events; they will not be delivered.

    Examples:
    exporter quarantine drop 3  # entry 3
    """
    answer = context.ask({"do": "quarantine_drop", "numbers": list(numbers)})
    return context.report(answer, lambda _: outcome_text("dropped", answer))


def quarantine_text(entries: Sequence[Mapping[str, Any]], view: TerminalView) -> str:
    """A line per entry."""
    if not entries:
        return "Nothing is quarantined."
    names = shown_ids(entries, view)
    columns = (
        Column("N", lambda entry: Cell(str(entry["n"]), "strong"), right=True),
        Column("REASON", lambda entry: Cell(words(entry["reason"]), "warn")),
        Column("SESSION", lambda entry: names[entry["session"]], spare=1),
        Column("OFFSET", lambda entry: number(entry["offset"]), right=True, spare=4),
        Column("SIZE", lambda entry: size(entry["size"]), right=True, spare=3),
        Column("SINK", lambda entry: entry.get("sink") or "all sinks", spare=2),
        Column("SINCE", lambda entry: ago(entry.get("since"), view.now)),
        Column("DETAIL", "detail", flex=True),
    )
    return table(columns, entries, view)


def entry_text(entry: Mapping[str, Any], view: TerminalView, *, is_whole: bool = True) -> str:
    """One entry; the event itself only when `text` holds it, which it does only if redaction passed it.

    A long event is shown from its beginning alone, unless `is_whole`.
    """
    rows = [
        ("number", Cell(str(entry["n"]), "strong")),
        ("reason", Cell(words(entry["reason"]), "warn")),
        ("detail", entry.get("detail")),
        ("session", entry["session"]),
        ("event", entry.get("event")),
        ("position", f"byte {number(entry['offset'])}, {size(entry['size'])}"),
        ("sink", entry.get("sink") or "all sinks"),
        ("since", ago(entry.get("since"), view.now)),
    ]
    text, paint = entry.get("text"), view.palette.paint
    shown = plain(text) if text else paint("The event is not shown because it cannot be redacted.", "dim")
    if not is_whole and len(shown) > _SHOWN_MAX:
        rest = f"… {count(len(shown) - _SHOWN_MAX, 'character')} more; use -v or a pipe to show all"
        shown = f"{shown[:_SHOWN_MAX]}\n{paint(rest, 'dim')}"
    return f"{pairs(rows, view)}\n\n{shown}"


def outcome_text(verb: str, answer: Mapping[str, Any]) -> str:
    """What became of the numbers: how many it was done to, and why not to the others (`left`: n and reason)."""
    done, left = answer.get("done", []), answer.get("left", [])
    lines = [f"{count(len(done), 'event')} {verb}."]
    lines += [f"{entry['n']} stays in quarantine: {words(entry.get('reason') or 'no reason given')}" for entry in left]
    return "\n".join(lines)
