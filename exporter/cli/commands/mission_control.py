"""`exporter mission-control`: the receiver and its web page alone, and the tokens that open it."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from exporter.cli.command import argument, command, option
from exporter.cli.context import CommandContext
from exporter.cli.output.table import Column, View, table
from exporter.cli.values import FILE, WholeNumber
from exporter.errors import UsageError

if TYPE_CHECKING:
    from config.settings import Settings

_TOKENS: Final = tuple(Column(name) for name in ("NAME", "OPENS", "CREATED", "LAST USED", "STATE"))
_store_option: Final = option(
    "--store",
    metavar="URL",
    help="where the sessions are kept, such as sqlite:///srv/mc.db (default: in the state directory)",
)


@command(
    examples={
        "exporter mission-control serve": "for this machine, at http://127.0.0.1:8411",
        "exporter mission-control serve --host 0.0.0.0 --token-file mc.token": "for a team",
        "exporter mission-control serve --host 0.0.0.0 --certificate mc.pem --key mc.key": "with TLS",
    }
)
@option(
    "--host",
    default="127.0.0.1",
    metavar="ADDRESS",
    help="address to listen on (default: 127.0.0.1); any other than loopback needs a token",
)
@option("--port", type=WholeNumber(0, 65_535), default=8411, metavar="N", help="port to listen on (default: 8411)")
@_store_option
@option("--token-file", type=FILE, metavar="FILE", help="file with a token that uploaders and readers may send")
@option("--certificate", type=FILE, metavar="FILE", help="serve https with this certificate (PEM, with its chain)")
@option("--key", type=FILE, metavar="FILE", help="the certificate's key (PEM)")
@option(
    "--keep-days",
    type=WholeNumber(0, 36_500),
    metavar="N",
    help="forget a session when nothing of it happened for so many days (default: limits.keep_days, 365; 0: never)",
)
@option(
    "--keep-gb",
    type=WholeNumber(0, 1_000_000),
    metavar="N",
    help="forget the oldest sessions when all take more gigabytes (default: limits.keep_gb, 20; 0: never)",
)
def serve(
    context: CommandContext,
    host: str,
    port: int,
    store: str | None,
    token_file: str | None,
    certificate: str | None,
    key: str | None,
    **kept: int | None,
) -> int:
    """The receiver and its web page alone, for a team. Point uploaders at http://ADDRESS:PORT/agents
    (mission_control.url here, COPILOT_MC_BASE_URL for the CLI's own uploader).
    """
    import msgspec

    from exporter import app
    from exporter.missioncontrol.http.server import Certificate

    settings = context.load(fallbacks=False).settings
    if bool(certificate) != bool(key):
        raise UsageError("--certificate and --key go together.", hint="Give both, or neither for http.")
    given = {name: value for name, value in kept.items() if value is not None}
    limits = msgspec.structs.replace(settings.limits, **given)
    return asyncio.run(
        app.serve(
            msgspec.structs.replace(settings, limits=limits),
            _store(settings, store),
            host=host,
            port=port,
            token_file=token_file,
            certificate=Certificate(Path(certificate), Path(key)) if certificate and key else None,
            on_notice=context.out.notice,
        )
    )


def _store(settings: "Settings", url: str | None) -> Path:
    from exporter.core.names import RECEIVER
    from exporter.missioncontrol.opening import store_path
    from exporter.state.lock import prepare_state_dir

    state = Path(settings.state_dir)
    prepare_state_dir(state)
    return store_path(url) if url else state / RECEIVER


@command(
    examples={
        "exporter mission-control token create laptop --upload-only": "for one machine's exporter",
        "exporter mission-control token list": "who has one, and when it was used last",
        "exporter mission-control token revoke laptop": "from now on it opens nothing",
    }
)
@argument("action", type=click.Choice(("create", "list", "revoke")), help="what to do")
@argument("name", required=False, metavar="[NAME]", help="whose token it is: a machine, an exporter, a person")
@option("--upload-only", is_flag=True, help="the new token uploads and reads nothing else")
@_store_option
def token(context: CommandContext, action: str, name: str | None, upload_only: bool, store: str | None) -> int:
    """One token per machine or person: create prints it once, list shows which there are, revoke makes one worthless at
    once, also for a receiver that runs.
    """
    from exporter.missioncontrol.store import token_admin

    opened = _store(context.load(fallbacks=False).settings, store)
    if action == "list":
        found = token_admin.list_tokens(opened)
        return context.report(found, lambda view: _tokens_text(found["tokens"], view))
    if not name:
        raise UsageError(f"token {action} needs the NAME of the token.", hint="token list shows those there are")
    if action == "revoke":
        return context.report(token_admin.revoke_token(opened, name), lambda _: f"revoked {name}")
    made = token_admin.create_token(opened, name, upload_only=upload_only)
    context.report(made, lambda _: str(made["token"]))
    context.out.notice(f"The token of {name} is shown this once; the receiver keeps only its hash.")
    return 0


def _tokens_text(tokens: list[dict[str, Any]], view: View) -> str:
    if not tokens:
        return "no token; make one with: exporter mission-control token create NAME"
    rows = [
        (
            row["name"],
            "uploads" if row["scope"] == "upload" else "everything",
            row["created"][:19],
            (row["last_used"] or "never")[:19],
            "revoked" if row["revoked"] else "in force",
        )
        for row in tokens
    ]
    return table(_TOKENS, rows, view)
