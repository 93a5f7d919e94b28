"""Attributes as OTLP's KeyValue messages, for one content level, one spelling and one place in a message."""

from collections import Counter
from collections.abc import Collection
from struct import Struct, pack
from typing import Final

from otel.name import Attribute, Content, Semconv, Value
from otel.varint import counted, signed, utf8, varint

KEPT_ENTRIES_MAX: Final = 4096
KEPT_BYTES_MAX: Final = 256
FLEETING_ENTRIES: Final = 256

_TRUE: Final = b"\x10\x01"
_FALSE: Final = b"\x10\x00"
_TEXT: Final = b"\x0a"
_INTEGER: Final = b"\x18"
_FIXED64: Final = b"\x21"
_DOUBLE: Final = Struct("<d").pack


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


class KeyValues(dict["tuple[Attribute, Value]", bytes]):
    """The fields that attributes become, kept for values that come again; the oldest go all at once when it is full.

    An attribute above the content level becomes no bytes. A value is written as the type that its attribute declares
    where it can be, else as its own: two values that are equal and differ in type, as 1 and True, give the same bytes.
    """

    def __init__(self, tag: bytes, content: Content, semconv: Semconv) -> None:
        super().__init__()
        self._tag = tag
        self._content = content
        self._semconv: Semconv = semconv
        self._keys: dict[Attribute, tuple[bytes, ...]] = {}
        self._fleeting: set[Attribute] = set()
        self._texts: dict[Attribute, _Heads] = {}
        self._integers: dict[Attribute, _Heads] = {}
        self._doubles: dict[Attribute, bytes] = {}

    def written(self, pairs: "Collection[tuple[Attribute, Value]]") -> bytes:
        """Return the fields of these attributes."""
        try:
            return b"".join(map(self.__getitem__, pairs))
        except TypeError:  # a value that cannot be a key: not one of ours, but no reason to lose a span
            return b"".join([self._field(attribute, value) for attribute, value in pairs])

    def __missing__(self, pair: "tuple[Attribute, Value]") -> bytes:
        attribute, value = pair
        kind = type(value)
        # Whatever equals a value of the declared type is written as that type, so it may find this field.
        if kind is str and (heads := self._texts.get(attribute)) is not None:
            text = utf8(value)  # type: ignore[arg-type]  # a text, as its type is str
            field = heads[len(text)] + text
        elif kind is int and (heads := self._integers.get(attribute)) is not None:
            number = signed(value)  # type: ignore[arg-type]  # a number, as its type is int
            field = heads[len(number)] + number
        elif kind is float and (head := self._doubles.get(attribute)) is not None:
            return head + _DOUBLE(value)
        else:
            field = self._field(attribute, value)
            if not field or kind is not attribute.type or not _is_key(value):
                return field  # not sent at this level and nothing to remember, or not fit to be a key
        if attribute not in self._fleeting and len(field) <= KEPT_BYTES_MAX:
            if len(self) >= KEPT_ENTRIES_MAX:
                self._forget()
            self[pair] = field
        return field

    def _forget(self) -> None:
        """Forget all, and keep no more of attributes whose values hardly ever come again, such as ids."""
        counts = Counter(attribute for attribute, _ in self)
        self._fleeting.update(attribute for attribute, count in counts.items() if count >= FLEETING_ENTRIES)
        self.clear()

    def _field(self, attribute: Attribute, value: object) -> bytes:
        keys = self._keys.get(attribute)
        if keys is None:
            keys = self._keys[attribute] = self._spelt(attribute)
        if not keys or value is None:
            return b""
        written = any_value(value if type(value) is attribute.type else _as_declared(attribute.type, value))
        written = b"\x12" + varint(len(written)) + written
        field = self._tag + varint(len(keys[0]) + len(written)) + keys[0] + written
        for key in keys[1:]:
            field += self._tag + varint(len(key) + len(written)) + key + written
        return field

    def _spelt(self, attribute: Attribute) -> tuple[bytes, ...]:
        if attribute.content > self._content:
            return ()
        keys = tuple(counted(b"\x0a", utf8(key)) for key in attribute.spellings(self._semconv))
        if len(keys) == 1 and attribute.type is str:
            self._texts[attribute] = _Heads(self._tag, keys[0], _TEXT)
        elif len(keys) == 1 and attribute.type is int:
            self._integers[attribute] = _Heads(self._tag, keys[0], _INTEGER)
        elif len(keys) == 1 and attribute.type is float:
            self._doubles[attribute] = _Heads(self._tag, keys[0], _FIXED64)[8]
        return keys


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
    """Tell whether only what is written as the same bytes is equal to a value of a declared type."""
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
