"""What processes and directories take over time, whether it stays flat, and how that looks in a terminal."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_BARS: Final = "▁▂▃▄▅▆▇█"
_WIDTH: Final = 60
_PAIRS_OF: Final = 300


def memory_bytes(process: int) -> int:
    """Return what a process has in memory now."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def descriptors(process: int) -> int:
    """Return how many descriptors a process has open."""
    return sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())


def other_bytes(directory: Path, *on_purpose: str) -> int:
    """Return the size of a directory's files, but for those that keep something on purpose."""
    total = 0
    for path in directory.rglob("*"):
        try:
            total += path.stat().st_size if path.name not in on_purpose and path.is_file() else 0
        except FileNotFoundError:
            continue
    return total


@dataclass(slots=True)
class Series:
    """One figure by time. `bound` is how far it may rise over the judged time, by the slope through all points.

    A point that is not a number is a time in which there was nothing to measure.
    """

    name: str
    unit: str
    divisor: float
    bound: float
    points: list[float] = field(default_factory=list)

    def add(self, value: float) -> None:
        self.points.append(value / self.divisor)

    def rise(self, judged: range) -> float:
        """Return how far it rises over the judged points: the slope that half of all pairs exceed, times their number.

        A few points far off, such as those of an outage, do not move it.
        """
        some = [(at, self.points[at]) for at in judged if not math.isnan(self.points[at])]
        some = some[:: max(1, len(some) // _PAIRS_OF)]
        slopes = [(b - a) / (late - early) for n, (early, a) in enumerate(some) for late, b in some[n + 1 :]]
        return statistics.median(slopes) * len(judged) if slopes else 0.0

    def plot(self) -> str:
        """Return the points as one row of blocks, the least at the bottom; a gap is blank."""
        width = min(_WIDTH, len(self.points))
        cells = [self.points[n * len(self.points) // width : (n + 1) * len(self.points) // width] for n in range(width)]
        means = [statistics.fmean(some) if (some := _numbers(cell)) else math.nan for cell in cells]
        low, high = min(_numbers(means), default=0.0), max(_numbers(means), default=0.0)
        step = (high - low) / (len(_BARS) - 1) or 1.0
        return "".join(" " if math.isnan(one) else _BARS[round((one - low) / step)] for one in means)

    def told(self, judged: range) -> str:
        """Return the figure as a line: its plot, its least and largest value, and how far it rises."""
        some, rise = _numbers(self.points), self.rise(judged)
        verdict = "flat" if rise <= self.bound else "GROWS"
        figures = f"{min(some, default=0):7.1f} to {max(some, default=0):7.1f} {self.unit:6}"
        return f"{self.name:22} {self.plot()} {figures} rises {rise:+7.2f} of {self.bound:g} {verdict}"


def _numbers(points: Sequence[float]) -> list[float]:
    return [one for one in points if not math.isnan(one)]
