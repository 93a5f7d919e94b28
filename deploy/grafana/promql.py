"""Names as Prometheus spells them, and the PromQL of the questions that the dashboards ask.

Cumulative points are repeated every minute while the exporter runs, and a series that was idle begins anew at zero, so
`increase` counts what happened in a window, to the window's edge.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from otel.names import Attribute, Instrument

Where = Mapping[Attribute, str]

RANGE: Final = "$__range"
STEP: Final = "$__interval"
_UNITS: Final = {
    "d": "days",
    "h": "hours",
    "min": "minutes",
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
    "By": "bytes",
    "KiBy": "kibibytes",
    "MiBy": "mebibytes",
    "%": "percent",
}
_PER: Final = {"s": "second", "min": "minute", "h": "hour", "d": "day"}
_OTHER: Final = re.compile(r"[^a-zA-Z0-9]+")


def metric_name(name: str, unit: str, *, counter: bool = False, gauge: bool = False) -> str:
    """The name under which Prometheus stores a metric that came by OTLP, without the suffixes of a histogram."""
    words = [word for word in _OTHER.split(name) if word]
    main, _, per = unit.partition("/")
    wanted = [_UNITS.get(main, _plain(main)), _PER.get(per, _plain(per))]
    if wanted[0] and wanted[0] not in words:
        words.append(wanted[0])
    if wanted[1] and wanted[1] not in words:
        words += ["per", wanted[1]]
    if gauge and unit == "1":
        words = [*(word for word in words if word != "ratio"), "ratio"]
    if counter:
        words = [*(word for word in words if word != "total"), "total"]
    return "_".join(words)


def _plain(unit: str) -> str:
    """The word of a unit that has no short form; what stands in braces is a remark and no unit."""
    return "" if unit == "1" or "{" in unit else _OTHER.sub("_", unit).strip("_")


def label_name(attribute: Attribute) -> str:
    """The label that an attribute becomes."""
    return re.sub(r"\W", "_", attribute.name)


def stored_name(instrument: Instrument) -> str:
    """The name under which Prometheus stores an instrument, without the suffixes of a histogram."""
    kind = instrument.kind
    return metric_name(instrument.name, instrument.unit, counter=kind == "counter", gauge=kind == "gauge")


def growth(
    instrument: Instrument,
    *,
    by: Iterable[Attribute] = (),
    where: Where | None = None,
    over: str = RANGE,
    earlier: str = "",
) -> str:
    """How much a counter grew in a window, or in one that much earlier."""
    return f"{_aggregated('sum', instrument, by)} ({_grown(_series(instrument, where or {}), over, earlier)})"


def change(instrument: Instrument, *, where: Where | None = None, since: str) -> str:
    """How much more a counter grew than in the window that much earlier, as a share of what it grew then."""
    now, before = growth(instrument, where=where), growth(instrument, where=where, earlier=since)
    return f"(({now}) or ({before}) * 0) / (({before}) > 0) - 1"


def total(
    instrument: Instrument, *, by: Iterable[Attribute] = (), where: Where | None = None, over: str = RANGE
) -> str:
    """The sum of what a histogram recorded in a window."""
    return f"{_aggregated('sum', instrument, by)} ({_grown(_series(instrument, where or {}, '_sum'), over)})"


def or_none(expression: str, beside: str) -> str:
    """A count, or 0 where it is missing beside another one: nothing of the kind happened, though something did."""
    return f"({expression}) or ({beside}) * 0"


def quantile(
    share: float,
    instrument: Instrument,
    *,
    by: Iterable[Attribute] = (),
    where: Where | None = None,
    over: str = RANGE,
) -> str:
    """The value that this share of what was recorded in a window stays below."""
    grown = _grown(_series(instrument, where or {}, "_bucket"), over)
    return f"histogram_quantile({share}, {_aggregated('sum', instrument, by, 'le')} ({grown}))"


def recorded(
    instrument: Instrument, *, by: Iterable[Attribute] = (), where: Where | None = None, over: str = RANGE
) -> str:
    """How often a histogram recorded something in a window."""
    return f"{_aggregated('sum', instrument, by)} ({_grown(_series(instrument, where or {}, '_count'), over)})"


def increase(instrument: Instrument, *, by: Iterable[Attribute] = (), over: str = RANGE) -> str:
    """About how much a counter of the exporter itself grew: sent every minute, and begun again when it is."""
    return f"{_aggregated('sum', instrument, by)} (increase({_series(instrument, {})}[{over}]))"


def highest(instrument: Instrument, *, by: Iterable[Attribute] = (), over: str = "") -> str:
    """The highest of the values that a gauge has now, or had in a window."""
    series = _series(instrument, {})
    return f"{_aggregated('max', instrument, by)} ({f'max_over_time({series}[{over}])' if over else series})"


def summed(instrument: Instrument, *, by: Iterable[Attribute] = ()) -> str:
    """The sum of the values that a gauge has now."""
    return f"{_aggregated('sum', instrument, by)} ({_series(instrument, {})})"


def reporting(instrument: Instrument) -> str:
    """How many exporters send a gauge now; 0 where none does, so that silence is a figure too."""
    return f"count(count by (job, instance) ({_series(instrument, {})})) or vector(0)"


def silent(instrument: Instrument, over: str) -> str:
    """Which exporters sent a gauge in a window and do not any more; Prometheus makes both labels of the resource."""
    series = _series(instrument, {})
    return f"count by (job, instance) (last_over_time({series}[{over}])) unless count by (job, instance) ({series})"


def share(part: str, whole: str) -> str:
    """One figure as a share of another, nothing where the whole is nothing; 0 where only the part is missing."""
    return f"(({part}) or ({whole}) * 0) / (({whole}) > 0)"


def top(count: int, expression: str) -> str:
    """The largest, without those that are nothing."""
    return f"topk({count}, ({expression}) > 0)"


def _aggregated(how: str, instrument: Instrument, by: Iterable[Attribute], *more: str) -> str:
    names = []
    for attribute in by:
        if attribute not in instrument.labels:
            raise ValueError(f"{instrument.name} has no label {attribute.name}")
        names.append(label_name(attribute))
    return f"{how} by ({', '.join([*names, *more])})" if names or more else how


def _series(instrument: Instrument, where: Where, suffix: str = "") -> str:
    if (instrument.kind == "histogram") is not bool(suffix):
        raise ValueError(f"{instrument.name} is a {instrument.kind}")
    matchers = []
    for attribute, pattern in where.items():
        if attribute not in instrument.labels:
            raise ValueError(f"{instrument.name} has no label {attribute.name}")
        matchers.append(f'{label_name(attribute)}=~"{pattern}"')
    return f"{stored_name(instrument)}{suffix}{{{', '.join(matchers)}}}"


def _grown(series: str, over: str, earlier: str = "") -> str:
    shifted = f" offset {earlier}" if earlier else ""
    return f"increase({series}[{over}]{shifted})"
