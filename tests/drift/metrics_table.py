"""Makes `docs/metrics.md` from the tables of metrics: `python -m tests.drift.metrics_table > docs/metrics.md`."""

from collections.abc import Iterable

from otel import health
from otel.instruments import OF_RESOURCE, instruments
from otel.names import Content, Instrument


def document() -> str:
    """Return the document."""
    return "\n".join(
        [
            "# Metrics",
            "",
            "Made by `python -m tests.drift.metrics_table` from `otel.instruments` and `otel.health`; do not edit.",
            'A label in *italics* is sent only with `content = "metadata"` or more. [What becomes what](telemetry.md).',
            "",
            "## Sessions",
            "",
            *_table(instruments()),
            "",
            "## The exporter itself (`health = true`)",
            "",
            *_table(health.TABLE),
            "",
        ]
    )


def _table(rows: Iterable[Instrument]) -> list[str]:
    lines = ["| metric | kind | unit | labels | meaning |", "|---|---|---|---|---|"]
    for row in rows:
        shown = [label for label in row.labels if label not in OF_RESOURCE]
        labels = ", ".join(
            f"`{label.name}`" if label.content is Content.NONE else f"*`{label.name}`*" for label in shown
        )
        lines.append(f"| `{row.name}` | {row.kind} | {row.unit} | {labels} | {row.meaning} |")
    return lines


if __name__ == "__main__":
    print(document(), end="")
