"""Tables that say which field of a payload becomes which attribute.

A row is compiled to one function, as `dataclasses` does it: a loop over the table takes four times as long, and a
million events have ten million attributes.
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

# For each type of attribute: the type that its field must have, and the statement that sets it.
_WRITTEN: Final[dict[type, tuple[Any, str]]] = {
    str: (str | None, "if value: attributes[{name}] = value if len(value) <= most and value.isascii() else cut(value)"),
    bool: (bool | None, "if value is not None: attributes[{name}] = value"),
    int: (Number | None, "if value is not None: attributes[{name}] = int(value)"),
    float: (Number | None, "if value is not None: attributes[{name}] = float(value)"),
}


def row(kind: type[T], *attributes: tuple[Attribute, str]) -> Callable[[T, Attributes], Attributes]:
    """Return a function that sets attributes from fields of a payload and returns them.

    Absent values and empty texts are left out; long texts are truncated. `part.field` names a field of a part.
    """
    lines = ["def fill_row(data, attributes):"]
    known: dict[str, object] = {"most": TEXT_BYTES_MAX, "cut": cut}
    for place, (attribute, path) in enumerate(attributes):
        hint, written = _WRITTEN[attribute.type]
        assert _hint(kind, path) == hint, f"{kind.__name__}.{path} does not fit {attribute.latest}"
        known[f"name{place}"] = attribute
        outer, dot, inner = path.partition(".")
        lines.append(f"    value = data.{outer}")
        if dot:
            lines.append(f"    value = value.{inner} if value is not None else None")
        lines.append("    " + written.format(name=f"name{place}"))
    lines.append("    return attributes")
    exec("\n".join(lines), known)  # noqa: S102  # of this table and nothing else
    fill_row: Callable[[T, Attributes], Attributes] = known["fill_row"]  # type: ignore[assignment]  # compiled above
    return fill_row


def _hint(kind: type, path: str) -> object:
    """Return the type of a field, or of a field of a part."""
    name, dot, inner = path.partition(".")
    hint = get_type_hints(kind, include_extras=True)[name]
    if not dot:
        return hint
    parts = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    return _hint(parts[0], inner)
