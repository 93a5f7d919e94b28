"""What a daemon answers to a request of the command line, over the control socket or in the same process."""

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from exporter.core.backfill import Unknown, chosen
from exporter.core.envelope import Envelope, decode
from exporter.core.position import START
from exporter.core.redacted import Masked, RedactEvent, Refused
from exporter.core.segment import Unsendable
from exporter.daemon.daemon import Daemon
from exporter.daemon.lane import Lane
from exporter.daemon.overview import session_object
from exporter.daemon.sink_run import SinkRun
from exporter.daemon.status_of import iso, status_of
from exporter.daemon.verify import verify
from exporter.errors import Exit, UsageError
from exporter.sources.session_file import SessionFile
from exporter.status import BackfillRow
from exporter.store.quarantine import Quarantined

Progress = Callable[[dict[str, Any]], None]


class Answers:
    """Answers requests; each is a mapping with `do`, as the control socket carries it."""

    def __init__(
        self,
        daemon: Daemon,
        redact: RedactEvent,
        redact_text: Callable[[str], str],
        *,
        line_bytes_max: int,
        host: str | None,
        url: Callable[[], str | None],
    ) -> None:
        self._daemon = daemon
        self._redact = redact
        self._redact_text = redact_text
        self._line_bytes_max = line_bytes_max
        self._host = host
        self._url = url

    async def answer(self, request: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        """Carry a request out and return its result; raises `ExporterError`."""
        match request.get("do"):
            case "status":
                return dict(msgspec.to_builtins(status_of(self._daemon)))
            case "sessions":
                return {"sessions": [self._described(file) for file in self._files()], "next": None}
            case "session":
                return self._session(str(request.get("session")))
            case "backfill":
                return await self._backfill(request, progress)
            case "verify":
                return await self._verify(request, progress)
            case "quarantine_list":
                entries = self._daemon.quarantine.entries()
                return {"quarantined": [self._entry(entry) for entry in entries], "next": None}
            case "quarantine_show":
                return self._show(int(request["number"]))
            case "quarantine_replay":
                return await self._replay([int(number) for number in request["numbers"]])
            case "quarantine_drop":
                return self._drop([int(number) for number in request["numbers"]])
            case "url":
                return {"url": self._url()}
            case unknown:
                raise UsageError(f"this exporter cannot do {unknown!r}", hint="are both of the same version?")

    # ---- sessions -------------------------------------------------------------------------------------------

    def _files(self) -> list[SessionFile]:
        return [file for file in self._daemon.source.sessions.values() if file.identity is not None]

    def _described(self, file: SessionFile) -> dict[str, Any]:
        described = session_object(file.directory, self._redact_text, self._line_bytes_max, self._host) or {
            "id": file.session,
            "events": 0,
        }
        sinks = []
        for run in self._daemon.runs:
            lane = run.lanes.get(file.session)
            mark = lane.mark if lane else run.outlet.store.mark(file.session, run.outlet.sink_id)
            masked = run.outlet.store.masked_in_all(file.session, run.outlet.sink_id)
            described["masked"] = max(int(described.get("masked") or 0), masked)
            delivered = mark.delivered if mark else 0
            lag = max(0, int(described["events"]) - delivered)
            sinks.append({"name": run.name, "delivered": delivered, "lag_events": lag})
        return {**described, "sinks": sinks}

    def _session(self, session: str) -> dict[str, Any]:
        file = self._daemon.source.sessions.get(session)
        if file is None or file.identity is None:
            raise UsageError(f"there is no session {session}", hint="see `exporter sessions list`")
        return self._described(file)

    # ---- backfill and verify --------------------------------------------------------------------------------

    def _chosen(self, request: Mapping[str, Any]) -> list[SessionFile]:
        files = {file.session: file for file in self._files()}
        since = request.get("since")
        plan = chosen(
            {session: file.modified for session, file in files.items()},
            named=request.get("sessions"),
            since=datetime.fromisoformat(str(since)).timestamp() if since else None,
        )
        if isinstance(plan, Unknown):
            raise UsageError(f"there is no session {plan.session}", hint="see `exporter sessions list`")
        return [files[session] for session in plan]

    def _runs(self, names: Iterable[str] | None) -> list[SinkRun]:
        wanted = set(names or ())
        known = {run.name for run in self._daemon.runs}
        if wanted - known:
            raise UsageError(
                f"there is no sink {sorted(wanted - known)[0]}", hint=f"known sinks: {', '.join(sorted(known))}"
            )
        return [run for run in self._daemon.runs if not wanted or run.name in wanted]

    async def _backfill(self, request: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        chosen = [(run, file) for run in self._runs(request.get("sinks")) for file in self._chosen(request)]
        from_start = bool(request.get("from_start"))
        if request.get("dry_run"):
            rows = [await self._would_send(run, file, from_start) for run, file in chosen]
            return {"sessions": msgspec.to_builtins(rows), "exit": int(Exit.DONE)}
        lanes = [(run, self._daemon.lane(run, file)) for run, file in chosen]
        before = {id(lane): (lane.progress.events, lane.progress.bytes, lane.progress.masked) for _, lane in lanes}
        total = sum(lane.file.size for _, lane in lanes)
        for run, lane in lanes:
            if from_start:
                lane.start_over()
            run.ask(lane)
        ticker = _Ticker(progress)

        def watched() -> list[tuple[SinkRun, Lane]]:
            ticker.tell([lane for _, lane in lanes], before, total)
            return lanes

        ended = await self._daemon.until_idle(watched)
        rows = [
            BackfillRow(
                lane.file.session,
                run.name,
                lane.progress.events - before[id(lane)][0],
                lane.progress.bytes - before[id(lane)][1],
                lane.progress.masked - before[id(lane)][2],
                _state(run, lane),
            )
            for run, lane in lanes
        ]
        return {"sessions": msgspec.to_builtins(rows), "exit": int(ended)}

    async def _would_send(self, run: SinkRun, file: SessionFile, from_start: bool) -> BackfillRow:
        """Read what a backfill would send, redact it, and throw it away."""
        outlet = run.outlet
        skip = {} if from_start else outlet.store.delivered(file.session, outlet.sink_id)
        events = size = masked = 0
        position = START
        while (segment := await outlet.road.segment(file, position, None, skip=skip)) is not None:
            events, size = events + len(segment.ids), size + segment.size
            masked += sum(segment.masked.values())
            position = segment.end
        return BackfillRow(file.session, run.name, events, size, masked, "would send" if events else "nothing to send")

    async def _verify(self, request: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        repair = bool(request.get("repair"))
        chosen = [(run, file) for run in self._daemon.runs for file in self._chosen(request)]
        rows, repaired = [], []
        for number, (run, file) in enumerate(chosen):
            lane = run.lanes.get(file.session) or self._daemon.lane(run, file)
            row = await verify(lane, repair=repair)
            rows.append(row)
            if repair and not row.equal:
                run.ask(lane)
                repaired.append((run, lane))
            progress({"sessions": len(chosen), "sessions_done": number + 1, "events": row.file})
        if repaired:
            await self._daemon.until_idle(lambda: repaired)
            again = {(run.name, lane.file.session): await verify(lane, repair=False) for run, lane in repaired}
            rows = [again.get((row.sink, row.session), row) for row in rows]
        differ = any(not row.equal for row in rows)
        return {"sessions": msgspec.to_builtins(rows), "exit": int(Exit.FINDINGS if differ else Exit.DONE)}

    # ---- quarantine -----------------------------------------------------------------------------------------

    def _entry(self, entry: Quarantined) -> dict[str, Any]:
        return {
            "n": entry.number,
            "session": entry.session,
            "event": entry.event,
            "offset": entry.offset,
            "size": entry.size,
            "sink": entry.sink,
            "reason": entry.reason,
            "detail": entry.detail,
            "since": iso(entry.since),
        }

    def _show(self, number: int) -> dict[str, Any]:
        [entry] = self._entries([number])
        text = self._presentable(entry.raw)
        return {**self._entry(entry), "text": text.decode() if text is not None else None}

    def _presentable(self, raw: bytes) -> bytes | None:
        """Return the event as it may be shown, None unless the redactor vouches for it."""
        shown = self._redact(raw)
        if isinstance(shown, Refused):
            return None
        return shown.line if isinstance(shown, Masked) else shown

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
        envelope = decode(entry.raw)
        if not isinstance(envelope, Envelope):
            return envelope.reason
        line = self._presentable(entry.raw)
        if line is None:
            return "the redactor refuses it still"
        file = self._daemon.source.sessions.get(entry.session)
        for run in self._runs([entry.sink] if entry.sink else None):
            lane = run.lanes.get(entry.session) or (self._daemon.lane(run, file) if file else None)
            if lane is None:
                return "its session is gone"
            what = Unsendable(entry.offset, line, len(line), entry.reason, envelope.id)
            refused = await lane.send_one(what)
            if refused is not None:
                return refused
        return None

    def _drop(self, numbers: list[int]) -> dict[str, Any]:
        self._entries(numbers)
        self._daemon.quarantine.drop(numbers)
        return {"done": numbers, "left": [], "exit": int(Exit.DONE)}


class _Ticker:
    """Tells progress a few times a second."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._next = 0.0

    def tell(self, lanes: list[Lane], before: Mapping[int, tuple[int, int, int]], total: int) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + 0.2
        done = [(lane, before[id(lane)]) for lane in lanes]
        self._progress(
            {
                "sessions": len({lane.file.session for lane in lanes}),
                "sessions_done": sum(1 for lane in lanes if lane.settled),
                "events": sum(lane.progress.events - start[0] for lane, start in done),
                "bytes": sum(min(lane.position.offset, lane.file.size) for lane in lanes),
                "bytes_total": total,
                "masked": sum(lane.progress.masked - start[2] for lane, start in done),
            }
        )


def _state(run: SinkRun, lane: Lane) -> str:
    if lane.stopped:
        return "deleted there; --from-start sends it again"
    if lane.settled:
        return "delivered"
    return "refused" if run.outlet.gate.closed else "waiting"
