"""Writes the dashboards and alert rules to `deploy/grafana`; the package gets copies of them and of the stack's files.

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
STACK: Final = HERE.parents[1] / "exporter" / "stack"
_STACK_FILES: Final = ("compose.yaml", "collector/*", "jaeger/*", "loki/*", "prometheus/*", "tempo/*")

BOARDS: Final = (fleet, session, tools, notifications, agents, cost, health)


def documents() -> dict[str, str]:
    """Every file that is made or copied, by its name below either directory."""
    made = {f"dashboards/{board.uid}.json": board.json() for board in (make() for make in BOARDS)}
    made["alerts.yaml"] = rules_text(("copilot sessions", session_rules()), ("session exporter", health_rules()))
    for path in sorted((HERE / "provisioning").rglob("*.yaml")):
        made[path.relative_to(HERE).as_posix()] = path.read_text(encoding="utf-8")
    return made


def stack() -> dict[str, str]:
    """The files that start backends with the dashboards in them, by their name below `deploy`."""
    paths = sorted(path for pattern in _STACK_FILES for path in HERE.parent.glob(pattern))
    return {path.relative_to(HERE.parent).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def main() -> None:
    """Write everything; a file that nothing makes any more is removed from the package."""
    made = documents()
    for directory, files in ((HERE, made), (PACKAGE, made), (STACK, stack())):
        for name, content in files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8", newline="\n")
    for directory, files in ((PACKAGE, made), (STACK, stack())):
        for path in directory.rglob("*"):
            if path.is_file() and path.relative_to(directory).as_posix() not in files:
                path.unlink()


if __name__ == "__main__":
    main()
