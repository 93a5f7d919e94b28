"""The commands: `write` makes golden outputs, `adopt` opens what another commit left, `compare` says what differs."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.golden import otlp
from tests.golden.captures import TREE, Capture, find_captures
from tests.golden.machine import Work, working
from tests.golden.store import Goldens

CAPTURES: Final = "GOLDEN_CAPTURES"
"""Further directories with captures, as PATH lists its own."""
Writer = Callable[[Goldens, Work, Sequence[Capture]], None]
WRITERS: Final[dict[str, Writer]] = {
    otlp.ENCODED: otlp.write_encoded,
    otlp.SENT: otlp.write_sent,
    otlp.FOLLOWED: otlp.write_followed,
}
