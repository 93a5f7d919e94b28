"""Makes `docs/parity.md` from the tables of reasons: `python -m tests.parity.document > docs/parity.md`."""

from tests.parity.explained import LATEST, Row, rows
from tests.parity.reasons import ENDS, PARENTS, SPANS

_WHATS = {
    "absent": "The CLI has it, and we have not",
    "extra": "We have it, and the CLI has not",
    "value": "Both have it, with another value",
}
_OF_LATEST = {"absent": "not sent", "extra": "added", "value": "otherwise"}


def document() -> str:
    """Return the document."""
    lines = [
        "# Compared with the CLI's own telemetry",
        "",
        "Made by `python -m tests.parity.document`; do not edit. A test compares every span with its parent,",
        "attributes (name, type and value), status, events and links, the resource, and every metric with unit, kind,",
        "buckets, labels and values, with what the CLI itself wrote of the same session: of captures and of sessions",
        "that the real CLI makes in the test. What is not named here is the same.",
        "[What becomes what](telemetry.md).",
        "",
        "## Spans of the CLI that are not here",
        "",
        "| span | reason |",
        "|---|---|",
        *(f"| `{name}` | {reason} |" for name, reason in SPANS.items()),
        "",
        "## Places and ends",
        "",
        "| what | reason |",
        "|---|---|",
        *(
            f"| the parent of `{operation}`, CLI {version} | {reason} |"
            for (version, operation), reason in PARENTS.items()
        ),
        *(f"| the end of a root in `{name}` | {reason} |" for name, reason in ENDS.items()),
    ]
    for what, heading in _WHATS.items():
        lines += ["", f"## {heading}", "", "| signal | where | name | reason |", "|---|---|---|---|"]
        lines += [_line(row) for row in rows() if row.what == what]
    lines += [
        "",
        '## What `semconv = "latest"` sends otherwise',
        "",
        "No CLI writes this convention, so it is compared with what `cli` sends of the same session, as a backend",
        "reads both: every span, event, link, metric and log record, of every capture, of the sessions of the tests",
        "and of one that is made up of the rest. What is not named here is the same; what of the conventions is",
        "followed stands in [another table](telemetry.md#the-genai-conventions-semconv--latest).",
        "",
        "| | signal | where | name | reason |",
        "|---|---|---|---|---|",
        *(f"| {_OF_LATEST[row.what]} {_line(row)}" for row in rows(LATEST)),
    ]
    return "\n".join([*lines, ""])


def _line(row: Row) -> str:
    only = f" (CLI {row.version})" if row.version else ""
    where, name = (", ".join(f"`{one}`" for one in some if one) for some in (row.where, row.name))
    sessions = f"; in the sessions {', '.join(row.sessions)}" if row.sessions else ""
    return f"| {row.signal} | {where}{only} | {name} | {row.reason}{sessions} |"


if __name__ == "__main__":
    print(document(), end="")
