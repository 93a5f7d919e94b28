"""The searchable text of an event, and its normal form.

Composed characters and letters of either case are equal. Both the index and the search in a text use `folded`, which
changes no position.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Any, Final

import msgspec

from exporter.core.events.envelope import REFUSALS, Envelope, decode, read_object

FORMAT: Final = 4
"""Raised whenever `words_of` answers differently for the same bytes; an index of another format is built again."""

LENGTH_MAX: Final = 256 * 1024
"""How many characters of one event can be found."""

_CHANGED_MAX: Final = 30
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_NOT_SAID: Final = frozenset(("currentModel", "encryptedContent", "model", "reasoningOpaque", "signature"))
_KIND_OF_CALL: Final = "function"
_TOLD: Final = frozenset((str, dict, list))


class _Content(msgspec.Struct):
    data: Any = None


_decode: Final = msgspec.json.Decoder(_Content).decode


def words_of(body: bytes) -> str:
    """Return the words of an event for an index that parts ASCII by itself, and takes all else for letters."""
    text = text_of(body)
    if text.isascii():
        return text
    changed = {sign: word for sign in set(_NOT_ASCII.findall(text)) if (word := _word(sign)) != sign}
    if len(changed) > _CHANGED_MAX:
        return text.translate({ord(sign): word for sign, word in changed.items()})
    for sign, word in changed.items():  # mostly a dash or two, for which this is several times as fast
        text = text.replace(sign, word)
    return text


@lru_cache(4096)
def _word(sign: str) -> str:
    """Return what the index has for a character that is not ASCII: its small letter, or a space."""
    small = _small(sign)
    return small if small.isalnum() else " "


def folded(text: str) -> str:
    """Return a text in which the same letters are the same characters; each stays where it is in composed text."""
    return text.lower() if text.isascii() else _small(composed(text))


def composed(text: str) -> str:
    """Return a text with one character for what may be written as several."""
    return unicodedata.normalize("NFC", text)


def _small(text: str) -> str:
    # Of all capitals I with a dot alone is two characters when it is small, and the end of a word changes sigma alone.
    return text.replace("\u0130", "i").lower().replace("\u03c2", "\u03c3")


def text_of(body: bytes) -> str:
    """Return every string in the event's data, composed, one below the other, but no identifiers and models.

    Never raises.
    """
    found: list[str] = []
    try:
        _collect(_decode(body).data, found)
    except REFUSALS:
        _collect_leniently(body, found)
    text = "\n".join(found)
    return composed(text if len(text) <= LENGTH_MAX else text[:LENGTH_MAX])


def _collect(value: Any, found: list[str]) -> None:
    if type(value) is dict:
        for key, inner in value.items():
            kind = type(inner)
            if kind not in _TOLD or key[-2:] == "Id" or key in _NOT_SAID:
                continue
            if kind is str:
                if inner != _KIND_OF_CALL or key != "type":
                    found.append(inner)
            else:
                _collect(inner, found)
    elif type(value) is list:
        for inner in value:
            _collect(inner, found)
    elif type(value) is str:
        found.append(value)


def _collect_leniently(body: bytes, found: list[str]) -> None:
    """Collect the strings of data that msgspec refuses; the raw text when there are none."""
    envelope = decode(body)
    if not isinstance(envelope, Envelope):
        return
    found.clear()
    _collect(read_object(envelope.data), found)
    if not found:
        found.append(bytes(envelope.data).decode("utf-8", "replace"))
