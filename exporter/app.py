"""The one place that names concrete parts and joins them; a command calls one function of this module."""

import asyncio
import os
import re
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from exporter.core.notice import Level, Notice
from exporter.errors import Exit, ExporterError, LockedError, UsageError
from exporter.status import DaemonStatus, SinkStatus, SourceStatus, Status

if TYPE_CHECKING:
    from config.load import Loaded
    from config.settings import MissionControl as MissionControlSettings
    from config.settings import Settings
    from exporter.core.redacted import Redacted, RedactEvent
    from exporter.daemon.answers import Answers
    from exporter.daemon.daemon import Daemon
    from exporter.missioncontrol.store import Store as ReceiverStore
    from redaction.engine import Redactor

LOCAL: Final = "local"
_RECEIVER_NAME: Final = "mission_control.db"
_MARKS_NAME: Final = "marks.db"
_QUARANTINE_NAME: Final = "quarantine.db"
_KEY_NAME: Final = "redaction.key"
_READY_SECONDS: Final = 8.0

Say: TypeAlias = Callable[[Any], None]


# ---- redaction ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Redaction:
    """What the parts use of the redactor: one for events, one for single texts."""

    event: "RedactEvent"
    text: Callable[[str], str]


def make_redaction(settings: "Settings") -> Redaction:
    """Compile the redactor with this installation's key and the values that must never leave."""
    from redaction.engine import Engine
    from redaction.known import from_environ, from_files
    from redaction.search import Allowed

    files = [Path(name) for name in settings.redaction.known_files]
    known: list[bytes | str] = [*from_environ(os.environ, settings.redaction.known_env), *from_files(files)]
    for sink in settings.mission_control.values():
        known += [sink.token] if sink.token else from_files([Path(sink.token_file)] if sink.token_file else [])
    allowed = [
        Allowed(one.value, re.compile(one.regex) if one.regex else None, one.rule)
        for one in settings.redaction.allow
        if not one.path
    ]
    engine = Engine(_redaction_key(Path(settings.state_dir)), known, allowed)
    return adapt(engine, settings.redaction.budget_ms)


def adapt(engine: "Redactor", budget_ms: float) -> Redaction:
    """Join an engine of the package `redaction` to what the core asks of one."""
    from exporter.core.redacted import Masked, Refused
    from redaction import engine as results

    clean, masked = results.CLEAN, results.Masked
    redact = engine.redact

    def event(line: bytes, /) -> "Redacted":
        result = redact(line, budget_ms)
        if result is clean:
            return line
        if isinstance(result, masked):
            return Masked(result.line, tuple(finding.rule for finding in result.findings))
        return Refused(result.reason if isinstance(result, results.Refused) else "redactor_failed")

    return Redaction(event, engine.redact_text)


def _redaction_key(state_dir: Path) -> bytes | None:
    """Return the key of this installation's markers, made at the first use; None where nothing may be written."""
    path = state_dir / _KEY_NAME
    try:
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(secrets.token_bytes(32))
    except FileExistsError:
        pass
    except OSError:
        return None
    return path.read_bytes() or None


# ---- building -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Running:
    """The parts of one exporter."""

    daemon: "Daemon"
    answers: "Answers"
    redaction: Redaction
    host: str | None
    receiver: Any = None
    receiver_store: "ReceiverStore | None" = None
    url: str | None = None

    async def close(self) -> None:
        """Stop the daemon, then the embedded receiver."""
        await self.daemon.stop()
        if self.receiver_store is not None:
            self.receiver_store.close()


def build(
    settings: "Settings",
    say: Callable[[Notice], None],
    *,
    local: bool = False,
    session_ids: Sequence[str] = (),
    redaction: Redaction | None = None,
) -> Running:
    """Join the parts; needs the state lock and a running event loop, and starts nothing.

    `local` adds the embedded Mission Control; it is also added when no other sink is configured. `redaction` is for
    the benchmark.
    """
    from exporter.core.gate import Gate
    from exporter.daemon.answers import Answers
    from exporter.daemon.daemon import Daemon, Scope
    from exporter.daemon.lane import Outlet
    from exporter.daemon.road import Road
    from exporter.observe import Observer
    from exporter.sources.files import WATCHED_NAMES, FileSource
    from exporter.sources.session_file import OpenFiles
    from exporter.sources.watch import best_watcher
    from exporter.store.marks import Store
    from exporter.store.quarantine import Quarantine

    state, limits = Path(settings.state_dir), settings.limits
    notice = Observer(Level[settings.log_level.upper()], say)
    redaction = redaction or make_redaction(settings)
    store = Store(state / _MARKS_NAME)
    if store.set_aside is not None:
        notice(Notice(Level.ERROR, "the marks could not be read and were set aside", fields={"as": store.set_aside}))
    quarantine = Quarantine(
        state / _QUARANTINE_NAME, bytes_max=limits.quarantine_bytes, days_max=limits.quarantine_days
    )
    files = OpenFiles(limits.open_files)
    road = Road(files, redaction.event, line_bytes_max=limits.max_line_bytes, cache_bytes=limits.cache_bytes)
    with_local = local or not settings.mission_control
    receiver_store, receiver = _embedded(state) if with_local else (None, None)
    shared = len(settings.mission_control) + with_local > 1
    outlets = []
    for sink, connections, keep_live in _sinks(settings, receiver):
        outlet = Outlet(
            sink=sink,
            sink_id=store.sink_id(sink.name, sink.url),
            gate=Gate(),
            store=store,
            quarantine=quarantine,
            road=road,
            notice=notice,
            shared=shared,
            keep_live=keep_live,
        )
        outlets.append((outlet, connections))
    root = Path(settings.copilot_home) / "session-state"

    def make_source(daemon: Daemon) -> FileSource:
        return FileSource(
            root,
            best_watcher(str(root), limits.poll_seconds, WATCHED_NAMES),
            files,
            daemon.on_change,
            daemon.on_workspace,
            poll_seconds=limits.poll_seconds,
            only=session_ids,
        )

    daemon = Daemon(
        make_source=make_source,
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
    running = Running(daemon, _no_answers(), redaction, host, receiver, receiver_store)
    running.answers = Answers(
        daemon,
        redaction.event,
        redaction.text,
        line_bytes_max=limits.max_line_bytes,
        host=host,
        url=lambda: running.url,
    )
    return running


def _no_answers() -> Any:
    return None


def _embedded(state: Path) -> "tuple[ReceiverStore, Any]":
    from exporter.missioncontrol.app import create_app
    from exporter.missioncontrol.store import Store as ReceiverStore

    store = ReceiverStore(state / _RECEIVER_NAME)
    return store, create_app(store)


def _sinks(settings: "Settings", receiver: Any) -> Iterator[tuple[Any, int, bool]]:
    from exporter.sinks.mission_control import MissionControl
    from exporter.sinks.transport import HttpTransport, InProcessTransport

    for name, one in settings.mission_control.items():
        transport = HttpTransport(one.url, connections=one.connections, timeout_seconds=one.timeout_seconds)
        sink = MissionControl(
            "mission_control" if name == "default" else f"mission_control.{name}",
            one.url,
            transport,
            token=_token_of(one),
            compression=one.compression == "auto" and not _is_loopback(one.url),
            event_bytes_max=one.max_event_bytes,
            owner_and_repo=(one.owner_id, one.repo_id) if one.owner_id and one.repo_id else None,
        )
        yield sink, one.connections, one.live
    if receiver is not None:
        yield MissionControl(LOCAL, LOCAL, InProcessTransport(receiver), token=lambda: None, compression=False), 2, True


def _is_loopback(url: str) -> bool:
    from urllib.parse import urlsplit

    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def _token_of(one: "MissionControlSettings") -> Callable[[], str | None]:
    """Return what reads the token before every request; one that cannot be read now stays what it was."""
    from config.errors import ConfigError
    from config.token import read_token

    last: list[str | None] = [read_token(one)]

    def token() -> str | None:
        with suppress(ConfigError):
            last[0] = read_token(one)
        return last[0]

    return token


@contextmanager
def _locked(settings: "Settings") -> Iterator[None]:
    from exporter.store.lock import StateLock, prepare_state_dir

    state = Path(settings.state_dir)
    prepare_state_dir(state)
    with StateLock(state):
        yield


# ---- running ------------------------------------------------------------------------------------------------


def _stop_on_signals() -> asyncio.Event:
    """Return an event that the first SIGTERM or SIGINT sets; the second one ends the process at once."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def asked(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, asked, number)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda number, _: loop.call_soon_threadsafe(asked, number))
    return stop


async def run(settings: "Settings", *, session_ids: Sequence[str], until_idle: bool, on_notice: Say) -> int:
    """Follow and deliver until a signal, or with `until_idle` until everything is delivered or in quarantine."""
    with _locked(settings):
        stop = _stop_on_signals()
        running = build(settings, on_notice, session_ids=session_ids)
        try:
            async with _serving(running, settings):
                running.daemon.start()
                if not until_idle:
                    await stop.wait()
                    return Exit.DONE
                return await _first(stop, running.daemon.until_idle())
        finally:
            await running.close()


async def _first(stop: asyncio.Event, work: "Any") -> int:
    """Return what `work` returns, or `DONE` when it is time to stop before that."""
    stopping, working = asyncio.create_task(stop.wait()), asyncio.create_task(work)
    await asyncio.wait((stopping, working), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if working.done():
        return int(working.result())
    working.cancel()
    return Exit.DONE


class _serving:  # noqa: N801  reads as a verb where it is used
    """While in the block: the control socket answers, reports go out, and the page is served if there is one."""

    def __init__(self, running: Running, settings: "Settings", port: int | None = None) -> None:
        from exporter.daemon.control import ControlServer
        from exporter.daemon.reports import Reports

        self._running = running
        self._settings = settings
        self._port = port
        self._control = ControlServer(Path(settings.state_dir), running.answers.answer)
        self._reports = Reports(running.daemon, running.redaction.text, running.host)
        self._server: Any = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        if self._running.receiver is not None:
            from exporter.missioncontrol.server import serve_http

            explicit = self._port is not None
            port = self._port if self._port is not None else self._settings.port
            self._server = await serve_http(self._running.receiver, "127.0.0.1", port, explicit_port=explicit)
            self._running.url = f"{self._server.url}/"
        await self._control.start()
        self._task = asyncio.create_task(self._reports.run())

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
        await self._control.close()
        if self._server is not None:
            await self._server.stop()


async def up(loaded: "Loaded", *, demo: bool, days: int, port: int | None, open_browser: bool, on_notice: Say) -> int:
    """Show this machine's sessions: start (or find) the embedded Mission Control, deliver the last days, follow."""
    settings = msgspec.structs.replace(loaded.settings, history_days=days)
    if demo:
        settings = _demo_settings(settings)
    facts = {"found_not_used": loaded.found_not_used, "leaves": sorted(settings.mission_control)}
    if await _attached(settings, facts, on_notice, open_browser=open_browser):
        return Exit.DONE
    with _locked(settings):
        stop = _stop_on_signals()
        running = build(settings, on_notice, local=True)
        try:
            async with _serving(running, settings, port):
                running.daemon.start()
                playing = asyncio.create_task(_play(settings)) if demo or not _has_sessions(running) else None
                if playing is not None and not demo:
                    playing.cancel()
                await _settle(running, on_notice, stop)
                on_notice({"ready": {**facts, **_counts(running), "url": running.url, "days": days, "demo": demo}})
                if open_browser and running.url:
                    _open(running.url)
                await stop.wait()
                if playing is not None:
                    playing.cancel()
                return Exit.DONE
        finally:
            await running.close()


def _demo_settings(settings: "Settings") -> "Settings":
    """Return settings under which the demo keeps everything of its own below the state directory."""
    home = Path(settings.state_dir) / "demo"
    return msgspec.structs.replace(
        settings, state_dir=str(home / "state"), copilot_home=str(home / "copilot"), mission_control={}, otel={}
    )


async def _play(settings: "Settings") -> None:
    from exporter.demo.replay import replay

    await replay(Path(settings.copilot_home), speed=1.0)


def _has_sessions(running: Running) -> bool:
    return any(file.identity is not None for file in running.daemon.source.sessions.values())


async def _attached(settings: "Settings", facts: dict[str, Any], say: Say, *, open_browser: bool) -> bool:
    from exporter.daemon.control import ask_daemon

    answer = await ask_daemon(Path(settings.state_dir), {"do": "url"}, lambda _: None)
    if answer is None:
        return False
    if not answer.get("url"):
        raise LockedError(
            "an exporter runs already, and it has no page: it delivers to its sinks only",
            hint="see `exporter status`, or stop it and run `exporter up`",
        )
    say({"ready": {**facts, "url": answer["url"], "attached": True}})
    if open_browser:
        _open(str(answer["url"]))
    return True


async def _settle(running: Running, say: Say, stop: asyncio.Event) -> None:
    """Show progress until everything that was there is delivered, for some seconds at most."""
    loop = asyncio.get_running_loop()
    end = loop.time() + _READY_SECONDS
    while loop.time() < end and not stop.is_set():
        await asyncio.sleep(0.1)
        counts = _counts(running)
        lanes = [lane for run in running.daemon.runs for lane in run.lanes.values()]
        done = sum(1 for lane in lanes if lane.settled)
        total = sum(lane.file.size for lane in lanes)
        say({"progress": {**counts, "sessions": len(lanes), "sessions_done": done, "bytes_total": total}})
        if all(run.idle() for run in running.daemon.runs):
            return


def _counts(running: Running) -> dict[str, int]:
    run = next(run for run in running.daemon.runs if run.name == LOCAL)
    lanes = list(run.lanes.values())
    return {
        "sessions": len(lanes),
        "events": sum(max(0, lane.mark.delivered) for lane in lanes if lane.mark),
        "bytes": sum(lane.position.offset for lane in lanes),
        "masked": sum(
            sum(
                sum(rules.values()) for rules in run.outlet.store.masked(lane.file.session, run.outlet.sink_id).values()
            )
            for lane in lanes
        ),
    }


def _open(url: str) -> None:
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()


async def serve(settings: "Settings", *, host: str, port: int, store: str | None, token_file: str | None) -> int:
    """Run the receiver and its page alone until a signal."""
    from exporter.missioncontrol.app import create_app
    from exporter.missioncontrol.server import serve_http
    from exporter.missioncontrol.store import Store as ReceiverStore
    from exporter.store.lock import prepare_state_dir

    prepare_state_dir(Path(settings.state_dir))
    token = None
    if token_file is not None:
        try:
            token = Path(token_file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise UsageError(f"--token-file {token_file} cannot be read: {error.strerror}") from error
        if not token:
            raise UsageError(f"--token-file {token_file} is empty", hint="put the token in it")
    stop = _stop_on_signals()
    with ReceiverStore(Path(store) if store else Path(settings.state_dir) / _RECEIVER_NAME) as opened:
        app = create_app(opened, redactor=make_redaction(settings).event, token=token, trusted_hosts=[host])
        server = await serve_http(app, host, port, explicit_port=True)
        print(f"{server.url}/", flush=True)  # noqa: T201  the one result of this command
        try:
            await stop.wait()
        finally:
            await server.stop()
    return Exit.DONE


# ---- asking -------------------------------------------------------------------------------------------------


async def ask(
    settings: "Settings", request: dict[str, Any], on_progress: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Answer a request: by the daemon if one runs, else in this process. Raises `ExporterError`."""
    from exporter.daemon.control import ask_daemon

    if request.get("do") == "doctor":
        from exporter.doctor import doctor

        return await doctor(settings, request)
    answer = await ask_daemon(Path(settings.state_dir), request, on_progress)
    if answer is not None:
        return answer
    if request.get("do") == "status":
        return dict(msgspec.to_builtins(_status_of_nobody(settings)))
    if request.get("do") == "url":
        return {"url": None}
    with _locked(settings):
        running = build(replace_scope(settings), lambda _: None)
        try:
            running.daemon.scope = replace(running.daemon.scope, sessions=frozenset(("",)))
            running.daemon.start()
            return await running.answers.answer(request, on_progress)
        finally:
            await running.close()


def replace_scope(settings: "Settings") -> "Settings":
    """Return settings under which nothing is delivered that was not asked for."""
    return msgspec.structs.replace(settings, history_days=0)


def _status_of_nobody(settings: "Settings") -> Status:
    """Return how far every sink is, from what is remembered, while no daemon runs; imports no client of anything."""
    from exporter.store.marks import FOLLOWING, Store
    from exporter.store.quarantine import Quarantine

    root, state = Path(settings.copilot_home) / "session-state", Path(settings.state_dir)
    sizes = {path.parent.name: path.stat().st_size for path in root.glob("*/events.jsonl") if path.is_file()}
    names = {("mission_control" if name == "default" else f"mission_control.{name}"): one.url
             for name, one in settings.mission_control.items()} or {LOCAL: LOCAL}  # fmt: skip
    source = SourceStatus("files", len(sizes), 0.0, [])
    if not (state / _MARKS_NAME).exists():
        never = [SinkStatus(name, "never used", 0, 0, 0.0, None, None, 0, 0) for name in names]
        return Status(DaemonStatus(False), [source], never)
    store = Store(state / _MARKS_NAME)
    kept = Quarantine(state / _QUARANTINE_NAME, bytes_max=1, days_max=36_500)
    sinks = []
    for name, url in names.items():
        marks = store.marks(store.sink_id(name, url))
        behind = [
            sizes[session] - mark.position.offset
            for session, mark in marks.items()
            if session in sizes and mark.state == FOLLOWING and sizes[session] > mark.position.offset
        ]
        sinks.append(
            SinkStatus(
                name, "not running", sum(behind) // 1_800, sum(behind), 0.0, None, None, 0, kept.count(sink=name)
            )
        )
    store.close()
    kept.close()
    return Status(DaemonStatus(False), [source], sinks)


async def tail(settings: "Settings", session_id: str, *, follow: bool) -> AsyncIterator[bytes]:
    """Yield a session's events, redacted, ephemeral ones included; with `follow` go on until cancelled."""
    from exporter.core.position import START
    from exporter.daemon.road import Road
    from exporter.sources.session_file import OpenFiles, SessionFile

    directory = Path(settings.copilot_home) / "session-state" / session_id
    file, files = SessionFile(session_id, directory), OpenFiles(1)
    redaction = make_redaction(settings)
    road = Road(files, redaction.event, line_bytes_max=settings.limits.max_line_bytes, cache_bytes=0)
    position, generation = START, None
    try:
        while True:
            file.refresh(files)
            if file.identity is None and not follow:
                raise UsageError(f"there is no session {session_id}", hint="see `exporter sessions list`")
            if generation != file.generation:
                position, generation = START, file.generation
            segment = await road.segment(file, position, None) if file.identity is not None else None
            if segment is not None:
                for line in segment.lines:
                    yield line
                position = segment.end
            elif not follow:
                return
            else:
                await asyncio.sleep(0.2)
    finally:
        files.close_all()


__all__ = ["ExporterError", "ask", "build", "run", "serve", "tail", "up"]
