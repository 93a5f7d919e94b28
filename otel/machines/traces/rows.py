"""Rows of what data says: which field of a payload becomes which attribute.

A row is a table in the code and a function when it runs. The function is written out once, as `dataclasses` does it,
because a loop over the table would take four times as long, and a million events have ten million attributes.
"""

from collections.abc import Callable
from types import UnionType
from typing import Any, Final, TypeVar, get_args, get_type_hints

import msgspec

from otel.machines.traces.spans import TEXT_BYTES_MAX, cut
from otel.model import Attributes
from otel.name_types import Attribute
from otel.payloads.events import Number

T = TypeVar("T", bound=msgspec.Struct)

# By what an attribute holds: what its field has to be, and what is done with its value.
_WRITTEN: Final[dict[type, tuple[Any, str]]] = {
    str: (str | None, "if value: told[{name}] = value if len(value) <= most and value.isascii() else cut(value)"),
    bool: (bool | None, "if value is not None: told[{name}] = value"),
    int: (Number | None, "if value is not None: told[{name}] = int(value)"),
    float: (Number | None, "if value is not None: told[{name}] = float(value)"),
}


def row(kind: type[T], *told: tuple[Attribute, str]) -> Callable[[T, Attributes], Attributes]:
    """Return what sets these attributes to these fields of a payload and returns them.

    What is unknown and empty texts are left out; texts are cut. A field of a part of the payload is `part.field`.
    """
    lines = ["def tell(data, told):"]
    known: dict[str, object] = {"most": TEXT_BYTES_MAX, "cut": cut}
    for place, (attribute, path) in enumerate(told):
        hint, written = _WRITTEN[attribute.type]
        assert _hint(kind, path) == hint, f"{kind.__name__}.{path} does not fit {attribute.latest}"
        known[f"name{place}"] = attribute
        outer, dot, inner = path.partition(".")
        lines.append(f"    value = data.{outer}")
        if dot:
            lines.append(f"    value = value.{inner} if value is not None else None")
        lines.append("    " + written.format(name=f"name{place}"))
    lines.append("    return told")
    exec("\n".join(lines), known)  # noqa: S102  # of this table and nothing else
    tell: Callable[[T, Attributes], Attributes] = known["tell"]  # type: ignore[assignment]  # as it was written above
    return tell


def _hint(kind: type, path: str) -> object:
    """Return the type of a field, or of a field of a part."""
    name, dot, inner = path.partition(".")
    hint = get_type_hints(kind, include_extras=True)[name]
    if not dot:
        return hint
    parts = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    return _hint(parts[0], inner)
