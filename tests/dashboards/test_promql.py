"""Names become what Prometheus makes of them, and Prometheus's own tool reads every query and finds an answer."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
import yaml

from deploy.grafana import promql
from otel import health, instruments, names
from otel.names import Attribute, Instrument
from tests.dashboards.boards import ALERTS, asked, filled, rules
from tests.dashboards.promtool import check_rules, is_one, needs_promtool, run_tests

MINUTES: Final = 480
TABLES: Final = (*instruments.instruments(), *health.TABLE, *health.SCRAPED)
VALUES: Final[Mapping[Attribute, tuple[str, ...]]] = {
    names.LABEL_SUCCESS: ("true", "false"),
    names.PERMISSION_RESULT: ("approved", "denied-by-rules"),
    names.NOTIFICATION_TYPE: ("agent_idle", "shell_completed"),
    names.NOTIFICATION_STATUS: ("completed", "failed"),
}


@pytest.mark.parametrize(
    ("name", "unit", "kind", "stored"),
    [
        ("gen_ai.client.inference.duration", "s", "histogram", "gen_ai_client_inference_duration_seconds"),
        ("github.copilot.tool.call.count", "{call}", "counter", "github_copilot_tool_call_count_total"),
        ("github.copilot.cost", "1", "counter", "github_copilot_cost_total"),
        ("a.total.bytes", "By", "counter", "a_bytes_total"),
        ("session_exporter.sink.lag.bytes", "By", "gauge", "session_exporter_sink_lag_bytes"),
        ("a.share", "1", "gauge", "a_share_ratio"),
        ("a..speed", "By/s", "gauge", "a_speed_bytes_per_second"),
        ("a.wait", "ms", "histogram", "a_wait_milliseconds"),
        ("a.rate", "{request}/min", "gauge", "a_rate_per_minute"),
    ],
)
def test_a_metric_gets_the_name_that_prometheus_gives_it(name: str, unit: str, kind: str, stored: str) -> None:
    assert promql.metric_name(name, unit, counter=kind == "counter", gauge=kind == "gauge") == stored


def test_names_stay_apart() -> None:
    stored = [promql.stored_name(instrument) for instrument in TABLES]

    assert len(stored) == len(set(stored))


def test_a_label_that_a_metric_has_not_is_refused_when_the_dashboards_are_made() -> None:
    with pytest.raises(ValueError, match="has no label"):
        promql.growth(instruments.SESSIONS, by=[names.TOOL_NAME])
    with pytest.raises(ValueError, match="has no label"):
        promql.growth(instruments.SESSIONS, where={names.TOOL_NAME: "bash"})


def test_a_histogram_is_not_asked_for_as_a_counter() -> None:
    with pytest.raises(ValueError, match="is a histogram"):
        promql.growth(instruments.TOOL_DURATION)
    with pytest.raises(ValueError, match="is a counter"):
        promql.quantile(0.5, instruments.TOOL_CALLS)


@needs_promtool
def test_promtool_reads_every_query(tmp_path: Path) -> None:
    group = [{"record": f"query:{place}", "expr": filled(q.text)} for place, q in enumerate(asked("prometheus"))]

    check_rules(tmp_path, {"groups": [{"name": "queries", "rules": group}]})


@needs_promtool
def test_promtool_reads_the_alert_rules(tmp_path: Path) -> None:
    check_rules(tmp_path, yaml.safe_load(ALERTS.read_text(encoding="utf-8")))


@needs_promtool
def test_growth_is_exact_where_points_are_rare_and_where_a_series_begins(tmp_path: Path) -> None:
    calls = promql.stored_name(instruments.TOOL_CALLS)
    rare = [
        # Was 4 before the window; 5 an hour and 6 four hours into it.
        {"series": f'{calls}{{gen_ai_tool_name="view"}}', "values": "_x60 4 _x118 4 5 _x180 5 6"},
        # Begins in the window, at 3.
        {"series": f'{calls}{{gen_ai_tool_name="bash"}}', "values": "_x300 3"},
        # Nothing happened in the window.
        {"series": f'{calls}{{gen_ai_tool_name="edit"}}', "values": "_x10 9"},
    ]
    query = promql.growth(instruments.TOOL_CALLS, by=[names.TOOL_NAME], over="6h")
    answers = [
        {"labels": f'{{gen_ai_tool_name="{tool}"}}', "value": value} for tool, value in (("bash", 3), ("view", 2))
    ]

    run_tests(tmp_path, rare, [{"expr": query, "eval_time": "8h", "exp_samples": answers}])


@needs_promtool
def test_a_series_that_began_anew_counts_all_that_it_has(tmp_path: Path) -> None:
    calls = promql.stored_name(instruments.TOOL_CALLS)
    anew = [{"series": f'{calls}{{gen_ai_tool_name="view"}}', "values": "_x10 50 _x400 0 1"}]
    query = promql.growth(instruments.TOOL_CALLS, over="6h")

    run_tests(tmp_path, anew, [{"expr": query, "eval_time": "8h", "exp_samples": [{"labels": "{}", "value": 1}]}])


@needs_promtool
def test_a_change_compares_a_window_with_the_same_one_earlier(tmp_path: Path) -> None:
    calls = promql.stored_name(instruments.TOOL_CALLS)
    grew = [{"series": f'{calls}{{gen_ai_tool_name="view"}}', "values": "0 _x100 4 _x1400 _x8600 10"}]
    query = promql.change(instruments.TOOL_CALLS, since="7d").replace(promql.RANGE, "24h")
    half_more = [{"labels": "{}", "value": 0.5}]

    run_tests(tmp_path, grew, [{"expr": query, "eval_time": f"{7 * 24 * 60 + 180}m", "exp_samples": half_more}])


@needs_promtool
def test_an_exporter_that_falls_silent_is_counted_and_none_at_all_is_a_figure(tmp_path: Path) -> None:
    held = promql.stored_name(health.QUARANTINED)
    ended = [{"series": f'{held}{{job="a", instance="b"}}', "values": "0x100"}]
    silent = promql.silent(health.QUARANTINED, "1d")
    checks = [
        {"expr": expression, "eval_time": at, "exp_samples": [{"labels": "{}", "value": value}]}
        for expression, at, value in (
            (promql.reporting(health.QUARANTINED), "90m", 1),
            (promql.reporting(health.QUARANTINED), "200m", 0),
            (f"count({silent}) or vector(0)", "90m", 0),
            (f"count({silent}) or vector(0)", "200m", 1),
        )
    ]

    run_tests(tmp_path, ended, checks)


@needs_promtool
@pytest.mark.parametrize("name", [rule["alert"] for rule in rules()])
def test_an_alert_fires_when_it_should(name: str, tmp_path: Path) -> None:
    series = list(_everything(lag_seconds=4000, stops_at=_STOPS.get(name)))
    query = f'clamp_max(count(ALERTS{{alertname="{name}", alertstate="firing"}}), 1)'

    run_tests(tmp_path, series, [is_one(query, MINUTES)], ALERTS)


_STOPS: Final = {"ExporterSilent": MINUTES - 30}


@needs_promtool
def test_no_alert_fires_when_nothing_is_wrong(tmp_path: Path) -> None:
    bad = ("false", "failed", "error", "orphan", "rejected", "unknown", "defect")
    good = [
        series for series in _everything(lag_seconds=1, good=True) if not any(word in series["series"] for word in bad)
    ]

    run_tests(tmp_path, good, [{"expr": "ALERTS", "eval_time": f"{MINUTES}m", "exp_samples": []}], ALERTS)


def _everything(*, lag_seconds: int = 60, good: bool = False, stops_at: int | None = None) -> Iterator[dict[str, str]]:
    """Series of every metric, one for each set of label values that some query tells apart, growing every minute."""
    minutes = stops_at or MINUTES
    for instrument in TABLES:
        name = promql.stored_name(instrument)
        for labels in _labels(instrument):
            if instrument.kind == "histogram":
                yield from _histogram(instrument, labels, minutes)
            elif instrument.kind == "gauge":
                yield {"series": f"{name}{{{labels}}}", "values": f"{0 if good else lag_seconds}+0x{minutes}"}
            else:
                # More than half of the calls fail.
                growth = 3 if 'success="false"' in labels else 1
                yield {"series": f"{name}{{{labels}}}", "values": f"0+{growth}x{minutes}"}


def _histogram(instrument: Instrument, labels: str, minutes: int) -> Iterator[dict[str, str]]:
    name = promql.stored_name(instrument)
    bounds = [*map(str, instrument.bounds), "+Inf"]
    for place, bound in enumerate(bounds, 1):
        yield {"series": f'{name}_bucket{{{labels}, le="{bound}"}}', "values": f"0+{place}x{minutes}"}
    yield {"series": f"{name}_count{{{labels}}}", "values": f"0+{len(bounds)}x{minutes}"}
    yield {"series": f"{name}_sum{{{labels}}}", "values": f"0+2x{minutes}"}


def _labels(instrument: Instrument) -> Iterator[str]:
    names_of = [promql.label_name(label) for label in instrument.labels]
    for values in itertools.product(*(VALUES.get(label, ("made-up",)) for label in instrument.labels)):
        pairs = [f'{name}="{value}"' for name, value in zip(names_of, values, strict=True)]
        yield ", ".join([*pairs, 'job="github-copilot"', 'instance="made-up"'])
