"""`exporter redact rules`: every rule, ours and the user's own."""

from collections.abc import Mapping
from typing import Any, Final

from exporter.cli.command import CommandContext, command
from exporter.cli.output.table import Cell, Column, TerminalView, Tone, table
from exporter.cli.output.text import count, plain

_TONES: Final[dict[str, Tone]] = {"high": "good", "low": "dim"}
_COLUMNS: Final = (
    Column("RULE", lambda rule: Cell(rule["id"], "strong")),
    Column("PROVIDER", "provider", spare=1),
    Column("NAME", "name", flex=True, spare=2),
    Column("CONFIDENCE", lambda rule: Cell(rule["confidence"], _TONES.get(rule["confidence"], "")), spare=4),
    Column("PACK", lambda rule: Cell(rule["pack"], "dim"), spare=3),
)


_EXAMPLE: Final = Column("EXAMPLE", "example", flex=True)


@command()
def rules(context: CommandContext) -> int:
    """Lists all rules: id, provider, name, confidence and the rule pack with its version; -v adds an invented example.

    Includes your own rules (redaction.extra_rules). The last line names the search engine.

    Examples:
    exporter redact rules  # all rules
    exporter redact rules -v  # with an example each
    exporter redact rules --json  # for scripts
    """
    from exporter import app

    answer = app.rules(context.load().settings)
    return context.report(answer, lambda view: rules_text(answer, view, examples=context.verbose))


def rules_text(answer: Mapping[str, Any], view: TerminalView, *, examples: bool = False) -> str:
    """A line per rule, then how many there are, of which packs, and what searches."""
    packs = ", ".join(
        plain(f"{count(pack['rules'], 'rule')} of {pack['pack']} {pack['version']}") for pack in answer["packs"]
    )
    engine = answer["engine"]
    columns = (*_COLUMNS, _EXAMPLE) if examples else _COLUMNS
    searched = f"engine: {plain(engine['name'])} {plain(engine['version'])}"
    return f"{table(columns, answer['rules'], view)}\n\n{packs}; {searched}"
