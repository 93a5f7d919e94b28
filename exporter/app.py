"""The one place that names concrete parts and joins them; a command calls one function of this module.

Parts are imported where they are joined, so that a command pays only for those it uses.
"""

import asyncio
import os
import re
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from exporter.core.notice import Level, Notice
from exporter.errors import Exit

if TYPE_CHECKING:
    from config.load import Loaded
    from config.settings import MissionControl as MissionControlSettings
    from config.settings import Settings
    from exporter.core.redacted import Redacted
    from exporter.daemon.running import Redaction, Running
    from exporter.daemon.serving import Serving
    from exporter.missioncontrol.store import Store as ReceiverStore
    from exporter.sinks.mission_control import MissionControl
    from redaction.engine import Redactor

_MARKS: Final = "marks.db"
_QUARANTINE: Final = "quarantine.db"
_READY_SECONDS: Final = 8.0

Say: TypeAlias = Callable[[Any], None]


# ---- redaction ----------------------------------------------------------------------------------------------


def make_redaction(settings: "Settings") -> "Redaction":
    """Compile the redactor with this installation's key and the values that must never leave."""
    from exporter.store.key import redaction_key
    from redaction.engine import Engine
    from redaction.known import from_environ, from_files
    from redaction.search import Allowed

    rules = settings.redaction
    files = [*rules.known_files, *(one.token_file for one in settings.mission_control.values() if one.token_file)]
    known: list[bytes | str] = [
        *from_environ(os.environ, rules.known_env),
        *from_files(Path(name) for name in files),
        *(one.token for one in settings.mission_control.values() if one.token),
    ]
    allowed = [
        Allowed(one.value, re.compile(one.regex) if one.regex else None, one.rule)
        for one in rules.allow
        if not one.path
    ]
    return adapt(Engine(redaction_key(Path(settings.state_dir)), known, allowed), rules.budget_ms)


def adapt(engine: "Redactor", budget_ms: float) -> "Redaction":
    """Join an engine of the package `redaction` to what the core asks of one."""
    from exporter.core.redacted import Masked, Refused
    from exporter.daemon.running import Redaction
    from redaction import engine as results

    clean, masked, redact = results.CLEAN, results.Masked, engine.redact

    def event(line: bytes, /) -> "Redacted":
        result = redact(line, budget_ms)
        if result is clean:
            return line
        if isinstance(result, masked):
            return Masked(result.line, tuple(finding.rule for finding in result.findings))
        return Refused(result.reason if isinstance(result, results.Refused) else "redactor_failed")

    return Redaction(event, engine.redact_text)


# ---- joining the parts --------------------------------------------------------------------------------------


def build(
    settings: "Settings",
    say: Say,
    *,
    local: bool = False,
    session_ids: Sequence[str] = (),
    redaction: "Redaction | None" = None,
) -> "Running":
    """Join the parts; needs the state lock and a running event loop, and starts nothing.

    `local` adds the embedded Mission Control; it is also added when no other sink is configured. `redaction`
    replaces the engine, for tests and the benchmark.
    """
    from exporter.core.gate import Gate
    from exporter.daemon.daemon import Daemon, Scope
    from exporter.daemon.outlet import Outlet
    from exporter.daemon.road import Road
    from exporter.daemon.running import Running
    from exporter.observe import Observer
    from exporter.sources.files import WATCHED_NAMES, FileSource
    from exporter.sources.session_file import OpenFiles
    from exporter.sources.watch import best_watcher
    from exporter.store.marks import Store
    from exporter.store.quarantine import Quarantine

    state, limits = Path(settings.state_dir), settings.limits
    notice = Observer(Level[settings.log_level.upper()], say)
    redaction = redaction or make_redaction(settings)
    store = Store(state / _MARKS)
    quarantine = Quarantine(state / _QUARANTINE, bytes_max=limits.quarantine_bytes, days_max=limits.quarantine_days)
    for aside in (store.set_aside, quarantine.set_aside):
        if aside is not None:
            notice(Notice(Level.ERROR, "a database could not be read and was set aside", fields={"as": aside.name}))
    files = OpenFiles(limits.open_files)
    road = Road(files, redaction.event, line_bytes_max=limits.max_line_bytes, cache_bytes=limits.cache_bytes)
    with_local = local or not settings.mission_control
    receiver_store, receiver = _embedded(settings) if with_local else (None, None)
    outlets = [
        (
            Outlet(sink, store.sink_id(sink.name, sink.url), Gate(), store, quarantine, road, notice, keep_live=live),
            connections,
        )
        for sink, connections, live in _sinks(settings, receiver)
    ]
    for outlet, _ in outlets:
        outlet.shared = len(outlets) > 1
    root = Path(settings.copilot_home) / "session-state"
    daemon = Daemon(
        make_source=lambda daemon: FileSource(
            root,
            best_watcher(str(root), limits.poll_seconds, WATCHED_NAMES),
            files,
            daemon.on_change,
            daemon.on_workspace,
            poll_seconds=limits.poll_seconds,
            only=session_ids,
        ),
        road=road,
        store=store,
        quarantine=quarantine,
        outlets=outlets,
        scope=Scope(settings.history_days, frozenset(session_ids)),
        notice=notice,
        drain_seconds=settings.drain_seconds,
        give_up_seconds=settings.give_up_seconds,
        incomplete_line_seconds=limits.incomplete_line_seconds,
    )
    host = settings.host_name or socket.gethostname()
    return Running(daemon, redaction, host, limits.max_line_bytes, receiver, receiver_store)


def _embedded(settings: "Settings") -> "tuple[ReceiverStore, Any]":
    from exporter.missioncontrol.opening import open_embedded

    return open_embedded(Path(settings.state_dir), lambda: make_redaction(settings).event)


def _sink_name(name: str) -> str:
    return "mission_control" if name == "default" else f"mission_control.{name}"


def _sinks(settings: "Settings", receiver: Any) -> "Iterator[tuple[MissionControl, int, bool]]":
    from exporter.sinks.configured import http_sink, local_sink

    for name, one in settings.mission_control.items():
        sink = http_sink(
            _sink_name(name),
            one.url,
            token=_token_of(one),
            connections=one.connections,
            timeout_seconds=one.timeout_seconds,
            compression=one.compression == "auto",
            event_bytes_max=one.max_event_bytes,
            owner_and_repo=(one.owner_id, one.repo_id) if one.owner_id and one.repo_id else None,
        )
        yield sink, one.connections, one.live
    if receiver is not None:
        yield local_sink(receiver), 2, True


def _token_of(one: "MissionControlSettings") -> Callable[[], str | None]:
    """Return what reads the token before every request; one that cannot be read now stays what it was."""
    from config.errors import ConfigError
    from config.token import read_token

    last = [read_token(one)]

    def token() -> str | None:
        with suppress(ConfigError):
            last[0] = read_token(one)
        return last[0]

    return token


def _serving(running: "Running", settings: "Settings", port: int | None = None) -> "Serving":
    from exporter.missioncontrol.opening import open_page

    chosen = settings.port if port is None else port
    return running.serving(
        Path(settings.state_dir), lambda receiver: open_page(receiver, chosen, explicit_port=port is not None)
    )


# ---- what commands call -------------------------------------------------------------------------------------


async def run(settings: "Settings", *, session_ids: Sequence[str], until_idle: bool, on_notice: Say) -> int:
    """Follow and deliver until a signal, or with `until_idle` until everything is delivered or in quarantine."""
    from exporter.daemon.serving import first_of, stop_on_signals
    from exporter.store.lock import owned

    with owned(Path(settings.state_dir)):
        stop = stop_on_signals()
        running = build(settings, on_notice, session_ids=session_ids)
        try:
            async with _serving(running, settings):
                running.daemon.start()
                if until_idle:
                    return await first_of(stop, running.daemon.until_idle()) or Exit.DONE
                await stop.wait()
                return Exit.DONE
        finally:
            await running.close()


async def up(loaded: "Loaded", *, demo: bool, days: int, port: int | None, open_browser: bool, on_notice: Say) -> int:
    """Show this machine's sessions: start (or find) the embedded Mission Control, deliver the last days, follow."""
    from exporter.daemon.control import page_of_daemon
    from exporter.daemon.serving import open_in_browser, stop_on_signals
    from exporter.demo.replay import replay
    from exporter.store.lock import owned

    settings = msgspec.structs.replace(loaded.settings, history_days=days)
    if demo:
        home = Path(settings.state_dir) / "demo"
        settings = msgspec.structs.replace(
            settings, state_dir=str(home / "state"), copilot_home=str(home / "copilot"), mission_control={}, otel={}
        )
    facts = {"found_not_used": loaded.found_not_used, "leaves": sorted(map(_sink_name, settings.mission_control))}
    url = await page_of_daemon(Path(settings.state_dir))
    if url is not None:
        on_notice({"ready": {**facts, "url": url, "attached": True}})
        open_in_browser(url if open_browser else None)
        return Exit.DONE
    with owned(Path(settings.state_dir)):
        stop = stop_on_signals()
        running = build(settings, on_notice, local=True)
        try:
            async with _serving(running, settings, port):
                running.daemon.start()
                playing = asyncio.create_task(replay(Path(settings.copilot_home), speed=1.0)) if demo else None
                counts = await running.daemon.catch_up(_READY_SECONDS, stop, lambda told: on_notice({"progress": told}))
                on_notice({"ready": {**facts, **counts, "url": running.url, "days": days, "demo": demo}})
                open_in_browser(running.url if open_browser else None)
                await stop.wait()
                if playing is not None:
                    playing.cancel()
                return Exit.DONE
        finally:
            await running.close()


async def serve(settings: "Settings", *, host: str, port: int, store: str | None, token_file: str | None) -> int:
    """Run the receiver and its page alone until a signal."""
    from exporter.daemon.serving import stop_on_signals
    from exporter.missioncontrol.opening import NAME, serve_alone
    from exporter.store.lock import prepare_state_dir

    state = Path(settings.state_dir)
    prepare_state_dir(state)
    await serve_alone(
        Path(store) if store else state / NAME,
        make_redaction(settings).event,
        host=host,
        port=port,
        token_file=Path(token_file) if token_file else None,
        stop=stop_on_signals(),
    )
    return Exit.DONE


async def ask(settings: "Settings", request: dict[str, Any], on_progress: Say) -> dict[str, Any]:
    """Answer a request: by the daemon if one runs, else in this process. Raises `ExporterError`."""
    from exporter.daemon.control import ask_daemon

    state = Path(settings.state_dir)
    answer = await ask_daemon(state, request, on_progress)
    if answer is not None:
        return answer
    if request.get("do") == "status":
        from exporter.daemon.asleep import status_asleep

        sinks = {_sink_name(name): one.url for name, one in settings.mission_control.items()} or {"local": "local"}
        root = Path(settings.copilot_home) / "session-state"
        return dict(msgspec.to_builtins(status_asleep(root, state / _MARKS, state / _QUARANTINE, sinks)))
    from exporter.store.lock import owned

    with owned(state):
        running = build(settings, lambda _: None)
        try:
            running.daemon.start(deliver=False)
            return await running.answers().answer(request, on_progress)
        finally:
            await running.close()


def tail(settings: "Settings", session_id: str, *, follow: bool) -> AsyncIterator[bytes]:
    """Yield a session's events, redacted; with `follow` go on until cancelled."""
    from exporter.daemon.tailing import tail as tail_of

    directory = Path(settings.copilot_home) / "session-state" / session_id
    redact = make_redaction(settings).event
    return tail_of(directory, redact, follow=follow, line_bytes_max=settings.limits.max_line_bytes)
