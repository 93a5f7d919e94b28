"""Reading what a host sent, leniently: a field of another kind than expected reads as absent."""

from typing import Any, Final, TypeAlias

NUMBER_MAX: Final = (1 << 53) - 1
Json: TypeAlias = dict[str, Any]


def mapping(holder: Any, key: str) -> Json:
    """Return an object, empty when there is none."""
    value = holder.get(key) if isinstance(holder, dict) else None
    return value if isinstance(value, dict) else {}


def text(holder: Any, key: str, default: str = "") -> str:
    """Return a string."""
    value = holder.get(key) if isinstance(holder, dict) else None
    return value if isinstance(value, str) else default


def number(holder: Any, key: str) -> int | None:
    """Return a whole number that JSON's readers agree on, None when there is none."""
    value = holder.get(key) if isinstance(holder, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= NUMBER_MAX else None


def objects(holder: Any, key: str) -> list[Json]:
    """Return the objects of an array; what else is in it is left out."""
    value = holder.get(key) if isinstance(holder, dict) else None
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def strings(holder: Any, key: str) -> list[str]:
    """Return the strings of an array."""
    value = holder.get(key) if isinstance(holder, dict) else None
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def display_text(value: Any) -> str:
    """Return a text that may also be given as `{"markdown": ...}`."""
    if isinstance(value, dict):
        value = value.get("markdown")
    return value if isinstance(value, str) else ""
