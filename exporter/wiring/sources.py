"""The sources besides the CLI's files, made as the settings name them; with nothing named there are none."""

import asyncio
import importlib.util
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from config.errors import ConfigError
from config.source import AhpAddress, RpcAddress, TapAddress, address_of
from config.token import read_token
from exporter.core.names import JOURNALS
from exporter.daemon.daemon import Daemon
from exporter.daemon.live_relay import Tell
from exporter.daemon.remote_sources import RemoteSources, Server
from exporter.daemon.running import Redactors
from exporter.sources.files.session_file import OpenFiles, SessionFile
from exporter.sources.files.source import WATCHED_NAMES, FileSource
from exporter.sources.files.watch import best_watcher
from exporter.sources.journals import Journals
from exporter.sources.remote import Callbacks
from exporter.sources.rpc.source import RpcSource

_AHP_MARKS = "ahp"
"""Where below the state directory it is kept how far the sessions of agent hosts were told."""

if TYPE_CHECKING:
    from config.settings import Settings, Source


def observing_of(
    settings: "Settings",
    files: OpenFiles,
    redaction: Redactors,
    session_ids: Sequence[str],
    on_telemetry: Callable[[str, bytes], None] | None = None,
    tell: Tell | None = None,
) -> Callable[[Daemon], RemoteSources] | None:
    """Return what makes the part of a daemon that has such sources, or journals that they have left.

    `on_telemetry` gets what agent hosts tell of themselves, `tell` every event that passes. Raises ConfigError where a
    package is missing.
    """
    servers = _servers(settings, frozenset(session_ids), on_telemetry)
    has_tap = any(isinstance(address_of(one), TapAddress) for one in settings.source)
    root = Path(settings.state_dir) / JOURNALS
    if not servers and not has_tap and not root.exists():
        return None
    limits = settings.limits

    return lambda daemon: RemoteSources(
        daemon,
        journals=Journals(root, limits.journal_bytes),
        make_files=_files_of(settings, root, files, session_ids),
        files=files,
        redaction=redaction,
        servers=servers,
        tap=Path(settings.state_dir) if has_tap else None,
        line_bytes_max=limits.max_line_bytes,
        tell=tell,
    )


def _files_of(
    settings: "Settings", root: Path, files: OpenFiles, session_ids: Sequence[str]
) -> Callable[[Callable[[SessionFile], None], Callable[[SessionFile], None]], FileSource]:
    """Return what makes the source of the journals, which are files like others."""
    poll_seconds = settings.limits.poll_seconds
    return lambda on_change, on_workspace: FileSource(
        root,
        best_watcher(str(root), poll_seconds, WATCHED_NAMES),
        files,
        on_change,
        on_workspace,
        poll_seconds=poll_seconds,
        only=session_ids,
        journals=True,
    )


def _servers(
    settings: "Settings", named: frozenset[str], on_telemetry: Callable[[str, bytes], None] | None
) -> list[Server]:
    """Return the CLI servers, then the agent hosts."""
    sources = [(address_of(one), one) for one in settings.source]
    marks = Path(settings.state_dir) / _AHP_MARKS
    servers = [_server(address, one) for address, one in sources if isinstance(address, RpcAddress)]
    hosts = [(address, one) for address, one in sources if isinstance(address, AhpAddress)]
    return [*servers, *(_host(address, one, marks, named, on_telemetry) for address, one in hosts)]


def _server(address: RpcAddress, source: "Source") -> Server:
    def make(callbacks: Callbacks, on_shell: Callable[[str, bytes], None]) -> RpcSource:
        return RpcSource(
            lambda: asyncio.open_connection(address.host, address.port),
            _token_of(source),
            callbacks,
            push=source.push,
            on_shell=on_shell,
        )

    return Server(address.name, make)


def _host(
    address: AhpAddress,
    source: "Source",
    directory: Path,
    named: frozenset[str],
    on_telemetry: Callable[[str, bytes], None] | None,
) -> Server:
    if importlib.util.find_spec("websockets") is None:
        raise ConfigError(
            f"the source {address.name} cannot be observed: the package websockets is not installed",
            hint="install it with: pip install 'session-exporter[ahp]'",
            key="source.url",
        )
    from exporter.sources.ahp.address import Address
    from exporter.sources.ahp.marks import AhpMarks
    from exporter.sources.ahp.source import AhpSource

    def make(callbacks: Callbacks, _: Callable[[str, bytes], None]) -> AhpSource:
        marks = AhpMarks(directory, address.socket)
        socket = Address(address.socket, _token_of(source))
        return AhpSource(socket, callbacks, marks, client=marks.client(), named=named, on_telemetry=on_telemetry)

    return Server(address.name, make, is_host=True)


def _token_of(source: "Source") -> Callable[[], str | None]:
    """Return what reads the token before every connection; one that cannot be read now stays what it was."""
    last: list[str | None] = [None]

    def token() -> str | None:
        with suppress(ConfigError):
            last[0] = read_token(source)
        return last[0]

    return token
