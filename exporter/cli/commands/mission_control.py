"""`exporter mission-control`: the receiver and its web page alone, and the tokens that open it."""

import asyncio
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from exporter.cli.command import CommandContext, argument, command, option
from exporter.cli.output.notices import Notices
from exporter.cli.output.table import Column, TerminalView, table
from exporter.cli.values import FILE, WholeNumber
from exporter.errors import UsageError

if TYPE_CHECKING:
    from config.settings import Settings
    from exporter.missioncontrol.store.tokens import Scope

_SCOPES: "Final[dict[str, Scope]]" = {
    "upload": "upload",
    "read": "read",
    "admin": "all",
    "auditor": "auditor",
    "operator": "operator",
}
"""What people call a scope, and what it is in the store."""
_SHOWN: Final = {"upload": "upload only", "read": "read only", "auditor": "figures", "operator": "tenants"}
_TOKENS: Final = (
    Column("NAME", "name"),
    Column("SCOPE", lambda token: _SHOWN.get(token["scope"], "full access")),
    Column("CREATED", lambda token: token["created"][:19]),
    Column("LAST USED", lambda token: (token["last_used"] or "never")[:19]),
    Column("STATE", lambda token: "revoked" if token["revoked"] else "active"),
)
_TENANTS: Final = (Column("NAME", "name"), Column("CREATED", lambda tenant: tenant["created"][:19]))
_AUDIT: Final = (
    Column("TIME", lambda entry: entry["at"][:19]),
    Column("WHO", "who"),
    Column("ACTION", "action"),
    Column("SESSION", lambda entry: entry["session"] or ""),
    Column("DETAIL", lambda entry: entry["detail"] or ""),
)
_SHARES: Final = (
    Column("NUMBER", lambda share: str(share["n"])),
    Column("SESSION", "session"),
    Column("MADE BY", "creator"),
    Column("UNTIL", lambda share: share["expires"][:19]),
    Column("OPENED", lambda share: str(share["opened"])),
    Column("REVOKED", lambda share: (share["revoked"] or "")[:19]),
)
_tenant_option: Final = option("--tenant", default="default", metavar="NAME", help="tenant (default: default)")
_store_option: Final = option(
    "--store",
    metavar="URL",
    help="store of the sessions: sqlite:///srv/mc.db or postgresql://… (default: in the state directory)",
)


@command()
@option(
    "--host",
    default="127.0.0.1",
    metavar="ADDRESS",
    help="address to listen on (default: 127.0.0.1); other than loopback requires a token",
)
@option("--port", type=WholeNumber(0, 65_535), default=8411, help="port to listen on (default: 8411)")
@_store_option
@option("--token-file", type=FILE, help="file with an access token for uploaders and readers")
@option("--certificate", type=FILE, help="serve HTTPS with this certificate (PEM, with chain)")
@option("--key", type=FILE, help="key of the certificate (PEM)")
@option(
    "--public-url",
    metavar="URL",
    help="address under which a reverse proxy serves it, with its path; everybody needs a token then",
)
@option("--index", multiple=True, metavar="URL", help="index worker that searches ask; can be repeated")
@option("--index-token-file", type=FILE, help="file with the token of the index workers")
@option(
    "--keep-days",
    type=WholeNumber(0, 36_500),
    help="delete sessions inactive for N days (default: limits.keep_days, 365; 0: never)",
)
@option(
    "--keep-gb",
    type=WholeNumber(0, 1_000_000),
    help="delete the oldest sessions above N gigabytes (default: limits.keep_gb, 20; 0: never)",
)
def serve(
    context: CommandContext,
    host: str,
    port: int,
    store: str | None,
    token_file: str | None,
    certificate: str | None,
    key: str | None,
    public_url: str | None,
    **settled: Any,
) -> int:
    """Runs the receiver and its web page alone, for a team.

    Point uploaders at http://ADDRESS:PORT/agents: the setting mission_control.url of an exporter, COPILOT_MC_BASE_URL
    of the CLI's own uploader.

    Examples:
    exporter mission-control serve  # on this machine, at http://127.0.0.1:8411
    exporter mission-control serve --host 0.0.0.0 --token-file mc.token  # for a team
    exporter mission-control serve --host 0.0.0.0 --certificate mc.pem --key mc.key  # with TLS
    exporter mission-control serve --public-url https://mc.example.com/mc --token-file mc.token  # behind a proxy
    """
    from exporter import app
    from exporter.missioncontrol.http.server import Certificate

    settings = context.load(fallbacks=False, logs=True).settings
    if bool(certificate) != bool(key):
        raise UsageError("--certificate and --key must be given together.", hint="give both, or neither for HTTP")
    settings = _with(settings, **settled)
    opened, tls = (
        _store(context, settings, store),
        Certificate(Path(certificate), Path(key)) if certificate and key else None,
    )
    where: dict[str, Any] = {"host": host, "port": port, "certificate": tls, "public_url": public_url}
    with closing(Notices(context.out, level=settings.log_level)) as notices:
        return asyncio.run(app.serve(settings, opened, **where, token_file=token_file, on_notice=notices))


def _with(
    settings: "Settings", *, index: tuple[str, ...], index_token_file: str | None, **kept: int | None
) -> "Settings":
    """Return the settings with what arguments say instead."""
    import msgspec

    workers = {"index": index or None, "index_token_file": index_token_file}
    changed = {
        name: msgspec.structs.replace(table, **{name: value for name, value in given.items() if value is not None})
        for name, table, given in (("limits", settings.limits, kept), ("receiver", settings.receiver, workers))
    }
    return msgspec.structs.replace(settings, **changed)


def _store(context: CommandContext, settings: "Settings", url: str | None) -> str:
    """Return the address of the store: of the argument, of the settings, or of the file in the state directory."""
    from exporter.core.names import RECEIVER
    from exporter.missioncontrol.store.opening import address_in
    from exporter.state.lock import prepare_state_dir

    if url:
        _warn_of_password(context, url)
        return url
    if settings.receiver.store_file:
        return address_in(Path(settings.receiver.store_file))
    if settings.receiver.store:
        return settings.receiver.store
    state = Path(settings.state_dir)
    prepare_state_dir(state)
    return str(state / RECEIVER)


def _warn_of_password(context: CommandContext, url: str) -> None:
    from exporter.missioncontrol.store.opening import has_password

    if has_password(url):
        context.out.notice(
            "warning: everybody on this machine can read a password in an argument;"
            " write the URL in a file and name it with the setting receiver.store_file"
        )


@command()
@_store_option
def migrate(context: CommandContext, store: str | None) -> int:
    """Makes or updates the tables of a Mission Control on PostgreSQL.

    Receivers of the version before may go on meanwhile and afterwards. A store in a file needs no command: it is
    updated when it is opened.

    Examples:
    exporter mission-control migrate --store postgresql://db.example.com/mc  # once, and after an upgrade
    """
    from exporter.missioncontrol.store.opening import is_postgres, require_fleet

    address = _store(context, context.load(fallbacks=False, secrets=False).settings, store)
    if not is_postgres(address):
        raise UsageError("migrate is for a store on PostgreSQL", hint="give --store postgresql://HOST/DATABASE")
    require_fleet()
    from exporter.missioncontrol.store.postgresql.migrate import migrate

    done = migrate(address)
    told = f"version {done.before} → {done.now}" if done.before != done.now else f"already version {done.now}"
    return context.report({"before": done.before, "version": done.now}, lambda _: told)


@command()
@_store_option
@option("--listen", required=True, metavar="ADDRESS", help="address and port to listen on, such as 127.0.0.1:8412")
@option("--token-file", type=FILE, required=True, help="file with the token that receivers send")
@option("--directory", metavar="PATH", help="directory of the index (default: index in the state directory)")
def index(context: CommandContext, store: str | None, listen: str, token_file: str, directory: str | None) -> int:
    """Runs an index worker, which makes searches in a Mission Control on PostgreSQL fast.

    It builds an index from the database, and answers receivers that are started with --index. It gives numbers of
    events only; a receiver reads them with the rights of who asks. Its files may be deleted: they are built again.

    Examples:
    exporter mission-control index --listen 127.0.0.1:8412 --token-file index.token  # of the store in the settings
    """
    from config.url import host_and_port, listen_fault
    from exporter import app

    if fault := listen_fault(listen):
        raise UsageError(f"--listen {listen} is no address to listen on: {fault}", hint="give HOST:PORT")
    settings = context.load(fallbacks=False, secrets=False).settings
    opened = _store(context, settings, store)
    worker = app.index(settings, opened, listen=host_and_port(listen), token_file=token_file, directory=directory)
    return asyncio.run(worker)


@command()
@argument("action", type=click.Choice(("create", "list", "revoke")), help="what to do")
@argument("name", required=False, metavar="[NAME]", help="owner of the token: a machine, an exporter or a person")
@option("--scope", type=click.Choice(tuple(_SCOPES)), help="what the new token permits (default: admin)")
@option("--upload-only", is_flag=True, help="the same as --scope upload")
@option("--read-only", is_flag=True, help="the same as --scope read")
@_tenant_option
@_store_option
def token(
    context: CommandContext,
    action: str,
    name: str | None,
    scope: str | None,
    upload_only: bool,
    read_only: bool,
    tenant: str,
    store: str | None,
) -> int:
    """Manages access tokens, one per machine or person.

    A new token is printed once. A revoked token is refused at once, also by a running receiver. admin: everything in
    the tenant; upload: sessions of its own; read: all sessions; auditor: figures, costs and the audit log, no content;
    operator: the tenants themselves, and their figures.

    Examples:
    exporter mission-control token create laptop --upload-only  # for the exporter of one machine
    exporter mission-control token create anna --scope read  # for a person or program that only looks
    exporter mission-control token create bob --tenant payments  # everything in the tenant payments
    exporter mission-control token list  # all tokens and when each was last used
    exporter mission-control token revoke laptop  # revoke at once
    """
    from exporter.missioncontrol.store import token_admin

    opened = _store(context, context.load(fallbacks=False, secrets=False).settings, store)
    if action == "list":
        found = token_admin.list_tokens(opened, tenant)
        return context.report(found, lambda view: _tokens_text(found["tokens"], view))
    if not name:
        raise UsageError(
            f"token {action} requires the NAME of a token", hint="see: exporter mission-control token list"
        )
    if action == "revoke":
        return context.report(token_admin.revoke_token(opened, name, tenant), lambda _: f"revoked {name}")
    made = token_admin.create_token(opened, name, _scope_of(scope, upload_only, read_only), tenant)
    context.report(made, lambda _: str(made["token"]))
    context.out.notice(f"The token of {name} is shown only once; the receiver stores only its hash.")
    return 0


@command()
@argument("action", type=click.Choice(("create", "list", "remove")), help="what to do")
@argument("name", required=False, metavar="[NAME]", help="name of the tenant: a-z, 0-9 and -")
@option("--yes", is_flag=True, help="remove the tenant with all its sessions")
@_store_option
def tenant(context: CommandContext, action: str, name: str | None, yes: bool, store: str | None) -> int:
    """Manages tenants: teams that share receivers and see nothing of each other.

    Each tenant has sessions, tokens, keys and an audit log of its own. The tenant default always exists. Removing a
    tenant deletes its sessions for good.

    Examples:
    exporter mission-control tenant create payments  # then: token create NAME --tenant payments
    exporter mission-control tenant list  # all tenants
    exporter mission-control tenant remove payments --yes  # with all its sessions
    """
    from exporter.missioncontrol.store import token_admin

    opened = _store(context, context.load(fallbacks=False, secrets=False).settings, store)
    if action == "list":
        found = token_admin.list_tenants(opened)
        return context.report(found, lambda view: table(_TENANTS, found["tenants"], view))
    if not name:
        raise UsageError(f"tenant {action} requires a NAME", hint="see: exporter mission-control tenant list")
    if action == "create":
        return context.report(token_admin.create_tenant(opened, name), lambda _: f"created {name}")
    if not yes:
        raise UsageError(f"tenant remove deletes all sessions of {name}", hint="add --yes")
    return context.report(token_admin.remove_tenant(opened, name), lambda _: f"removed {name}")


@command()
@argument("action", type=click.Choice(("rotate",)), help="what to do")
@_tenant_option
@_store_option
def key(context: CommandContext, action: str, tenant: str, store: str | None) -> int:
    """Makes a new key of the tags in what receivers redact.

    Receivers redact what clients send that do not. The tag in [REDACTED:rule:tag] tells that two secrets are the same;
    with the new key the same secret gets another tag. Running receivers use it from their next request on.

    Examples:
    exporter mission-control key rotate --tenant payments  # the tenant's secrets get new tags from now on
    """
    from exporter.missioncontrol.store import token_admin

    opened = _store(context, context.load(fallbacks=False, secrets=False).settings, store)
    return context.report(token_admin.rotate_key(opened, tenant), lambda _: f"new key of the tenant {tenant}")


@command()
@option("--limit", type=WholeNumber(1, 10_000), default=100, help="number of entries to show (default: 100)")
@_tenant_option
@_store_option
def audit(context: CommandContext, limit: int, tenant: str, store: str | None) -> int:
    """Shows who read, searched, exported, shared or deleted sessions, newest first.

    The same reading by the same token is noted once in ten minutes. Entries cannot be changed, and are kept as long as
    sessions are, at least for 30 days.

    Examples:
    exporter mission-control audit --limit 20  # the newest entries of the tenant default
    """
    from exporter.missioncontrol.store import token_admin

    opened = _store(context, context.load(fallbacks=False, secrets=False).settings, store)
    found = token_admin.list_audit(opened, limit, tenant)
    return context.report(
        found, lambda view: table(_AUDIT, found["entries"], view) if found["entries"] else "No entries."
    )


@command()
@argument("action", type=click.Choice(("list", "count", "revoke")), help="what to do")
@argument("number", type=WholeNumber(1, 2**53), required=False, metavar="[NUMBER]", help="number of the link to revoke")
@_tenant_option
@_store_option
def share(context: CommandContext, action: str, number: int | None, tenant: str, store: str | None) -> int:
    """Manages share links, which show one session or event to people without a token.

    Links are made by POST /api/v1/shares and end by themselves. A revoked link is refused at once, also by a running
    receiver.

    Examples:
    exporter mission-control share list  # every link, and how often it was opened
    exporter mission-control share count  # how many are in force
    exporter mission-control share revoke 3  # end one at once
    """
    from exporter.missioncontrol.store import token_admin

    opened = _store(context, context.load(fallbacks=False, secrets=False).settings, store)
    if action == "revoke":
        if number is None:
            raise UsageError("share revoke requires a NUMBER", hint="see: exporter mission-control share list")
        return context.report(token_admin.revoke_share(opened, number, tenant), lambda _: f"revoked link {number}")
    found = token_admin.list_shares(opened, tenant)
    told = "{in_force} in force, {ended} ended, opened {opened} times".format(**found["counts"])
    if action == "count":
        return context.report(found["counts"], lambda _: told)
    return context.report(found, lambda view: table(_SHARES, found["shares"], view) if found["shares"] else "No links.")


@command()
@option("--from", "source", required=True, metavar="URL", help="store to copy: sqlite:///srv/mc.db or postgresql://…")
@option("--to", "target", required=True, metavar="URL", help="store to copy to, which has nothing in it")
@option("--tenant", metavar="NAME", help="copy this tenant only, into the tenant of that name (default: all)")
def copy(context: CommandContext, source: str, target: str, tenant: str | None) -> int:
    """Copies all sessions, deletions, exporters, tokens and the audit log into an empty store, and compares them.

    Stop receivers of both stores first. Exporters go on with the new store as if it were the old one, and compare all
    sessions with it once.

    Examples:
    exporter mission-control copy --from sqlite:///srv/mc.db --to postgresql:///mc  # one file to a server
    """
    from exporter.missioncontrol.store.copying import copy as copy_store
    from exporter.missioncontrol.store.opening import is_postgres, open_store, store_path

    for url in (source, target):
        _warn_of_password(context, url)
    if not is_postgres(source) and not store_path(source).exists():
        raise UsageError(f"--from {source} does not exist", hint="give the store that has the sessions")
    with open_store(source) as opened, open_store(target) as empty:
        done = copy_store(opened, empty, tenant)
    told = f"{done.sessions} sessions with {done.events} events copied; all digests are equal"
    return context.report({"sessions": done.sessions, "events": done.events, "equal": True}, lambda _: told)


@command()
@argument("session", metavar="SESSION", help="whole id of a session that was deleted")
@_store_option
def restore(context: CommandContext, session: str, store: str | None) -> int:
    """Allows a session that was deleted in a Mission Control to be uploaded again.

    Its events do not come back by themselves: its exporter sends them again with
    `exporter backfill --session ID --from-start`. Only uploaders with full access may restore a session without this.

    Examples:
    exporter mission-control restore 3f2b8c1e  # where the receiver keeps its store
    """
    from exporter.missioncontrol.store import token_admin

    restored = token_admin.restore_session(_store(context, context.load(fallbacks=False).settings, store), session)
    return context.report(
        restored, lambda _: f"restored; send it again with: exporter backfill --session {session} --from-start"
    )


def _scope_of(scope: str | None, upload_only: bool, read_only: bool) -> "Scope":
    chosen = [one for one, is_set in ((scope or "", scope), ("upload", upload_only), ("read", read_only)) if is_set]
    if len(chosen) > 1:
        raise UsageError(
            "--scope, --upload-only and --read-only exclude each other", hint="create two tokens, or one with one"
        )
    return _SCOPES[chosen[0] if chosen else "admin"]


def _tokens_text(tokens: list[dict[str, Any]], view: TerminalView) -> str:
    if not tokens:
        return "No tokens. Create one with: exporter mission-control token create NAME"
    return table(_TOKENS, tokens, view)
