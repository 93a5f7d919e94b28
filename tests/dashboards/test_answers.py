"""On a session in which everything went wrong every query has an answer: no panel stays empty for a wrong name."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.grafana import promql
from otel import health
from otel.encode.sentences import sentence
from otel.model import Measurement
from otel.names import Content, Instrument, Semconv, Value
from tests.dashboards.boards import Asked, asked, filled
from tests.dashboards.promtool import answered, needs_promtool, run_tests
from tests.dashboards.record import BY_ID, answers_of
from tests.dashboards.subset import LEVEL, records_found, spans_found
from tests.dashboards.troubled import told

MINUTES = 480
both = pytest.mark.parametrize("semconv", ["cli", "latest"])
_BY_ID = re.compile(r"[0-9a-f]{32}")


@pytest.mark.parametrize("query", [query for query in asked("tempo") if query.text != BY_ID], ids=str)
@both
def test_a_traceql_query_finds_spans_that_have_what_it_shows(query: Asked, semconv: Semconv) -> None:
    found, shown = spans_found(filled(query.text), told(semconv).spans, semconv)

    assert found
    assert [name for name in shown if not any(name in facts for facts in found)] == []


@pytest.mark.parametrize("query", [query for query in asked("tempo") if query.text != BY_ID], ids=str)
@both
def test_a_real_tempo_gave_the_same_spans_with_the_same_attributes(query: Asked, semconv: Semconv) -> None:
    text = filled(query.text)
    answered_once = answers_of("tempo", semconv)
    found, shown = spans_found(text, told(semconv).spans, semconv)

    assert text in answered_once, "the query is new: python -m tests.dashboards.record says how to ask a real Tempo"
    assert {str(facts["span:id"]): _shown(facts, shown) for facts in found} == {
        span: {name: said[name] for name in map(_bare, shown) if name in said}
        for span, said in answered_once[text].items()
    }


@pytest.mark.parametrize("query", asked("loki"), ids=str)
@both
def test_a_real_loki_gave_a_readable_line_for_each_record(query: Asked, semconv: Semconv) -> None:
    text = filled(query.text)
    answered_once = answers_of("loki", semconv)
    records = sorted(records_found(text, told(semconv).records), key=lambda record: record.time_ns)

    assert text in answered_once, "the query is new: python -m tests.dashboards.record says how to ask a real Loki"
    if text.startswith("count"):
        assert answered_once[text] == [str(len({record.session for record in records}))]
    else:
        assert answered_once[text] == [f"{record.event_type:<28} {sentence(record, LEVEL)}" for record in records]


@pytest.mark.parametrize("query", asked("loki"), ids=str)
@both
def test_a_logql_query_finds_records(query: Asked, semconv: Semconv) -> None:
    assert records_found(filled(query.text), told(semconv).records)


@needs_promtool
@both
def test_a_promql_query_finds_what_was_measured(tmp_path: Path, semconv: Semconv) -> None:
    sent = [one for one in told(semconv).measurements if semconv in one.instrument.semconvs]
    series = [*_measured(sent), *_figures()]
    # What compares with a week before, and what counts silent exporters, has tests of its own (`test_promql.py`).
    queries = [query for query in asked("prometheus") if not re.search("offset 7d|unless", query.text)]
    checks = [answered(filled(query.text), MINUTES) for query in queries]

    assert len(checks) > 80
    run_tests(tmp_path, series, checks)


def test_a_promql_query_tells_apart_by_labels_that_something_has() -> None:
    held = {
        label
        for series in (*_measured(told().measurements), *_figures())
        for label in re.findall(r"(\w+)=", series["series"])
    }
    asked_for = {
        word
        for query in asked("prometheus")
        for part in re.findall(r"by \(([^)]*)\)", query.text)
        for word in part.split(", ")
    }

    assert asked_for <= held | {"job", "instance"}


def _shown(facts: dict[str, object], shown: list[str]) -> dict[str, object]:
    return {_bare(name): facts[name] for name in shown if name in facts}


def _bare(name: str) -> str:
    """The name of an attribute without the scope that TraceQL puts before it; Tempo answers with it."""
    return name.removeprefix("span.").removeprefix("event.")


def _measured(measurements: list[Measurement]) -> Iterator[dict[str, str]]:
    """What was measured, as series of cumulative values that begin in the last minute."""
    by_series: dict[tuple[Instrument, tuple[Value | None, ...]], list[float]] = defaultdict(list)
    for measurement in measurements:
        by_series[measurement.instrument, measurement.labels].append(measurement.value)
    for (instrument, values), recorded in by_series.items():
        name = promql.stored_name(instrument)
        pairs = {
            promql.label_name(label): str(value).lower() if isinstance(value, bool) else str(value)
            for label, value in zip(instrument.labels, values, strict=True)
            if value is not None and label.content <= Content.METADATA
        }
        if instrument.kind != "histogram":
            yield _series(name, pairs, sum(recorded))
            continue
        for bound in (*instrument.bounds, float("inf")):
            written = "+Inf" if bound == float("inf") else str(bound)
            yield _series(f"{name}_bucket", {**pairs, "le": written}, sum(value <= bound for value in recorded))
        yield _series(f"{name}_count", pairs, len(recorded))
        yield _series(f"{name}_sum", pairs, sum(recorded))


def _figures() -> Iterator[dict[str, str]]:
    """The exporter's own figures after a bad day."""
    sink = health.SinkFigures(7, 700, 70.0, 5, retries=3, repeated=2, rejected=1)
    figures = health.Figures({"otel": sink}, {"aws-key": 2}, {"made.up": 1}, orphans=2, quarantined=1, defects=1)
    for instrument, values in health.points(figures).items():
        for label, value in values.items():
            pairs = {promql.label_name(instrument.labels[0]): label} if instrument.labels else {}
            name = promql.stored_name(instrument)
            yield {"series": f"{name}{_labels(pairs)}", "values": f"0x{MINUTES - 1} {value}"}


def _series(name: str, labels: dict[str, str], value: float) -> dict[str, str]:
    return {"series": f"{name}{_labels(labels)}", "values": f"0x{MINUTES - 2} {value} {value}"}


def _labels(pairs: dict[str, str]) -> str:
    return "{" + ", ".join(f'{name}="{value}"' for name, value in pairs.items()) + "}"
