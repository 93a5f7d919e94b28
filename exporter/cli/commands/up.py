"""`exporter up`: first run and everyday use."""

import asyncio
from contextlib import closing

from exporter.cli.command import CommandContext, command, option
from exporter.cli.output.notices import Notices
from exporter.cli.values import WholeNumber


@command()
@option("--demo", is_flag=True, help="show made-up sessions, one of them played live")
@option("--days", type=WholeNumber(0, 36_500), help="deliver sessions of the last N days (default: history_days, 7)")
@option("--port", type=WholeNumber(0, 65_535), help="port of the page; 0 for any (default: 8411 or the next free one)")
@option("--no-open", is_flag=True, help="do not open the page in a browser")
def up(context: CommandContext, demo: bool, days: int | None, port: int | None, no_open: bool) -> int:
    """Shows the Copilot CLI sessions of this machine in a Mission Control on loopback: the last days first, then live.

    Tells what leaves the machine: nothing, unless the configuration file names a sink.

    Examples:
    exporter up  # sessions of the last 7 days, then live
    exporter up --demo  # made-up sessions, one of them live
    exporter up --days 30 --no-open  # the last 30 days, without opening a browser
    """
    loaded = context.load(fallbacks=False, sessions=not demo, logs=True)
    context.warn(loaded)
    from exporter import app

    days = loaded.settings.history_days if days is None else days
    with closing(Notices(context.out, level=loaded.settings.log_level)) as notices:
        return asyncio.run(app.up(loaded, demo=demo, days=days, port=port, open_browser=not no_open, on_notice=notices))
