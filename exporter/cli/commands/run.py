"""`exporter run`: the daemon in the foreground."""

import asyncio
from contextlib import closing

from exporter.cli.command import CommandContext, command, option, session_options
from exporter.cli.output.notices import Notices
from exporter.cli.session_ids import whole_ids


@command()
@session_options
@option("--until-idle", is_flag=True, help="exit when everything is delivered or quarantined")
def run(context: CommandContext, session: tuple[str, ...], until_idle: bool) -> int:
    """Follows the sessions of this machine and delivers them to every configured sink until it is stopped.

    Sessions that changed in the last history_days (7) are delivered from their first event; use backfill for older
    ones.

    Examples:
    exporter run  # follow all sessions
    exporter run --session 3f2a  # follow one session
    exporter run --until-idle  # deliver pending events and exit: for scripts and CI
    """
    loaded = context.load(sessions=True, logs=True)
    context.warn(loaded)
    session_ids = whole_ids(context, session)
    from exporter import app

    with closing(Notices(context.out, level=loaded.settings.log_level)) as notices:
        return asyncio.run(app.run(loaded, session_ids=session_ids, until_idle=until_idle, on_notice=notices))
