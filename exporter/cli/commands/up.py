"""`exporter up`: first run and everyday use."""

import asyncio
from argparse import ArgumentParser

from exporter.cli.context import CommandContext
from exporter.cli.output.notices import Notices
from exporter.cli.parser import whole_number
from exporter.cli.registry import Example, Leaf


def _build(parser: ArgumentParser) -> None:
    parser.add_argument("--demo", action="store_true", help="play a made-up session live, to see how it looks")
    parser.add_argument(
        "--days",
        type=whole_number(0, 36_500),
        metavar="N",
        help="deliver the sessions of the last N days (default: history_days, 7)",
    )
    parser.add_argument(
        "--port",
        type=whole_number(0, 65_535),
        metavar="N",
        help="port of the page; 0 takes any (default: 8411, or the next free one)",
    )
    parser.add_argument("--no-open", action="store_true", help="do not open the page in a browser")


def _run(invocation: CommandContext) -> int:
    args = invocation.args
    loaded = invocation.load(fallbacks=False)
    from exporter import app

    days = loaded.settings.history_days if args.days is None else args.days
    with Notices(invocation.out, level=loaded.settings.log_level) as notices:
        return asyncio.run(
            app.up(
                loaded,
                demo=args.demo,
                days=days,
                port=args.port,
                open_browser=not args.no_open,
                on_notice=notices,
            )
        )


LEAVES = {
    "up": Leaf(
        description=(
            "Finds the Copilot CLI sessions of this machine, starts a Mission Control on loopback, delivers the last "
            "days and follows live. Says what leaves the machine: nothing, unless a sink is configured in the file."
        ),
        examples=(
            Example("exporter up", "your sessions of the last 7 days, and whatever happens next"),
            Example("exporter up --demo", "a made-up session, played live"),
            Example("exporter up --days 30 --no-open", "a month, without opening a browser"),
        ),
        build=_build,
        run=_run,
    )
}
