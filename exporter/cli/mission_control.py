"""`exporter mission-control serve`: the receiver and its web page alone."""

import asyncio
from argparse import ArgumentParser

from exporter.cli.commands import Example, Leaf
from exporter.cli.invocation import Invocation
from exporter.cli.parser import whole_number


def _build(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on (default: 127.0.0.1); any other than loopback needs a token",
    )
    parser.add_argument(
        "--port", type=whole_number(0, 65_535), default=8411, metavar="N", help="port to listen on (default: 8411)"
    )
    parser.add_argument(
        "--store",
        metavar="URL",
        help="where to keep the sessions, such as sqlite:///srv/mc.db (default: in the state directory)",
    )
    parser.add_argument("--token-file", metavar="FILE", help="file with the token that uploaders and readers must send")


def _run(invocation: Invocation) -> int:
    args = invocation.args
    settings = invocation.load(fallbacks=False).settings
    from exporter import app

    return asyncio.run(
        app.serve(settings, host=args.host, port=args.port, store=args.store, token_file=args.token_file)
    )


LEAVES = {
    "mission-control serve": Leaf(
        description=(
            "The receiver and its web page alone, for a team. Point uploaders at http://ADDRESS:PORT/agents "
            "(mission_control.url here, COPILOT_MC_BASE_URL for the CLI's own uploader)."
        ),
        examples=(
            Example("exporter mission-control serve", "for this machine, at http://127.0.0.1:8411"),
            Example("exporter mission-control serve --host 0.0.0.0 --token-file mc.token", "for a team"),
        ),
        build=_build,
        run=_run,
    )
}
