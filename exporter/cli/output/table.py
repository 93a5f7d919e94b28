"""Aligned columns that fit the terminal: what matters least leaves first, then the widest text is cut."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from exporter.cli.output.text import columns, shorten

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


class Cell(NamedTuple):
    """What one place of a table shows."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Column:
    """How a column behaves when the terminal is narrow: `spare` ones leave (highest first), the `flex` one is cut."""

    header: str
    right: bool = False
    flex: bool = False
    spare: int = 0


def table(heads: Sequence[Column], rows: Sequence[Sequence[Cell]], *, width: int | None, palette: Palette) -> str:
    """The rows below their headers, no line wider than `width` (None: as wide as it takes) where that is possible."""
    keep = [index for index in range(len(heads)) if any(row[index].text for row in rows)]
    widths = {index: max([columns(heads[index].header), *(columns(row[index].text) for row in rows)]) for index in keep}
    if width is not None:
        keep = _fit(heads, keep, widths, width)
    lines = [
        _line(
            [Cell(heads[i].header, "dim") for i in keep], [heads[i] for i in keep], [widths[i] for i in keep], palette
        )
    ]
    for row in rows:
        lines.append(_line([row[i] for i in keep], [heads[i] for i in keep], [widths[i] for i in keep], palette))
    return "\n".join(lines)


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


def _line(cells: Sequence[Cell], heads: Sequence[Column], widths: Sequence[int], palette: Palette) -> str:
    parts = []
    for position, (cell, head, width) in enumerate(zip(cells, heads, widths, strict=True)):
        text = shorten(cell.text, width)
        padding = " " * (width - columns(text))
        painted = palette.paint(text, cell.tone)
        is_last = position == len(cells) - 1
        parts.append(padding + painted if head.right else painted if is_last else painted + padding)
    return GAP.join(parts).rstrip()


def pairs(rows: Sequence[tuple[str, Cell]], *, palette: Palette) -> str:
    """Name and value, one pair a line; a pair without a value is left out."""
    shown = [(name, cell) for name, cell in rows if cell.text]
    wide = max((columns(name) for name, _ in shown), default=0)
    return "\n".join(
        palette.paint(name, "dim") + " " * (wide - columns(name)) + GAP + palette.paint(cell.text, cell.tone)
        for name, cell in shown
    )
