"""Writes the dashboards and alert rules to `deploy/grafana`, and copies of all to the package, which hands them out.

python -m deploy.grafana.make
"""

from pathlib import Path
from typing import Final

from deploy.grafana.agents import agents
from deploy.grafana.alerts import health_rules, rules_text, session_rules
from deploy.grafana.cost import cost
from deploy.grafana.fleet import fleet
from deploy.grafana.health import health
from deploy.grafana.notifications import notifications
from deploy.grafana.session import session
from deploy.grafana.tools import tools

HERE: Final = Path(__file__).parent
PACKAGE: Final = HERE.parents[1] / "exporter" / "grafana"

BOARDS: Final = (fleet, session, tools, notifications, agents, cost, health)


def documents() -> dict[str, str]:
    """Every file that is made or copied, by its name below either directory."""
    made = {f"dashboards/{board.uid}.json": board.json() for board in (make() for make in BOARDS)}
    made["alerts.yaml"] = rules_text(("copilot sessions", session_rules()), ("session exporter", health_rules()))
    for path in sorted((HERE / "provisioning").rglob("*.yaml")):
        made[path.relative_to(HERE).as_posix()] = path.read_text(encoding="utf-8")
    return made


def main() -> None:
    """Write everything; a file that nothing makes any more is removed from the package."""
    made = documents()
    for directory in (HERE, PACKAGE):
        for name, content in made.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8", newline="\n")
    for path in PACKAGE.rglob("*"):
        if path.is_file() and path.relative_to(PACKAGE).as_posix() not in made:
            path.unlink()


if __name__ == "__main__":
    main()
