"""`exporter redact rules`: every rule, ours and the user's own."""

from collections.abc import Mapping
from typing import Any, Final

from exporter.cli.command import CommandContext, command
from exporter.cli.output.table import Cell, Column, TerminalView, Tone, table
from exporter.cli.output.text import count, plain

_COLUMNS: Final = (
    Column("RULE"),
    Column("PROVIDER", spare=1),
    Column("NAME", flex=True, spare=2),
    Column("CONFIDENCE", spare=4),
    Column("EXAMPLE", flex=True),
    Column("PACK", spare=3),
)
_TONES: Final[dict[str, Tone]] = {"high": "good", "low": "dim"}


@command()
def rules(context: CommandContext) -> int:
    """Lists all rules: id, provider, name, confidence, an invented example and the rule pack with its version.

    Includes your own rules (redaction.extra_rules). The last line names the search engine.

    Examples:
    exporter redact rules  # all rules
    exporter redact rules --json  # for scripts
    """
    from exporter import app

    answer = app.rules(context.load().settings)
    return context.report(answer, lambda view: rules_text(answer, view))


def rules_text(answer: Mapping[str, Any], view: TerminalView) -> str:
    """A line per rule, then how many there are, of which packs, and what searches."""
    rows = [
        (
            Cell(rule["id"], "strong"),
            rule["provider"],
            rule["name"],
            Cell(rule["confidence"], _TONES.get(rule["confidence"], "")),
            rule["example"],
            Cell(rule["pack"], "dim"),
        )
        for rule in answer["rules"]
    ]
    packs = ", ".join(
        plain(f"{count(pack['rules'], 'rule')} of {pack['pack']} {pack['version']}") for pack in answer["packs"]
    )
    engine = answer["engine"]
    searched = f"engine: {plain(engine['name'])} {plain(engine['version'])}"
    return f"{table(_COLUMNS, rows, view)}\n\n{packs}; {searched}"
