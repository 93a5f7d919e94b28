"""`exporter config`: the settings in force, validation, an example, the schema."""

from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING

from exporter.cli.context import CommandContext
from exporter.cli.output.table import Cell, Column, Palette, table
from exporter.cli.output.text import count, plain
from exporter.cli.registry import Example, Leaf

if TYPE_CHECKING:
    from config.show import SettingRow


def _build_show(parser: ArgumentParser) -> None:
    parser.add_argument("--origin", action="store_true", help="also say where each setting came from")


def _build_check(parser: ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="file to validate (default: the one in force)")


def _build_none(_: ArgumentParser) -> None:
    """`config example` and `config schema` take no arguments of their own."""


def _run_show(invocation: CommandContext) -> int:
    from config.show import rows

    loaded, out = invocation.load(), invocation.out
    shown, with_origin = rows(loaded), invocation.args.origin
    document = {
        "file": str(loaded.file) if loaded.file else None,
        "settings": {row.path: _value(row) for row in shown},
        "origins": {row.path: row.origin for row in shown} if with_origin else None,
        "found_not_used": loaded.found_not_used,
    }
    out.result(document, lambda: settings_text(shown, with_origin=with_origin, width=out.width, palette=out.palette))
    return 0


def _value(row: "SettingRow") -> object:
    """The value as JSON has it; a row holds it as TOML."""
    import tomllib

    from config.show import NOT_SET

    return None if row.value == NOT_SET else tomllib.loads(f"value = {row.value}")["value"]


def settings_text(rows: "list[SettingRow]", *, with_origin: bool, width: int | None, palette: Palette) -> str:
    """A line per setting, what is not at its default standing out."""
    heads = (Column("SETTING"), Column("VALUE", flex=True), Column("FROM" if with_origin else ""))
    cells = [
        (
            Cell(row.path, "" if row.origin == "default" else "strong"),
            Cell(plain(row.value)),
            Cell(plain(row.origin) if with_origin else "", "dim" if row.origin == "default" else "good"),
        )
        for row in rows
    ]
    return table(heads, cells, width=width, palette=palette)


def _run_check(invocation: CommandContext) -> int:
    given = Path(invocation.args.file) if invocation.args.file else None
    loaded = invocation.load(file=given)
    document = {
        "file": str(loaded.file) if loaded.file else None,
        "ok": True,
        "notes": loaded.notes,
        "found_not_used": loaded.found_not_used,
    }
    where = f"{loaded.file} is fine" if loaded.file else "No configuration file: defaults, variables and flags are fine"
    notes = [f"note: {plain(note)}" for note in loaded.notes]
    total = f" ({count(len(notes), 'note')})" if notes else ""
    invocation.out.result(document, lambda: "\n".join([f"{plain(where)}{total}.", *notes]))
    return 0


def _run_example(invocation: CommandContext) -> int:
    from config.example import example

    invocation.out.write(example())
    return 0


def _run_schema(invocation: CommandContext) -> int:
    from config.schema import schema_text

    invocation.out.write(schema_text())
    return 0


LEAVES = {
    "config show": Leaf(
        description="The settings in force. Secrets are masked.",
        examples=(
            Example("exporter config show", "what is in force"),
            Example("exporter config show --origin", "and where each came from: file and line, variable, flag"),
        ),
        build=_build_show,
        run=_run_show,
    ),
    "config check": Leaf(
        description="Validates a configuration file, and the environment with it. Ends with 3 and names what is wrong.",
        examples=(
            Example("exporter config check", "the file in force"),
            Example("exporter config check ./exporter.toml", "another one, before it is put in place"),
        ),
        build=_build_check,
        run=_run_check,
    ),
    "config example": Leaf(
        description="An annotated configuration file with every setting at its default.",
        examples=(Example("exporter config example > exporter.toml", "a file to start from"),),
        build=_build_none,
        run=_run_example,
    ),
    "config schema": Leaf(
        description="The JSON Schema of the configuration file, for editors and checks.",
        examples=(Example("exporter config schema > exporter.schema.json", "for an editor that completes settings"),),
        build=_build_none,
        run=_run_schema,
    ),
}
