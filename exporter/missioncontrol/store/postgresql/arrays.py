"""Columns as arrays in the engine's binary form, in a few steps each; psycopg's lists cost a call for every value."""

import struct
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

from psycopg import Connection
from psycopg.adapt import Dumper
from psycopg.pq import Format

from exporter.missioncontrol.store.postgresql.text import stored

_HEAD: Final = struct.Struct("!iiiii")
_LENGTH: Final = struct.Struct("!i")
_NULL: Final = _LENGTH.pack(-1)
_INT8, _TEXT, _BYTEA = 20, 25, 17


class Int8Array(bytes):
    """An array of bigint."""


class TextArray(bytes):
    """An array of text."""


class ByteaArray(bytes):
    """An array of bytea."""


class _Dumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: bytes) -> bytes:
        return obj


class _Int8Dumper(_Dumper):
    oid = 1016


class _TextDumper(_Dumper):
    oid = 1009


class _ByteaDumper(_Dumper):
    oid = 1001


def register(connection: "Connection[Any]") -> None:
    """Let a connection take the arrays of this module."""
    for array, dumper in ((Int8Array, _Int8Dumper), (TextArray, _TextDumper), (ByteaArray, _ByteaDumper)):
        connection.adapters.register_dumper(array, dumper)


def array_of(type: str, values: Sequence[Any]) -> bytes:
    """Return the values of a column of this type as an array; `OverflowError` for a number of more than 64 bits."""
    if type in ("bigint", "integer"):
        return Int8Array(_head(values, _INT8) + _numbers(values))
    if type == "text":
        texts = [None if value is None else stored(value).encode() for value in values]
        return TextArray(_head(values, _TEXT) + _strings(texts))
    return ByteaArray(_head(values, _BYTEA) + _strings(values))


def array_like(values: Sequence[Any]) -> bytes:
    """Return values of one Python type as an array."""
    first = values[0]
    return array_of("text" if isinstance(first, str) else "bytea" if isinstance(first, bytes) else "bigint", values)


def _head(values: Sequence[Any], type: int) -> bytes:
    return _HEAD.pack(1, 1, type, len(values), 1)


def _numbers(values: Sequence[int | None]) -> bytes:
    try:
        if None not in values:
            return struct.pack("!" + "iq" * len(values), *chain.from_iterable((8, value) for value in values))
        return b"".join(_NULL if value is None else struct.pack("!iq", 8, value) for value in values)
    except struct.error:
        largest = max((value for value in values if value is not None), key=abs)
        raise OverflowError(f"{largest} has more than 64 bits") from None


def _strings(values: Sequence[bytes | None]) -> bytes:
    pack = _LENGTH.pack
    return b"".join(chain.from_iterable((_NULL,) if value is None else (pack(len(value)), value) for value in values))
