"""Opens a receiver: inside the exporter on a SQLite store, or alone for a team on any."""

import asyncio
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Unpack

from starlette.applications import Starlette

from exporter.core.events.redaction import Redacted, RedactEvent
from exporter.core.names import RECEIVER
from exporter.core.notice import Level, Notice, NoticeName
from exporter.errors import UsageError
from exporter.files import open_regular
from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.http.public import PublicUrl
from exporter.missioncontrol.http.server import Certificate, serve_http
from exporter.missioncontrol.receiver import ReceiverOptions
from exporter.missioncontrol.store.opening import open_store
from exporter.missioncontrol.store.port import Store
from exporter.missioncontrol.store.sqlite.store import SqliteStore


def open_embedded(
    state_dir: Path,
    make_redactor: Callable[[], RedactEvent],
    **options: Unpack[ReceiverOptions],
) -> tuple[Store, Starlette]:
    """Open the receiver of this state directory; the caller closes the store.

    The redactor is made when another uploader than ours sends something, because an engine is for one thread only.
    """
    redactor = cache(make_redactor)

    def redact(line: bytes, /) -> Redacted:
        return redactor()(line)

    store = SqliteStore(state_dir / RECEIVER)
    return store, create_app(store, redactor=redact, **options)


async def serve_alone(
    store: str,
    *,
    host: str,
    port: int,
    token_file: Path | None,
    stop: asyncio.Event,
    say: Callable[[Notice], None],
    certificate: Certificate | None = None,
    public: PublicUrl | None = None,
    **options: Unpack[ReceiverOptions],
) -> None:
    """Serve a receiver until `stop`; print its address on stdout once it listens, and `say` what else helps."""
    token = token_in(token_file) if token_file is not None else None
    with open_store(store, may_be_away=True) as opened:
        for notice in opened.notices:
            say(notice)
        if opened.index_of is not None and options.get("workers") is None:
            say(_note("searches look through the events themselves, which is slower than an index"))
        app = create_app(opened, token=token, trusted_hosts=[host], public=public, **options)
        server = await serve_http(app, host, port, explicit_port=True, certificate=certificate)
        print(server.address(), flush=True)  # noqa: T201  the one result of this command
        if public is not None:
            say(_note(f"it listens on {server.url} for the proxy; everybody needs a token, from this machine too"))
        elif named := server.named():
            say(_note(f"it listens on every address of this machine; from others it is opened as {named}"))
        try:
            await stop.wait()
        finally:
            await server.stop()


def _note(text: str) -> Notice:
    return Notice(NoticeName.NOTE, Level.INFO, text)


def token_in(file: Path, name: str = "--token-file") -> str:
    """Return the token in a file that an option of this name gives."""
    try:
        with open_regular(file) as opened:
            token = opened.read(65_536).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{name} {file} cannot be read: {error}") from error
    if not token:
        raise UsageError(f"{name} {file} is empty", hint="put the token in it")
    return token
