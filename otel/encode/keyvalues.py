"""Attributes as OTLP's KeyValue messages, for one content level, one spelling and one place in a message."""

from collections.abc import Collection, Mapping
from struct import Struct, pack
from typing import Final

from otel.encode.varint import counted, signed, utf8, varint
from otel.names import Attribute, Content, Semconv, Value

KEPT_ENTRIES_MAX: Final = 256
KEPT_BYTES_MAX: Final = 256

_TRUE: Final = b"\x10\x01"
_FALSE: Final = b"\x10\x00"
_TEXT: Final = b"\x0a"
_INTEGER: Final = b"\x18"
_FIXED64: Final = b"\x21"
_DOUBLE: Final = Struct("<d").pack


class KeyValues(dict[Attribute, "_Fields"]):
    """The fields that attributes become, by attribute and value.

    An attribute above the content level becomes no bytes. A value is written as the type that its attribute declares
    where it can be, else as its own: two values that are equal and differ in type, as 1 and True, give the same bytes.
    """

    def __init__(self, tag: bytes, content: Content, semconv: Semconv) -> None:
        super().__init__()
        self._tag = tag
        self._content = content
        self._semconv: Semconv = semconv

    def written(self, pairs: "Collection[tuple[Attribute, Value]]") -> bytes:
        """Return the fields of these attributes."""
        try:
            return b"".join([self[attribute][value] for attribute, value in pairs])
        except TypeError:  # a value that cannot be a key: not one of ours, but no reason to lose a span
            return b"".join([self[attribute].made(value) for attribute, value in pairs])

    def before_text(self, attribute: Attribute) -> Mapping[int, bytes]:
        """Return the bytes before a text, by its length; only for attributes with one spelling and no level."""
        fields = self[attribute]
        assert isinstance(fields, _Texts)
        return fields.heads

    def __missing__(self, attribute: Attribute) -> "_Fields":
        keys: list[bytes] = []
        if attribute.content <= self._content:
            keys += [counted(b"\x0a", utf8(key)) for key in attribute.spellings(self._semconv)]
        kind = _KINDS.get(attribute.type, _Fields) if len(keys) == 1 else _Fields
        self[attribute] = kind(self._tag, attribute.type, keys)
        return self[attribute]


class _Fields(dict[Value, bytes]):
    """The encoded fields of one attribute by value, cached for repeated values.

    Whatever equals a value of the declared type is written as that type, so it may find the field of that one.
    """

    def __init__(self, tag: bytes, declared: type, keys: list[bytes]) -> None:
        super().__init__()
        self._tag = tag
        self._declared = declared
        self._keys = keys

    def made(self, value: object) -> bytes:
        """Return the field of a value; none for an attribute that is not sent at all."""
        if not self._keys or value is None:
            return b""
        written = any_value(value if type(value) is self._declared else _as_declared(self._declared, value))
        written = b"\x12" + varint(len(written)) + written
        return b"".join([self._tag + varint(len(key) + len(written)) + key + written for key in self._keys])

    def __missing__(self, value: Value) -> bytes:
        field = self.made(value)
        if field and type(value) is self._declared and _is_key(value):
            self._keep(value, field)
        return field

    def _keep(self, value: Value, field: bytes) -> None:
        if len(field) <= KEPT_BYTES_MAX:
            if len(self) >= KEPT_ENTRIES_MAX:  # all at once, because most will not come again
                self.clear()
            self[value] = field


class _Heads(dict[int, bytes]):
    """What stands before a value of a certain length, in the field of one attribute with one spelling."""

    def __init__(self, tag: bytes, key: bytes, value_tag: bytes) -> None:
        super().__init__()
        self._tag = tag
        self._key = key
        self._value_tag = value_tag

    def __missing__(self, size: int) -> bytes:
        value = self._value_tag + (varint(size) if self._value_tag == _TEXT else b"")
        value = b"\x12" + varint(len(value) + size) + value
        head = self._tag + varint(len(self._key) + len(value) + size) + self._key + value
        if size <= KEPT_BYTES_MAX:
            self[size] = head
        return head


class _Texts(_Fields):
    def __init__(self, tag: bytes, declared: type, keys: list[bytes]) -> None:
        super().__init__(tag, declared, keys)
        self.heads: Final = _Heads(tag, keys[0], _TEXT)

    def __missing__(self, value: Value) -> bytes:
        if type(value) is not str:
            return self.made(value)
        try:
            text = value.encode()
        except UnicodeEncodeError:
            text = utf8(value)
        field = self.heads[len(text)] + text
        self._keep(value, field)
        return field


class _Integers(_Fields):
    def __init__(self, tag: bytes, declared: type, keys: list[bytes]) -> None:
        super().__init__(tag, declared, keys)
        self._heads: Final = _Heads(tag, keys[0], _INTEGER)

    def __missing__(self, value: Value) -> bytes:
        if type(value) is not int:
            return self.made(value)
        number = signed(value)
        if len(self) >= KEPT_ENTRIES_MAX:
            self.clear()
        field = self[value] = self._heads[len(number)] + number
        return field


class _Doubles(_Fields):
    """Not cached: 0.0 and -0.0 are equal but have different bytes."""

    def __init__(self, tag: bytes, declared: type, keys: list[bytes]) -> None:
        super().__init__(tag, declared, keys)
        self._head: Final = _Heads(tag, keys[0], _FIXED64)[8]

    def __missing__(self, value: Value) -> bytes:
        return self._head + _DOUBLE(value) if type(value) is float else self.made(value)


_KINDS: Final[dict[type, type[_Fields]]] = {str: _Texts, int: _Integers, float: _Doubles}


def key_value(tag: bytes, key: str, value: object) -> bytes:
    """Return one KeyValue field of a key that is in no table, such as a resource attribute that a user has set."""
    return counted(tag, counted(b"\x0a", utf8(key)) + counted(b"\x12", any_value(value)))


def any_value(value: object) -> bytes:
    """Return OTLP's AnyValue of a value; whole numbers beyond 64 bits become the nearest that is not."""
    if isinstance(value, str):
        text = utf8(value)
        return _TEXT + varint(len(text)) + text
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    if isinstance(value, int):
        return _INTEGER + signed(value)
    if isinstance(value, float):
        return pack("<Bd", 0x21, value)
    if isinstance(value, (tuple, list)):
        return counted(b"\x2a", b"".join([counted(b"\x0a", any_value(item)) for item in value]))
    return counted(b"\x0a", utf8(str(value)))


def _is_key(value: object) -> bool:
    """Whether only what is written as the same bytes is equal to a value of a declared type."""
    kind = type(value)
    if kind is tuple:
        return all(type(item) is str for item in value)  # type: ignore[attr-defined]  # of a tuple
    return kind is str or kind is int or kind is bool


def _as_declared(declared: type, value: object) -> object:
    """Return a number in the type that is declared for it, when it is the same number there."""
    if not isinstance(value, (int, float)):
        return value
    if declared is float:
        return _double(value)
    if declared is int and (isinstance(value, int) or value.is_integer()):
        return int(value)
    if declared is bool and value in (0, 1):
        return bool(value)
    return value


def _double(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
