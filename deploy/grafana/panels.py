"""The kinds of panels that the dashboards are made of: each has a title, what it answers, a unit and its queries."""

import re
from collections.abc import Sequence
from typing import Final, TypeAlias

from grafana_foundation_sdk.builders import bargauge, logs, nodegraph, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import loki as loki_builders
from grafana_foundation_sdk.builders import prometheus as prometheus_builders
from grafana_foundation_sdk.builders import tempo as tempo_builders
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import common, dashboard, prometheus, tempo

from otel.names import CONVERSATION_ID

Query: TypeAlias = Builder[Dataquery]
Panel: TypeAlias = Builder[dashboard.Panel]

METRICS: Final = dashboard.DataSourceRef(type_val="prometheus", uid="${metrics}")
TRACES: Final = dashboard.DataSourceRef(type_val="tempo", uid="${traces}")
LOGS: Final = dashboard.DataSourceRef(type_val="loki", uid="${logs}")

COUNT: Final = "short"
SECONDS: Final = "s"
SHARE: Final = "percentunit"
NONE: Final = "none"
_ROWS_MAX: Final = 200
_REFERENCES: Final = "ABCDEFGH"


def metrics(expression: str, legend: str = "", *, instant: bool = False) -> Query:
    """A PromQL query: over time, or one answer for the whole range."""
    query = prometheus_builders.Dataquery().expr(expression).datasource(METRICS)
    query.editor_mode(prometheus.QueryEditorMode.CODE)
    if instant:
        query.instant()
    else:
        query.range().exemplar(True)
    return query.legend_format(legend) if legend else query


def traces(query: str, *, each_span: bool = False) -> Query:
    """A TraceQL query that lists traces, or each span that it matches."""
    kind = tempo.SearchTableType.SPANS if each_span else tempo.SearchTableType.TRACES
    built = tempo_builders.TempoQuery().query(query).query_type("traceql").table_type(kind).limit(_ROWS_MAX)
    return built.spss(_ROWS_MAX).datasource(TRACES)


def records(expression: str) -> Query:
    """A LogQL query for records."""
    return loki_builders.Dataquery().expr(expression).query_type("range").max_lines(_ROWS_MAX).datasource(LOGS)


def counted_records(expression: str) -> Query:
    """A LogQL query with one answer for the whole range."""
    return loki_builders.Dataquery().expr(expression).query_type("instant").datasource(LOGS)


def figure(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    warn: float | None = None,
    source: dashboard.DataSourceRef = METRICS,
) -> Panel:
    """One number for the whole range; it turns orange from `warn` on."""
    panel = stat.Panel().title(title).description(description).unit(unit).datasource(source)
    panel.reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
    panel.graph_mode(common.BigValueGraphMode.NONE).no_value("0").thresholds(_thresholds(warn))
    panel.color_mode(common.BigValueColorMode.VALUE)
    return panel.targets(_referenced(queries))


def lines(title: str, description: str, unit: str, *queries: Query, source: dashboard.DataSourceRef = METRICS) -> Panel:
    """Figures over time."""
    panel = timeseries.Panel().title(title).description(description).unit(unit).datasource(source).min(0)
    panel.legend(_legend()).fill_opacity(8).show_points(common.VisibilityMode.AUTO).line_width(1)
    return panel.targets(_referenced(queries))


def stack(title: str, description: str, unit: str, *queries: Query, source: dashboard.DataSourceRef = METRICS) -> Panel:
    """Figures over time as bars upon each other: parts of a whole."""
    panel = timeseries.Panel().title(title).description(description).unit(unit).datasource(source).min(0)
    panel.draw_style(common.GraphDrawStyle.BARS).fill_opacity(70).line_width(0).legend(_legend())
    panel.stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL))
    return panel.targets(_referenced(queries))


def ranking(title: str, description: str, unit: str, *queries: Query) -> Panel:
    """One bar per series for the whole range, for instant queries."""
    panel = bargauge.Panel().title(title).description(description).unit(unit).datasource(METRICS).min(0)
    panel.orientation(common.VizOrientation.HORIZONTAL).display_mode(common.BarGaugeDisplayMode.BASIC)
    panel.reduce_options(common_builders.ReduceDataOptions().values(False).calcs(["lastNotNull"]))
    panel.thresholds(_thresholds(None)).no_value("0")
    return panel.targets(_referenced(queries))


def rows(title: str, description: str, unit: str, *queries: Query, columns: Sequence[tuple[str, str, str]]) -> Panel:
    """A table that joins instant queries by their labels; a column is its field, its heading and its unit."""
    panel = table.Panel().title(title).description(description).unit(unit).datasource(METRICS)
    panel.with_transformation(dashboard.DataTransformerConfig(id_val="merge", options={}))
    options = {
        "excludeByName": {"Time": True},
        "indexByName": {field: place for place, (field, _, _) in enumerate(columns)},
        "renameByName": {field: heading for field, heading, _ in columns},
    }
    panel.with_transformation(dashboard.DataTransformerConfig(id_val="organize", options=options))
    for query in queries:
        assert isinstance(query, prometheus_builders.Dataquery)
        query.format(prometheus.PromQueryFormat.TABLE)
    for _, heading, its_unit in columns:
        panel.override_by_name(heading, [dashboard.DynamicConfigValue(id_val="unit", value=its_unit)])
    return panel.targets(_referenced(queries))


def found(title: str, description: str, query: Query) -> Panel:
    """A table of traces or spans; each leads to its trace, and the id of a session to the session."""
    panel = table.Panel().title(title).description(description).unit(NONE).datasource(TRACES)
    link = {
        "title": "Open the session",
        "url": "/d/session-exporter-session?var-session=${__value.raw}&${__url_time_range}",
    }
    linked = [dashboard.DynamicConfigValue(id_val="links", value=[link])]
    panel.override_by_regexp(f"/{re.escape(CONVERSATION_ID.latest)}$/", linked)
    return panel.targets(_referenced([query]))


def trace_graph(title: str, description: str, query: Query) -> Panel:
    """The spans of one trace as nodes, each joined to its parent."""
    return nodegraph.Panel().title(title).description(description).datasource(TRACES).targets(_referenced([query]))


def listing(title: str, description: str, query: Query) -> Panel:
    """Log records, oldest first."""
    panel = logs.Panel().title(title).description(description).datasource(LOGS).show_time(True)
    panel.enable_log_details(True).sort_order(common.LogsSortOrder.ASCENDING)
    return panel.targets(_referenced([query]))


def lanes(title: str, description: str, unit: str, *queries: Query) -> Panel:
    """A lane per series, coloured where there is a value, the more the stronger."""
    panel = statetimeline.Panel().title(title).description(description).unit(unit).datasource(TRACES)
    panel.show_value(common.VisibilityMode.NEVER).merge_values(False).row_height(0.8)
    panel.color_scheme(builders.FieldColor().mode(dashboard.FieldColorModeId.CONTINUOUS_BL_PU))
    return panel.targets(_referenced(queries))


def _referenced(queries: Sequence[Query]) -> list[Query]:
    for query, reference in zip(queries, _REFERENCES, strict=False):
        assert isinstance(query, prometheus_builders.Dataquery | tempo_builders.TempoQuery | loki_builders.Dataquery)
        query.ref_id(reference)
    return list(queries)


def _legend() -> common_builders.VizLegendOptions:
    legend = common_builders.VizLegendOptions().display_mode(common.LegendDisplayMode.LIST).show_legend(True)
    return legend.placement(common.LegendPlacement.BOTTOM).calcs([])


def _thresholds(warn: float | None) -> builders.ThresholdsConfig:
    steps = [dashboard.Threshold(value=None, color="blue" if warn is None else "green")]
    if warn is not None:
        steps.append(dashboard.Threshold(value=warn, color="orange"))
    return builders.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(steps)
