"""The committed dashboards and alert rules, as the tests read them."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
GRAFANA: Final = ROOT / "deploy" / "grafana"
ALERTS: Final = GRAFANA / "alerts.yaml"
PATHS: Final = sorted((GRAFANA / "dashboards").glob("*.json"))

# What Grafana puts in the place of its variables, where a test needs a query without them.
_VALUES: Final = {
    "$__range": "6h",
    "$__interval": "5m",
    "$__rate_interval": "4m",
    "$repository": ".*",
    "$model": ".*",
    "$service": "github-copilot",
    "$session": "00000000-0000-4000-8000-000000000000",
    "$trace": "0af7651916cd43dd8448eb211c80319c",
}


class Asked(NamedTuple):
    """One query of a panel: where it is, the language of its data source, the text, and the legend."""

    board: str
    panel: str
    language: str
    text: str
    legend: str

    def __str__(self) -> str:
        return f"{self.board}: {self.panel}"


@cache
def board(path: Path) -> dict[str, Any]:
    """One dashboard."""
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return read


def panels(path: Path) -> list[dict[str, Any]]:
    """Its panels without the headings."""
    return [panel for panel in board(path)["panels"] if panel["type"] != "row"]


def asked(language: str) -> list[Asked]:
    """Every query in one language: prometheus, tempo or loki."""
    return [query for path in PATHS for query in _of(path) if query.language == language]


def _of(path: Path) -> Iterator[Asked]:
    for panel in panels(path):
        for target in panel["targets"]:
            text = target.get("expr") or target["query"]
            kind = target["datasource"]["type"]
            yield Asked(path.stem, panel["title"], kind, text, target.get("legendFormat", ""))


def rules() -> list[dict[str, Any]]:
    """Every alert rule."""
    document = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))
    return [rule for group in document["groups"] for rule in group["rules"]]


def filled(query: str) -> str:
    """The query as Grafana sends it; fails where it holds a variable that nothing fills."""
    filled_in = re.sub(r"\$\w+", lambda found: _VALUES.get(found[0], found[0]), query)
    assert "$" not in filled_in, filled_in
    return filled_in
