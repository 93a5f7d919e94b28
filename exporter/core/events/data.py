"""Reading an event's `data` as an object, at full speed where msgspec reads it and as far as possible where not.

Real events hold what msgspec refuses: half of a surrogate pair that JavaScript cut through, numbers beyond all
bounds, deep nesting. Whoever looks for one field of such an event shall find it all the same.
"""

import json
import math
import re
from typing import Any, Final

import msgspec

from exporter.core.events.envelope import REFUSALS
from exporter.core.events.json_scanner import NotJsonError, members

_LEVELS_MAX: Final = 4
_DIGITS_MAX: Final = 4_000
# Escaped backslashes and whole pairs are passed over, so that the group is half of a pair and nothing else.
_HALF: Final = re.compile(
    rb"(?:\\\\)++|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


def read_object(data: bytes | msgspec.Raw) -> dict[str, Any]:
    """Return the object that these bytes hold, empty when they hold none. Never raises.

    Half of a surrogate pair reads as U+FFFD, a number out of range as None. What nests too deep reads as None, and
    what stands beside it is there.
    """
    try:
        return _decode(data)
    except REFUSALS:
        return _read_slowly(bytes(data).strip(b" \t\r\n"))


def _read_slowly(text: bytes) -> dict[str, Any]:
    if not text.startswith(b"{"):
        return {}
    value = _value(_HALF.sub(lambda found: b"\\ufffd" if found[1] else found[0], text), _LEVELS_MAX)
    return value if isinstance(value, dict) else {}


def _value(text: bytes, levels: int) -> Any:
    try:
        return _loads(text.decode("utf-8", "replace"))
    except ValueError:
        return None
    except RecursionError:
        return _around_deep(text, levels - 1) if levels and text.startswith(b"{") else None


def _loads(text: str) -> Any:
    return json.loads(text, parse_int=_integer, parse_float=_finite, parse_constant=lambda _: None)


def _around_deep(text: bytes, levels: int) -> dict[str, Any] | None:
    try:
        fields, _ = members(text)
    except NotJsonError:
        return None
    return {str(_value(b'"%b"' % key, 0)): _value(text[start:end], levels) for key, (start, end) in fields.items()}


def _integer(digits: str) -> int | None:
    return int(digits) if len(digits) <= _DIGITS_MAX else None


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None
