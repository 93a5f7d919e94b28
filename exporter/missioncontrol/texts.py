"""The words of an event: what of its data a person may search for."""

from typing import Any, Final

import msgspec

from exporter.core.envelope import REFUSALS, Envelope, decode

FORMAT: Final = 2
"""Raised whenever `text_of` answers differently for the same bytes; an index of another format is built anew."""

LENGTH_MAX: Final = 256 * 1024
"""How many characters of one event can be found."""

_NOT_SAID: Final = frozenset(("currentModel", "encryptedContent", "model", "reasoningOpaque", "signature"))
_KIND_OF_CALL: Final = "function"
_TOLD: Final = frozenset((str, dict, list))


class _Content(msgspec.Struct):
    data: Any = None


_decode: Final = msgspec.json.Decoder(_Content).decode
_decode_data: Final = msgspec.json.Decoder(Any).decode


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
    """Take the raw data of what msgspec does not read (lone surrogates, deep nesting): its words are in there too."""
    envelope = decode(body)
    if isinstance(envelope, Envelope):
        found.append(bytes(envelope.data).decode("utf-8", "replace"))
