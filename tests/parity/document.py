"""Makes `docs/parity.md` from the tables of reasons: `python -m tests.parity.document > docs/parity.md`."""

from tests.parity.explained import Row, rows
from tests.parity.reasons import ENDS, PARENTS, SPANS

_WHATS = {
    "absent": "The CLI has it, and we have not",
    "extra": "We have it, and the CLI has not",
    "value": "Both have it, with another value",
}


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
    return "\n".join([*lines, ""])


def _line(row: Row) -> str:
    only = f" (CLI {row.version})" if row.version else ""
    where, name = (", ".join(f"`{one}`" for one in some if one) for some in (row.where, row.name))
    sessions = f"; in the sessions {', '.join(row.sessions)}" if row.sessions else ""
    return f"| {row.signal} | {where}{only} | {name} | {row.reason}{sessions} |"


if __name__ == "__main__":
    print(document(), end="")
