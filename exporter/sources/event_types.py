"""The known event types, by name, so that `doctor --schema` can name new ones; delivery does not use them.

The names are in `event_types.txt`, made from the schema that the CLI ships (`tests/real/event_types.py`).
"""

import re
from pathlib import Path
from typing import Final

KNOWN: Final = frozenset(Path(__file__).with_name("event_types.txt").read_text(encoding="ascii").split())
NO_NAME: Final = "(not a name)"
# What does not look like a name may be content, and is counted only.
_TYPE: Final = re.compile(r"[a-z][A-Za-z0-9_]{0,63}(\.[A-Za-z0-9_]{1,64}){0,4}")
_METHOD: Final = re.compile(r"[a-zA-Z]{1,40}(\.[a-zA-Z]{1,40}){0,4}")


def type_name(type: str) -> str:
    """Return an event's type if it may be shown, else what stands for such."""
    return type if _TYPE.fullmatch(type) else NO_NAME


def method_name(method: str) -> str:
    """Return the name of a method if it may be shown, else what stands for such."""
    return method if _METHOD.fullmatch(method) else NO_NAME
