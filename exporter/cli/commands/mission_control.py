"""`exporter mission-control`: the receiver and its web page alone, and the tokens that open it."""

import asyncio
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from exporter.cli.context import CommandContext
from exporter.cli.output.table import Cell, Column, table
from exporter.cli.parser import whole_number
from exporter.cli.registry import Example, Leaf
from exporter.errors import UsageError

if TYPE_CHECKING:
    from config.settings import Settings


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
    _add_store(parser)
    parser.add_argument("--token-file", metavar="FILE", help="file with a token that uploaders and readers may send")
    parser.add_argument("--certificate", metavar="FILE", help="serve https with this certificate (PEM, with its chain)")
    parser.add_argument("--key", metavar="FILE", help="the certificate's key (PEM)")
    parser.add_argument(
        "--keep-days",
        type=whole_number(0, 36_500),
        metavar="N",
        help="forget a session when nothing of it happened for so many days (default: limits.keep_days, 365; 0: never)",
    )
    parser.add_argument(
        "--keep-gb",
        type=whole_number(0, 1_000_000),
        metavar="N",
        help="forget the oldest sessions when all take more gigabytes (default: limits.keep_gb, 20; 0: never)",
    )


def _add_store(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--store",
        metavar="URL",
        help="where the sessions are kept, such as sqlite:///srv/mc.db (default: in the state directory)",
    )


def _run(invocation: CommandContext) -> int:
    from exporter import app
    from exporter.missioncontrol.http.server import Certificate

    args, settings = invocation.args, invocation.load(fallbacks=False).settings
    if bool(args.certificate) != bool(args.key):
        raise UsageError("--certificate and --key go together.", hint="Give both, or neither for http.")
    kept = {"keep_days": args.keep_days, "keep_gb": args.keep_gb}
    given = {name: value for name, value in kept.items() if value is not None}
    limits = msgspec.structs.replace(settings.limits, **given)
    return asyncio.run(
        app.serve(
            msgspec.structs.replace(settings, limits=limits),
            _store(settings, args),
            host=args.host,
            port=args.port,
            token_file=args.token_file,
            certificate=Certificate(Path(args.certificate), Path(args.key)) if args.certificate else None,
            on_notice=invocation.out.notice,
        )
    )


def _store(settings: "Settings", args: Any) -> Path:
    from exporter.core.names import RECEIVER
    from exporter.missioncontrol.opening import store_path
    from exporter.state.lock import prepare_state_dir

    state = Path(settings.state_dir)
    prepare_state_dir(state)
    return store_path(args.store) if args.store else state / RECEIVER


def _build_token(parser: ArgumentParser) -> None:
    parser.add_argument("action", choices=("create", "list", "revoke"), help="what to do")
    parser.add_argument("name", nargs="?", metavar="NAME", help="whose token it is: a machine, an exporter, a person")
    parser.add_argument("--upload-only", action="store_true", help="the new token uploads and reads nothing else")
    _add_store(parser)


def _run_token(invocation: CommandContext) -> int:
    from exporter.missioncontrol.store import token_admin

    args, out = invocation.args, invocation.out
    store = _store(invocation.load(fallbacks=False).settings, args)
    if args.action == "list":
        found = token_admin.list_tokens(store)
        out.result(found, lambda: _table(found["tokens"], invocation))
        return 0
    if not args.name:
        raise UsageError(f"token {args.action} needs the NAME of the token.", hint="token list shows those there are")
    if args.action == "create":
        made = token_admin.create_token(store, args.name, upload_only=args.upload_only)
        out.result(made, lambda: str(made["token"]))
        out.notice(f"The token of {args.name} is shown this once; the receiver keeps only its hash.")
    else:
        gone = token_admin.revoke_token(store, args.name)
        out.result(gone, lambda: f"revoked {args.name}")
    return 0


def _table(tokens: list[dict[str, Any]], invocation: CommandContext) -> str:
    if not tokens:
        return "no token; make one with: exporter mission-control token create NAME"
    rows = [
        [Cell(row["name"]), Cell("uploads" if row["scope"] == "upload" else "everything"), Cell(row["created"][:19]),
         Cell((row["last_used"] or "never")[:19]), Cell("revoked" if row["revoked"] else "in force")]
        for row in tokens
    ]  # fmt: skip
    heads = [Column(name) for name in ("NAME", "OPENS", "CREATED", "LAST USED", "STATE")]
    return table(heads, rows, width=invocation.out.width, palette=invocation.out.palette)


LEAVES = {
    "mission-control serve": Leaf(
        description=(
            "The receiver and its web page alone, for a team. Point uploaders at http://ADDRESS:PORT/agents "
            "(mission_control.url here, COPILOT_MC_BASE_URL for the CLI's own uploader)."
        ),
        examples=(
            Example("exporter mission-control serve", "for this machine, at http://127.0.0.1:8411"),
            Example("exporter mission-control serve --host 0.0.0.0 --token-file mc.token", "for a team"),
            Example("exporter mission-control serve --host 0.0.0.0 --certificate mc.pem --key mc.key", "with TLS"),
        ),
        build=_build,
        run=_run,
    ),
    "mission-control token": Leaf(
        description=(
            "One token per machine or person: create prints it once, list shows which there are, revoke makes one "
            "worthless at once, also for a receiver that runs."
        ),
        examples=(
            Example("exporter mission-control token create laptop --upload-only", "for one machine's exporter"),
            Example("exporter mission-control token list", "who has one, and when it was used last"),
            Example("exporter mission-control token revoke laptop", "from now on it opens nothing"),
        ),
        build=_build_token,
        run=_run_token,
    ),
}
