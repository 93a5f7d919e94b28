"""`exporter config`: the settings in force, validation, an example, the schema."""

from typing import TYPE_CHECKING

from exporter.cli.command import CommandContext, argument, command, option
from exporter.cli.output.table import Cell, Column, TerminalView, table
from exporter.cli.output.text import count, plain
from exporter.cli.values import FILE

if TYPE_CHECKING:
    from config.show import SettingRow


@command()
@option("--origin", is_flag=True, help="also show the origin of each setting")
def show(context: CommandContext, origin: bool) -> int:
    """Shows the effective settings. Secrets are redacted.

    Examples:
    exporter config show  # the effective settings
    exporter config show --origin  # and their origin: file and line, variable or flag
    """
    from config.show import rows

    loaded = context.load()
    shown = rows(loaded)
    document = {
        "file": str(loaded.file) if loaded.file else None,
        "settings": {row.path: row.value for row in shown},
        "origins": {row.path: row.origin for row in shown} if origin else None,
        "found_not_used": loaded.found_not_used,
    }
    return context.report(document, lambda view: settings_text(shown, view, with_origin=origin))


def settings_text(rows: "list[SettingRow]", view: TerminalView, *, with_origin: bool) -> str:
    """A line per setting, what is not at its default standing out."""
    heads = (
        Column("SETTING", lambda row: Cell(row.path, "" if row.origin == "default" else "strong")),
        Column("VALUE", lambda row: row.text, flex=True),
        Column("FROM", lambda row: Cell(row.origin, "dim" if row.origin == "default" else "good")),
    )
    return table(heads if with_origin else heads[:2], rows, view)


@command()
@argument("file", type=FILE, required=False, metavar="[FILE]", help="file to validate (default: the one in use)")
def check(context: CommandContext, file: str | None) -> int:
    """Validates a configuration file together with the environment. Exits with 3 if a setting is invalid.

    Examples:
    exporter config check  # the file in use
    exporter config check ./exporter.toml  # another file, before it is installed
    """
    loaded = context.load(file=file)
    document = {
        "file": str(loaded.file) if loaded.file else None,
        "ok": True,
        "notes": loaded.notes,
        "found_not_used": loaded.found_not_used,
    }
    where = (
        f"{loaded.file} is valid" if loaded.file else "No configuration file; defaults, variables and flags are valid"
    )
    notes = [f"note: {plain(note)}" for note in loaded.notes]
    total = f" ({count(len(notes), 'note')})" if notes else ""
    return context.report(document, lambda _: "\n".join([f"{plain(where)}{total}.", *notes]))


@command()
def example(context: CommandContext) -> int:
    """Prints an annotated configuration file with every setting at its default.

    Examples:
    exporter config example > exporter.toml  # a file to start from
    """
    from config.example import example

    context.out.write(example())
    return 0


@command()
def schema(context: CommandContext) -> int:
    """Prints the JSON Schema of the configuration file, for editors and validators.

    Examples:
    exporter config schema > exporter.schema.json  # for an editor that completes settings
    """
    from config.schema import schema_text

    context.out.write(schema_text())
    return 0
