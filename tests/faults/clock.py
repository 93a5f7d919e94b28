"""Programs whose clock libfaketime moves or speeds up."""

from pathlib import Path
from typing import Final

import pytest

from tests.faults.packages import MissingError, root
from tests.program.driver import Machine

DAY_SECONDS: Final = 86_400


def _preload() -> str:
    try:
        return str(next(root("libfaketime").glob("usr/lib/*/faketime/libfaketimeMT.so.1")))
    except MissingError as why:
        pytest.skip(f"libfaketime: {why}")


def speed_up(machine: Machine, times: int) -> None:
    """Let every clock of what is started on the machine run so many times faster."""
    machine.environment |= {"LD_PRELOAD": _preload(), "FAKETIME": f"+0 x{times}"}


class WallClock:
    """The wall clock of what is started on the machine; other clocks run as always, as when a person sets the time."""

    def __init__(self, machine: Machine) -> None:
        self.file: Path = machine.root / "clock"
        self.move(0)
        machine.environment |= {
            "LD_PRELOAD": _preload(),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }

    def move(self, seconds: int) -> None:
        """Be so far from the truth from now on."""
        new = self.file.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        new.replace(self.file)
