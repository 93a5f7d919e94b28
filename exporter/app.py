"""What commands call: one function each, which joins the parts it needs and runs them.

Parts are imported where they are used, so that a command pays only for its own.
"""

import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from exporter.errors import Exit, ExporterError, LockedError

if TYPE_CHECKING:
    from config.load import Loaded
    from config.settings import Settings
    from exporter.core.notice import Notice
    from exporter.daemon.running import RunningExporter
    from exporter.daemon.serving import Stop
    from exporter.missioncontrol.http.request_intake import FloorOf
    from exporter.missioncontrol.http.server import Certificate
    from exporter.missioncontrol.search.remote import IndexWorkers
    from exporter.pipeline.redactors import Redactors
    from exporter.state.redaction_counts import RedactionCounts
    from exporter.wiring.redact_commands import Format, Outcome, PreviewFinding, Withheld

_READY_SECONDS: Final = 8.0
_STATUS_SECONDS: Final = 3.0
_DAEMON_START_SECONDS: Final = 2.0

Say: TypeAlias = Callable[[Any], None]


def make_redaction(settings: "Settings", **more: Any) -> "Redactors":
    """Compile the redactor that the settings ask for; see the function of that name in `wiring`."""
    from exporter.wiring.redactor import make_redaction

    return make_redaction(settings, **more)


def build(
    settings: "Settings",
    say: Say,
    *,
    local: bool = False,
    session_ids: Sequence[str] = (),
    redaction: "Redactors | None" = None,
) -> "RunningExporter":
    """Join the parts; needs the state lock and a running event loop, and starts nothing.

    `local` adds the embedded Mission Control; it is also added when no other sink is configured. `redaction`
    replaces the engine, for tests and the benchmark.
    """
    from exporter.wiring.assembly import join

    return join(settings, say, redaction or make_redaction(settings, say=say), local=local, session_ids=session_ids)


@asynccontextmanager
async def _following(
    settings: "Settings",
    say: Say,
    *,
    port: int | None = None,
    local: bool = False,
    session_ids: Sequence[str] = (),
    first: "Notice | None" = None,
) -> "AsyncIterator[tuple[RunningExporter, Stop]]":
    """Follow and deliver, with the state lock; yield what runs, and what a signal sets. `first` is said first."""
    from exporter.daemon.service_manager import ServiceManager
    from exporter.daemon.serving import leave_no_core, stop_on_signals
    from exporter.state.lock import owned
    from exporter.wiring.sources import homes_in

    async def open_chosen(receiver: Any) -> Any:
        from exporter.missioncontrol.http.server import serve_http

        chosen = settings.port if port is None else port
        return await serve_http(receiver, "127.0.0.1", chosen, explicit_port=port is not None)

    leave_no_core()
    manager = ServiceManager.of(os.environ)
    with owned(Path(settings.state_dir)), closing(make_redaction(settings, say=say).helped()) as redaction:
        stop = stop_on_signals()
        if first is not None:
            say(first)
        running = build(settings, say, local=local, session_ids=session_ids, redaction=redaction)
        running.beside.append(manager.watch)
        try:
            async with running.serving(Path(settings.state_dir), open_chosen):
                running.daemon.start()
                manager.tell("READY=1", f"STATUS=following {homes_in(settings).text}")
                yield running, stop
                manager.tell("STOPPING=1")
        finally:
            await running.close()


async def upgrade_check(index: str | None) -> dict[str, Any]:
    """Ask this package index, or the one that the environment names for pip or uv, for a newer version."""
    from exporter.wiring import upgrade

    return await upgrade.upgrade_check(upgrade.index_of(os.environ, index))


def _started(loaded: "Loaded") -> "Notice":
    from exporter.core.names import LOCAL, shown_url
    from exporter.core.notice import Level, Notice, NoticeName
    from exporter.version import VERSION
    from exporter.wiring.sinks.registry import addresses

    settings = loaded.settings
    sinks = {name: shown_url(url) for name, url in addresses(settings).items()}
    facts = {
        "version": VERSION,
        "settings": str(loaded.file) if loaded.file is not None else "defaults",
        "copilot_home": settings.copilot_home,
        "state_dir": settings.state_dir,
        "sinks": sinks or {LOCAL: "embedded"},
    }
    return Notice(NoticeName.STARTED, Level.INFO, "started", fields=facts)


@asynccontextmanager
async def _telling(running: "RunningExporter") -> AsyncIterator[None]:
    """Say where the page is, that it is ready, when it has caught up, and at the end that it stops."""
    import asyncio

    from exporter.core.notice import NoticeName

    if running.page is not None:
        running.say(NoticeName.PAGE, "the page is served", url=running.page.url)
    running.say(NoticeName.READY, "ready")
    catching_up = asyncio.create_task(running.say_when_caught_up())
    try:
        yield
    finally:
        catching_up.cancel()
        running.say(NoticeName.STOPPING, "stopping")


async def run(loaded: "Loaded", *, session_ids: Sequence[str], until_idle: bool, on_notice: Say) -> int:
    """Follow and deliver until a signal, or with `until_idle` until everything is delivered or in quarantine."""
    from exporter.core.notice import NoticeName
    from exporter.daemon.serving import first_of

    settings, ended = loaded.settings, Exit.DONE
    following = _following(settings, on_notice, session_ids=session_ids, first=_started(loaded))
    async with following as (running, stop), _telling(running):
        if until_idle:
            ended = Exit(await first_of(stop, running.daemon.until_idle()) or Exit.DONE)
        else:
            await stop.wait()
            await _linger(running, stop, settings)
    running.say(NoticeName.STOPPED, "stopped", **running.daemon.sums())
    return ended


async def _linger(running: "RunningExporter", stop: "Stop", settings: "Settings") -> None:
    from exporter.core.notice import NoticeName
    from exporter.daemon.linger import linger, open_sessions

    abandoned_seconds = settings.limits.abandoned_after_hours * 3600
    if settings.linger_seconds and not stop.is_by_person:
        count = sum(1 for _ in open_sessions(running.daemon, abandoned_seconds))
        text = "asked to stop; it follows until open sessions have ended"
        running.say(NoticeName.LINGERING, text, sessions=count, seconds=settings.linger_seconds)
        await linger(running.daemon, settings.linger_seconds, abandoned_seconds)


async def up(loaded: "Loaded", *, demo: bool, days: int, port: int | None, open_browser: bool, on_notice: Say) -> int:
    """Show this machine's sessions: start (or find) the embedded Mission Control, deliver the last days, follow."""
    import asyncio

    from exporter.core.names import leaving
    from exporter.daemon.control_socket import page_of_daemon
    from exporter.daemon.serving import open_in_browser
    from exporter.demo.history import HISTORY_DAYS, release, write_history
    from exporter.demo.replay import replay
    from exporter.wiring.sinks.registry import addresses, of_demo

    settings = msgspec.structs.replace(loaded.settings, history_days=max(days, HISTORY_DAYS) if demo else days)
    if demo:
        settings = of_demo(settings)
    facts = {"found_not_used": loaded.found_not_used, "leaves": leaving(addresses(settings))}
    state = Path(settings.state_dir)
    page = await page_of_daemon(state)
    if page is not None:
        on_notice({"ready": {**page, "attached": True, "demo": demo}})
        open_in_browser(page["url"] if open_browser else None)
        return Exit.DONE
    if demo:
        write_history(Path(str(settings.copilot_home)), datetime.now(UTC))
    async with _following(settings, on_notice, port=port, local=True) as (running, stop):
        playing = asyncio.create_task(replay(Path(str(settings.copilot_home)), speed=1.0)) if demo else None
        counts = await running.daemon.catch_up(_READY_SECONDS, stop, lambda report: on_notice({"progress": report}))
        on_notice({"ready": {**facts, **counts, "url": running.address(), "days": days, "demo": demo}})
        open_in_browser(running.address() if open_browser else None)
        await stop.wait()
        if playing is not None:
            playing.cancel()
            release(Path(str(settings.copilot_home)))
        return Exit.DONE


async def index(
    settings: "Settings", store: str, *, listen: tuple[str, int], token_file: str, directory: str | None
) -> int:
    """Run an index worker of the store on PostgreSQL at this address until a signal."""
    from exporter.daemon.serving import leave_no_core, stop_on_signals
    from exporter.missioncontrol.opening import token_in
    from exporter.wiring.index_worker import serving

    leave_no_core()
    token, stop = token_in(Path(token_file)), stop_on_signals()
    files = Path(directory) if directory else Path(settings.state_dir) / "index"
    async with serving(store, files, *listen, token=token) as address:
        print(address, flush=True)  # noqa: T201  the one result of this command
        await stop.wait()
    return Exit.DONE


async def serve(
    settings: "Settings",
    store: str,
    *,
    host: str,
    port: int,
    token_file: str | None,
    certificate: "Certificate | None",
    public_url: str | None,
    on_notice: Say,
) -> int:
    """Run the receiver and its page alone, on the store of this address, until a signal."""
    from exporter.daemon.serving import leave_no_core, stop_on_signals
    from exporter.missioncontrol.http.public import PublicUrl
    from exporter.missioncontrol.http.quota import Quota
    from exporter.missioncontrol.opening import serve_alone
    from exporter.missioncontrol.store.retention import Retention
    from exporter.wiring.event_views import make_trace, project

    leave_no_core()
    quota, public = settings.receiver.quota, public_url or settings.receiver.public_url
    settings = _masking(settings, token_file)
    await serve_alone(
        store,
        host=host,
        port=port,
        token_file=Path(token_file) if token_file else None,
        stop=stop_on_signals(),
        say=on_notice,
        certificate=certificate,
        public=PublicUrl.of(public) if public else None,
        make_trace=make_trace,
        project=project,
        retention=Retention.of(settings.limits.keep_days, settings.limits.keep_gb),
        floor_of=_floor_of(settings),
        audits=True,
        quota=Quota(quota.events_per_second, quota.bytes),
        workers=_workers(settings),
    )
    return Exit.DONE


def _masking(settings: "Settings", token_file: str | None) -> "Settings":
    """Return settings with which the receiver's own token is masked, as those are that the settings name."""
    if not token_file:
        return settings
    known = msgspec.structs.replace(settings.redaction, known_files=(*settings.redaction.known_files, token_file))
    return msgspec.structs.replace(settings, redaction=known)


def _workers(settings: "Settings") -> "IndexWorkers | None":
    """Return the index workers that the settings name."""
    from exporter.errors import UsageError
    from exporter.missioncontrol.opening import token_in
    from exporter.missioncontrol.search.remote import IndexWorkers

    urls, file = settings.receiver.index, settings.receiver.index_token_file
    if not urls:
        return None
    if file is None or not all(url.startswith(("http://", "https://")) for url in urls):
        hint = "give --index http://HOST:PORT and --index-token-file FILE, or set both in [receiver]"
        raise UsageError("An index worker has an address and a token.", hint=hint)
    return IndexWorkers(urls, token_in(Path(file), "--index-token-file"))


def _floor_of(settings: "Settings") -> "FloorOf":
    """Return what redacts, with a tenant's key, the events of clients that do not."""
    from exporter.missioncontrol.http.request_intake import Floor
    from exporter.wiring.redactor import make_floor

    make = make_floor(settings)

    def floor_of(key: bytes) -> Floor:
        redactors = make(key)
        return Floor(redactors.event, redactors.commands)

    return floor_of


async def ask(settings: "Settings", request: dict[str, Any], on_progress: Say) -> dict[str, Any]:
    """Answer a request: by the daemon if one runs, else in this process. Raises `ExporterError`."""
    import asyncio

    from exporter.daemon.control_socket import ask_daemon

    state = Path(settings.state_dir)
    answer = await ask_daemon(state, request, on_progress)
    if answer is None and request.get("do") == "status":
        from exporter.state.lock import refuse_vanished

        refuse_vanished(state)
        return _status_asleep(settings)
    end = time.monotonic() + _DAEMON_START_SECONDS
    while answer is None:
        try:
            return await _answer_here(settings, request, on_progress)
        except LockedError:  # a daemon that is about to answer, or one that ends
            if time.monotonic() > end:
                raise
        await asyncio.sleep(0.05)
        answer = await ask_daemon(state, request, on_progress)
    return answer


async def _answer_here(settings: "Settings", request: dict[str, Any], on_progress: Say) -> dict[str, Any]:
    from exporter.state.lock import owned
    from exporter.wiring.assembly import helpers_for

    with owned(Path(settings.state_dir)), ExitStack() as ending:
        redaction = make_redaction(settings)
        if request.get("do") == "backfill" and not settings.otel:  # a backfill of telemetry has helpers of its own
            redaction = redaction.helped()
        ending.callback(redaction.close)
        helpers = helpers_for(settings, request, redaction)
        running = build(settings, lambda _: None, redaction=redaction)
        try:
            running.daemon.start(deliver=False)
            return await running.answers(helpers).answer(request, on_progress)
        finally:
            await running.close()
            if helpers is not None:
                helpers.close()


def _status_asleep(settings: "Settings") -> dict[str, Any]:
    from exporter.core.names import otlp_name
    from exporter.daemon.offline_status import status_asleep
    from exporter.wiring.sinks.registry import addresses
    from exporter.wiring.sources import homes_in

    roots = homes_in(settings).roots()
    changed_after = time.time() - settings.history_days * 86_400
    history = {
        otlp_name(name, signal): one.history_days * 86_400.0
        for name, one in settings.otel.items()
        for signal in one.signals
    }
    status = status_asleep(
        roots, Path(settings.state_dir), addresses(settings), changed_after=changed_after, waits=_wait, history=history
    )
    return dict(msgspec.to_builtins(status))


def _wait(sums: bytes) -> bool:
    """Tell whether sums of metrics, as they are stored, hold something that was not sent."""
    from otel.machines.metrics.aggregate import Aggregate

    loaded = Aggregate.load(sums)
    return loaded is None or loaded.waits


async def doctor(loaded: "Loaded", *, schema: bool, bundle: Path | None) -> dict[str, Any]:
    """Check everything there is to check; see `exporter/doctor`. Starts nothing and changes nothing."""
    import asyncio

    from exporter.daemon.control_socket import ask_daemon
    from exporter.doctor.doctor import doctor as examine
    from exporter.wiring.doctor_facts import facts_of
    from exporter.wiring.redactor import make_redaction

    status = None
    with suppress(OSError, TimeoutError, ExporterError):  # a daemon that does not answer is what the checks find out
        async with asyncio.timeout(_STATUS_SECONDS):
            status = await ask_daemon(Path(loaded.settings.state_dir), {"do": "status"}, lambda _: None)
    mask = make_redaction(loaded.settings, with_key=False).text
    return await examine(facts_of(loaded, status, mask), schema=schema, bundle=bundle)


async def daemon_pid(settings: "Settings") -> int:
    """Return the process that follows for this state directory, 0 when none answers."""
    import asyncio

    from exporter.daemon.control_socket import ask_daemon

    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_STATUS_SECONDS):
            answer = await ask_daemon(Path(settings.state_dir), {"do": "status"}, lambda _: None)
            return int(answer["daemon"]["pid"]) if answer is not None else 0
    return 0


def backup(settings: "Settings", target: Path, store: str | None) -> dict[str, Any]:
    """Copy the state directory, or the store of a receiver, to a new directory; a running program need not stop."""
    from exporter.missioncontrol.store.opening import file_of
    from exporter.state.backup import back_up, back_up_store
    from exporter.version import VERSION

    if store is not None:
        manifest = back_up_store(file_of(store), target, VERSION)
    else:
        manifest = back_up(Path(settings.state_dir), target, VERSION)
    return {"backup": str(target), **manifest}


def restore(settings: "Settings", source: Path, store: str | None) -> dict[str, Any]:
    """Put a backup in the place of the state directory, or of the store of a receiver, which is moved aside."""
    from exporter.core.names import MARKS, QUARANTINE, RECEIVER
    from exporter.missioncontrol.store.opening import SQLITE_SCHEMA, file_of
    from exporter.state import marks, quarantine
    from exporter.state.backup import put_back, put_back_store, read_manifest
    from exporter.state.lock import owned

    newest = {MARKS: marks.SCHEMA.version, QUARANTINE: quarantine.SCHEMA.version, RECEIVER: SQLITE_SCHEMA}
    manifest, state = read_manifest(source, newest), Path(settings.state_dir)
    if store is not None:
        path = file_of(store)
        aside = put_back_store(source, path)
        return {**manifest, "restored": str(path), "aside": str(aside) if aside else None}
    with owned(state):
        aside = put_back(source, manifest, state)
    return {**manifest, "restored": str(state), "aside": str(aside) if aside else None}


def mask(settings: "Settings", source: IO[bytes], *, name: str, format: "Format | None") -> "Iterator[Outcome]":
    """Yield what becomes of an input, piece by piece; leaves nothing on this machine."""
    from exporter.wiring.redact_commands import mask_given
    from exporter.wiring.redactor import make_redactor_for_reading

    redactor = make_redactor_for_reading(settings)
    budget_ms, line_bytes_max = settings.redaction.budget_ms, settings.limits.max_line_bytes
    return mask_given(redactor, source, format=format, name=name, budget_ms=budget_ms, line_bytes_max=line_bytes_max)


def preview(settings: "Settings", session_id: str) -> "AsyncIterator[PreviewFinding | Withheld | int]":
    """Yield what would be masked in a session; delivers and remembers nothing."""
    from exporter.sources.journals import session_file
    from exporter.wiring.redact_commands import preview as preview_of
    from exporter.wiring.redactor import make_redactor_for_reading
    from exporter.wiring.sources import homes_in

    file = session_file(homes_in(settings).roots(), Path(settings.state_dir), session_id)
    budget_ms, line_bytes_max = settings.redaction.budget_ms, settings.limits.max_line_bytes
    redactor = make_redactor_for_reading(settings)
    return preview_of(redactor, file, budget_ms=budget_ms, line_bytes_max=line_bytes_max)


def rules(settings: "Settings") -> dict[str, Any]:
    """Return what searches, every rule that is in force, the user's own too, and the packs they come from."""
    from exporter.wiring.redact_commands import described
    from exporter.wiring.redactor import make_engine

    return described(make_engine(settings, None), settings.redaction.extra_rules)


def masked(settings: "Settings") -> "RedactionCounts":
    """Return what was masked so far, as it was counted; starts, makes and changes nothing."""
    from exporter.core.names import MARKS, RECEIVER
    from exporter.state.redaction_counts import read_masked

    state = Path(settings.state_dir)
    return read_masked(state / MARKS, state / RECEIVER)


def tail(settings: "Settings", session_id: str, *, follow: bool) -> AsyncIterator[bytes]:
    """Yield a session's events, redacted; with `follow` go on until cancelled."""
    from exporter.daemon.tail import tail as tail_of
    from exporter.sources.journals import session_file
    from exporter.wiring.sources import homes_in

    file = session_file(homes_in(settings).roots(), Path(settings.state_dir), session_id)
    return tail_of(file, make_redaction(settings), follow=follow, line_bytes_max=settings.limits.max_line_bytes)
