"""The settings of `up --demo`."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from config.settings import Settings


def of_demo(settings: "Settings") -> "Settings":
    """Return settings with which everything is apart from what is real, and nothing goes or comes."""
    home = Path(settings.state_dir) / "demo"
    return msgspec.structs.replace(
        settings,
        state_dir=str(home / "state"),
        copilot_home=str(home / "copilot"),
        source=(),
        mission_control={},
        otel={},
    )
