"""Group `deliveries`: what a Mission Control is sent of every capture, in order per session, and the marks after it."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from tests.golden.captures import Capture
from tests.golden.databases import dump_state, pin_store
from tests.golden.machine import Machine, Work, toml_table
from tests.golden.recorders import Answer, Exchange, Recorder, floor, proxy
from tests.golden.store import Goldens

GROUP, MARKS = "deliveries", "marks"
TOKEN: Final = "golden-token-of-the-comparison"
Refuse = Callable[[str, bytes], Answer | None]
_KIND: Final = {"content-type": "application/json"}


@contextmanager
def receiver(machine: Machine, wire: str, refuse: Refuse | None = None) -> Iterator[Recorder]:
    """A recording Mission Control of this wire, whose address is in the machine's settings."""
    port, upstream = machine.work.port + 1, machine.work.port + 2
    table = {"url": f"http://127.0.0.1:{port}/agents", "token": TOKEN}
    machine.configure(toml_table("mission_control", table))
    if wire == "floor":
        with floor(port, refuse=refuse) as recorder:
            yield recorder
        return
    store = machine.root / "team.db"
    if not store.exists():
        with machine.serving(store, upstream):
            pass
        pin_store(store)
    with machine.serving(store, upstream), proxy(port, upstream, refuse=refuse) as recorder:
        yield recorder


def write_deliveries(goldens: Goldens, work: Work, captures: Sequence[Capture]) -> None:
    """Keep the requests of a first delivery, of one after rewinds and additions, and of what follows refusals."""
    for wire in ("floor", "negotiated"):
        for command in (("run", "--until-idle"), ("backfill", "--all")):
            _deliver(goldens, work, captures, wire, command)
        for fault in FAULTS:
            _deliver_in_trouble(goldens, work, captures, wire, fault)
    _report(goldens, work, captures)


def _deliver(goldens: Goldens, work: Work, captures: Sequence[Capture], wire: str, command: tuple[str, ...]) -> None:
    machine = Machine(work, "delivering")
    machine.add(captures)
    case = f"{wire}/{command[0]}"
    with receiver(machine, wire) as recorder:
        done = machine.exporter(*command)
        _keep(goldens, f"{case}/first", captures, recorder.clear(), done.code)
        again = machine.exporter(*command)
        _keep(goldens, f"{case}/again", captures, recorder.clear(), again.code)
        for number, capture in enumerate(captures):
            machine.write_session(capture.id, _changed(capture, number), age=5)
        changed = machine.exporter(*command)
        _keep(goldens, f"{case}/changed", captures, recorder.clear(), changed.code)
        verified = machine.exporter("verify", "--all", "--json")
        goldens.put(GROUP, f"{case}/verify", b"%d\n%s" % (verified.code, verified.out))
        recorder.clear()
    for name, content in dump_state(machine.state):
        goldens.put(MARKS, f"{case}/{name}", content)


def _changed(capture: Capture, number: int) -> bytes:
    """A capture as it may go on: rewound, grown, rewound and grown, or begun anew."""
    lines = capture.lines()
    kept = lines if number % 4 == 1 else lines[: len(lines) * 2 // 3]
    added = [
        json.dumps({"type": "user.message", "data": {"content": f"added {one}"}, "id": f"{number}-added-{one}",
                    "timestamp": "2026-11-19T11:00:00.000Z", "parentId": None}).encode()
        for one in range(0 if number % 4 == 0 else 3)
    ]  # fmt: skip
    if number % 4 == 3:
        kept = kept[len(kept) // 2 :]
    return b"".join(line + b"\n" for line in (*kept, *added))


class _Fault:
    """Refuses events POSTs by count, or by what is in them."""

    def __init__(self, statuses: Sequence[int | None], *, culprit: int = 0) -> None:
        self._statuses, self._culprit = list(statuses), culprit

    def __call__(self, session: str, body: bytes) -> Answer | None:
        if self._culprit and b"culprit" in body:
            return Answer(self._culprit, _KIND, b'{"error":"bad event"}')
        status = self._statuses.pop(0) if self._statuses else None
        return Answer(status, _KIND, b"") if status is not None else None


FAULTS: Final[dict[str, Callable[[], _Fault]]] = {
    "400-one-event": lambda: _Fault([], culprit=400),
    "422-one-event": lambda: _Fault([], culprit=422),
    "413-one-event": lambda: _Fault([], culprit=413),
    "413-first": lambda: _Fault([413]),
    "503-first": lambda: _Fault([503]),
    "429-later": lambda: _Fault([None, 429]),
    "400-first": lambda: _Fault([400]),
    "404-first": lambda: _Fault([404]),
    "409-first": lambda: _Fault([409]),
    "410-first": lambda: _Fault([410]),
    "415-first": lambda: _Fault([415]),
    "302-first": lambda: _Fault([302]),
    "401": lambda: _Fault([401]),
    "500-always": lambda: _Fault([500] * 1000),
}


def _deliver_in_trouble(goldens: Goldens, work: Work, captures: Sequence[Capture], wire: str, fault: str) -> None:
    capture = max(captures[:10], key=lambda one: len(one.content))
    lines = capture.lines()
    culprit = json.dumps({"type": "user.message", "data": {"content": "culprit"}, "id": "the-culprit",
                          "timestamp": "2026-11-19T11:00:00.000Z", "parentId": None}).encode()  # fmt: skip
    lines.insert(len(lines) // 2, culprit)
    machine = Machine(work, "refused")
    machine.write_session(capture.id, b"".join(line + b"\n" for line in lines), age=100)
    case = f"{wire}/fault-{fault}"
    with receiver(machine, wire, FAULTS[fault]()) as recorder:
        done = machine.exporter("run", "--until-idle")
        taken = recorder.clear()
        if fault == "500-always":  # how often it tries in its five seconds is chance
            taken = taken[:2]
        goldens.put(GROUP, case, b"%d\n" % done.code + b"".join(one.written() for one in taken if not _is_report(one)))
    for name, content in dump_state(machine.state):
        goldens.put(MARKS, f"{case}/{name}", content)


def _report(goldens: Goldens, work: Work, captures: Sequence[Capture]) -> None:
    """Keep the last report of every session, and of the exporter, of a daemon that has come to rest."""
    machine = Machine(work, "reporting")
    machine.add(captures)
    with receiver(machine, "negotiated") as recorder:
        with machine.running("run"):
            _wait_for_rest(recorder)
        taken = recorder.clear()
    last = {one.path: one for one in taken if _is_report(one)}
    for path, exchange in sorted(last.items()):
        body = json.loads(exchange.body)
        body.pop("behind", None)
        for sink in body.get("sinks", ()):
            sink["lag_seconds"] = sink["lag_events"] = None
        goldens.put(GROUP, f"reports{path}", exchange.method.encode() + json.dumps(body, sort_keys=True).encode())


def _wait_for_rest(recorder: Recorder) -> None:
    """Return once reports have come, and nothing else for three seconds."""
    end, count, since = time.monotonic() + 60, 0, time.monotonic()
    while time.monotonic() < end:
        time.sleep(0.1)
        if len(recorder.taken) != count:
            count, since = len(recorder.taken), time.monotonic()
        reported = any("/exporters/" in one.path for one in list(recorder.taken))
        if reported and time.monotonic() - since > 3:
            return
    raise RuntimeError("the exporter did not report within a minute")


def _is_report(exchange: Exchange) -> bool:
    return exchange.method == "PUT" or "/exporters/" in exchange.path


def _keep(goldens: Goldens, case: str, captures: Sequence[Capture], taken: Sequence[Exchange], code: int) -> None:
    """Keep what belongs to each session; reports come when they come, and are a case of their own."""
    goldens.put(GROUP, f"{case}/exit", b"%d" % code)
    for capture in captures:
        own = [one for one in taken if _session_of(one) == capture.id and not _is_report(one)]
        goldens.put(GROUP, f"{case}/{capture.name}", b"".join(one.written() for one in own))
    known = {capture.id for capture in captures}
    rest = [one for one in taken if _session_of(one) not in known and not _is_report(one)]
    goldens.put(GROUP, f"{case}/rest", b"".join(one.written() for one in rest))


def _session_of(exchange: Exchange) -> str:
    parts = exchange.path.partition("?")[0].split("/")
    if len(parts) == 3:
        return str(json.loads(exchange.body).get("id"))
    return parts[3].removeprefix("mc-")
