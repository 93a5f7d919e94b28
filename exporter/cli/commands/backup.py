"""`exporter backup` and `exporter restore`: what the exporter remembers, and the store of a receiver."""

from pathlib import Path
from typing import Any

from exporter.cli.command import CommandContext, argument, command, option
from exporter.cli.output.text import count, plain, size
from exporter.cli.values import DIRECTORY

_STORE_HELP = "the store of a receiver (path or sqlite:///PATH) instead of the state directory"


@command()
@argument("directory", type=DIRECTORY, metavar="DIR", help="where to write it; must not be there")
@option("--store", metavar="URL", help=_STORE_HELP)
def backup(context: CommandContext, directory: str, store: str | None) -> int:
    """Copies marks, quarantine, key, journals and the embedded store to a directory; the exporter may run meanwhile.

    The copy holds what the state directory holds, quarantined events with their secrets too: keep it as private.

    Examples:
    exporter backup /var/backups/exporter-2026-11-20  # what this exporter remembers
    exporter backup mc-backup --store sqlite:///srv/mc.db  # the store of a team's receiver
    """
    from exporter import app

    settings = context.load(fallbacks=False, secrets=False).settings
    answer = app.backup(settings, Path(directory).absolute(), store)
    return context.report(answer, lambda _: backup_text(answer))


@command()
@argument("directory", type=DIRECTORY, metavar="DIR", help="what `exporter backup` wrote")
@option("--store", metavar="URL", help=_STORE_HELP)
def restore(context: CommandContext, directory: str, store: str | None) -> int:
    """Puts a backup back. The exporter, or the receiver of --store, must not run; what was there is moved aside.

    A receiver that was restored is noticed by every exporter, which sends again what is missing.

    Examples:
    exporter restore /var/backups/exporter-2026-11-20  # into the state directory
    exporter restore mc-backup --store sqlite:///srv/mc.db  # into the store of a receiver
    """
    from exporter import app

    settings = context.load(fallbacks=False, secrets=False).settings
    answer = app.restore(settings, Path(directory).absolute(), store)
    return context.report(answer, lambda _: restore_text(answer))


def backup_text(answer: dict[str, Any]) -> str:
    """One line."""
    files = answer["files"]
    total = sum(one["bytes"] for one in files.values())
    return f"{plain(answer['backup'])}: {count(len(files), 'file')}, {size(total)}"


def restore_text(answer: dict[str, Any]) -> str:
    """What is where now."""
    lines = [f"{plain(answer['restored'])}: as it was at {answer['made_at']} with version {plain(answer['version'])}"]
    if answer["aside"]:
        lines.append(f"what was there before is {plain(answer['aside'])}")
    return "\n".join(lines)
