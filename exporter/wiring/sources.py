"""Every kind of source, and the sources of the settings; without any, only the CLI's files are followed.

One entry of `KINDS` is one kind: its address in the settings, what the doctor says that it sees, and its observer.
"""

import asyncio
import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from config.errors import ConfigError
from config.paths import homes_of, is_pattern
from config.source import AhpAddress, FileAddress, RpcAddress, TapAddress, address_of
from config.token import latest, read_token
from exporter.core.names import JOURNALS
from exporter.core.notice import Level, Notice, NoticeName
from exporter.doctor.facts import SourceFacts

if TYPE_CHECKING:
    from config.settings import Settings, Source
    from exporter.daemon.daemon import Daemon
    from exporter.daemon.live_relay import Tell
    from exporter.daemon.remote_sources import RemoteSources, Server
    from exporter.pipeline.redactors import Redactors
    from exporter.sources.ahp.source import AhpSource
    from exporter.sources.files.homes import Homes
    from exporter.sources.files.session_file import OpenFiles
    from exporter.sources.files.source import FileSource
    from exporter.sources.remote import Callbacks
    from exporter.sources.rpc.source import RpcSource

_AHP_MARKS: Final = "ahp"
"""The directory below the state directory that holds the positions in sessions of agent hosts."""


OnTelemetry: TypeAlias = Callable[[str, bytes], None]
"""Takes a telemetry notification of an agent host: its method and the notification."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKind:
    """One kind. `address` is the type of its `url` in the settings; `sees` and `sees_not` are texts of the doctor.

    `serve` makes the observer of a server from the state directory, the requested sessions and the receiver of its
    telemetry; a kind without it is always followed. `package` is the optional package that it needs.
    """

    name: str
    address: type
    sees: str
    sees_not: str
    serve: "Callable[[Any, Source, Path, frozenset[str], OnTelemetry | None], Server] | None" = None
    package: str = ""


def _rpc(address: RpcAddress, source: "Source", *_: object) -> "Server":
    from exporter.daemon.remote_sources import Server
    from exporter.sources.rpc.session import is_untold
    from exporter.sources.rpc.source import RpcSource

    def make(callbacks: "Callbacks", on_shell: Callable[[str, bytes], None] | None, *, push: bool) -> "RpcSource":
        return RpcSource(
            lambda: asyncio.open_connection(address.host, address.port),
            latest(partial(read_token, source), None),
            callbacks,
            push=push,
            on_shell=on_shell,
        )

    def ask(callbacks: "Callbacks", *_: object) -> "RpcSource":
        return make(callbacks, None, push=False)

    return Server(address.name, partial(make, push=source.push), ask, is_untold)


def _ahp(
    address: AhpAddress, source: "Source", state: Path, named: frozenset[str], on_telemetry: OnTelemetry | None
) -> "Server":
    from exporter.daemon.remote_sources import Server
    from exporter.sources.ahp.connection import Address
    from exporter.sources.ahp.marks import AhpMarks
    from exporter.sources.ahp.source import AhpSource

    socket = Address(address.socket, latest(partial(read_token, source), None))

    def make(callbacks: "Callbacks", _: Callable[[str, bytes], None]) -> "AhpSource":
        marks = AhpMarks(state / _AHP_MARKS, address.socket)
        return AhpSource(socket, callbacks, marks, named=named, on_telemetry=on_telemetry)

    def ask(callbacks: "Callbacks", empty: Path, sessions: frozenset[str]) -> "AhpSource":
        return AhpSource(socket, callbacks, AhpMarks(empty, address.socket), named=sessions)

    return Server(address.name, make, ask, is_host=True)


KINDS: Final = (
    SourceKind(
        name="file",
        address=FileAddress,
        sees="every durable event",
        sees_not="nothing that passes: no typing, no progress",
    ),
    SourceKind(
        name="tap",
        address=TapAddress,
        sees="what passes, of sessions started with --experimental",
        sees_not="durable events, which are the file's to tell",
    ),
    SourceKind(
        name="rpc",
        address=RpcAddress,
        sees="durable events and what passes, of the sessions of that server",
        sees_not="session.usage_record and model.* while a session is loaded, and titles and branches",
        serve=_rpc,
    ),
    SourceKind(
        name="ahp",
        address=AhpAddress,
        sees="turns, texts, tool calls and what passes, of that host's sessions that were active in the last hour or "
        "are named; of one that has a file here, what passes",
        sees_not="hooks, compaction, totals of use, system messages, all arguments of every tool, nor the CLI's event "
        "ids",
        serve=_ahp,
        package="websockets",
    ),
)
"""Servers are observed in this order: a CLI server has precedence over an agent host."""


def kind_of(source: "Source") -> SourceKind:
    """Return the kind of a source of the settings."""
    address = address_of(source)
    return next(kind for kind in KINDS if isinstance(address, kind.address))


def facts_of(source: "Source") -> SourceFacts:
    """Return the facts about a source for the doctor."""
    kind = kind_of(source)
    missing = kind.package if kind.package and importlib.util.find_spec(kind.package) is None else ""
    return SourceFacts(source.url, kind.sees, kind.sees_not, is_server=kind.serve is not None, missing=missing)


def homes_in(settings: "Settings") -> "Homes":
    """Return the directories of the CLI that the settings name."""
    from exporter.sources.files.homes import Homes

    named = homes_of(settings)
    return Homes(tuple(one for one in named if not is_pattern(one)), tuple(one for one in named if is_pattern(one)))


def file_source(
    settings: "Settings",
    find_roots: Callable[[], list[Path]],
    files: "OpenFiles",
    session_ids: Sequence[str],
    notice: Callable[[Notice], None],
    *,
    journals: bool = False,
) -> "partial[FileSource]":
    """Return what makes a source of the session files below some directories: the CLI's, or `journals` in that format.

    It is called with `on_change` and `on_workspace`.
    """
    from exporter.sources.files.source import WATCHED_NAMES, FileSource
    from exporter.sources.files.watch import best_watcher

    seconds = settings.limits.poll_seconds
    watcher = best_watcher(os.path.commonpath([*find_roots()] or [Path("/")]), seconds, WATCHED_NAMES)

    def tell(name: NoticeName, level: Level, message: str, session: str | None, **fields: object) -> None:
        notice(Notice(name, level, message, session, fields=fields))

    options: dict[str, Any] = {"poll_seconds": seconds, "only": session_ids, "journals": journals, "tell": tell}
    return partial(FileSource, find_roots, watcher, files, **options)


def observing_of(
    settings: "Settings",
    files: "OpenFiles",
    redaction: "Redactors",
    session_ids: Sequence[str],
    notice: Callable[[Notice], None],
    on_telemetry: OnTelemetry | None = None,
    tell: "Tell | None" = None,
) -> "Callable[[Daemon], RemoteSources] | None":
    """Return a factory of the daemon's remote sources, None if there are none and no journals of former ones.

    `tell` takes every ephemeral event. Raises ConfigError if a package is missing.
    """
    state, limits = Path(settings.state_dir), settings.limits
    servers = list(_servers(settings, state, frozenset(session_ids), on_telemetry))
    has_tap = any(kind_of(one).name == "tap" for one in settings.source)
    root = state / JOURNALS
    if not servers and not has_tap and not root.exists():
        return None
    from exporter.daemon.remote_sources import RemoteSources
    from exporter.sources.journals import Journals

    return lambda daemon: RemoteSources(
        daemon,
        journals=Journals(root, limits.journal_bytes),
        make_files=file_source(settings, lambda: [root], files, session_ids, notice, journals=True),
        files=files,
        redaction=redaction,
        servers=servers,
        tap=state if has_tap else None,
        line_bytes_max=limits.max_line_bytes,
        tell=tell,
    )


def _servers(settings: "Settings", *given: Any) -> "Iterator[Server]":
    for kind in KINDS:
        for source in settings.source:
            if kind.serve is None or kind_of(source) is not kind:
                continue
            if missing := facts_of(source).missing:
                raise ConfigError(
                    f"the source {source.url} cannot be observed: the package {missing} is not installed",
                    hint=f"install it with: pip install 'session-exporter[{kind.name}]'",
                    key="source.url",
                )
            yield kind.serve(address_of(source), source, *given)
