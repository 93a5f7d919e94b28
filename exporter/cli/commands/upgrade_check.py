"""`exporter upgrade-check`: asks a package index for a newer version, only when it is called."""

import asyncio

from exporter.cli.command import CommandContext, command, option
from exporter.cli.output.text import plain


@command()
@option("--index", metavar="URL", help="package index to ask (default: that of UV_DEFAULT_INDEX or PIP_INDEX_URL)")
def upgrade_check(context: CommandContext, index: str | None) -> int:
    """Asks a package index whether there is a newer version, and says how to install it. Changes nothing.

    No other command does this. The index learns that somebody asks for this package.

    Examples:
    exporter upgrade-check  # ask the index that the environment names for pip or uv
    exporter upgrade-check --index https://packages.example.com/simple  # ask another one
    """
    from exporter import app

    found = asyncio.run(app.upgrade_check(index))
    if found["newer"]:
        text = f"{found['newest']} is there; this is {found['version']}. To upgrade: {found['upgrade']}"
    elif found["newest"] is None:
        text = f"{found['index']} has no session-exporter; this is {found['version']}"
    else:
        text = f"{found['version']} is the newest"
    return context.report(found, lambda _: plain(text))
