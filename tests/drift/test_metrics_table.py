"""The list of metrics for people is the one that the program sends."""

from tests.drift.metrics_table import document
from tests.drift.repository import text


def test_every_metric_is_documented() -> None:
    assert text("docs/metrics.md") == document(), "python -m tests.drift.metrics_table > docs/metrics.md"
