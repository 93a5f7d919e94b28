"""Aligned columns that fit the terminal: what matters least leaves first, then the widest text is cut."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from exporter.cli.output.text import columns, number, plain, shorten

GAP: Final = "  "
FLEX_MIN: Final = 12
Tone = Literal["", "good", "warn", "bad", "dim", "strong"]
_ANSI: Final[dict[Tone, str]] = {"good": "32", "warn": "33", "bad": "31", "dim": "2", "strong": "1"}


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours text, or leaves it alone where colour is not wanted."""

    enabled: bool = False

    def paint(self, text: str, tone: Tone) -> str:
        code = _ANSI.get(tone)
        return f"\x1b[{code}m{text}\x1b[0m" if self.enabled and code and text else text


@dataclass(frozen=True, slots=True)
class TerminalView:
    """For whom a text is made: how wide the terminal is (None: nothing is cut), in which colours, and at what time."""

    width: int | None = None
    palette: Palette = Palette()
    now: datetime = field(default_factory=lambda: datetime.now().astimezone())


class Cell(NamedTuple):
    """What one place of a table shows, in a colour."""

    text: str | None
    tone: Tone = ""


def warning(value: int) -> Cell:
    """A number that is a warning unless it is 0."""
    return Cell(number(value), "warn" if value else "")


Value: TypeAlias = Cell | str | None
"""What one place of a table shows; made safe for a terminal when it is shown."""


@dataclass(frozen=True, slots=True)
class Column:
    """What stands in a column, and how it behaves when the terminal is narrow.

    `value` makes it of a row, or is the key that it has in the row. `spare` columns leave (highest first), the `flex`
    one is cut.
    """

    header: str
    value: str | Callable[[Any], Value]
    right: bool = False
    flex: bool = False
    spare: int = 0


def table(heads: Sequence[Column], rows: Iterable[Any], view: TerminalView) -> str:
    """A line per row below the headers, no line wider than the view, and no column without a value."""
    cells = [[_of(head, row) for head in heads] for row in rows]
    keep = [index for index in range(len(heads)) if any(row[index].text for row in cells)]
    widths = {i: max(columns(text) for text in (heads[i].header, *(row[i].text for row in cells))) for i in keep}
    if view.width is not None:
        keep = _fit(heads, keep, widths, view.width)
    cells.insert(0, [_Shown(head.header, "dim") for head in heads])
    return "\n".join(_line([(row[i], heads[i], widths[i]) for i in keep], view.palette) for row in cells)


def without_repeats(heads: Sequence[Column], rows: Sequence[Any]) -> tuple[list[Column], list[str]]:
    """Return the columns that tell rows apart, and `header value` of each that has one value in every row."""
    differing, alike = [], []
    for head in heads:
        values = {_of(head, row).text for row in rows}
        if len(rows) == 1 or len(values) > 1:
            differing.append(head)
        elif text := values.pop():
            alike.append(f"{head.header.lower()} {text}")
    return differing, alike


class _Shown(NamedTuple):
    text: str
    tone: Tone


def _of(head: Column, row: Any) -> _Shown:
    return _cell(row.get(head.value) if isinstance(head.value, str) else head.value(row))


def _cell(value: Value) -> _Shown:
    cell = value if isinstance(value, Cell) else Cell(value)
    return _Shown(plain(cell.text or ""), cell.tone)


def _fit(heads: Sequence[Column], keep: list[int], widths: dict[int, int], width: int) -> list[int]:
    """The columns that stay; narrows them in `widths`, those that are not flexible only where nothing else is left."""

    def least(indices: list[int]) -> int:
        taken = sum(min(widths[i], FLEX_MIN) if heads[i].flex else widths[i] for i in indices)
        return taken + len(GAP) * (len(indices) - 1)

    while least(keep) > width and any(heads[i].spare for i in keep):
        spare = max(keep, key=lambda i: heads[i].spare)
        keep = [i for i in keep if i != spare]
    over = sum(widths[i] for i in keep) + len(GAP) * (len(keep) - 1) - width
    for indices, narrowest in (([i for i in keep if heads[i].flex], FLEX_MIN), (keep, 1)):
        while over > 0 and (wide := [i for i in indices if widths[i] > narrowest]):
            widths[max(wide, key=lambda i: widths[i])] -= 1
            over -= 1
    return keep


def _line(places: Sequence[tuple[_Shown, Column, int]], palette: Palette) -> str:
    parts = []
    for (whole, tone), head, width in places:
        text = shorten(whole, width)
        padding, painted = " " * (width - columns(text)), palette.paint(text, tone)
        parts.append(padding + painted if head.right else painted + padding)
    return GAP.join(parts).rstrip()


def pairs(rows: Iterable[tuple[str, Value]], view: TerminalView) -> str:
    """Name and value, one pair a line; a pair without a value is left out."""
    shown = [(plain(name), cell) for name, value in rows if (cell := _cell(value)).text]
    wide = max((columns(name) for name, _ in shown), default=0)
    paint = view.palette.paint
    return "\n".join(f"{paint(name, 'dim')}{' ' * (wide - columns(name))}{GAP}{paint(*cell)}" for name, cell in shown)
