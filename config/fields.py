"""What is known of each setting, read from the structs themselves, so that it is written once.

The docstring of a struct says what each setting means, one `name: meaning` after the other. A field's `msgspec.Meta`
carries its bounds and an example; `Meta.extra` marks what the type cannot say: `secret`, `address`, `path`, `many` (an
array of them is taken too), `instead_of` (only one of the two may be given) and `flag` (when the command line calls it
something else).
"""

import functools
import inspect
import re
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin

import msgspec

from config.url import MASK, mask_url

Kind: TypeAlias = Literal["text", "integer", "number", "truth", "texts", "pairs", "tables"]

_MEANING = re.compile(r"^(\w+): (.*(?:\n .*)*)", re.MULTILINE)
_BOUNDS = ("ge", "le", "min_length", "max_length")
_KINDS: dict[Any, Kind] = {
    str: "text",
    Literal: "text",
    int: "integer",
    float: "number",
    bool: "truth",
    tuple: "texts",
    dict: "pairs",
}
_NOUNS: dict[Kind, str] = {
    "text": "a text",
    "integer": "an integer",
    "number": "a number",
    "truth": "true or false",
    "texts": "an array of texts",
    "pairs": "a table of texts",
    "tables": "an array of tables",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One setting: everything that is known of it except the value."""

    name: str
    type: Any
    kind: Kind
    default: object
    required: bool
    meaning: str
    expected: str
    example: object = None
    secret: bool = False
    address: Literal["", "http", "file", "proxy", "listen"] = ""
    path: bool = False
    many: bool = False
    instead_of: str = ""
    flag: str = ""
    tables_of: type[msgspec.Struct] | None = None


@dataclass(frozen=True, slots=True)
class SettingsTable:
    """A table of settings, such as `[limits]`, or a table in one, such as `[receiver.quota]`."""

    name: str
    struct: type[msgspec.Struct]
    meaning: str


@dataclass(frozen=True, slots=True)
class Sinks:
    """A table that is one sink, `[otel]`, or holds one table per sink, `[otel.NAME]`."""

    name: str
    struct: type[msgspec.Struct]
    meaning: str


Member: TypeAlias = Field | SettingsTable | Sinks


@functools.cache
def members(struct: type[msgspec.Struct]) -> dict[str, Member]:
    """The members of a struct by name, in the order they are written."""
    _, meanings = documented(struct)
    return {info.name: _member(info, meanings.get(info.name, "")) for info in msgspec.structs.fields(struct)}


@functools.cache
def fields(struct: type[msgspec.Struct]) -> dict[str, Field]:
    """The plain settings of a struct by name, without its tables."""
    return {name: member for name, member in members(struct).items() if isinstance(member, Field)}


@functools.cache
def leaves(struct: type[msgspec.Struct]) -> dict[tuple[str, ...], Field]:
    """The settings of a struct by path, with those of its tables: `("store",)`, `("quota", "bytes")`."""
    found: dict[tuple[str, ...], Field] = {}
    for name, member in members(struct).items():
        if isinstance(member, Field):
            found[name,] = member
        else:
            found |= {(name, *below): field for below, field in leaves(member.struct).items()}
    return found


def setting(example: object = None, **given: Any) -> msgspec.Meta:
    """Describe a setting: its example, its bounds, and the marks that the docstring of this module lists."""
    bounds = {name: given.pop(name) for name in _BOUNDS if name in given}
    return msgspec.Meta(examples=None if example is None else [example], extra=given or None, **bounds)


@functools.cache
def documented(struct: type[msgspec.Struct]) -> tuple[str, dict[str, str]]:
    """What the docstring of a struct says: what it is, and what each of its members means."""
    purpose, _, listed = (inspect.getdoc(struct) or "").partition("\n\n")
    return purpose, {found[1]: " ".join(found[2].split()) for found in _MEANING.finditer(listed)}


class Shown(msgspec.Struct, frozen=True):
    """A struct whose text in logs, tracebacks and output contains no secrets."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in masked_items(self))})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return masked_items(self)


def masked_items(value: msgspec.Struct) -> list[tuple[str, Any]]:
    """Name and value of every member: no secret (of a table only its names), and no credentials of an address."""
    return [(name, _masked(member, getattr(value, name))) for name, member in members(type(value)).items()]


def _masked(member: Member, value: object) -> object:
    if not isinstance(member, Field) or value is None:
        return value
    if member.secret:
        return dict.fromkeys(value, MASK) if isinstance(value, Mapping) else MASK
    return mask_url(value) if member.address in ("http", "proxy") and isinstance(value, str) else value


def _member(info: msgspec.structs.FieldInfo, meaning: str) -> Member:
    bare, metas = _split(info.type)
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        return SettingsTable(info.name, bare, meaning)
    inner = get_args(bare)
    if get_origin(bare) is dict and isinstance(inner[1], type) and issubclass(inner[1], msgspec.Struct):
        return Sinks(info.name, inner[1], meaning)
    kind, tables_of = _kind(bare)
    default = info.default
    if info.default_factory is not msgspec.NODEFAULT:
        default = info.default_factory()
    required = default is msgspec.NODEFAULT
    return Field(
        name=info.name,
        type=info.type,
        kind=kind,
        default=None if required else default,
        required=required,
        meaning=meaning,
        expected=_expected(bare, kind, metas),
        example=(_meta(metas, "examples") or [None])[0],
        tables_of=tables_of,
        **_meta(metas, "extra") or {},
    )


def _split(annotated: Any) -> tuple[Any, tuple[msgspec.Meta, ...]]:
    """The type without `| None`, and its Metas from the outermost to the innermost."""
    if get_origin(annotated) is Annotated:
        inside, outer = get_args(annotated)
        bare, inner = _split(inside)
        return bare, (outer, *inner)
    if type(None) in get_args(annotated) or get_origin(annotated) is types.UnionType:
        return _split(get_args(annotated)[0])
    return annotated, ()


def _meta(metas: tuple[msgspec.Meta, ...], name: str) -> Any:
    return next((getattr(meta, name) for meta in metas if getattr(meta, name) is not None), None)


def _kind(bare: Any) -> tuple[Kind, type[msgspec.Struct] | None]:
    element = get_args(bare)[0] if get_origin(bare) is tuple else None
    if isinstance(element, type) and issubclass(element, msgspec.Struct):
        return "tables", element
    return _KINDS[get_origin(bare) or bare], None


def _expected(bare: Any, kind: Kind, metas: tuple[msgspec.Meta, ...]) -> str:
    choices = _choices(bare)
    if choices:
        listed = ", ".join(f'"{choice}"' for choice in choices)
        return f"one of {listed}" if kind == "text" else f"an array of some of {listed}"
    if kind in ("integer", "number"):
        return f"{_NOUNS[kind]} from {_meta(metas, 'ge')} to {_meta(metas, 'le')}"
    if kind == "text" and _meta(metas, "max_length"):
        return f"a text of {_meta(metas, 'min_length')} to {_meta(metas, 'max_length')} characters"
    return _NOUNS[kind]


def _choices(bare: Any) -> tuple[str, ...]:
    if get_origin(bare) is Literal:
        return get_args(bare)
    inner = get_args(bare)
    return get_args(inner[0]) if inner and get_origin(inner[0]) is Literal else ()
