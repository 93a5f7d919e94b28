"""One row per target: what was promised beside what was measured, for people, machines and the documentation."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

MARKED = re.compile(r"(<!-- bench:begin -->\n).*?(<!-- bench:end -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Row:
    """`holds` is None where nothing was promised; `figures` are the numbers behind the texts."""

    what: str
    target: str
    measured: str
    holds: bool | None
    figures: dict[str, object] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """One word for the last column."""
        return "" if self.holds is None else "pass" if self.holds else "MISS"


HEAD = ("", "target", "measured", "")


def plain(rows: Sequence[Row]) -> str:
    """The table for a terminal."""
    cells = [HEAD, *((row.what, row.target, row.measured, row.verdict) for row in rows)]
    wide = [max(len(line[column]) for line in cells) for column in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, wide, strict=True)).rstrip() for line in cells
    )


def markdown(rows: Sequence[Row], machine: dict[str, str], day: str) -> str:
    """The table for `docs/benchmarks.md`, with the machine it was measured on."""
    lines = ["| | target | measured | |", "|---|---|---|---|"]
    lines += [f"| {row.what} | {row.target} | {row.measured} | {row.verdict} |" for row in rows]
    where = f"{machine['cpu']}, {machine['cores']} cores, {machine['memory']}, {machine['system']}"
    return "\n".join([*lines, "", f"Measured on {day}: {where}, Python {machine['python']}."])


def write_json(path: Path, rows: Sequence[Row], machine: dict[str, str], day: str) -> None:
    """Everything, for machines."""
    value = {"day": day, "machine": machine, "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_table(path: Path, text: str) -> None:
    """Replaces what is between the marks; raises ValueError when the document has none."""
    document = path.read_text()
    if not MARKED.search(document):
        raise ValueError(f"{path} has no bench:begin and bench:end")
    path.write_text(MARKED.sub(lambda found: f"{found[1]}{text}\n{found[2]}", document))
