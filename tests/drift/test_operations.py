"""Events of the log and alerts are those that docs/operations.md explains."""

import re

from exporter.core.notice import NoticeName
from tests.drift.repository import text


def test_every_event_of_the_log_is_explained_and_no_other() -> None:
    _, _, after = text("docs/operations.md").partition("| event | meaning |")
    explained = [
        name
        for row in re.findall(r"^\| (`.*?) \|", after.partition("\n\n")[0], re.MULTILINE)
        for name in row.split(", ")
    ]

    assert sorted(explained) == sorted(f"`{name}`" for name in NoticeName)


def test_every_alert_has_its_row_in_the_runbook_and_no_other() -> None:
    alerts = re.findall(r"alert: (\w+)", text("exporter/grafana/alerts.yaml"))
    _, _, after = text("docs/operations.md").partition("| alert | what to do |")

    assert re.findall(r"^\| `(\w+)` \|", after.partition("\n\n")[0], re.MULTILINE) == alerts
