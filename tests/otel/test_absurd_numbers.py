"""Numbers that are no figures of anything: whatever stands where a number belongs, every event leads to its records."""

import json
import math
from collections.abc import Iterator
from typing import Any, Final, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otel import payloads
from otel.bridge import Bridge, SignalOptions, Tally
from otel.encode.records import metric_bytes, request_bytes
from otel.instruments import instruments
from otel.machines import logs
from otel.machines.metrics import usage
from otel.machines.metrics.aggregate import Aggregate, MetricStream
from otel.machines.metrics.measurements import pack, unpack
from otel.machines.traces.machine import HANDLERS
from otel.names import Content, Semconv
from otel.projection import TABLE

_TYPES: Final = sorted({*HANDLERS, *TABLE, "made.up"})
_HUGE: Final = "9" * 400
_ABSURD: Final = st.one_of(
    st.sampled_from(
        [_HUGE, "-" + _HUGE, "9" * 5_000, "9" * 19, str(2**63), str(-(2**63)), str(2**60), "1e18", "1e300", "-1e308",
         "1e999", "-1e999", "1e-999", "NaN", "Infinity", "-0.0", "0", "-1", "0.5", "true", "null", '"12"', "[]", "{}"],
    ),
    st.integers().map(str),
    st.floats().map(json.dumps),
)  # fmt: skip


def _is_number(hint: object) -> bool:
    plain = [get_args(one)[0] if hasattr(one, "__metadata__") else one for one in get_args(hint) or (hint,)]
    return int in plain and float in plain


def _struct_in(hint: object) -> type[msgspec.Struct] | None:
    return next(
        (one for one in (hint, *get_args(hint)) if isinstance(one, type) and issubclass(one, msgspec.Struct)), None
    )


def _numeric(kind: type[msgspec.Struct]) -> Iterator[tuple[str, ...]]:
    """The paths of all numbers in a payload; a star stands for any key."""
    hints = get_type_hints(kind, include_extras=True)
    for field in msgspec.structs.fields(kind):
        hint = hints[field.name]
        inner = _struct_in(hint)
        if _is_number(hint):
            yield (field.encode_name,)
        elif inner is not None:
            keys = (field.encode_name, "*") if get_origin(hint) is dict else (field.encode_name,)
            yield from ((*keys, *path) for path in _numeric(inner))


_PAYLOADS: Final = [
    kind
    for module in (payloads, usage, logs)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__ == module.__name__
]
_PATHS: Final = sorted({path for kind in _PAYLOADS for path in _numeric(kind)})


def _line(number: int, kind: str, told: dict[tuple[str, ...], str]) -> bytes:
    """An event with these numbers, spelt as they are, beside what it needs to be looked at."""
    data: dict[str, Any] = {"toolCallId": "c", "requestId": "r", "model": "m", "hookInvocationId": "h", "content": "t"}
    spelt: dict[str, str] = {}
    for path, literal in told.items():
        inside = data
        for key in path[:-1]:
            inside = inside.setdefault("m" if key == "*" else key, {})
            if not isinstance(inside, dict):
                break
        else:
            spelt[mark := f"@{len(spelt)}@"] = literal
            inside[path[-1]] = mark
    event = {"type": kind, "id": f"e{number}", "timestamp": f"2026-11-18T10:00:{number % 60:02}.000Z", "data": data}
    line = json.dumps(event)
    for mark, literal in spelt.items():
        line = line.replace(f'"{mark}"', literal)
    return line.encode()


def _doubles(request: ExportTraceServiceRequest) -> Iterator[float]:
    for span in request.resource_spans[0].scope_spans[0].spans:
        assert span.start_time_unix_nano <= span.end_time_unix_nano
        for attributes in (span.attributes, *(event.attributes for event in span.events)):
            yield from (one.value.double_value for one in attributes)


def _check(told: dict[tuple[str, ...], str], content: Content, semconv: Semconv) -> None:
    tally = Tally()
    bridge = Bridge("s", SignalOptions(content=content, semconv=semconv), tally)
    lines = [_line(0, "user.message", {}), _line(1, "assistant.turn_start", {})]
    lines += [_line(number, kind, told) for number, kind in enumerate(_TYPES, 2)]

    records = bridge.take(lines, 1)
    records["traces"] += bridge.process_died(1)["traces"]

    assert not tally.defects
    of_events = [name for _, name, _ in records["logs"] if "/" not in name]  # the others tell what failed
    assert of_events == [f"e{number}" for number in range(len(lines))]
    spans = ExportTraceServiceRequest.FromString(request_bytes(b"", b"", [one for _, _, one in records["traces"]]))
    assert all(math.isfinite(number) for number in _doubles(spans))
    ExportLogsServiceRequest.FromString(request_bytes(b"", b"", [one for _, _, one in records["logs"]]))
    sums = Aggregate(MetricStream(content=content, semconv=semconv))
    for _, _, measured in records["metrics"]:
        assert unpack(pack(measured)) == measured
        sums.add(measured)
    for instrument, points in sums.points():
        metric_bytes(instrument, points, "cumulative", content, semconv)


_SEMCONVS: Final = st.sampled_from(["cli", "latest", "legacy", "both"])


def test_every_payload_with_numbers_is_among_them() -> None:
    assert ("usage", "cost") in _PATHS
    assert ("modelMetrics", "*", "usage", "inputTokens") in _PATHS
    assert ("compactionTokensUsed", "copilotUsage", "totalNanoAiu") in _PATHS
    assert ("codeChanges", "linesAdded") in _PATHS
    assert ("shellExecution", "exitCode") in _PATHS
    assert len(instruments()) > len(_PATHS) // 4


@pytest.mark.parametrize("content", list(Content))
@pytest.mark.parametrize("literal", [_HUGE, "9" * 5_000, "1e999", "-1e308", str(2**63)])
@pytest.mark.slow
def test_the_same_absurd_number_everywhere_loses_no_event(literal: str, content: Content) -> None:
    _check(dict.fromkeys(_PATHS, literal), content, "both")


@given(st.dictionaries(st.sampled_from(_PATHS), _ABSURD, max_size=12), st.sampled_from(list(Content)), _SEMCONVS)
@settings(max_examples=150, deadline=None)
def test_whatever_the_numbers_are_no_event_is_lost(
    told: dict[tuple[str, ...], str], content: Content, semconv: Semconv
) -> None:
    _check(told, content, semconv)


def test_absurd_numbers_in_the_arguments_of_a_call_stay_as_they_are() -> None:
    called = '[{"toolCallId":"c","name":"bash","arguments":{"n":' + _HUGE + "}},7]"
    lines = [
        _line(0, "user.message", {}),
        _line(1, "assistant.turn_start", {}),
        _line(2, "assistant.message", {("toolRequests",): called, ("outputTokens",): "3"}),
        _line(3, "session.shutdown", {}),
    ]
    tally = Tally()

    records = Bridge("s", SignalOptions(content=Content.REDACTED), tally).take(lines, 1)

    assert not tally.defects
    assert any(b'"arguments":{"n":' + _HUGE.encode() in span for _, _, span in records["traces"])
