"""`exporter run`: the daemon in the foreground."""

import asyncio
from argparse import ArgumentParser

from exporter.cli.context import CommandContext
from exporter.cli.output.notices import Notices
from exporter.cli.registry import Example, Leaf
from exporter.cli.session_ids import whole_ids


def _build(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--session",
        action="append",
        default=[],
        metavar="ID",
        help="only this session; may be repeated; any unique beginning will do",
    )
    parser.add_argument("--until-idle", action="store_true", help="end when everything is delivered or in quarantine")


def _run(invocation: CommandContext) -> int:
    args = invocation.args
    settings = invocation.load().settings
    session_ids = whole_ids(invocation, args.session)
    from exporter import app
    from exporter.core.names import LOCAL, otlp_name, sink_name

    with Notices(invocation.out, level=settings.log_level) as notices:
        sinks = [*map(sink_name, settings.mission_control), *map(otlp_name, settings.otel)] or [LOCAL]
        notices({"message": "starting", "copilot_home": settings.copilot_home, "sinks": sinks})
        return asyncio.run(app.run(settings, session_ids=session_ids, until_idle=args.until_idle, on_notice=notices))


LEAVES = {
    "run": Leaf(
        description=(
            "Follows the sessions of this machine and delivers them to every configured sink, until it is stopped. "
            "Sessions that changed in the last history_days (7) go from their first event; older ones only by backfill."
        ),
        examples=(
            Example("exporter run", "follow everything"),
            Example("exporter run --session 3f2a", "follow one session"),
            Example("exporter run --until-idle", "deliver what is there and end: for scripts and CI"),
        ),
        build=_build,
        run=_run,
    )
}
