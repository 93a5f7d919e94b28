"""The answers to requests of the command line, over the control socket or in the same process."""

import mmap
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from exporter.core.delivery.backfill_plan import Unknown, chosen
from exporter.core.delivery.position import DELETED_THERE, FOREIGN_THERE
from exporter.core.delivery.segment import Unsendable
from exporter.core.delivery.verdict import Later, Verdict
from exporter.core.events.envelope import Envelope, decode, is_utf8
from exporter.core.events.redaction import Redacted, line_of
from exporter.core.names import leaving, names_of
from exporter.daemon.backfill import Backfill, Progress, history_notes, off_notes, would_send
from exporter.daemon.offline_status import confirmations, iso
from exporter.daemon.status_report import described, events_after, status_of
from exporter.daemon.verify import ended, verify
from exporter.daemon.verify_source import verify_source
from exporter.errors import Exit, UsageError
from exporter.pipeline.lane import Lane
from exporter.pipeline.sink_session import refusal
from exporter.pipeline.sink_workers import SinkWorkers
from exporter.sources.files.session_file import SessionFile, open_inside
from exporter.state.quarantine import Quarantined
from exporter.status import DELETED, DIFFERENT, FOREIGN

if TYPE_CHECKING:
    from exporter.daemon.backfill import Helpers
    from exporter.daemon.running import RunningExporter

_STOPPED: Final = {DELETED_THERE: DELETED, FOREIGN_THERE: FOREIGN}
_ENTRY_NAMES: Final = ("session", "event", "offset", "size", "sink", "reason", "detail")


class ControlRequests:
    """Answers requests; each is a mapping with `do`, as the control socket carries it."""

    def __init__(self, running: "RunningExporter", helpers: "Helpers | None" = None) -> None:
        self._running = running
        self._daemon = running.daemon
        self._helpers = helpers

    async def answer(self, request: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        """Carry a request out and return its result; raises `ExporterError`."""
        match request.get("do"):
            case "status":
                return dict(msgspec.to_builtins(status_of(self._daemon)))
            case "sessions":
                return {"sessions": [self._described(file) for file in self._files().values()], "next": None}
            case "session":
                return self._session(str(request.get("session")))
            case "backfill":
                return await self._backfill(request, progress)
            case "verify":
                return await self._verify(request, progress)
            case "verify_source":
                return await self._verify_source(request)
            case "archive_forget":
                return await self._forget(str(request["session"]), request.get("sinks"))
            case "quarantine_list" | "quarantine_show" | "quarantine_replay" | "quarantine_drop":
                return await self._quarantine(request)
            case "url":
                return self._url()
            case unknown:
                raise UsageError(f"this exporter cannot do {unknown!r}", hint="are both of the same version?")

    def _url(self) -> dict[str, Any]:
        """Return the page's address and what `up` tells of an exporter that runs already, the fields of `ready`."""
        daemon = self._daemon
        days = None if daemon.scope.sessions else daemon.scope.history_days
        leaves = leaving({run.name: run.sink_state.sink.url for run in daemon.runs})
        return {"url": self._running.address(), **daemon.counts(), "days": days, "leaves": leaves}

    # ---- sessions -------------------------------------------------------------------------------------------

    def _files(self) -> dict[str, SessionFile]:
        return {session: file for session, file in self._daemon.files.items() if file.identity is not None}

    def _described(self, file: SessionFile) -> dict[str, Any]:
        session = described(file, self._running)
        sinks = []
        for run in self._daemon.runs:
            lane = run.lanes.get(file.session)
            mark = lane.mark if lane else run.sink_state.store.mark(file.session, run.sink_state.sink_id)
            masked = run.sink_state.store.masked_in_all(file.session, run.sink_state.sink_id)
            session["masked"] = max(int(session.get("masked") or 0), masked)
            delivered = mark.delivered if mark else 0
            kept = len(run.sink_state.quarantine.ids(file.session, run.name))
            lag = max(0, int(session["events"]) - delivered - kept)
            if not run.sink_state.feed.holds_events or file.is_journal:  # whose front may be cut off
                lag = events_after(file, lane.position.offset if lane else mark.position.offset if mark else 0)
            stopped = _STOPPED.get(mark.state) if mark is not None else None
            unconfirmed, confirmed_at = confirmations([mark] if mark is not None else [])
            sink = {"name": run.name, "delivered": delivered, "lag_events": 0 if stopped else lag}
            sink |= {"unconfirmed": unconfirmed, "confirmed_at": confirmed_at}
            sinks.append({**sink, "state": stopped} if stopped else sink)
        return {**session, "sinks": sinks}

    def _session(self, session: str) -> dict[str, Any]:
        file = self._files().get(session)
        if file is None:
            raise UsageError(f"there is no session {session}", hint="see `exporter sessions list`")
        return self._described(file)

    # ---- backfill and verify --------------------------------------------------------------------------------

    def _chosen(self, request: Mapping[str, Any]) -> list[SessionFile]:
        files, since = self._files(), request.get("since")
        modified = {session: file.modified for session, file in files.items()}
        after = datetime.fromisoformat(str(since)).timestamp() if since else None
        plan = chosen(modified, named=request.get("sessions"), since=after)
        if isinstance(plan, Unknown):
            raise UsageError(f"there is no session {plan.session}", hint="see `exporter sessions list`")
        return [files[session] for session in plan]

    def _runs(self, names: Iterable[str] | None) -> list[SinkWorkers]:
        """Return the sinks of these names; that of an OTLP endpoint stands for all its signals."""
        wanted = set(names or ())
        named = {run: names_of(run.name) for run in self._daemon.runs}
        known = {name for some in named.values() for name in some}
        if wanted - known:
            hint = f"known sinks: {', '.join(sorted(known))}"
            raise UsageError(f"there is no sink {sorted(wanted - known)[0]}", hint=hint)
        return [run for run in self._daemon.runs if not wanted or named[run] & wanted]

    async def _backfill(self, request: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        chosen = [(run, file) for run in self._runs(request.get("sinks")) for file in self._chosen(request)]
        # A request with a run is that of a helper, one session long: all of them have been told of.
        notes = [] if "run" in request else await history_notes(chosen, asks=not request.get("dry_run"))
        if notes:
            progress({"notes": notes})
        if request.get("dry_run"):
            from_start, end = bool(request.get("from_start")), Exit.DONE
            rows = [await would_send(run, file, from_start=from_start) for run, file in chosen]
        else:
            rows, end = await Backfill(self._daemon, chosen, request, self._helpers).deliver(progress)
        told = {"notes": notes, "off": off_notes(chosen)}
        return {"sessions": msgspec.to_builtins(rows), "exit": int(end)} | {k: v for k, v in told.items() if v}

    async def _verify(self, request: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        repair = bool(request.get("repair"))
        asked = [run for run in self._daemon.runs if not run.sink_state.sink.unproved]
        chosen = [(run, file) for run in asked for file in self._chosen(request)]
        lanes = [(run, lane) for run, file in chosen if (lane := run.lanes.get(file.session)) and lane.gathers]
        if lanes:  # what would be sent within a minute is no difference
            await self._daemon.until_idle(lambda: lanes)
        rows, repaired, silent = [], [], dict[str, Verdict]()
        for number, (run, file) in enumerate(chosen):
            lane = run.lanes.get(file.session) or self._daemon.lane(run, file)
            row = await verify(lane, silent, repair=repair)
            rows.append(row)
            learns = row.verdict == DELETED and not lane.stopped and lane.doubt()
            if learns or (repair and row.verdict == DIFFERENT):
                run.ask(lane)
                repaired.append((run, lane))
            progress({"sessions": len(chosen), "sessions_done": number + 1, "events": row.file})
        if repaired:
            await self._daemon.until_idle(lambda: repaired)
            silent.clear()
            again = {(run.name, lane.file.session): await verify(lane, silent, repair=False) for run, lane in repaired}
            rows = [again.get((row.sink, row.session), row) for row in rows]
        named = bool(request.get("sessions"))
        end = ended(rows, named=named) if asked or not self._chosen(request) else Exit.PARTIAL
        return {"sessions": msgspec.to_builtins(rows), "exit": int(end)}

    async def _verify_source(self, request: Mapping[str, Any]) -> dict[str, Any]:
        named, wake = request.get("sessions"), bool(request.get("wake"))
        rows, end = await verify_source(self._running, self._daemon.observing, named, wake=wake)
        return {"sessions": msgspec.to_builtins(rows), "exit": int(end)}

    async def _forget(self, session: str, sinks: Iterable[str] | None) -> dict[str, Any]:
        """Delete a session in the archives, and make its lanes find that out."""
        forgotten: list[dict[str, Any]] = []
        doubted, end = [], Exit.DONE
        for run in self._runs(sinks):
            answer = await run.sink_state.sink.forget(session)
            if isinstance(answer, int):
                forgotten.append({"sink": run.name, "deleted": answer, "why": None})
                file = self._daemon.files.get(session)
                if file is not None and (lane := self._daemon.lane(run, file)).doubt():
                    run.ask(lane)
                    doubted.append((run, lane))
            elif isinstance(answer, Later):
                forgotten.append({"sink": run.name, "deleted": 0, "why": answer.reason})
                end = Exit.UNREACHABLE
        if not forgotten:
            raise UsageError(f"no archive has a session {session}", hint="give the whole id of a session")
        if doubted:
            await self._daemon.until_idle(lambda: doubted)
        return {"session": session, "archives": forgotten, "exit": int(end)}

    # ---- quarantine -----------------------------------------------------------------------------------------

    async def _quarantine(self, request: Mapping[str, Any]) -> dict[str, Any]:
        match request["do"]:
            case "quarantine_show":
                return self._show(int(request["number"]))
            case "quarantine_replay":
                return await self._replay([int(number) for number in request["numbers"]])
            case "quarantine_drop":
                return self._drop([int(number) for number in request["numbers"]])
            case _:
                return {"quarantined": [_entry(entry) for entry in self._daemon.quarantine.entries()], "next": None}

    def _show(self, number: int) -> dict[str, Any]:
        [entry] = self._entries([number])
        text = line_of(self._redacted(entry))
        readable = text is not None and is_utf8(text)  # a record of a telemetry sink is no text
        return {**_entry(entry), "text": text.decode() if text is not None and readable else None}

    def _redacted(self, entry: Quarantined) -> Redacted:
        """Return an entry as it may leave, with what came before it in its session in mind."""
        file = self._daemon.files.get(entry.session)
        # What a source sent is not in its journal.
        offset = file.size if file is not None and file.is_journal else entry.offset
        return self._daemon.reader.redacted(file, offset, entry.raw)

    def _entries(self, numbers: list[int]) -> list[Quarantined]:
        entries = self._daemon.quarantine.entries(numbers=numbers)
        missing = sorted(set(numbers) - {entry.number for entry in entries})
        if missing:
            raise UsageError(f"there is no number {missing[0]} in quarantine", hint="see `exporter quarantine list`")
        return entries

    async def _replay(self, numbers: list[int]) -> dict[str, Any]:
        done: list[int] = []
        left: list[dict[str, Any]] = []
        for entry in self._entries(numbers):
            reason = await self._replay_one(entry)
            if reason is None:
                self._daemon.quarantine.drop([entry.number])
                done.append(entry.number)
            else:
                left.append({"n": entry.number, "reason": reason})
        return {"done": done, "left": left, "exit": int(Exit.PARTIAL if left else Exit.DONE)}

    async def _replay_one(self, entry: Quarantined) -> str | None:
        """Try to deliver one quarantined event; return why it stays, None when every sink has it now."""
        if len(entry.raw) != entry.size:
            return "only its beginning was kept"
        file = self._daemon.files.get(entry.session)
        run = self._runs([entry.sink])[0] if entry.sink else None
        if run is not None and not run.sink_state.feed.holds_events:  # what is kept is a record, not the event
            return await _replay_records(run, self._daemon.lane(run, file) if file is not None else None, entry)
        envelope, shown = decode(entry.raw), line_of(self._redacted(entry))
        if not isinstance(envelope, Envelope):
            return envelope.reason
        if shown is None:
            return "the redactor refuses it still"
        if file is None:
            return "its session is gone"
        event = Unsendable(entry.offset, shown, len(shown), entry.reason, envelope.id)
        if run is not None:
            return await self._daemon.lane(run, file).send_one(event)
        return await self._replay_for_all(file, entry, event)

    async def _replay_for_all(self, file: SessionFile, entry: Quarantined, event: Unsendable) -> str | None:
        """Give an event that no sink has to all of them; return why one lacks it, None when all have it.

        A sink of events is sent the event. To telemetry an event is worth what comes before and after it, so an OTLP
        endpoint gets its session read once more, with the event in its place, and is sent what it lacks.
        """
        mapped = []
        for run in self._daemon.runs:
            if run.sink_state.feed.holds_events:
                refused = await self._daemon.lane(run, file).send_one(event)
                if refused is not None:
                    return refused
            elif run.lanes.get(file.session) or run.sink_state.store.mark(file.session, run.sink_state.sink_id):
                mapped.append((run, self._daemon.lane(run, file)))
        if not mapped:
            return None
        if not _holds(file.path, entry.raw, event.raw):
            return f"its session's {'journal' if file.is_journal else 'file'} does not hold it"
        return await self._read_again(mapped, event)

    async def _read_again(self, lanes: Sequence[tuple[SinkWorkers, Lane]], event: Unsendable) -> str | None:
        """Send sinks what they lack of a session now that the redactor accepts an event of it."""
        assert event.id is not None
        lanes[0][1].file.rewritten(self._daemon.reader.files)  # what is kept in memory was made without the event
        try:
            for run, lane in lanes:
                run.sink_state.released.add(event.id)
                await lane.repair([])
                run.ask(lane)
            end = await self._daemon.until_idle(lambda: lanes)
        finally:
            for run, _ in lanes:
                run.sink_state.released.discard(event.id)
        if end in (Exit.DONE, Exit.PARTIAL):  # in part, because the entry is in quarantine still
            troubles = (lane.progress.problem for _, lane in lanes)
        else:
            troubles = (run.sink_state.last_error for run, _ in lanes)
        return next((one for one in troubles if one), None)

    def _drop(self, numbers: list[int]) -> dict[str, Any]:
        self._entries(numbers)
        self._daemon.quarantine.drop(numbers)
        return {"done": numbers, "left": [], "exit": int(Exit.DONE)}


def _entry(entry: Quarantined) -> dict[str, Any]:
    facts = {name: getattr(entry, name) for name in _ENTRY_NAMES}
    return {"n": entry.number, **facts, "since": iso(entry.since)}


async def _replay_records(run: SinkWorkers, lane: Lane | None, entry: Quarantined) -> str | None:
    """Send what was made of events to the endpoint that refused it; return why it has it not, None when it has."""
    if lane is not None and entry.event is not None:
        return await lane.send_one(Unsendable(entry.offset, entry.raw, len(entry.raw), entry.reason, entry.event))
    sink_state = run.sink_state
    mark = sink_state.store.mark(entry.session, sink_state.sink_id)
    stream = sink_state.feed.stream(entry.session, mark)
    if stream is None:
        return "its session is gone"
    return refusal(await sink_state.sink.send(stream, [entry.event or ""], [entry.raw]))


def _holds(path: Path, *forms: bytes) -> bool:
    """Tell whether a file holds an event in one of these forms: a journal has it as it was redacted."""
    try:
        with open(path, "rb", opener=open_inside) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:
            return any(held.find(form) >= 0 for form in forms)
    except (OSError, ValueError):  # ValueError: it is empty
        return False
