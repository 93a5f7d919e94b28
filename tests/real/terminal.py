"""Run inside the cage: gives a program a terminal, types what comes through a FIFO, writes what it shows to a file.

Stands alone, like `enter.py`: `terminal.py KEYS SCREEN COMMAND…`. Ends with the program's return code.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import sys
import termios
from pathlib import Path

ROWS, COLUMNS = 40, 120


def main(keys: str, screen: str, command: list[str]) -> int:
    """Start the command on a terminal of its own and serve it until it ends."""
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    typed = os.open(keys, os.O_RDWR | os.O_NONBLOCK)
    with Path(screen).open("ab", buffering=0) as shown:
        while True:
            ready, _, _ = select.select([terminal, typed], [], [])
            if typed in ready:
                os.write(terminal, os.read(typed, 4096))
            if terminal in ready:
                try:
                    content = os.read(terminal, 65536)
                except OSError:
                    break
                if not content:
                    break
                shown.write(content)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
