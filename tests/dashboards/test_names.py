"""A wrong name renders an empty panel: every name in a query is one of the tables in `otel`."""

import json
import re
from typing import Final

import pytest
import yaml

from deploy.grafana.promql import label_name, stored_name
from otel import health, names
from otel.instruments import instruments
from otel.projection import is_known
from tests.dashboards.boards import GRAFANA, ROOT, Asked, asked, filled, rules

INSTRUMENTS: Final = (*instruments(), *health.TABLE, *health.SCRAPED)
LABELS: Final = {label_name(label) for instrument in INSTRUMENTS for label in instrument.labels}
SERIES: Final = {
    stored_name(instrument) + suffix
    for instrument in INSTRUMENTS
    for suffix in (("_bucket", "_count", "_sum") if instrument.kind == "histogram" else ("",))
}
PROMQL: Final = {
    "and", "by", "clamp_min", "count", "histogram_quantile", "increase", "instance", "job", "label_replace",
    "last_over_time", "le", "max", "max_over_time", "offset", "or", "sum", "topk", "unless", "vector",
}  # fmt: skip
SPAN_ATTRIBUTES: Final = {attribute.name for attribute in names.attributes()}
OPERATIONS: Final = {
    names.INVOKE_AGENT, names.CHAT, names.EXECUTE_TOOL, names.PERMISSION, names.EXECUTE_HOOK, names.EXTERNAL_TOOL,
}  # fmt: skip
TRACEQL: Final = {
    "by", "duration", "error", "event:name", "max_over_time", "most_recent", "name", "select", "status",
    "sum_over_time", "true", "with",
}  # fmt: skip
FIELDS: Final = {re.sub(r"\W", "_", name) for name in SPAN_ATTRIBUTES}
LOGQL: Final = {"by", "count", "count_over_time", "line_format", "severity_number", "sum"}

STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
WORD: Final = re.compile(r"[a-zA-Z_:][\w:]*")
DURATION: Final = re.compile(r"\b(?:\d+(?:ms|s|m|h|d))+\b")

metric_queries = pytest.mark.parametrize("query", asked("prometheus"), ids=str)
trace_queries = pytest.mark.parametrize("query", asked("tempo"), ids=str)
log_queries = pytest.mark.parametrize("query", asked("loki"), ids=str)


def _words(expression: str) -> set[str]:
    return set(WORD.findall(DURATION.sub("", STRING.sub("", expression))))


def _brackets_close(text: str) -> bool:
    opened: list[str] = []
    pairs = {")": "(", "]": "[", "}": "{"}
    bare = STRING.sub("", text)
    for sign in bare:
        if sign in pairs.values():
            opened.append(sign)
        elif sign in pairs and (not opened or opened.pop() != pairs[sign]):
            return False
    return not opened and '"' not in bare


@metric_queries
def test_a_panel_asks_for_metrics_and_labels_that_exist(query: Asked) -> None:
    assert _words(filled(query.text)) - PROMQL - SERIES - LABELS == set()


@metric_queries
def test_a_legend_names_labels_that_the_query_keeps(query: Asked) -> None:
    kept = {word for part in re.findall(r"by \(([^)]*)\)", query.text) for word in WORD.findall(part)}

    assert set(re.findall(r"{{(\w+)}}", query.legend)) <= kept & LABELS


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_asks_for_metrics_and_labels_that_exist(rule: dict[str, str]) -> None:
    assert _words(rule["expr"]) - PROMQL - SERIES - LABELS == set()


@trace_queries
def test_traceql_is_well_formed_and_names_attributes_and_operations_that_exist(query: Asked) -> None:
    text = filled(query.text)
    if re.fullmatch(r"[0-9a-f]{32}", text):
        return
    bare = STRING.sub("", text)
    scoped = re.findall(r"\b(?:span|event|resource)\.([\w.]+)", bare)
    rest = re.sub(r"\b(?:span|event|resource)\.[\w.]+", "", bare)

    assert _brackets_close(text)
    assert set(scoped) <= SPAN_ATTRIBUTES
    assert _words(rest) <= TRACEQL
    assert {name.removesuffix(".*") for name in re.findall(r'(?<![.:])\bname [=!]~ "([^"]+)"', text)} <= OPERATIONS
    assert set(re.findall(r'event:name = "([^"]+)"', text)) <= {event.name for event in names.event_names()}


@log_queries
def test_logql_is_well_formed_and_names_fields_and_event_types_that_exist(query: Asked) -> None:
    text = filled(query.text)
    types = {kind for part in re.findall(r'event_type=~"([^"]+)"', text) for kind in _alternatives(part)}

    assert _brackets_close(text)
    assert _words(text) <= LOGQL | FIELDS
    assert [kind for kind in types if not is_known(kind)] == []


def _alternatives(pattern: str) -> list[str]:
    """The strings that a pattern of plain alternatives, at most one of them in brackets, stands for."""
    found = []
    for part in re.split(r"\|(?![^(]*\))", pattern.replace("\\\\.", ".")):
        before, opened, rest = part.partition("(")
        inner, _, after = rest.partition(")")
        found += [before + each + after for each in inner.split("|")] if opened else [before]
    return found


def test_the_variables_above_the_dashboards_ask_for_metrics_and_labels_that_exist() -> None:
    asked_for = [
        variable
        for path in sorted((GRAFANA / "dashboards").glob("*.json"))
        for variable in json.loads(path.read_text(encoding="utf-8"))["templating"]["list"]
        if variable["type"] == "query"
    ]
    queries = {each["query"] for each in asked_for if each["datasource"]["type"] == "prometheus"}
    tags = {each["query"]["label"] for each in asked_for if each["datasource"]["type"] == "tempo"}

    assert queries
    assert set().union(*map(_words, queries)) - {"label_values"} <= SERIES | LABELS
    assert tags
    assert tags <= SPAN_ATTRIBUTES


def test_the_data_sources_lead_from_spans_to_metrics_and_records_that_exist() -> None:
    document = yaml.safe_load((GRAFANA / "provisioning/datasources/session-exporter.yaml").read_text(encoding="utf-8"))
    tempo = next(source for source in document["datasources"] if source["type"] == "tempo")["jsonData"]
    uids = {source["uid"] for source in document["datasources"]}

    assert {tag["key"] for tag in tempo["tracesToMetrics"]["tags"]} <= SPAN_ATTRIBUTES
    assert {tag["value"] for tag in tempo["tracesToMetrics"]["tags"]} <= LABELS
    for query in tempo["tracesToMetrics"]["queries"]:
        assert _words(query["query"].replace("$$__tags", "")) <= PROMQL | SERIES | LABELS
    assert {tempo["tracesToMetrics"]["datasourceUid"], tempo["tracesToLogsV2"]["datasourceUid"]} <= uids


def test_jaeger_links_spans_by_attributes_that_exist() -> None:
    patterns = json.loads((ROOT / "deploy/jaeger/ui.json").read_text(encoding="utf-8"))["linkPatterns"]

    assert patterns
    for pattern in patterns:
        named = {pattern["key"], *re.findall(r"#{([^}]+)}", pattern["url"] + pattern["text"])}
        named |= set(re.findall(r"%7B%22([\w.]+)%22", pattern["url"]))
        assert named <= SPAN_ATTRIBUTES
