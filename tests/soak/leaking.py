"""The program with a leak of memory and of descriptors, the control of the soak.

`python -m tests.soak.leaking PYTHON -m exporter ...` runs the command that follows it.
"""

import os
import sys
import threading
import time
from typing import Final

_EVERY_SECONDS: Final = 0.1


def _leak() -> None:
    kept: list[object] = []
    while True:
        kept.append((bytearray(b"x") * 400_000, os.open(os.devnull, os.O_RDONLY)))
        time.sleep(_EVERY_SECONDS)


if __name__ == "__main__":
    from exporter.__main__ import main

    threading.Thread(target=_leak, daemon=True).start()
    sys.argv = ["exporter", *sys.argv[4:]]
    sys.exit(main())
