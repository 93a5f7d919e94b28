"""`exporter redact rules`: every rule, ours and the user's own."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from exporter.cli.context import CommandContext
from exporter.cli.output.table import Cell, Column, Palette, Tone, table
from exporter.cli.output.text import count, plain
from exporter.cli.registry import Example, Leaf

_COLUMNS = (
    Column("RULE"),
    Column("PROVIDER", spare=1),
    Column("NAME", flex=True, spare=2),
    Column("CONFIDENCE", spare=4),
    Column("EXAMPLE", flex=True),
    Column("PACK", spare=3),
)
_TONES: Mapping[str, Tone] = {"high": "good", "low": "dim"}


def _build(_: ArgumentParser) -> None:
    """`redact rules` takes no arguments of its own."""


def _run(invocation: CommandContext) -> int:
    from exporter import app

    out = invocation.out
    answer = app.rules(invocation.load().settings)
    out.result(answer, lambda: rules_text(answer, width=out.width, palette=out.palette))
    return 0


def rules_text(answer: Mapping[str, Any], *, width: int | None, palette: Palette) -> str:
    """A line per rule, then how many there are, of which packs, and what searches."""
    rows = [
        (
            Cell(plain(rule["id"]), "strong"),
            Cell(plain(rule["provider"])),
            Cell(plain(rule["name"])),
            Cell(plain(rule["confidence"]), _TONES.get(rule["confidence"], "")),
            Cell(plain(rule["example"])),
            Cell(plain(rule["pack"]), "dim"),
        )
        for rule in answer["rules"]
    ]
    packs = ", ".join(
        " ".join((count(pack["rules"], "rule"), "of", plain(pack["pack"]), plain(pack["version"]))).rstrip()
        for pack in answer["packs"]
    )
    engine = answer["engine"]
    searched = f"searched with {plain(engine['name'])} {plain(engine['version'])}"
    return f"{table(_COLUMNS, rows, width=width, palette=palette)}\n\n{packs}; {searched}"


LEAVES = {
    "redact rules": Leaf(
        description=(
            "Every rule: id, provider, name, confidence, a made-up example, and the pack that it comes from with its "
            "version; your own (redaction.extra_rules) too. Last comes what searches for them: hyperscan, re2 or re."
        ),
        examples=(
            Example("exporter redact rules", "all of them"),
            Example("exporter redact rules --json", "for scripts"),
        ),
        build=_build,
        run=_run,
    )
}
