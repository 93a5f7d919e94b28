"""Measurements as bytes, to be kept beside a mark until they are added up."""

from collections.abc import Iterable
from typing import Final, TypeAlias
from zlib import crc32

import msgspec

from otel.instruments import instruments
from otel.model import Context, Measurement
from otel.name import Instrument, Value

_Labels: TypeAlias = "tuple[str | bool | int | float | None, ...]"
_Row: TypeAlias = tuple[int, int, int | float, int, int]


class _Packed(msgspec.Struct, array_like=True, gc=False):
    """Rows name an instrument by a number that its name alone decides; labels and contexts are told once."""

    rows: list[_Row]
    labels: list[_Labels]
    contexts: list[tuple[bytes, bytes]]


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_Packed).decode
_NUMBERS: Final[dict[Instrument, int]] = {one: crc32(one.name.encode()) for one in instruments()}
_BY_NUMBER: Final[dict[int, Instrument]] = {number: one for one, number in _NUMBERS.items()}


def pack(measurements: Iterable[Measurement]) -> bytes:
    """Return measurements as bytes that `unpack` reads, also in a later version of this program."""
    labels: dict[tuple[Value | None, ...], int] = {}
    contexts: dict[Context | None, int] = {None: 0}
    rows = [
        (
            _NUMBERS[instrument],
            time_ns,
            value,
            labels.setdefault(some, len(labels)),
            contexts.setdefault(context, len(contexts)),
        )
        for instrument, time_ns, value, some, context in measurements
    ]
    return _encode((rows, list(labels), list(contexts)[1:]))


def unpack(packed: bytes) -> list[Measurement]:
    """Return what was packed, without what belongs to instruments that are gone; nothing when the bytes are no pack."""
    try:
        found = _decode(packed)
    except msgspec.MsgspecError:
        return []
    contexts = [None, *(Context(*ids) for ids in found.contexts)]
    measurements = []
    for number, time_ns, value, labels, context in found.rows:
        instrument = _BY_NUMBER.get(number)
        some = found.labels[labels] if 0 <= labels < len(found.labels) else ()
        if instrument is not None and len(some) == len(instrument.labels) and 0 <= context < len(contexts):
            measurements.append(Measurement(instrument, time_ns, value, some, contexts[context]))
    return measurements
