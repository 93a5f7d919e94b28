"""Print the table of parity for the captures: `python -m tests.parity`."""

import sys

from tests.parity.compare import compare
from tests.parity.oracle import CAPTURES, captures
from tests.parity.table import table

sessions = captures()
if not sessions:
    sys.exit(f"There are no captures in {CAPTURES}.")
print(table([compare(session) for session in sessions]))
