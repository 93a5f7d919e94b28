"""Builds a daemon and its parts from the settings."""

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from config.drift import comparable
from exporter.core.delivery.gate import Gate
from exporter.core.names import MARKS, QUARANTINE
from exporter.core.notice import Level, Notice, NoticeLog, NoticeName
from exporter.daemon.backfill import deliver_past
from exporter.daemon.daemon import Daemon, SessionScope
from exporter.daemon.running import RunningExporter
from exporter.errors import StateError
from exporter.pipeline.record_feed import Endings
from exporter.pipeline.redactors import Redactors
from exporter.pipeline.segment_reader import SegmentReader
from exporter.pipeline.sink_state import SinkState
from exporter.sources.files.cli_process import Holders
from exporter.sources.files.session_file import OpenFiles, files_possible
from exporter.sources.files.watch import file_system_type, is_remote
from exporter.state.marks import MarkStore, StoreDamagedError, StoreUnwritableError, exporter_id, installation_of
from exporter.state.quarantine import Quarantine
from exporter.wiring.event_views import make_trace, project
from exporter.wiring.sinks.kind import SinkParts
from exporter.wiring.sinks.registry import build_sinks, configured
from exporter.wiring.sources import file_source, homes_in, observing_of

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from config.settings import Limits, Settings
    from exporter.daemon.backfill import Helpers
    from exporter.missioncontrol.store.port import Store as ReceiverStore
    from exporter.wiring.telemetry import SideTelemetry

OF_EVERY_HELPER: Final = (
    "exporter.sinks.http_transport",
    "exporter.wiring.otlp_endpoint",
    "exporter.wiring.telemetry",
)
"""What a helper would import after the fork, and then have for itself. Not grpc, which a fork beside it breaks."""
_HOLDERS_SEEN: Final = "holders_seen"


def join(
    settings: "Settings", say: Callable[[Any], None], redaction: Redactors, *, local: bool, session_ids: Sequence[str]
) -> RunningExporter:
    """Build the parts; needs the state lock and a running event loop, and starts nothing.

    `local` adds the embedded Mission Control; it is also added when no other sink is configured.
    """
    notice = NoticeLog(Level[settings.log_level.upper()], say, time.monotonic)
    store, quarantine = _stores(settings, notice)
    embedded = local or not any(configured(settings))
    receiver_store, receiver = _open_receiver(settings, redaction, notice) if embedded else (None, None)
    files, limits = _open_files(settings.limits.open_files, notice), settings.limits
    follow = file_source(settings, homes_in(settings).roots, files, session_ids, notice)
    reader = _reader(limits, files, redaction)
    side = _side_telemetry(settings, store, redaction, notice)
    take, tell = (side.take, side.tell) if side is not None else (None, None)
    tally, installation = side.tally if side is not None else None, installation_of(Path(settings.state_dir))
    endings, host = _endings(store, limits), settings.host_name or socket.gethostname()
    parts = SinkParts(reader, partial(exporter_id, store), notice, tally, receiver, installation, endings, host)
    daemon = Daemon(
        make_source=lambda daemon: follow(daemon.on_change, daemon.on_workspace),
        make_observing=observing_of(settings, files, redaction, session_ids, notice, take, tell),
        reader=reader,
        store=store,
        quarantine=quarantine,
        sink_states=_sink_states(settings, parts, store, quarantine),
        scope=SessionScope(settings.history_days, frozenset(session_ids)),
        notice=notice,
        drain_seconds=settings.drain_seconds,
        give_up_seconds=settings.give_up_seconds,
        incomplete_line_seconds=limits.incomplete_line_seconds,
        holders=endings.holders,
        deliver_past=deliver_past,
    )
    return RunningExporter(
        *(daemon, redaction, host, limits.max_line_bytes, notice, installation, receiver, receiver_store),
        monitor=partial(_monitor, settings, daemon, side),
        beside=side.tasks(daemon) if side is not None else [],
        settings=comparable(settings),
    )


def _monitor(
    settings: "Settings", daemon: Daemon, side: "SideTelemetry | None"
) -> "AbstractAsyncContextManager[int] | None":
    if settings.metrics.listen is None:
        return None
    from exporter.wiring.monitoring import monitored

    return monitored(settings.metrics, settings.metrics.listen, daemon, side.tally if side is not None else None)


def _side_telemetry(
    settings: "Settings", store: MarkStore, redaction: Redactors, notice: Callable[[Notice], None]
) -> "SideTelemetry | None":
    if not settings.otel:
        return None
    from exporter.wiring.telemetry import SideTelemetry

    return SideTelemetry(settings, store, redaction.event, notice)


def _endings(store: MarkStore, limits: "Limits") -> Endings:
    return Endings(_holders(store), limits.abandoned_after_hours * 3600)


def _holders(store: MarkStore) -> Holders:
    def remember(where: str) -> None:
        with suppress(StoreUnwritableError, StoreDamagedError):  # it is asked again after the next start
            store.remember(_HOLDERS_SEEN, where)

    return Holders(partial(store.fact, _HOLDERS_SEEN), remember)


def _reader(limits: "Limits", files: OpenFiles, redaction: Redactors) -> SegmentReader:
    lines, cache = limits.max_line_bytes, limits.cache_bytes
    of = {"line_bytes_max": lines, "cache_bytes": cache}
    return SegmentReader(files, redaction.event, **of, commands=redaction.commands, helper=redaction.helper)


def _open_files(wanted: int, notice: Callable[[Notice], None]) -> OpenFiles:
    possible, limit = files_possible(wanted)
    if possible < wanted:
        message = "the limit of open files is low (ulimit -n), reading is slower"
        fields = {"limit": limit, "session_files": possible, "wanted": wanted}
        notice(Notice(NoticeName.FEW_OPEN_FILES, Level.WARNING, message, fields=fields))
    return OpenFiles(possible)


def _open_receiver(
    settings: "Settings", redaction: Redactors, notice: Callable[[Notice], None]
) -> "tuple[ReceiverStore, Starlette]":
    from exporter.missioncontrol.opening import open_embedded
    from exporter.missioncontrol.store.retention import Retention

    store, receiver = open_embedded(
        Path(settings.state_dir),
        lambda: redaction.another().event,
        commands=redaction.commands,
        make_trace=make_trace,
        project=project,
        retention=Retention.of(settings.limits.keep_days, settings.limits.keep_gb),
    )
    for one in store.notices:
        notice(one)
    return store, receiver


def _stores(settings: "Settings", notice: Callable[[Notice], None]) -> tuple[MarkStore, Quarantine]:
    state, limits = Path(settings.state_dir), settings.limits
    _refuse_network(state)
    store = MarkStore(state / MARKS)
    quarantine = Quarantine(state / QUARANTINE, bytes_max=limits.quarantine_bytes, days_max=limits.quarantine_days)
    for aside in (store.set_aside, quarantine.set_aside):
        if aside is not None:
            text = "a database could not be read and was set aside"
            notice(Notice(NoticeName.DATABASE_SET_ASIDE, Level.ERROR, text, fields={"as": aside.name}))
    return store, quarantine


def _refuse_network(state: Path) -> None:
    """Raise `StateError` for a network file system: SQLite's write-ahead log needs shared memory, which it lacks."""
    with suppress(OSError):
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
        if is_remote(file_system_type(mounts, state.stat().st_dev)):
            raise StateError(
                f"the state directory {state} is on a network file system",
                hint="set state_dir (or EXPORTER_STATE_DIR) to a local disk",
            )


def _sink_states(
    settings: "Settings", parts: SinkParts, store: MarkStore, quarantine: Quarantine
) -> list[tuple[SinkState, int]]:
    reader, notice, made = parts.reader, parts.notice, []
    for built in build_sinks(settings, parts):
        sink = built.sink
        sink_id = store.sink_id(sink.name, sink.url)
        made.append((SinkState(sink, sink_id, Gate(), store, quarantine, reader, notice, built.feed), built.lanes))
    for state, _ in made:
        state.siblings = [one for one, _ in made if one is not state and one.feed.reads_with is state.feed.reads_with]
    # The signals of an endpoint share a mapper, which reads once for all of them; a sink that gathers reads later.
    together = [one.feed for one, _ in made if one.sink.gathering is None]
    readers = {id(feed.reads_with) for feed in together}
    for feed in together:
        feed.reads_with.shared = len(readers) > 1
    return made


def helpers_for(settings: "Settings", request: Mapping[str, Any], redaction: Redactors) -> "Helpers | None":
    """Return processes that help with a backfill of telemetry, None for other requests and on one core.

    Called before anything is opened and before any thread is started.
    """
    if request.get("do") != "backfill" or request.get("dry_run") or not settings.otel:
        return None
    from exporter.daemon.backfill import Helpers, helpers_possible

    count = helpers_possible()
    if not count:
        return None
    for name in OF_EVERY_HELPER:
        import_module(name)
    return Helpers(count, lambda: join(settings, lambda _: None, redaction, local=False, session_ids=()))
