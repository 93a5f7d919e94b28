"""Names of secrets that nothing is given to, told by the few bytes around their ends.

Prose and programs speak of passwords and keys far more often than they hold one. Where a name ends its line, a value is
looked for only behind a word such as `value` in the lines below; where it is a quoted subscript, nowhere.
"""

import re
from typing import Final

# Farther off than this no gate matches the word that a value is behind.
_BELOW_LENGTH: Final = 200
# One of these is in every name of `pairs.VALUE_NAMES`.
VALUE_WORDS: Final = (b"val", b"default", b"content", b"string")
_SUBSCRIPT: Final = re.compile(rb"\[\\{0,15}[\"'][\w.\-]{1,60}\\{0,15}[\"']\]")
_SUBSCRIPT_LENGTH: Final = 80
_BACKSLASH: Final = 0x5C
_NEWLINES: Final = frozenset(b"nr")
_QUOTES: Final = frozenset(b"\"'")


def is_ended(data: bytes, to: int) -> bool:
    """Whether the name of which what follows begins right before `to` is one that no value can be given to."""
    last = data[to - 1]
    if last == _BACKSLASH:
        after = data[to : to + 1]
        if after in (b"n", b"r"):
            return _is_alone(data, to + 1)
        return after in (b'"', b"'", b"\\") and _is_subscript(data, to)
    if last in _NEWLINES:
        return data[to - 2] == _BACKSLASH and data[to - 3] != _BACKSLASH and _is_alone(data, to)
    return last in _QUOTES and _is_subscript(data, to)


def _is_alone(data: bytes, start: int) -> bool:
    """Whether none of the words that a value is behind stands below."""
    below = data[start : start + _BELOW_LENGTH].lower()
    return not any(word in below for word in VALUE_WORDS)


def _is_subscript(data: bytes, to: int) -> bool:
    opened = data.rfind(b"[", max(0, to - _SUBSCRIPT_LENGTH), to)
    found = _SUBSCRIPT.match(data, opened) if opened >= 0 else None
    return found is not None and found.end() >= to
