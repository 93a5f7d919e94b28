"""Scenarios in text: a line that begins with `> ` is given to a machine, and the lines below it are what it says.

Everything else (comments, blank lines) stays as it is. `pytest tests/core --rewrite-scenarios` writes what the
machines say now; what changed is then read in the diff.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

Machine: TypeAlias = Callable[[list[str]], list[str]]
SCENARIOS: Final = Path(__file__).parent / "scenarios"
COMMAND: Final = "> "
ANSWER: Final = "    "


def scenarios(prefix: str) -> list[Path]:
    """The scenarios of one machine."""
    found = sorted(SCENARIOS.glob(f"{prefix}_*.txt"))
    assert found, prefix
    return found


def play(text: str, machine: Machine) -> str:
    """The scenario with what the machine says now."""
    told: list[str] = []
    for line in text.splitlines():
        if line.startswith(ANSWER):
            continue
        told.append(line)
        if line.startswith(COMMAND):
            told.extend(ANSWER + said for said in machine(line.removeprefix(COMMAND).split()))
    return "\n".join(told) + "\n"


def check(path: Path, machine: Machine, rewrite: bool) -> None:
    """Compare a scenario with what the machine says, or write that into it."""
    before = path.read_text()
    now = play(before, machine)
    if rewrite:
        path.write_text(now)

    assert now == before
