"""A daemon and its parts, joined as the settings say."""

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from config.errors import ConfigError
from config.token import read_token
from exporter.core.delivery.gate import Gate
from exporter.core.names import JOURNALS, MARKS, QUARANTINE, otlp_name, sink_name
from exporter.core.notice import Level, Notice, NoticeLog
from exporter.daemon.daemon import Daemon, SessionScope
from exporter.daemon.running import Redactors, RunningExporter
from exporter.errors import StateError
from exporter.pipeline.segment_reader import SegmentReader
from exporter.pipeline.sink_state import SinkState
from exporter.sinks.configured import http_sink
from exporter.sources.files.session_file import OpenFiles
from exporter.sources.files.source import WATCHED_NAMES, FileSource
from exporter.sources.files.watch import best_watcher, file_system_type, is_remote
from exporter.state.marks import MarkStore, exporter_id
from exporter.state.quarantine import Quarantine
from exporter.wiring.event_views import make_trace, project

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from config.settings import MissionControl, Settings
    from exporter.daemon.remote_sources import RemoteSources
    from exporter.missioncontrol.store.store import Store as ReceiverStore
    from exporter.sinks.mission_control import MissionControlSink
    from exporter.wiring.host_logs import HostLogs
    from exporter.wiring.live_metrics import LiveMetrics
    from otel.bridge import Tally


def join(
    settings: "Settings",
    say: Callable[[Any], None],
    redaction: Redactors,
    *,
    local: bool,
    session_ids: Sequence[str],
) -> RunningExporter:
    """Join the parts; needs the state lock and a running event loop, and starts nothing.

    `local` adds the embedded Mission Control; it is also added when no other sink is configured.
    """
    notice = NoticeLog(Level[settings.log_level.upper()], say)
    store, quarantine = _stores(settings, notice)
    receiver_store, receiver = None, None
    if local or not (settings.mission_control or settings.otel):
        receiver_store, receiver = _open_receiver(settings, redaction, notice)
    files, limits = OpenFiles(settings.limits.open_files), settings.limits
    reader = SegmentReader(files, redaction.event, line_bytes_max=limits.max_line_bytes, cache_bytes=limits.cache_bytes)
    tally, live = _tally(settings), _live_metrics(settings, store, notice)
    logs = _host_logs(settings, redaction, notice)
    daemon = Daemon(
        make_source=_source(settings, files, session_ids),
        make_observing=_observing(settings, files, redaction, session_ids, live, logs),
        reader=reader,
        store=store,
        quarantine=quarantine,
        sink_states=_sink_states(settings, receiver, store, quarantine, reader, notice, tally),
        scope=SessionScope(settings.history_days, frozenset(session_ids)),
        notice=notice,
        drain_seconds=settings.drain_seconds,
        give_up_seconds=settings.give_up_seconds,
        incomplete_line_seconds=limits.incomplete_line_seconds,
    )
    beside = [lambda: _send_health(settings, daemon, tally)] if tally is not None else []
    beside += [one.run for one in (live, logs) if one is not None]
    host = settings.host_name or socket.gethostname()
    return RunningExporter(daemon, redaction, host, limits.max_line_bytes, receiver, receiver_store, beside=beside)


def _open_receiver(
    settings: "Settings", redaction: Redactors, notice: Callable[[Notice], None]
) -> "tuple[ReceiverStore, Starlette]":
    from exporter.missioncontrol.opening import open_embedded
    from exporter.missioncontrol.store.retention import Retention

    store, receiver = open_embedded(
        Path(settings.state_dir),
        lambda: redaction.another().event,
        make_trace=make_trace,
        project=project,
        retention=Retention.of(settings.limits.keep_days, settings.limits.keep_gb),
    )
    for text in store.notices:
        notice(Notice(Level.ERROR, text))
    return store, receiver


async def _send_health(settings: "Settings", daemon: Daemon, tally: "Tally") -> None:
    daemon.defects = tally.defects
    told = [one for one in settings.otel.values() if one.health]
    if told:
        from exporter.wiring.health_metrics import send_health

        await send_health(told, daemon, tally)


def _tally(settings: "Settings") -> "Tally | None":
    if not settings.otel:
        return None
    from otel.bridge import Tally

    return Tally()


def _live_metrics(settings: "Settings", store: MarkStore, notice: Callable[[Notice], None]) -> "LiveMetrics | None":
    """Return what counts the events that pass, where there is a source of such and an endpoint that takes metrics."""
    told = [(name, one) for name, one in settings.otel.items() if "metrics" in one.signals]
    if not told or not settings.source:
        return None
    from exporter.wiring.live_metrics import LiveMetrics

    return LiveMetrics(told, exporter_id(store), notice)


def _host_logs(settings: "Settings", redaction: Redactors, notice: Callable[[Notice], None]) -> "HostLogs | None":
    """Return what passes on the logs of agent hosts, where there is such a host and an endpoint that may have texts."""
    told = [
        (otlp_name(name), one)
        for name, one in settings.otel.items()
        if one.content == "redacted" and "logs" in one.signals
    ]
    if not told or not any(one.url.startswith("ahp+") for one in settings.source):
        return None
    from exporter.wiring.host_logs import HostLogs

    return HostLogs(told, redaction.event, notice)


def _stores(settings: "Settings", notice: Callable[[Notice], None]) -> tuple[MarkStore, Quarantine]:
    state, limits = Path(settings.state_dir), settings.limits
    _refuse_network(state)
    store = MarkStore(state / MARKS)
    quarantine = Quarantine(state / QUARANTINE, bytes_max=limits.quarantine_bytes, days_max=limits.quarantine_days)
    for aside in (store.set_aside, quarantine.set_aside):
        if aside is not None:
            notice(Notice(Level.ERROR, "a database could not be read and was set aside", fields={"as": aside.name}))
    return store, quarantine


def _refuse_network(state: Path) -> None:
    """SQLite's write-ahead log needs shared memory, which a network file system does not give: refuse to start."""
    with suppress(OSError):
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
        if is_remote(file_system_type(mounts, state.stat().st_dev)):
            raise StateError(
                f"the state directory {state} is on a network file system",
                hint="set state_dir (or EXPORTER_STATE_DIR) to a local disk",
            )


def _source(settings: "Settings", files: OpenFiles, session_ids: Sequence[str]) -> Callable[[Daemon], FileSource]:
    root, poll_seconds = Path(settings.copilot_home) / "session-state", settings.limits.poll_seconds
    return lambda daemon: FileSource(
        root,
        best_watcher(str(root), poll_seconds, WATCHED_NAMES),
        files,
        daemon.on_change,
        daemon.on_workspace,
        poll_seconds=poll_seconds,
        only=session_ids,
    )


def _observing(
    settings: "Settings",
    files: OpenFiles,
    redaction: Redactors,
    session_ids: Sequence[str],
    live: "LiveMetrics | None",
    logs: "HostLogs | None",
) -> "Callable[[Daemon], RemoteSources] | None":
    """Return what makes the other sources: those that are named, and the journals that such have left."""
    if not settings.source and not (Path(settings.state_dir) / JOURNALS).exists():
        return None
    from exporter.wiring.sources import observing_of

    take, tell = logs.take if logs is not None else None, live.tell if live is not None else None
    return observing_of(settings, files, redaction, session_ids, on_telemetry=take, tell=tell)


def _sink_states(
    settings: "Settings",
    receiver: Any,
    store: MarkStore,
    quarantine: Quarantine,
    reader: SegmentReader,
    notice: Callable[[Notice], None],
    tally: "Tally | None",
) -> list[tuple[SinkState, int]]:
    sink_states = [
        (
            SinkState(
                sink, store.sink_id(sink.name, sink.url), Gate(), store, quarantine, reader, notice, keep_live=live
            ),
            connections,
        )
        for sink, connections, live in _sinks(settings, receiver)
    ]
    if settings.otel:
        from exporter.wiring.otlp import LANES, otlp_sinks

        for number, (name, one) in enumerate(settings.otel.items()):
            told = tally.for_endpoint() if number and tally is not None else tally
            for made in otlp_sinks(name, one, reader, exporter_id(store), notice, told):
                sink_id = store.sink_id(made.sink.name, made.sink.url)
                sink_state = SinkState(
                    made.sink, sink_id, Gate(), store, quarantine, reader, notice, made.mapping, made.counting
                )
                sink_states.append((sink_state, LANES))
    # The signals of an endpoint read together, by their mapper.
    readers = {
        id(sink_state.mapping.mapper if sink_state.mapping is not None else sink_state) for sink_state, _ in sink_states
    }
    for sink_state, _ in sink_states:
        sink_state.shared = len(readers) > 1
        if sink_state.mapping is not None:
            sink_state.mapping.mapper.shared = sink_state.shared
    return sink_states


def _sinks(settings: "Settings", receiver: Any) -> "Iterator[tuple[MissionControlSink, int, bool]]":
    for name, one in settings.mission_control.items():
        sink = http_sink(
            sink_name(name),
            one.url,
            token=_token_of(one),
            connections=one.connections,
            timeout_seconds=one.timeout_seconds,
            compression=one.compression == "auto",
            event_bytes_max=one.max_event_bytes,
            owner_and_repo=(one.owner_id, one.repo_id) if one.owner_id and one.repo_id else None,
            certificate_file=one.certificate_file,
        )
        yield sink, one.connections, one.live
    if receiver is not None:
        from exporter.wiring.embedded import embedded_sink

        yield embedded_sink(receiver), 2, True


def _token_of(one: "MissionControl") -> Callable[[], str | None]:
    """Return what reads the token before every request; one that cannot be read now stays what it was."""
    last = [read_token(one)]

    def token() -> str | None:
        with suppress(ConfigError):
            last[0] = read_token(one)
        return last[0]

    return token
