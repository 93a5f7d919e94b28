"""Progress of long work: a bar on a terminal; elsewhere a plain line at most every second, and one at the end."""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from exporter.cli.output.output import Output
from exporter.cli.output.text import count, duration, number, shorten, size

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

BAR_WIDTH: Final = 14
PLAIN_INTERVAL_SECONDS: Final = 1.0
UNCHANGED_INTERVAL_SECONDS: Final = 10.0


def progress_text(report: Mapping[str, Any], elapsed_seconds: float) -> str:
    """One report as a sentence: sessions, events, MB, MB/s, time left, secrets masked; what can be cut comes last."""
    done, total = report.get("bytes", 0), report.get("bytes_total", 0)
    rate = done / elapsed_seconds if elapsed_seconds > 0 else 0.0
    parts = [
        f"{number(report.get('sessions_done', 0))} of {count(report.get('sessions', 0), 'session')}",
        count(report.get("events", 0), "event"),
    ]
    if total or done:
        parts += [f"{size(done)} of {size(total)}" if total else size(done), f"{size(rate)}/s"]
    if rate > 0 and total > done:
        parts.append(f"{duration((total - done) / rate)} left")
    if "masked" in report:
        parts.append(f"{count(report['masked'], 'secret')} redacted")
    return ", ".join(parts)


class ProgressBar:
    """Shows the reports that `update` gets while it is open; costs nothing before the first one."""

    def __init__(self, out: Output, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._clock = clock
        self._bar: Bar | None = None
        self._started = clock()
        self._shown_at = self._started
        self._shown: Mapping[str, Any] | None = None
        self._latest: Mapping[str, Any] | None = None

    def update(self, report: Mapping[str, Any]) -> None:
        """Takes a report in the shape of the control socket, with or without its `progress` wrapper."""
        if self._out.quiet:
            return
        report = report.get("progress", report)
        if self._out.notices_on_terminal:
            self._draw(report)
            return
        self._latest = dict(report)
        now = self._clock()
        if now - self._shown_at >= (
            UNCHANGED_INTERVAL_SECONDS if self._latest == self._shown else PLAIN_INTERVAL_SECONDS
        ):
            self._print(self._latest, now)

    def close(self) -> None:
        """Ends the bar. Without a terminal, prints the last report if an earlier one was printed."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        if self._latest is not None and self._shown not in (None, self._latest):
            self._print(self._latest, self._clock())

    def _print(self, report: Mapping[str, Any], now: float) -> None:
        self._shown, self._shown_at = report, now
        self._out.notice(progress_text(report, now - self._started))

    def _draw(self, report: Mapping[str, Any]) -> None:
        if self._bar is None:
            self._bar = _new_bar(colored=self._out.notice_palette.enabled)
            self._bar.add_task("", total=None, said="")
            self._bar.start()
        elapsed = self._clock() - self._started
        self._bar.update(
            self._bar.task_ids[0],
            total=report.get("bytes_total") or None,
            completed=report.get("bytes", 0),
            said=shorten(progress_text(report, elapsed), self._bar.console.width - BAR_WIDTH - 2),
        )


def _new_bar(*, colored: bool) -> "Bar":
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True, no_color=not colored, highlight=False)
    said = TextColumn("{task.fields[said]}", markup=False)
    return Bar(BarColumn(bar_width=BAR_WIDTH), said, console=console, transient=True)
