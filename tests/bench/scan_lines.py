"""detect-secrets as it is plainly used on sessions: decode each event, give each line of its texts to `scan_line`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from detect_secrets.core.scan import scan_line
from detect_secrets.settings import default_settings


def texts(value: object) -> Iterator[str]:
    """All strings of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def main(name: str) -> int:
    """Print how many findings there are."""
    found = 0
    with default_settings(), Path(name).open("rb") as source:
        for event in source:
            for text in texts(json.loads(event)):
                found += sum(1 for line in text.split("\n") for _ in scan_line(line))
    print(json.dumps({"found": found}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
