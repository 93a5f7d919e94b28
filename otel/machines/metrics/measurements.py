"""Measurements as bytes, to be kept beside a mark until they are added up."""

from typing import Final, TypeAlias
from zlib import crc32

import msgspec

from otel.instruments import SHARED, instruments
from otel.model import Context, Measurement
from otel.names import Instrument, Value

_TEXT_CHARACTERS_MAX: Final = 256
_CALLS_SPREAD_MAX: Final = 10_000
_AMOUNT_MAX: Final = 2**60
_SHARED_AT_FIRST: Final = SHARED[:2]
"""Those that measurements of all earlier versions of this program have."""


class Meter:
    """Notes measurements of one moment and place; each has the labels that all metrics share behind its own.

    `shared` are the values of `instruments.SHARED`.

    The moment and the place (`time_ns`, `context`) may be set anew for what follows.
    """

    __slots__ = ("context", "found", "shared", "time_ns")

    def __init__(self, shared: tuple[Value | None, ...], time_ns: int, context: Context | None = None) -> None:
        self.found: list[Measurement] = []
        self.time_ns = time_ns
        self.context = context
        self.shared = shared

    def note(self, instrument: Instrument, value: float | None, *labels: Value | None) -> None:
        """Note a value, unless there is none; `labels` are the instrument's own ones."""
        if value is not None:
            self.found.append(Measurement(instrument, self.time_ns, value, labels + self.shared, self.context))

    def add(self, instrument: Instrument, value: float | None, labels: tuple[Value | None, ...]) -> None:
        """Note a value, unless there is none; `labels` are all that it has."""
        if value is not None:
            self.found.append(Measurement(instrument, self.time_ns, value, labels, self.context))

    def spread(self, instrument: Instrument, total: int, calls: int, labels: tuple[Value | None, ...]) -> None:
        """Note what is known of several calls in total only: as many values as calls, that come to exactly that."""
        if not 0 < calls <= _CALLS_SPREAD_MAX:
            return
        each, rest = divmod(total, calls)
        for call in range(calls):
            self.add(instrument, each + (call < rest), labels)


def label(value: object) -> Value | None:
    """Return what of a value of an event can be a label."""
    if type(value) is str:
        return (value if len(value) <= _TEXT_CHARACTERS_MAX else value[:_TEXT_CHARACTERS_MAX]) or None
    return value if isinstance(value, bool | int) else None


def amount(value: object) -> int | float | None:
    """Return what of a value of an event can be added up: nothing negative or endless, and whole numbers as such."""
    if type(value) is int:
        return value if 0 <= value <= _AMOUNT_MAX else None
    if not isinstance(value, float) or not 0 <= value <= _AMOUNT_MAX:
        return None
    return int(value) if value.is_integer() else value


_Labels: TypeAlias = "tuple[str | bool | int | float | None, ...]"


class _Packed(msgspec.Struct, array_like=True, gc=False):
    """A column for each field. An instrument is identified by a number derived from its name; labels and
    contexts are stored once and referenced by position.
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


def _with_later(labels: _Labels, instrument: Instrument | None) -> _Labels:
    """Return labels with none for those that an instrument has had only since they were packed."""
    missing = len(instrument.labels) - len(labels) if instrument is not None else 0
    if missing <= 1:
        return labels + (None,) * missing  # the user came last
    shared = len(_SHARED_AT_FIRST)
    later = len(SHARED) - shared
    return (*labels[:-shared], *(None,) * (missing - later), *labels[-shared:], *(None,) * later)


def unpack(packed: bytes) -> list[Measurement]:
    """Return what was packed, without what belongs to instruments that are gone; nothing when the bytes are no pack."""
    try:
        found = _decode(packed)
        all_contexts = [None, *(Context(*ids) for ids in found.all_contexts)]
        labels = [found.all_labels[place] for place in found.labels]
        contexts = [all_contexts[place] for place in found.contexts]
    except (msgspec.MsgspecError, IndexError):
        return []
    labels = [
        _with_later(one, instrument)
        for one, instrument in zip(labels, map(_BY_NUMBER.get, found.numbers), strict=False)
    ]
    columns = zip(map(_BY_NUMBER.get, found.numbers), found.times, found.values, labels, contexts, strict=False)
    return [
        Measurement(instrument, time_ns, value, labels, context)
        for instrument, time_ns, value, labels, context in columns
        if instrument is not None and len(labels) == len(instrument.labels)
    ]
