"""The kinds of panels that the dashboards are made of: each has a title, what it answers, a unit and its queries."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from grafana_foundation_sdk.builders import bargauge, logs, nodegraph, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import loki as loki_builders
from grafana_foundation_sdk.builders import prometheus as prometheus_builders
from grafana_foundation_sdk.builders import tempo as tempo_builders
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import common, dashboard, prometheus, tempo

from otel.names import AGENT_NAME, CONVERSATION_ID, OPERATION, REQUEST_MODEL, TOOL_NAME, Attribute

Query: TypeAlias = Builder[Dataquery]
Panel: TypeAlias = Builder[dashboard.Panel]

METRICS: Final = dashboard.DataSourceRef(type_val="prometheus", uid="${metrics}")
TRACES: Final = dashboard.DataSourceRef(type_val="tempo", uid="${traces}")
LOGS: Final = dashboard.DataSourceRef(type_val="loki", uid="${logs}")

COUNT: Final = "locale"
"""How many things: a whole number, in full. What a store adds at the edges of a window is rounded away."""
AMOUNT: Final = "short"
"""How much: tokens, credits, what is charged; with K and Mil."""
SECONDS: Final = "s"
SHARE: Final = "percentunit"
NONE: Final = "none"
NO_DATA: Final = "no data"
_ROWS_MAX: Final = 200
_SPANS_MAX: Final = 100
"""As many spans of a trace as Tempo gives with its default settings."""
_POINTS_MAX: Final = 60
"""As many bars, or points of a line, as the eye can tell apart."""
_STEP_MIN: Final = "5m"
"""A step holds some of the points that are sent every minute: an increase needs two."""
_REFERENCES: Final = "ABCDEFGH"
_LETTER_HEIGHT: Final = 12
_TRACE_ID: Final = "traceIdHidden"
_END: Final = "End"
_MILLISECONDS: Final = "milliseconds"
_THIS_TIME: Final = (
    "/d/session-exporter-session?var-session=SESSION"
    '&from=${__data.fields["Start"].numeric}&to=${__data.fields["End"].numeric}'
)
_SESSION_LINKS: Final = [
    {
        "title": "Open the session here",
        "url": "/d/session-exporter-session?var-session=${__value.raw}&${__url_time_range}",
    },
    {
        "title": "Open it in Mission Control",
        "url": "${mission_control:raw}/sessions/${__value.raw}",
        "targetBlank": True,
    },
]


# What is parted by values has the names of its parts as names of series; a default does not reach it, an override does.
_AFTER_SERIES: Final = [dashboard.DynamicConfigValue(id_val="displayName", value="${__series.name}")]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its field, its heading, its unit and its width in points; what an empty cell says.

    `parts` is how many of what the field counts are one of what the column shows.
    """

    field: str
    heading: str
    unit: str = NONE
    width: int | None = None
    empty: str | None = None
    parts: int = 1


START: Final = Column("Start time", "Start", width=165)
TRACE: Final = Column("Span ID", "Trace", width=150)
NAME: Final = Column("Name", "Name")
TOOK: Final = Column("Duration", "Took", "ns", 90)


def shown(
    attribute: Attribute,
    heading: str,
    unit: str = NONE,
    width: int | None = 110,
    empty: str | None = None,
    parts: int = 1,
) -> Column:
    """A column with an attribute of a span, as Tempo names it."""
    return Column(attribute.name, heading, unit, width, empty, parts)


def metrics(expression: str, legend: str = "", *, instant: bool = False) -> Query:
    """A PromQL query: over time, or one answer for the whole range; what lacks a label of the legend is "none"."""
    for label in re.findall(r"{{(\w+)}}", legend):
        expression = f'label_replace({expression}, "{label}", "none", "{label}", "")'
    query = prometheus_builders.Dataquery().expr(expression).datasource(METRICS)
    query.editor_mode(prometheus.QueryEditorMode.CODE)
    if instant:
        query.instant()
    else:
        query.range().exemplar(
            "histogram_quantile" in expression
        )  # beside a count, they would be dots without a meaning
    return query.legend_format(legend) if legend else query


def traces(query: str) -> Query:
    """A TraceQL query that lists each span that it matches, of the latest traces: Tempo gives any without the hint."""
    return _tempo(f"{query} with (most_recent=true)", tempo.SearchTableType.SPANS)


def trace(identity: str) -> Query:
    """All spans of one trace."""
    return _tempo(identity, tempo.SearchTableType.TRACES)


def _tempo(query: str, kind: tempo.SearchTableType) -> Query:
    built = tempo_builders.TempoQuery().query(query).query_type("traceql").table_type(kind).limit(_ROWS_MAX)
    return built.spss(_SPANS_MAX).datasource(TRACES)


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
    alarm_below: float | None = None,
    source: dashboard.DataSourceRef = METRICS,
) -> Panel:
    """One number for the whole range: orange from `warn` on, red below `alarm_below`; without data it says so."""
    panel = stat.Panel().title(title).description(description).unit(unit).datasource(source)
    panel.reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
    panel.graph_mode(common.BigValueGraphMode.NONE).no_value(NO_DATA).thresholds(_thresholds(warn, alarm_below))
    panel.color_mode(common.BigValueColorMode.VALUE).mappings([_grey_if_empty()])
    panel.text(common_builders.VizTextDisplayOptions().value_size(28))
    _whole(panel, unit)
    return panel.targets(_referenced(queries))


def lines(title: str, description: str, unit: str, *queries: Query, source: dashboard.DataSourceRef = METRICS) -> Panel:
    """Figures over time, joined where nothing happened in between."""
    panel = timeseries.Panel().title(title).description(description).unit(unit).datasource(source).min(0)
    panel.legend(_legend()).fill_opacity(0).show_points(common.VisibilityMode.ALWAYS).line_width(1).point_size(4)
    panel.span_nulls(True).max_data_points(_POINTS_MAX).interval(_STEP_MIN)
    _whole(panel, unit)
    return panel.targets(_referenced(queries)).targets(_referenced(queries))


def stack(title: str, description: str, unit: str, *queries: Query) -> Panel:
    """Figures over time as bars upon each other that touch: parts of a whole. A bar ends where its interval does."""
    panel = _bars(title, description, unit).fill_opacity(80).line_width(0)
    panel.stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL))
    return panel.targets(_referenced(queries))


def overlaid(title: str, description: str, unit: str, *queries: Query) -> Panel:
    """Figures over time as bars before each other, each of which holds or nearly equals the next one."""
    return _bars(title, description, unit).fill_opacity(45).line_width(1).targets(_referenced(queries))


def _bars(title: str, description: str, unit: str) -> timeseries.Panel:
    panel = timeseries.Panel().title(title).description(description).unit(unit).datasource(METRICS).min(0)
    panel.draw_style(common.GraphDrawStyle.BARS).legend(_legend()).show_points(common.VisibilityMode.NEVER)
    panel.bar_alignment(common.BarAlignment.BEFORE).bar_width_factor(1).max_data_points(_POINTS_MAX)
    _whole(panel, unit)
    return panel.interval(_STEP_MIN)


def _whole(panel: stat.Panel | timeseries.Panel | bargauge.Panel, unit: str) -> None:
    if unit == COUNT:
        panel.decimals(0)


def ranking(title: str, description: str, unit: str, *queries: Query) -> Panel:
    """One bar with its name per series for the whole range, for instant queries."""
    panel = bargauge.Panel().title(title).description(description).unit(unit).datasource(METRICS).min(0)
    panel.orientation(common.VizOrientation.HORIZONTAL).display_mode(common.BarGaugeDisplayMode.BASIC)
    panel.reduce_options(common_builders.ReduceDataOptions().values(False).calcs(["lastNotNull"]))
    panel.thresholds(_thresholds(None)).display_name("${__series.name}").name_placement(
        common.BarGaugeNamePlacement.LEFT
    )
    # Grafana leaves as much room for names as letters of two fifths of the height take.
    panel.text(common_builders.VizTextDisplayOptions().title_size(_LETTER_HEIGHT).value_size(_LETTER_HEIGHT))
    panel.max_viz_height(30).min_viz_height(30).sizing(common.BarGaugeSizing.MANUAL).no_value(NO_DATA)
    _whole(panel, unit)
    return panel.targets(_referenced(queries))


def rows(title: str, description: str, unit: str, *queries: Query, columns: Sequence[Column]) -> Panel:
    """A table that joins instant queries by their labels, the largest of its first figure above."""
    panel = table.Panel().title(title).description(description).unit(unit).datasource(METRICS)
    panel.with_transformation(dashboard.DataTransformerConfig(id_val="merge", options={}))
    for query in queries:
        assert isinstance(query, prometheus_builders.Dataquery)
        query.format(prometheus.PromQueryFormat.TABLE)
    first = next(column.heading for column in columns if column.unit != NONE)
    panel.sort_by([common_builders.TableSortByFieldState().display_name(first).desc(True)])
    return _arranged(panel, columns, {"Time": True}).targets(_referenced(queries))


def found(title: str, description: str, query: Query, *columns: Column) -> Panel:
    """A table of spans: when, which, and the given columns; each leads to its trace and to its time in its session."""
    panel = table.Panel().title(title).description(description).unit(NONE).datasource(TRACES)
    kept = [START, *columns, TOOK, TRACE]
    include = {"names": [*(column.field for column in kept), _TRACE_ID]}
    panel.with_transformation(
        dashboard.DataTransformerConfig(id_val="filterFieldsByName", options={"include": include})
    )
    for options in _end():
        panel.with_transformation(dashboard.DataTransformerConfig(id_val="calculateField", options=options))
    for column in columns:
        if column.parts > 1:
            options = _calculated(column.field, "/", {"fixed": str(column.parts)}, column.heading)
            panel.with_transformation(dashboard.DataTransformerConfig(id_val="calculateField", options=options))
    kept = [replace(column, field=column.heading) if column.parts > 1 else column for column in kept]
    excluded = {_MILLISECONDS: True} | {column.field: True for column in columns if column.parts > 1}
    headings = {column.field: column.heading for column in kept}
    here = "${session}"
    if CONVERSATION_ID.name in headings:
        heading = headings[CONVERSATION_ID.name]
        here = f'${{__data.fields["{heading}"]}}'
        panel.override_by_name(heading, [dashboard.DynamicConfigValue(id_val="links", value=_SESSION_LINKS)])
    linked = [{"title": "Show this time of the session", "url": _THIS_TIME.replace("SESSION", here)}]
    panel.override_by_name(START.heading, [dashboard.DynamicConfigValue(id_val="links", value=linked)])
    hidden = ("custom.hideFrom.viz", "custom.hidden")  # Grafana's name of it, and that of versions before 12
    panel.override_by_name(_END, [dashboard.DynamicConfigValue(id_val=name, value=True) for name in hidden])
    return _arranged(panel, kept, excluded).targets(_referenced([query]))


def _end() -> list[dict[str, Any]]:
    """Steps that add the time at which a span ended."""
    return [
        _calculated(TOOK.field, "/", {"fixed": "1000000"}, _MILLISECONDS),
        _calculated(START.field, "+", _by_name(_MILLISECONDS), _END),
    ]


def _arranged(panel: table.Panel, columns: Sequence[Column], excluded: dict[str, bool]) -> table.Panel:
    options = {
        "excludeByName": excluded,
        "indexByName": {column.field: place for place, column in enumerate(columns)},
        "renameByName": {column.field: column.heading for column in columns},
    }
    panel.with_transformation(dashboard.DataTransformerConfig(id_val="organize", options=options))
    for column in columns:
        values: list[tuple[str, Any]] = [("unit", column.unit)]
        if column.unit == COUNT:
            values.append(("decimals", 0))
        if column.width is not None:
            values.append(("custom.width", column.width))
        if column.empty is not None:
            values.append(("noValue", column.empty))
        panel.override_by_name(column.heading, [dashboard.DynamicConfigValue(id_val=key, value=v) for key, v in values])
    return panel


def trace_graph(title: str, description: str, query: Query) -> Panel:
    """The spans of one trace as nodes, each joined to its parent."""
    return nodegraph.Panel().title(title).description(description).datasource(TRACES).targets(_referenced([query]))


def listing(title: str, description: str, query: Query) -> Panel:
    """Log records, oldest first, a line each."""
    panel = logs.Panel().title(title).description(description).datasource(LOGS).show_time(True)
    panel.enable_log_details(True).sort_order(common.LogsSortOrder.ASCENDING).wrap_log_message(False)
    return panel.targets(_referenced([query]))


def lanes(title: str, description: str, query: Query) -> Panel:
    """Spans as bars from their start to their end, a lane for each kind and each tool, darker the longer they took."""
    panel = statetimeline.Panel().title(title).description(description).unit("ns").datasource(TRACES)
    panel.show_value(common.VisibilityMode.NEVER).merge_values(False).row_height(0.8).line_width(1).fill_opacity(85)
    panel.color_scheme(builders.FieldColor().mode(dashboard.FieldColorModeId.CONTINUOUS_BL_PU))
    panel.legend(
        common_builders.VizLegendOptions()
        .show_legend(False)
        .display_mode(common.LegendDisplayMode.LIST)
        .placement(common.LegendPlacement.BOTTOM)
        .calcs([])
    )
    panel.no_value(NO_DATA).override_by_field_type("number", _AFTER_SERIES)
    lane = [OPERATION.name, AGENT_NAME.name, TOOL_NAME.name]
    kept = [START.field, TOOK.field, *lane]
    for name, options in (
        ("filterFieldsByName", {"include": {"names": kept}}),
        *(("calculateField", options) for options in _end()),
        ("convertFieldType", {"conversions": [{"targetField": _END, "destinationType": "time"}], "fields": {}}),
        (
            "organize",
            {
                "excludeByName": {_MILLISECONDS: True},
                "indexByName": {name: place for place, name in enumerate([START.field, _END, TOOK.field, *lane])},
                "renameByName": {},
            },
        ),
        ("partitionByValues", {"fields": lane, "keepFields": False, "naming": {"asLabels": False}}),
    ):
        panel.with_transformation(dashboard.DataTransformerConfig(id_val=name, options=options))
    return panel.targets(_referenced([query]))


def numbers_of_spans(title: str, description: str, unit: str, query: Query, number: Attribute) -> Panel:
    """A number that spans have, at the time of each span, a series for each model."""
    panel = timeseries.Panel().title(title).description(description).unit(unit).datasource(TRACES).min(0)
    panel.legend(_legend()).show_points(common.VisibilityMode.ALWAYS).point_size(5).line_width(1).fill_opacity(8)
    panel.span_nulls(True).no_value(NO_DATA).override_by_field_type("number", _AFTER_SERIES)
    for name, options in (
        ("filterFieldsByName", {"include": {"names": ["Start time", REQUEST_MODEL.name, number.name]}}),
        (
            "convertFieldType",
            {"conversions": [{"targetField": number.name, "destinationType": "number"}], "fields": {}},
        ),
        ("sortBy", {"fields": {}, "sort": [{"field": "Start time"}]}),
        ("partitionByValues", {"fields": [REQUEST_MODEL.name], "keepFields": False, "naming": {"asLabels": False}}),
    ):
        panel.with_transformation(dashboard.DataTransformerConfig(id_val=name, options=options))
    return panel.targets(_referenced([query]))


def _calculated(left: str, operator: str, right: dict[str, Any], alias: str) -> dict[str, Any]:
    binary = {"left": _by_name(left), "operator": operator, "right": right}
    return {"mode": "binary", "binary": binary, "alias": alias, "replaceFields": False}


def _by_name(field: str) -> dict[str, Any]:
    return {"matcher": {"id": "byName", "options": field}}


def _referenced(queries: Sequence[Query]) -> list[Query]:
    for query, reference in zip(queries, _REFERENCES, strict=False):
        assert isinstance(query, prometheus_builders.Dataquery | tempo_builders.TempoQuery | loki_builders.Dataquery)
        query.ref_id(reference)
    return list(queries)


def _legend() -> common_builders.VizLegendOptions:
    legend = common_builders.VizLegendOptions().display_mode(common.LegendDisplayMode.LIST).show_legend(True)
    return legend.placement(common.LegendPlacement.BOTTOM).calcs([])


def _thresholds(warn: float | None, alarm_below: float | None = None) -> builders.ThresholdsConfig:
    if alarm_below is not None:
        steps = [dashboard.Threshold(value=None, color="red"), dashboard.Threshold(value=alarm_below, color="green")]
    else:
        steps = [dashboard.Threshold(value=None, color="blue" if warn is None else "green")]
    if warn is not None:
        steps.append(dashboard.Threshold(value=warn, color="orange"))
    return builders.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(steps)


def _grey_if_empty() -> dashboard.SpecialValueMap:
    result = dashboard.ValueMappingResult(text=NO_DATA, color="text", index=0)
    options = dashboard.DashboardSpecialValueMapOptions(match=dashboard.SpecialValueMatch.NULL_AND_NAN, result=result)
    return dashboard.SpecialValueMap(options=options)
