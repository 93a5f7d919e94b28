"""The words of an event: what of its data a person may search for."""

from typing import Any, Final

import msgspec

from exporter.core.envelope import REFUSALS, Envelope, decode
from exporter.core.event_data import read_object

FORMAT: Final = 3
"""Raised whenever `text_of` answers differently for the same bytes; an index of another format is built anew."""

LENGTH_MAX: Final = 256 * 1024
"""How many characters of one event can be found."""

_NOT_SAID: Final = frozenset(("currentModel", "encryptedContent", "model", "reasoningOpaque", "signature"))
_KIND_OF_CALL: Final = "function"
_TOLD: Final = frozenset((str, dict, list))


class _Content(msgspec.Struct):
    data: Any = None


_decode: Final = msgspec.json.Decoder(_Content).decode


def text_of(body: bytes) -> str:
    """Return every string in the event's data, one below the other, but no identifiers and models. Never raises."""
    found: list[str] = []
    try:
        _collect(_decode(body).data, found)
    except REFUSALS:
        _collect_leniently(body, found)
    text = "\n".join(found)
    return text if len(text) <= LENGTH_MAX else text[:LENGTH_MAX]


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
    """Take what can be had of data that msgspec does not read, and as they stand where that is nothing."""
    envelope = decode(body)
    if not isinstance(envelope, Envelope):
        return
    found.clear()
    _collect(read_object(envelope.data), found)
    if not found:
        found.append(bytes(envelope.data).decode("utf-8", "replace"))
