"""The state of an accumulator, and the bytes that it is kept as."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import msgspec

from otel.instruments import instruments
from otel.machines.metrics.accumulator import Accumulator, Key, Labels
from otel.name_types import Instrument, Value

_VERSION: Final = 1
_Shown: TypeAlias = "Callable[[Instrument, Mapping[str, Value | None]], Labels]"


@dataclass(slots=True)
class Sums:
    """`cells` are what waits, by span of time; `ready` what is being sent; `series` what has been sent of each series.

    In a series, `first_ns` is its start and `last_ns` the time of its newest point.
    """

    width_ns: int
    cells: dict[int, dict[Key, Accumulator]] = field(default_factory=dict)
    ready: list[list[tuple[Key, Accumulator]]] = field(default_factory=list)
    series: dict[Key, Accumulator] = field(default_factory=dict)
    late: int = 0
    refused: int = 0

    def known(self) -> Iterator[Key]:
        """Every series that is known, some of them several times."""
        yield from self.series
        for spans in self.cells.values():
            yield from spans
        for pairs in self.ready:
            yield from (key for key, _ in pairs)


_Entry: TypeAlias = "tuple[str, list[str | bool | int | float | list[str] | None] | None, Accumulator]"


class _Written(msgspec.Struct, array_like=True):
    version: int
    width_ns: int
    labels: dict[str, list[str]]
    cells: list[tuple[int, list[_Entry]]]
    ready: list[list[_Entry]]
    series: list[_Entry]
    late: int
    refused: int


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_Written).decode


def written(sums: Sums) -> bytes:
    """Return the state as bytes."""
    known = dict.fromkeys([instrument for instrument, _ in sums.known()])
    return _encode(
        [
            _VERSION,
            sums.width_ns,
            {instrument.name: [label.latest for label in instrument.labels] for instrument in known},
            [(span, _entries(cells.items())) for span, cells in sums.cells.items()],
            [_entries(pairs) for pairs in sums.ready],
            _entries(sums.series.items()),
            sums.late,
            sums.refused,
        ]
    )


def _entries(pairs: Iterable[tuple[Key, Accumulator]]) -> list[tuple[str, Labels, Accumulator]]:
    return [(instrument.name, labels, cell) for (instrument, labels), cell in pairs]


def read(state: bytes, shown: _Shown) -> Sums | None:
    """Return the state that `written` made into bytes, or None when they are none.

    Labels come back by name as `shown` wants to have them. What belongs to instruments that are gone, or have other
    buckets now, is left out, and so are series whose labels are others now: they begin anew.
    """
    try:
        found = _decode(state)
    except msgspec.MsgspecError:
        return None
    if found.version != _VERSION:
        return None
    known = {instrument.name: instrument for instrument in instruments()}
    sums = Sums(found.width_ns, late=found.late, refused=found.refused)

    def pairs(entries: list[_Entry], keep_changed: bool) -> Iterator[tuple[Key, Accumulator]]:
        for name, values, cell in entries:
            instrument = known.get(name)
            if instrument is None or len(cell.buckets) != (len(instrument.bounds) + 1 if instrument.bounds else 0):
                continue
            before = _labels(values)
            after = None if before is None else shown(instrument, dict(zip(found.labels[name], before, strict=False)))
            if keep_changed or before == after:
                yield (instrument, after), cell

    for span, entries in found.cells:
        merge_into(sums.cells.setdefault(span, {}), pairs(entries, True))
    for entries in found.ready:
        merged: dict[Key, Accumulator] = {}
        merge_into(merged, pairs(entries, True))
        sums.ready.append(list(merged.items()))
    sums.series.update(pairs(found.series, False))
    return sums


def _labels(values: list[str | bool | int | float | list[str] | None] | None) -> Labels:
    if values is None:
        return None
    return tuple(tuple(value) if isinstance(value, list) else value for value in values)


def merge_into(cells: dict[Key, Accumulator], pairs: Iterable[tuple[Key, Accumulator]]) -> None:
    """Put cells among others, and add up those of the same series."""
    for key, cell in pairs:
        if key in cells:
            cells[key].merge(cell)
        else:
            cells[key] = cell
