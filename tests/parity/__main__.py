"""Print the table of parity for the captures: `python -m tests.parity`."""

import sys

from tests.parity.compare import compare
from tests.parity.oracle import captures
from tests.parity.table import table
from tests.shared import REAL

sessions = captures()
if not sessions:  # neither captures nor fixtures
    sys.exit(f"There are no captures in {REAL}, and no fixtures.")
print(table([compare(session) for session in sessions]))
