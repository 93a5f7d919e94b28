"""A dashboard: its variables, and panels that are put from left to right in rows under headings."""

import json
from collections.abc import Sequence
from typing import Final

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard

from deploy.grafana.panels import METRICS, TRACES, Panel
from otel.names import CONVERSATION_ID

TAG: Final = "session-exporter"
WIDTH: Final = 24
_HEADING_HEIGHT: Final = 1
MISSION_CONTROL: Final = "http://127.0.0.1:8411"
"""Where the embedded Mission Control is, unless it is told otherwise."""

Variable = Builder[dashboard.VariableModel]


class Board:
    """Collects panels; a panel that does not fit beside the last one begins a new line."""

    def __init__(self, uid: str, title: str, description: str, *variables: Variable, since: str = "now-24h") -> None:
        self.uid = uid
        self._built = builders.Dashboard(f"Copilot sessions: {title}").uid(f"{TAG}-{uid}").description(description)
        self._built.tags([TAG]).timezone("browser").time(since, "now").refresh("1m").editable()
        self._built.tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        self._built.variables([*_sources(), *variables, mission_control()]).link(_others())
        self._panels: list[dashboard.Panel | dashboard.RowPanel] = []
        self._folded: list[dashboard.Panel] | None = None
        self._count = 0
        self._x = self._y = self._height = 0

    def heading(self, title: str, *, folded: bool = False) -> None:
        """Begin a new row with a title; the panels of a folded one ask nothing until a person opens it."""
        self._break()
        self._folded = None
        row = builders.Row(title).collapsed(folded).build()
        row.grid_pos = dashboard.GridPos(x=0, y=self._y, w=WIDTH, h=_HEADING_HEIGHT)
        self._y += _HEADING_HEIGHT
        self._append(row)
        if folded:
            self._folded = row.panels = []

    def add(self, width: int, height: int, *panels: Panel) -> None:
        """Put panels of one size beside each other."""
        for panel in panels:
            if self._x + width > WIDTH:
                self._break()
            built = panel.build()
            built.grid_pos = dashboard.GridPos(x=self._x, y=self._y, w=width, h=height)
            self._x += width
            self._height = max(self._height, height)
            self._append(built)

    def json(self) -> str:
        """The dashboard as Grafana imports it, the same for the same panels."""
        model = self._built.build()
        model.panels = list(self._panels)
        return json.dumps(model, cls=JSONEncoder, indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    def _append(self, panel: dashboard.Panel | dashboard.RowPanel) -> None:
        self._count += 1
        panel.id_val = self._count
        if self._folded is None or isinstance(panel, dashboard.RowPanel):
            self._panels.append(panel)
        else:
            self._folded.append(panel)

    def _break(self) -> None:
        self._y += self._height
        self._x = self._height = 0


def choice(name: str, label: str, description: str, query: str) -> Variable:
    """A variable whose values are those of a label; several can be chosen, and all are at first."""
    variable = builders.QueryVariable(name).label(label).description(description).query(query).datasource(METRICS)
    variable.refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(dashboard.VariableSort.ALPHABETICAL_ASC)
    variable.multi(True).include_all(True).all_value(".*")
    return variable.current(dashboard.VariableOption(selected=True, text="All", value="$__all"))


def text(name: str, label: str, description: str, default: str = "") -> Variable:
    """A variable that is typed in."""
    variable = builders.TextBoxVariable(name).label(label).description(description).default_value(default)
    return variable.current(dashboard.VariableOption(selected=True, text=default, value=default))


def session_choice() -> Variable:
    """The session that a dashboard shows: one of those that Tempo holds in the range, or one that is typed in."""
    query: dict[str, object] = {"type": 1, "label": CONVERSATION_ID.name, "refId": "session"}
    variable = builders.QueryVariable("session").label("Session").query(query).datasource(TRACES)
    variable.description("The session's id. The table of sessions says which is which.")
    return variable.refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED).allow_custom_value(True)


def mission_control(address: str = MISSION_CONTROL) -> Variable:
    """Where the pages of sessions are, for links."""
    variable = builders.TextBoxVariable("mission_control").label("Mission Control").default_value(address)
    variable.description("The address of Mission Control, for links to the pages of sessions")
    variable.hide(dashboard.VariableHide.HIDE_VARIABLE)
    return variable.current(dashboard.VariableOption(selected=True, text=address, value=address))


def service() -> Variable:
    """The name under which the exporter sends traces and logs."""
    return text("service", "Service", "service.name of traces and logs; a regular expression", "github-copilot")


def _sources() -> Sequence[Variable]:
    kinds = {"metrics": "prometheus", "traces": "tempo", "logs": "loki"}
    return [builders.DatasourceVariable(name).label(name.capitalize()).type(kind) for name, kind in kinds.items()]


def _others() -> Builder[dashboard.DashboardLink]:
    link = builders.DashboardLink("Other views").type(dashboard.DashboardLinkType.DASHBOARDS).tags([TAG])
    return link.as_dropdown(True).keep_time(True).include_vars(True)
