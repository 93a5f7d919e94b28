"""Texts with NUL, which PostgreSQL does not take: a sign that stands for nothing else marks it, and itself.

Nothing else changes, so texts without the two are stored as they are, and compare as they do elsewhere.
"""

from collections.abc import Sequence
from typing import Any, Final

_MARK: Final = "\U0010ffff"
_MARK_BYTES: Final = _MARK.encode()
_NUL, _ITSELF = _MARK + "0", _MARK + "1"


def stored(text: str) -> str:
    """Return a text as the engine takes it."""
    if "\0" not in text and _MARK not in text:
        return text
    return text.replace(_MARK, _ITSELF).replace("\0", _NUL)


def loaded(content: bytes) -> str:
    """Return the text that is stored as these bytes."""
    text = str(content, "utf-8")
    return text.replace(_NUL, "\0").replace(_ITSELF, _MARK) if _MARK_BYTES in content else text


def stored_values(values: Sequence[Any]) -> list[Any]:
    """Return the values of a statement, or of a column, as the engine takes them."""
    return [stored(value) if type(value) is str else value for value in values]
