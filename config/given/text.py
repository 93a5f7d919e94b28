"""Values of variables and flags, which are written as one text."""

import json
import re
from collections.abc import Callable
from urllib.parse import unquote

from config.fields import Field, Kind

_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_TRUTH = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


def from_text(field: Field, text: str) -> object:
    """The value that the text has for this field; an invalid text itself, which the check refuses."""
    return text if field.kind == "text" else _READERS[field.kind](text.strip())


def pairs(text: str) -> object:
    """The pairs of `name=value,name=value`, perhaps percent-encoded, as in OTEL_EXPORTER_OTLP_HEADERS.

    An invalid text itself.
    """
    found: dict[str, str] = {}
    for part in text.replace("\n", ",").split(","):
        name, equals, value = part.partition("=")
        if part.strip() and not (equals and name.strip()):
            return text
        if part.strip():
            found[unquote(name.strip())] = unquote(value.strip())
    return found


def _texts(text: str) -> object:
    return _json(text) if text.startswith("[") else [part.strip() for part in text.split(",") if part.strip()]


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


_READERS: dict[Kind, Callable[[str], object]] = {
    "integer": lambda text: int(text) if _INTEGER.fullmatch(text) else text,
    "number": lambda text: float(text) if _NUMBER.fullmatch(text) else text,
    "truth": lambda text: _TRUTH.get(text.lower(), text),
    "texts": _texts,
    "pairs": lambda text: _json(text) if text.startswith("{") else pairs(text),
    "tables": _json,
}
