"""Groups `state…`: directories that one commit left are opened by another, which gives the same answers and goes on.

`save` makes them with the checkout that it is given: sessions that are delivered, half delivered, refused and in
quarantine, and a receiver's store with events, index, tokens and counts. `adopt` opens copies.
"""

import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from tests.golden.captures import Capture
from tests.golden.databases import dump_state, pin_store, settle_files
from tests.golden.machine import Client, Machine, Work, toml_table
from tests.golden.pages import Asking, show_api, show_pages
from tests.golden.recorders import Answer, Exchange, Recorder, closing, floor, proxy
from tests.golden.store import Goldens

GROUP: Final = "state"
SAVED: Final = "saved"
FAR, HERE = "far", "here"
_TOKEN: Final = "golden-token-of-the-state"
_KIND: Final = {"content-type": "application/json"}
_GIVE_UP_SECONDS: Final = 2
_PENDING: Final = 2
"""How many sessions, the last ones, the OTLP endpoint has not taken yet."""


def chosen(captures: Sequence[Capture]) -> list[Capture]:
    """Return the captures that are saved, the made-up ones last: one of them takes two batches at the floor."""
    return [*captures[:14], *captures[-2:]]


def _settings(work: Work) -> str:
    return (
        toml_table("mission_control.floor", {"url": f"http://127.0.0.1:{work.port + 6}/agents", "token": _TOKEN})
        + toml_table("mission_control.team", {"url": f"http://127.0.0.1:{work.port + 7}/agents", "token": _TOKEN})
        + toml_table("otel", {"endpoint": f"http://127.0.0.1:{work.port + 5}", "content": "redacted"})
    )


class Trouble:
    """What receivers refuse while the state is made."""

    def __init__(self) -> None:
        self.half: set[str] = set()
        self.otlp = 200

    def floor(self, session: str, body: bytes) -> Answer | None:
        """Refuse one event for good, and of some sessions all but the first batch."""
        if b"culprit" in body:
            return Answer(400, _KIND, b'{"error":"bad event"}')
        if session.removeprefix("mc-") in self.half:
            return Answer(503, _KIND, b"")
        return None


@contextmanager
def receivers(machine: Machine, trouble: Trouble) -> Iterator[Mapping[str, Recorder]]:
    """The floor, the team's receiver behind a proxy, and the OTLP endpoint that the settings name."""
    port, store = machine.work.port, machine.root / "team.db"
    if not store.exists():
        with machine.serving(store, port + 2):
            pass
        pin_store(store)
    kind = {"content-type": "application/x-protobuf"}
    with ExitStack() as stack:
        stack.enter_context(machine.serving(store, port + 2))
        otlp = Recorder(port + 5, lambda *_: Answer(trouble.otlp, kind, b""))
        yield {
            "floor": stack.enter_context(floor(port + 6, refuse=trouble.floor)),
            "team": stack.enter_context(proxy(port + 7, port + 2)),
            "otel": stack.enter_context(closing(otlp)),
        }


def save(work: Work, captures: Sequence[Capture], directory: Path) -> None:
    """Make the directories, with the program's own commands, and keep them below `directory`."""
    for saved in (_save_far(work, chosen(captures)), _save_here(work, chosen(captures))):
        target = directory / SAVED / saved.root.name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(saved.root, target, ignore=shutil.ignore_patterns("runtime", "said", "*.sock"))


def _save_far(work: Work, captures: Sequence[Capture]) -> Machine:
    machine, trouble = Machine(work, FAR), Trouble()
    machine.configure(_settings(work), give_up_seconds=_GIVE_UP_SECONDS)
    for number, capture in enumerate(captures):
        machine.write_session(capture.id, capture.content + _odd_lines(number), age=100 + number)
        if capture.workspace is not None:
            path = machine.copilot / "session-state" / capture.id / "workspace.yaml"
            path.write_bytes(capture.workspace)
    with receivers(machine, trouble) as taken:
        for number, capture in enumerate(captures):
            trouble.otlp = 503 if number >= len(captures) - _PENDING else 200
            long = len(capture.lines()) > 500
            count = len(taken["floor"].taken)
            if long:
                _halve(taken["floor"], trouble, capture.id)
            machine.exporter("backfill", "--session", capture.id)
            assert len(taken["floor"].taken) > count, capture.name
    return machine


def _halve(recorder: Recorder, trouble: Trouble, session: str) -> None:
    """Let the first batch of a session in, and none after it."""
    answer = recorder.answer

    def counted(method: str, path: str, headers: Mapping[str, str], body: bytes, raw: bytes) -> Answer:
        told = answer(method, path, headers, body, raw)
        if session in path and path.endswith("/events") and told.status == 200:
            trouble.half.add(session)
        return told

    recorder.answer = counted


def _odd_lines(number: int) -> bytes:
    """What some files end with: nothing, no JSON, no UTF-8, an event that is refused, a line without its end."""
    text = "culprit" if number % 7 == 2 else "fine"
    event = {"type": "user.message", "data": {"content": text}, "id": f"last-{number}",
             "timestamp": "2026-11-19T11:00:00.000Z", "parentId": None}  # fmt: skip
    line = json.dumps(event).encode() + b"\n"
    match number % 7:
        case 0:
            return b"\n{not json}\n"
        case 1:
            return b'\n{"type":"x","id":"\xff","data":{}}\n'
        case 2:
            return b"\n" + line
        case 3:
            return b"\n" + line + b'{"type":"user.mess'
        case _:
            return b""


def _save_here(work: Work, captures: Sequence[Capture]) -> Machine:
    machine = Machine(work, HERE)
    machine.configure("")
    store = machine.state / "mission_control.db"
    with machine.serving(store, work.port + 2):
        pass
    pin_store(store)
    for capture in captures:  # one after the other, so that rows have the same numbers in every run
        machine.write_session(capture.id, capture.content, age=500)
        machine.exporter("run", "--until-idle")
    for name in ("laptop", "reader", "gone"):
        machine.exporter("mission-control", "token", "create", name, *(("--upload-only",) if name == "laptop" else ()))
    machine.exporter("mission-control", "token", "revoke", "gone")
    return machine


def take_over(work: Work, saved: Path, name: str, *, moved: bool = False) -> Machine:
    """Return a machine with a copy of what was saved; unless `moved` its session files pass for the saved ones."""
    target = work.root / name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(saved / SAVED / name, target)
    machine = Machine(work, name, kept=True)
    (machine.root / "runtime").mkdir(mode=0o700)
    machine.state.chmod(0o700)
    if not moved:
        settle_files(machine.state, machine.copilot / "session-state")
    return machine


def adopt(goldens: Goldens, work: Work, captures: Sequence[Capture], saved: Path) -> None:
    """Open copies of what was saved, and keep every answer and all that is sent from then on."""
    for moved in (False, True):
        _go_on_far(goldens, take_over(work, saved, FAR, moved=moved), chosen(captures), "moved" if moved else "far")
    _go_on_here(goldens, take_over(work, saved, HERE), chosen(captures))


def _go_on_far(goldens: Goldens, machine: Machine, captures: Sequence[Capture], label: str) -> None:
    def keep(step: str, *arguments: str) -> None:
        done = machine.exporter(*arguments)
        goldens.put(GROUP, f"{label}/{step}/{' '.join(arguments)}", b"%d\n%s" % (done.code, done.out))

    def look(step: str) -> None:
        keep(step, "status", "--json")
        keep(step, "sessions", "list", "--json")
        keep(step, "quarantine", "list", "--json")
        keep(step, "redact", "report", "--json")
        for name, content in dump_state(machine.state):
            goldens.put(GROUP, f"{label}/{step}/{name}", content)

    look("asleep")
    for capture in captures:
        keep("asleep", "sessions", "show", capture.id, "--json")
    with receivers(machine, Trouble()) as taken:
        keep("opened", "verify", "--all", "--json")
        _sent(goldens, f"{label}/opened", taken, captures)
        for capture in captures[-_PENDING:]:  # one by one: in which order sessions are added up is chance
            keep("pending", "backfill", "--session", capture.id, "--json")
        _sent(goldens, f"{label}/pending", taken, captures)
        for step in ("first", "second"):
            keep(step, "run", "--until-idle")
            _sent(goldens, f"{label}/{step}", taken, captures)
        look("delivered")
        for number, capture in enumerate(captures[::3]):
            added = [{"type": "user.message", "data": {"content": f"later {one}"}, "id": f"later-{number}-{one}",
                      "timestamp": "2026-11-19T11:30:00.000Z", "parentId": None} for one in range(3)]  # fmt: skip
            content = b"\n" + b"".join(json.dumps(one).encode() + b"\n" for one in added)
            machine.write_session(capture.id, content, age=5, append=True)
            keep(f"grown {number}", "run", "--until-idle")
            _sent(goldens, f"{label}/grown {number}", taken, captures)
        listed = json.loads(machine.exporter("quarantine", "list", "--json").out)["quarantined"]
        first, second, *_, last = [str(one["n"]) for one in listed]
        keep("replayed", "quarantine", "show", first, "--json")
        keep("replayed", "quarantine", "replay", first, last, "--json")
        keep("replayed", "quarantine", "drop", second, "--json")
        _sent(goldens, f"{label}/replayed", taken, captures)
        keep("verified", "verify", "--all", "--json")
        _sent(goldens, f"{label}/verified", taken, captures)
        look("verified")
        client = Client(machine.work.port + 2)
        show_api(Asking(goldens, client, f"{label}/team ", "state-"), captures)
        client.close()
        with machine.running("run"):
            goldens.put(GROUP, f"{label}/running/status --json", _status_at_rest(machine))


def _status_at_rest(machine: Machine) -> bytes:
    """The status of a daemon that runs and has delivered everything; its process and its rate are chance."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        done = machine.exporter("status", "--json")
        told = json.loads(done.out) if done.code == 0 else {}
        if told.get("daemon", {}).get("running") and all(one["state"] == "ok" for one in told["sinks"]):
            told["daemon"]["pid"] = 0
            for source in told["sources"]:
                source["events_per_second"] = 0.0
            return json.dumps(told, indent=1).encode()
        time.sleep(0.2)
    return b"never at rest: " + done.out


def _sent(goldens: Goldens, case: str, taken: Mapping[str, Recorder], captures: Sequence[Capture]) -> None:
    """Keep what was sent since, by receiver and session; metrics are of all sessions."""
    for name, recorder in taken.items():
        exchanges = [one for one in recorder.clear() if one.method != "PUT" and "/exporters/" not in one.path]
        for capture in captures:
            own = [one for one in exchanges if _is_of(one, capture.id)]
            goldens.put(GROUP, f"{case}/{name}/{capture.name}", _written(own))
        rest = [one for one in exchanges if not any(_is_of(one, capture.id) for capture in captures)]
        goldens.put(GROUP, f"{case}/{name}/rest", _written(rest))


def _written(exchanges: Sequence[Exchange]) -> bytes:
    by_path: dict[str, list[bytes]] = {}
    for one in exchanges:
        by_path.setdefault(one.path, []).append(one.written())
    return b"".join(part for path in sorted(by_path) for part in by_path[path])


def _is_of(exchange: Exchange, session: str) -> bool:
    return session in exchange.path or (exchange.path in ("/agents/sessions", "/v1/traces", "/v1/logs")
                                        and session.encode() in exchange.body)  # fmt: skip


def _go_on_here(goldens: Goldens, machine: Machine, captures: Sequence[Capture]) -> None:
    def keep(step: str, *arguments: str) -> None:
        done = machine.exporter(*arguments)
        goldens.put(GROUP, f"here/{step}/{' '.join(arguments)}", b"%d\n%s" % (done.code, done.out))

    def look(step: str) -> None:
        for arguments in (
            ("status",),
            ("sessions", "list"),
            ("mission-control", "token", "list"),
            ("redact", "report"),
        ):
            keep(step, *arguments, "--json")
        with machine.serving(machine.state / "mission_control.db", machine.work.port + 2):
            client = Client(machine.work.port + 2)
            asking = Asking(goldens, client, f"here/{step} ", "state-")
            show_api(asking, captures)
            show_pages(asking, captures[::4])
            client.close()
        for name, content in dump_state(machine.state):
            goldens.put(GROUP, f"here/{step}/{name}", content)

    look("opened")
    keep("opened", "verify", "--all", "--json")
    machine.write_session(captures[0].id, b'{"type":"user.message","data":{"content":"later"},"id":"later","timestamp":'
                          b'"2026-11-19T11:30:00.000Z","parentId":null}\n', age=5, append=True)  # fmt: skip
    keep("grown", "run", "--until-idle")
    keep("grown", "verify", "--all", "--json")
    look("grown")
