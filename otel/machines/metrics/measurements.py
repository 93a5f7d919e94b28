"""Measurements as bytes, to be kept beside a mark until they are added up."""

from typing import Final, TypeAlias
from zlib import crc32

import msgspec

from otel.instruments import instruments
from otel.model import Context, Measurement
from otel.name_types import Instrument, Value

_Labels: TypeAlias = "tuple[str | bool | int | float | None, ...]"


class _Packed(msgspec.Struct, array_like=True, gc=False):
    """A column for each field. A number that its name alone decides tells the instrument; labels and contexts are
    told once and referred to by their places.
    """

    numbers: list[int]
    times: list[int]
    values: list[int | float]
    labels: list[int]
    contexts: list[int]
    all_labels: list[_Labels]
    all_contexts: list[tuple[bytes, bytes]]


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_Packed).decode
_NUMBERS: Final[dict[Instrument, int]] = {one: crc32(one.name.encode()) for one in instruments()}
_BY_NUMBER: Final[dict[int, Instrument]] = {number: one for one, number in _NUMBERS.items()}


def pack(measurements: list[Measurement]) -> bytes:
    """Return measurements as bytes that `unpack` reads, also in a later version of this program."""
    labels: dict[tuple[Value | None, ...], int] = {}
    contexts: dict[Context | None, int] = {None: 0}
    columns = (
        [_NUMBERS[one.instrument] for one in measurements],
        [one.time_ns for one in measurements],
        [one.value for one in measurements],
        [labels.setdefault(one.labels, len(labels)) for one in measurements],
        [contexts.setdefault(one.context, len(contexts)) for one in measurements],
    )
    return _encode((*columns, list(labels), list(contexts)[1:]))


def unpack(packed: bytes) -> list[Measurement]:
    """Return what was packed, without what belongs to instruments that are gone; nothing when the bytes are no pack."""
    try:
        found = _decode(packed)
        all_contexts = [None, *(Context(*ids) for ids in found.all_contexts)]
        labels = [found.all_labels[place] for place in found.labels]
        contexts = [all_contexts[place] for place in found.contexts]
    except (msgspec.MsgspecError, IndexError):
        return []
    columns = zip(map(_BY_NUMBER.get, found.numbers), found.times, found.values, labels, contexts, strict=False)
    return [
        Measurement(instrument, time_ns, value, labels, context)
        for instrument, time_ns, value, labels, context in columns
        if instrument is not None and len(labels) == len(instrument.labels)
    ]
