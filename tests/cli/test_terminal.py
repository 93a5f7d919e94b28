"""On a terminal: colour unless it is unwanted, the width obeyed, a bar for long work."""

import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from exporter.cli.output.output import Output
from exporter.cli.output.progress import ProgressBar
from tests.cli.program import command, environment

LONG_WORK = """
from contextlib import closing

from exporter.cli.output.output import Output
from exporter.cli.output.progress import ProgressBar

with closing(ProgressBar(Output(as_json=False, quiet={quiet}, color=True))) as progress:
    for done in range(0, 11):
        progress.update({{"sessions": 2, "sessions_done": done // 5, "events": done * 10, "bytes": done}})
"""


@contextmanager
def terminal(width: int) -> Iterator[tuple[int, int]]:
    """A pseudo terminal of this width: its two ends."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    try:
        yield ours, theirs
    finally:
        os.close(ours)
        os.close(theirs)


def on_terminal(line: list[str], *, width: int = 80, variables: dict[str, str] | None = None) -> str:
    """What a command writes to a terminal."""
    said = b""
    with terminal(width) as (ours, theirs):
        known = environment(**{"TERM": "xterm", **(variables or {})})
        with subprocess.Popen(line, env=known, stdin=theirs, stdout=theirs, stderr=theirs) as program:
            while program.poll() is None or select.select([ours], [], [], 0)[0]:
                if select.select([ours], [], [], 0.05)[0]:
                    said += os.read(ours, 1 << 16)
        assert program.returncode == 0
    return said.decode()


def test_the_terminal_gets_colour() -> None:
    assert "\x1b[1mbackfill\x1b[0m" in on_terminal(command("--help"))


@pytest.mark.parametrize(
    ("flags", "variables"), [(["--no-color"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"})]
)
def test_colour_can_be_declined(flags: list[str], variables: dict[str, str]) -> None:
    assert "\x1b" not in on_terminal(command(*flags, "--help"), variables=variables)


@pytest.mark.parametrize("width", [48, 80])
def test_a_table_fits_the_terminal(width: int) -> None:
    shown = on_terminal(command("--no-color", "config", "show"), width=width)

    assert max(len(line) for line in shown.splitlines()) <= width


def test_long_work_draws_a_bar_on_a_terminal() -> None:
    shown = on_terminal([sys.executable, "-c", LONG_WORK.format(quiet=False)], width=200)

    assert "2 of 2 sessions, 100 events" in shown


def test_the_bar_stays_on_a_narrow_terminal() -> None:
    shown = on_terminal([sys.executable, "-c", LONG_WORK.format(quiet=False)], width=40)

    assert "━━ 2 of 2 sessions" in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)


def test_quiet_draws_nothing() -> None:
    assert on_terminal([sys.executable, "-c", LONG_WORK.format(quiet=True)]) == ""


def test_elsewhere_progress_writes_at_most_a_line_a_second_and_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter([0.0, *(tenths / 10 for tenths in range(1, 27))])

    with closing(ProgressBar(Output(as_json=False, quiet=False, color=True), clock=lambda: next(clock))) as progress:
        for events in range(25):
            progress.update({"events": events})

    said = capsys.readouterr()
    assert said.out == ""
    assert [line.split(", ")[1] for line in said.err.splitlines()] == ["9 events", "19 events", "24 events"]


def test_elsewhere_progress_that_does_not_move_is_said_seldom(capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter([0.0, *map(float, range(1, 25))])

    with closing(ProgressBar(Output(as_json=False, quiet=False, color=True), clock=lambda: next(clock))) as progress:
        for _ in range(24):
            progress.update({"events": 3})

    assert len(capsys.readouterr().err.splitlines()) == 3
