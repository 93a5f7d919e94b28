"""The doctor on real files, real databases and real servers on loopback."""

import asyncio
import errno
import hashlib
import json
import os
import shutil
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Literal
from urllib.request import Request, urlopen

import pytest

from config.settings import Otel, Source
from exporter.core.delivery.segment import Unsendable
from exporter.doctor import machine, sinks, sources, state
from exporter.doctor.check import Check, Probe, attempt, shown_url
from exporter.doctor.doctor import doctor
from exporter.doctor.facts import Facts, SourceFacts
from exporter.doctor.sinks import ArchiveProbe, MissionControlProbe, OtlpProbe, cli_telemetry
from exporter.doctor.way import Way
from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.http.server import serve_http
from exporter.missioncontrol.store.sqlite.store import SqliteStore as ReceiverStore
from exporter.sources.event_types import KNOWN
from exporter.state.lock import StateLock
from exporter.state.marks import MarkStore
from exporter.state.quarantine import Quarantine
from exporter.wiring.sinks.otlp import KIND
from exporter.wiring.sources import facts_of
from tests.otel.receiver import Receiver
from tests.otel.reply import Reply

SESSION: Final = "0d6f0f9c-4f4e-4a51-9d0e-0d7a8a7f0001"
Responder = Callable[[str, dict[str, str]], tuple[int, dict[str, str]]]


@pytest.fixture
def facts(tmp_path: Path) -> Facts:
    """A machine where everything is in order and nothing has run yet."""
    (tmp_path / "copilot" / "session-state").mkdir(parents=True)
    return Facts(
        copilot_home=tmp_path / "copilot",
        state_dir=tmp_path / "state",
        open_files=64,
        quarantine_bytes=1 << 20,
        line_bytes_max=1 << 20,
        home=tmp_path,
    )


@pytest.fixture
def serve() -> Iterator[Callable[[Responder], str]]:
    """Starts HTTP servers that answer as they are told, and returns their addresses."""
    servers: list[ThreadingHTTPServer] = []

    def start(respond: Responder) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("content-length") or 0))
                status, headers = respond(
                    f"{self.command} {self.path}", {k.lower(): v for k, v in self.headers.items()}
                )
                self.send_response_only(status)
                for name, value in {"Content-Length": "0", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(b"<html></html>"[: int(headers.get("Content-Length", 0))])

            do_POST = do_GET  # noqa: N815  the name that the base class looks for

            def log_message(self, format: str, *args: Any) -> None:
                """Keeps the test's output clean."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def event(type: str = "session.info", number: int = 1, **data: object) -> bytes:
    document = {"type": type, "data": data, "id": f"{number:08}", "timestamp": "2026-01-01T00:00:00Z", "parentId": None}
    return json.dumps(document).encode() + b"\n"


def record(facts: Facts, *lines: bytes, session: str = SESSION, age_seconds: int = 0) -> Path:
    directory = facts.copilot_home / "session-state" / session
    directory.mkdir(parents=True)
    path = directory / "events.jsonl"
    path.write_bytes(b"".join(lines))
    os.utime(path, (1_700_000_000 - age_seconds,) * 2)
    return path


def state_dir(facts: Facts) -> Path:
    facts.state_dir.mkdir(mode=0o700)
    return facts.state_dir


def told(url: str) -> SourceFacts:
    """What the doctor is told of a source that the settings name."""
    return facts_of(Source(url=url))


def only(checks: Iterator[Check]) -> Check:
    [check] = checks
    return check


def contents(directory: Path) -> dict[str, tuple[str, int]]:
    """What is in a directory: bytes and times."""
    return {
        str(path.relative_to(directory)): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in directory.rglob("*")
        if path.is_file()
    }


def examined(facts: Facts, **options: Any) -> dict[str, dict[str, str]]:
    return {check["name"]: check for check in asyncio.run(doctor(facts, **options))["checks"]}


# ---- this machine -------------------------------------------------------------------------------------------


def test_versions_are_named() -> None:
    checks = {check.name: check for check in machine.versions()}

    assert checks["exporter"].detail
    assert f"{sys.version_info.major}.{sys.version_info.minor}." in checks["python"].detail
    assert {check.verdict for check in checks.values()} == {"ok"}


def test_notes_and_variables_without_effect_are_a_note(facts: Facts) -> None:
    noted = replace(facts, notes=("EXPORTER_COLOUR is not a setting",), found_not_used=("COPILOT_MC_BASE_URL",))

    check = only(machine.configuration(noted))

    assert check.verdict == "note"
    assert "EXPORTER_COLOUR is not a setting; COPILOT_MC_BASE_URL is set and not used" in check.detail
    assert only(machine.configuration(facts)).verdict == "ok"


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
@pytest.mark.parametrize(
    ("watches", "instances", "remedy"),
    [("100", "128", ""), ("10", "128", "max_user_watches"), ("100", "0", "max_user_instances")],
)
def test_file_watching_is_compared_with_the_kernels_limits(
    tmp_path: Path, watches: str, instances: str, remedy: str
) -> None:
    (tmp_path / "max_user_watches").write_text(f"{watches}\n", encoding="ascii")
    (tmp_path / "max_user_instances").write_text(f"{instances}\n", encoding="ascii")

    check = only(machine.file_watching(50, tmp_path))

    assert check.verdict == ("warning" if remedy else "ok")
    assert remedy in check.remedy


def test_limits_that_a_container_hides_are_not_reported(tmp_path: Path) -> None:
    assert list(machine.file_watching(50, tmp_path / "hidden")) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_open_files_beyond_the_limit_of_the_process_are_a_warning() -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        few, many = only(machine.open_files(64)), only(machine.open_files(1_000))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

    assert (few.verdict, many.verdict) == ("ok", "warning")
    assert "192" in many.remedy


# ---- sessions -----------------------------------------------------------------------------------------------


def test_sessions_are_counted(facts: Facts) -> None:
    record(facts, event())
    record(facts, event(), session="0d6f0f9c-4f4e-4a51-9d0e-0d7a8a7f0002")

    check = only(sources.copilot_home(facts.copilot_home, sources.find(facts.copilot_home)))

    assert (check.verdict, check.detail.split(" in ")[0]) == ("ok", "2 sessions")


@pytest.mark.parametrize(
    ("spoil", "verdict"),
    [
        (lambda home: (home / "session-state").rmdir(), "note"),
        (lambda home: ((home / "session-state").rmdir(), home.rmdir()), "warning"),
        (lambda home: ((home / "session-state").rmdir(), (home / "session-state").touch()), "failed"),
        (lambda home: None, "note"),
    ],
    ids=["no session-state", "no home", "not a directory", "empty"],
)
def test_sessions_that_are_not_there_are_told(facts: Facts, spoil: Callable[[Path], object], verdict: str) -> None:
    spoil(facts.copilot_home)

    check = only(sources.copilot_home(facts.copilot_home, sources.find(facts.copilot_home)))

    assert check.verdict == verdict
    assert "copilot_home" in check.remedy


@pytest.mark.parametrize(
    ("version", "verdict"),
    [("1.0.48", "ok"), ("1.0.102", "ok"), ("1.0.47", "note"), ("1.0.103", "note"), ("2.0.0", "note"), ("x", "note")],
)
def test_a_version_of_the_cli_that_we_do_not_know_is_a_note(facts: Facts, version: str, verdict: str) -> None:
    record(facts, event("session.start", copilotVersion=version))

    check = only(sources.cli_versions(sources.find(facts.copilot_home)))

    assert check.verdict == verdict
    assert ("unknown" if version == "x" else version) in check.detail


@pytest.mark.parametrize("line", [b"", b"garbage\n", b"\xff\n", event("user.message"), event("session.start")])
def test_a_session_without_a_version_is_a_note(facts: Facts, line: bytes) -> None:
    record(facts, line)

    assert only(sources.cli_versions(sources.find(facts.copilot_home))).detail == "unknown (1 session)"


def test_event_types_outside_our_list_are_counted(facts: Facts) -> None:
    known = [event(name, number) for number, name in enumerate(sorted(KNOWN))]
    strange = [event("model.new_thing", number) for number in range(1_000, 1_003)]
    path = record(facts, *known)

    before = only(sources.event_types(facts, sources.find(facts.copilot_home)))
    path.write_bytes(b"".join([*known, *strange, event("Not A name: hunter2", 2_000)]))
    after = only(sources.event_types(facts, sources.find(facts.copilot_home)))

    assert before.verdict == "ok"
    assert after.verdict == "note"
    assert "model.new_thing ×3, (not a name) ×1" in after.detail  # noqa: RUF001
    assert "hunter2" not in after.detail


# ---- the CLI's own telemetry --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "verdict"),
    [
        ({}, "ok"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318/"}, "warning"),
        ({"COPILOT_OTEL_ENABLED": "true"}, "warning"),
        ({"COPILOT_OTEL_ENABLED": "false"}, "ok"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:9999"}, "ok"),
        ({"COPILOT_OTEL_ENABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "https://otel.example"}, "ok"),
        ({"COPILOT_OTEL_FILE_EXPORTER_PATH": "otel.jsonl"}, "ok"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://[broken"}, "ok"),
    ],
)
def test_telemetry_of_the_cli_to_our_endpoint_counts_twice(
    facts: Facts, variables: dict[str, str], verdict: str
) -> None:
    ours = OtlpProbe("otel", "http://localhost:4318")

    assert only(cli_telemetry(replace(facts, cli_telemetry=variables, sinks=(ours,)))).verdict == verdict


# ---- the state directory ------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
def test_the_key_of_the_markers_is_checked(facts: Facts) -> None:
    facts.state_dir.mkdir()
    key, found = facts.state_dir / "redaction.key", list(state.redaction_key(facts))
    for content, mode in ((range(32), 0o600), (range(32), 0o640), (range(31), 0o600), ([0] * 32, 0o600)):
        key.write_bytes(bytes(content))
        key.chmod(mode)
        found += state.redaction_key(facts)

    assert [check.verdict for check in found] == ["ok", "ok", "warning", "failed", "failed"]
    assert "another tag" in found[-1].remedy


def test_a_state_directory_that_is_not_there_yet_is_well(facts: Facts) -> None:
    assert only(state.state_directory(facts)).verdict == "ok"
    assert not facts.state_dir.exists()


def test_a_state_directory_open_to_others_is_a_warning(facts: Facts) -> None:
    directory = state_dir(facts)
    private = only(state.state_directory(facts))
    directory.chmod(0o755)

    check = only(state.state_directory(facts))

    assert private.verdict == "ok"
    assert (check.verdict, "mode 755" in check.detail) == ("warning", True)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o755


def test_a_state_directory_that_is_a_file_fails(facts: Facts) -> None:
    facts.state_dir.write_text("", encoding="ascii")

    assert only(state.state_directory(facts)).verdict == "failed"


@pytest.mark.skipif(sys.platform != "linux", reason="the table of mounts is Linux's")
@pytest.mark.parametrize(("system", "verdict"), [("ext4", "ok"), ("nfs4", "failed"), ("fuse.sshfs", "failed")])
def test_a_network_file_system_is_no_place_for_the_state(facts: Facts, system: str, verdict: str) -> None:
    device = facts.copilot_home.stat().st_dev
    mounts = facts.copilot_home / "mountinfo"
    line = f"22 1 {os.major(device)}:{os.minor(device)} / / rw - {system} somewhere rw\n"
    mounts.write_text(line, encoding="ascii")

    check = only(state.file_systems(facts, mounts))

    assert (check.verdict, system in check.detail) == (verdict, True)


def test_less_free_space_than_the_quarantine_may_take_is_a_warning(facts: Facts) -> None:
    assert only(state.free_space(replace(facts, quarantine_bytes=1 << 60))).verdict == "warning"


def test_a_daemon_is_known_by_its_answer(facts: Facts) -> None:
    told = {"daemon": {"running": True, "pid": 4242, "version": "0.1.0", "since": "2026-01-01T00:00:00Z"}}

    check = only(state.daemon(replace(facts, status=told)))

    assert check == Check("daemon", "ok", "process 4242 runs since 2026-01-01T00:00:00Z, version 0.1.0")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell who holds a lock")
def test_a_lock_whose_holder_does_not_answer_is_a_warning(facts: Facts) -> None:
    directory = state_dir(facts)
    with StateLock(directory):
        held = only(state.daemon(facts))
    released = only(state.daemon(facts))

    assert (held.verdict, f"process {os.getpid()} " in held.detail) == ("warning", True)
    assert released.verdict == "note"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell who holds a lock")
def test_without_a_table_of_locks_a_living_process_counts_as_the_holder(facts: Facts) -> None:
    lock, missing = state_dir(facts) / "lock", facts.state_dir / "no-table"
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()

    found = []
    for text in (str(os.getpid()), str(ended.pid), "", "rubbish"):
        lock.write_text(text, encoding="ascii")
        found.append(state.lock_holder(lock, missing))

    assert found == [os.getpid(), None, None, None]


def test_sound_marks_are_well_and_stay_as_they_are(facts: Facts) -> None:
    directory = state_dir(facts)
    store = MarkStore(directory / "marks.db")
    store.sink_id("local", "local")
    store.close()
    before = contents(directory)

    check = only(state.marks(facts))

    assert (check.verdict, check.detail[:5]) == ("ok", "sound")
    assert contents(directory) == before


def test_marks_in_use_or_left_by_a_kill_are_read_without_a_trace(facts: Facts) -> None:
    path = state_dir(facts) / "marks.db"
    holder = (
        "import sys; from pathlib import Path; from exporter.state.marks import MarkStore\n"
        "store = MarkStore(Path(sys.argv[1])); store.sink_id('local', 'local'); print('ready', flush=True)\n"
        "sys.stdin.read()"
    )
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(path)], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        before = contents(facts.state_dir)
        in_use = only(state.marks(facts))
        process.kill()
        process.wait()
    left = only(state.marks(facts))

    assert {"marks.db-wal", "marks.db-shm"} <= set(before)
    assert (in_use.verdict, left.verdict) == ("ok", "ok")
    assert contents(facts.state_dir) == before


@pytest.mark.parametrize("damage", [b"this is no database" * 100, b""], ids=["other bytes", "page lost"])
def test_damaged_marks_fail_and_are_left_alone(facts: Facts, damage: bytes) -> None:
    path = state_dir(facts) / "marks.db"
    store = MarkStore(path)
    for number in range(500):
        store.remember(f"name {number}", "x" * 200)
    store.close()
    path.write_bytes(damage or path.read_bytes()[:8192] + bytes(4096) + path.read_bytes()[12288:])
    before = contents(facts.state_dir)

    check = only(state.marks(facts))

    assert check.verdict == "failed"
    assert contents(facts.state_dir) == before


def test_a_log_without_its_index_is_not_touched(facts: Facts) -> None:
    path = state_dir(facts) / "marks.db"
    MarkStore(path).close()
    path.with_name("marks.db-wal").write_bytes(b"something")
    before = contents(facts.state_dir)

    check = only(state.marks(facts))

    assert check.verdict == "note"
    assert contents(facts.state_dir) == before


@pytest.mark.parametrize(("size", "verdict"), [(0, "ok"), (100, "note"), (900_000, "warning")])
def test_the_quarantine_is_compared_with_its_cap(facts: Facts, size: int, verdict: str) -> None:
    kept = Quarantine(state_dir(facts) / "quarantine.db", bytes_max=1 << 20, days_max=30)
    if size:
        kept.add(SESSION, None, [Unsendable(0, b"x" * size, size, "no_id", None)])
    kept.close()

    assert only(state.quarantine(facts)).verdict == verdict


def test_damaged_stores_that_were_set_aside_are_named(facts: Facts) -> None:
    aside = state_dir(facts) / "mission_control.db.corrupt-1"
    aside.write_bytes(bytes(2048))

    check = only(state.set_aside(facts))

    assert check.verdict == "note"
    assert f"{aside} (2.0 KiB)" in check.detail
    assert "delete them" in check.remedy
    aside.unlink()
    assert list(state.set_aside(facts)) == []


# ---- sinks --------------------------------------------------------------------------------------------------


def test_our_own_receiver_takes_the_question_and_makes_no_session_of_it(tmp_path: Path) -> None:
    async def ask() -> tuple[Probe, bytes]:
        with ReceiverStore(tmp_path / "receiver.db") as store:
            server = await serve_http(create_app(store, token="the-token"), "127.0.0.1", 0, explicit_port=True)
            listed = Request(f"{server.url}/api/v1/sessions", headers={"Authorization": "Bearer the-token"})
            try:
                probe = await MissionControlProbe("mission_control", f"{server.url}/agents", "the-token").probe()
                return probe, await asyncio.to_thread(lambda: urlopen(listed).read())
            finally:
                await server.stop()

    probe, sessions = asyncio.run(ask())

    [check] = probe.checks
    assert check.verdict == "ok"
    assert "the-token" not in check.detail
    assert json.loads(sessions)["sessions"] == []


@pytest.mark.parametrize(
    ("status", "headers", "verdict"),
    [
        (400, {"Content-Type": "application/json"}, "ok"),
        (422, {}, "ok"),
        (400, {"Content-Type": "text/html", "Content-Length": "13"}, "failed"),
        (200, {}, "failed"),
        (206, {}, "failed"),
        (404, {"Content-Type": "application/json"}, "failed"),
        (404, {"Content-Type": "text/html; charset=utf-8"}, "failed"),
        (410, {}, "warning"),
        (401, {}, "failed"),
        (403, {}, "failed"),
        (302, {"Location": "http://127.0.0.1:1/"}, "warning"),
        (503, {}, "warning"),
        (418, {}, "warning"),
    ],
)
def test_each_answer_of_a_mission_control_has_its_verdict(
    serve: Callable[[Responder], str], status: int, headers: dict[str, str], verdict: str
) -> None:
    asked: list[tuple[str, str | None]] = []

    def respond(line: str, given: dict[str, str]) -> tuple[int, dict[str, str]]:
        asked.append((line, given.get("authorization")))
        return status, headers

    url = serve(respond) + "/agents/"
    [check] = asyncio.run(MissionControlProbe("mc", url, "t").probe()).checks

    assert check.verdict == verdict
    assert bool(check.remedy) == (verdict != "ok")
    assert set(asked) == {("POST /agents/sessions", "Bearer t")}
    assert len(asked) == (2 if verdict == "ok" else 1)  # who takes the question is asked a larger one


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        (
            {"Server": "nginx/1.22.1", "Content-Type": "text/html"},
            ["nginx/1.22.1 before the receiver refuses a request"],
        ),
        ({"Content-Type": "application/json"}, []),
    ],
    ids=["a proxy", "the receiver's own limit of a registration"],
)
def test_a_proxy_that_refuses_a_large_request_is_told_from_the_receiver(
    serve: Callable[[Responder], str], headers: dict[str, str], said: list[str]
) -> None:
    def respond(line: str, given: dict[str, str]) -> tuple[int, dict[str, str]]:
        return (413, headers) if int(given["content-length"]) > 1 << 20 else (400, {})

    checks = asyncio.run(MissionControlProbe("mc", serve(respond) + "/agents", "t").probe()).checks

    assert [check.verdict for check in checks] == ["ok", *("warning" for _ in said)]
    assert [check.detail.partition(" of ")[0] for check in checks[1:]] == said
    assert all("client_max_body_size" in check.remedy for check in checks[1:])


def test_a_sink_that_does_not_listen_fails() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}"

    uploads = asyncio.run(MissionControlProbe("mc", url).probe()).checks
    traces = asyncio.run(OtlpProbe("otel", url).probe()).checks
    remote = asyncio.run(OtlpProbe("otel", url, protocol="grpc").probe()).checks

    assert [check.verdict for check in (*uploads, *traces, *remote)] == ["failed"] * 3


PROTOCOLS: Final[tuple[Literal["http/protobuf", "grpc"], ...]] = ("http/protobuf", "grpc")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("refused", "verdict", "told"),
    [
        ({}, "ok", "takes traces, metrics, logs"),
        ({"metrics": 404, "logs": 404}, "note", "takes traces; not metrics (404), logs (404), which will be off"),
        ({"logs": 503}, "warning", "503"),
        ({"traces": 404, "metrics": 404, "logs": 404}, "failed", "takes no OTLP"),
        ({"traces": 401, "metrics": 401, "logs": 401}, "failed", "401"),
    ],
)
def test_every_signal_that_will_be_sent_is_asked_for(
    protocol: Literal["http/protobuf", "grpc"], refused: dict[str, int], verdict: str, told: str
) -> None:
    with Receiver(with_grpc=True) as receiver:
        receiver.always(**{signal: Reply(status) for signal, status in refused.items()})
        address = receiver.grpc_url if protocol == "grpc" else receiver.url
        [check] = asyncio.run(KIND.probe("otel", Otel(endpoint=address, protocol=protocol)).probe()).checks  # type: ignore[misc]  # an OTLP endpoint has a probe
        asked = sorted(request.signal for request in receiver.requests)

    assert (check.verdict, asked) == (verdict, ["logs", "metrics", "traces"])
    assert told in check.detail
    assert bool(check.remedy) == (verdict != "ok")


def test_a_port_that_takes_connections_and_no_grpc_fails() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        one = Otel(endpoint=f"http://127.0.0.1:{server.getsockname()[1]}", protocol="grpc", signals=("traces",))
        [check] = asyncio.run(KIND.probe("otel", one).probe()).checks  # type: ignore[misc]  # as above

    assert check.verdict == "failed"


@pytest.mark.parametrize(
    ("status", "verdict"),
    [(200, "ok"), (400, "ok"), (401, "failed"), (404, "failed"), (415, "failed"), (307, "warning"), (500, "warning")],
)
def test_each_answer_of_an_otlp_endpoint_has_its_verdict(
    serve: Callable[[Responder], str], status: int, verdict: str
) -> None:
    asked: list[tuple[str, str | None, str | None]] = []

    def respond(line: str, given: dict[str, str]) -> tuple[int, dict[str, str]]:
        asked.append((line, given.get("content-type"), given.get("x-key")))
        return status, {}

    endpoint = OtlpProbe("otel", serve(respond), headers={"x-key": "k"})
    [check] = asyncio.run(endpoint.probe()).checks

    assert check.verdict == verdict
    assert asked == [("POST /v1/traces", "application/x-protobuf", "k")]


def test_a_whole_address_of_one_signal_is_taken_as_it_is(serve: Callable[[Responder], str]) -> None:
    asked: list[str] = []

    def respond(line: str, _: dict[str, str]) -> tuple[int, dict[str, str]]:
        asked.append(line)
        return 200, {}

    endpoint = serve(respond) + "/in/logs"
    asyncio.run(OtlpProbe("otel", endpoint, append_path=False, signals=("logs",)).probe())

    assert asked == ["POST /in/logs"]


def test_a_certificate_that_is_missing_fails(tmp_path: Path) -> None:
    endpoint = OtlpProbe("otel", "https://127.0.0.1:1", way=Way(str(tmp_path / "none.pem")))

    [check] = asyncio.run(endpoint.probe()).checks

    assert (check.verdict, "certificate" in check.remedy) == ("failed", True)


@pytest.mark.timeout(90)
def test_a_pipe_in_place_of_a_certificate_fails_at_once(tmp_path: Path) -> None:
    url, pipe = "https://127.0.0.1:1", str(tmp_path / "pipe")
    os.mkfifo(pipe)
    probes = (
        MissionControlProbe("mc", url, way=Way(pipe)),
        OtlpProbe("otel", url, way=Way(pipe)),
        OtlpProbe("otel", url, way=Way(client_certificate_file=pipe)),
    )

    for probe in probes:
        assert "not a regular file" in asyncio.run(probe.probe()).checks[0].detail


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
def test_a_token_file_that_others_can_read_is_a_warning(tmp_path: Path, serve: Callable[[Responder], str]) -> None:
    file = tmp_path / "token"
    file.write_text("t", encoding="ascii")
    one = MissionControlProbe("mc", serve(lambda line, given: (404, {})), "t", file)

    verdicts = []
    for mode in (0o644, 0o600):
        file.chmod(mode)
        checks = asyncio.run(one.probe()).checks
        verdicts += [check.verdict for check in checks if check.name == "mc secret"]

    assert verdicts == ["warning", "ok"]


def test_a_token_that_cannot_be_read_fails_without_a_request() -> None:
    one = MissionControlProbe("mc", "http://127.0.0.1:1", None, Path("none"), "token_file cannot be read")

    [check] = asyncio.run(one.probe()).checks

    assert (check.verdict, check.detail) == ("failed", "token_file cannot be read")


def test_plain_http_to_another_machine_is_a_warning() -> None:
    one = MissionControlProbe("mc", "http://user:hunter2@192.0.2.1/agents", token_fault="not read here")

    checks = {check.name: check for check in asyncio.run(one.probe()).checks}

    assert checks["mc privacy"].verdict == "warning"
    assert "hunter2" not in repr(checks)


@pytest.mark.parametrize(("off_seconds", "verdict"), [(0, "ok"), (3_600, "warning"), (-3_600, "warning")])
def test_a_clock_that_differs_from_a_sinks_is_a_warning(
    serve: Callable[[Responder], str], off_seconds: int, verdict: str
) -> None:
    from time import time

    url = serve(lambda line, given: (404, {"Date": formatdate(time() + off_seconds, usegmt=True)}))
    probe = asyncio.run(MissionControlProbe("mc", url).probe())

    check = only(sinks.clock([probe, Probe(())]))

    assert check.verdict == verdict
    assert ("behind" in check.detail) == (off_seconds > 0)


@pytest.mark.parametrize("date", [None, "yesterday"])
def test_a_sink_that_does_not_tell_the_time_is_no_clock(serve: Callable[[Responder], str], date: str | None) -> None:
    url = serve(lambda line, given: (404, {"Date": date} if date else {}))
    probe = asyncio.run(MissionControlProbe("mc", url).probe())

    assert list(sinks.clock([probe])) == []


# ---- all together -------------------------------------------------------------------------------------------


def test_a_machine_in_order_has_no_warning_and_keeps_every_file(facts: Facts, tmp_path: Path) -> None:
    record(facts, event("session.start", copilotVersion="1.0.102"))
    before = contents(tmp_path)

    checks = examined(facts, schema=True)

    assert {name: check for name, check in checks.items() if check["verdict"] not in ("ok", "note")} == {}
    assert {"exporter", "sessions", "Copilot CLI", "event types", "marks", "quarantine", "daemon"} <= checks.keys()
    assert contents(tmp_path) == before
    assert not facts.state_dir.exists()


def test_event_types_are_read_only_when_asked_for(facts: Facts) -> None:
    assert "event types" not in examined(facts)


def test_everything_broken_at_once_is_told_and_nothing_raises(facts: Facts, tmp_path: Path) -> None:
    directory = state_dir(facts)
    directory.chmod(0o777)
    (directory / "marks.db").write_bytes(b"rubbish" * 1_000)
    with closing(sqlite3.connect(directory / "quarantine.db")) as other:
        other.execute("CREATE TABLE something_else (x)")
    (facts.copilot_home / "session-state").rmdir()
    (facts.copilot_home / "session-state").write_bytes(b"")
    broken = replace(
        facts,
        sinks=(MissionControlProbe("mc", "http://127.0.0.1:1", "t\u00e9"), OtlpProbe("otel", "http://127.0.0.1:1")),
    )

    checks = examined(broken, schema=True)

    failed = {name for name, check in checks.items() if check["verdict"] == "failed"}
    assert {"marks", "quarantine", "sessions", "mc", "otel"} <= failed
    assert all(checks[name]["remedy"] for name in failed)


def test_a_check_that_breaks_is_a_failed_check() -> None:
    def look() -> Iterator[Check]:
        yield from ()
        raise ValueError("as nobody thought of")

    [check] = attempt("something", look)

    assert (check.name, check.verdict) == ("something", "failed")
    assert "ValueError: as nobody thought of" in check.detail


def test_a_bundle_holds_no_secret_no_content_and_no_home(facts: Facts, tmp_path: Path) -> None:
    record(facts, event("session.start", copilotVersion="1.0.102"), event("user.message", content="a private text"))
    told = replace(
        facts,
        rows=(("state_dir", f'"{tmp_path}/state"', "default"), ("cache_dir", f'"{tmp_path}2/x"', "default")),
        status={"daemon": {"running": True, "pid": 1}, "sinks": [{"last_error": "hunter2 was refused", "lag": 0.5}]},
        mask=lambda text: text.replace("hunter2", "[masked]"),
    )
    bundle = tmp_path / "report.zip"

    answer = asyncio.run(doctor(told, schema=True, bundle=bundle))

    with zipfile.ZipFile(bundle) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert answer["bundle"] == str(bundle)
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600 or sys.platform == "win32"
    assert json.loads(parts["settings.json"])[0] == {"setting": "state_dir", "value": '"~/state"', "origin": "default"}
    assert json.loads(parts["settings.json"])[1]["value"] == f'"{tmp_path}2/x"'
    assert json.loads(parts["status.json"])["sinks"] == [{"last_error": "[masked] was refused", "lag": 0.5}]
    assert {check["name"] for check in json.loads(parts["checks.json"])} >= {"exporter", "python", "event types"}
    everything = "".join(parts.values())
    assert "a private text" not in everything
    assert f"{tmp_path}/" not in everything


def test_a_bundle_never_replaces_a_file(facts: Facts, tmp_path: Path) -> None:
    bundle = tmp_path / "report.zip"
    bundle.write_bytes(b"mine")

    answer = asyncio.run(doctor(facts, bundle=bundle))

    assert answer["bundle"] is None
    assert answer["checks"][-1]["name"] == "bundle"
    assert answer["checks"][-1]["verdict"] == "failed"
    assert bundle.read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:secret@mc.example:8443/agents?key=secret", "https://mc.example:8443/agents"),
        ("http://[::1]:8411/agents", "http://[::1]:8411/agents"),
        ("http://[broken", "(not an address)"),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(url: str, shown: str) -> None:
    assert shown_url(url) == shown


def test_each_source_is_told_with_what_it_sees_and_other_servers_are_suggested(facts: Facts, tmp_path: Path) -> None:
    processes = tmp_path / "proc"
    for number, port in enumerate((4321, 5555)):
        (processes / str(number)).mkdir(parents=True)
        command = ["node", "/usr/bin/copilot", "--headless", "--port", str(port), ""]
        (processes / str(number) / "cmdline").write_bytes("\0".join(command).encode())
    away = {"name": "rpc://127.0.0.1:4321", "state": "the server cannot be reached: refused"}
    named = replace(facts, sources=(told("tap"), told("rpc://127.0.0.1:4321")), status={"sources": [away]})

    tap, rpc, *suggested = sources.sources(named, processes)

    assert (tap.verdict, rpc.verdict) == ("ok", "warning")
    assert "cannot be reached" in rpc.detail and "does not see session.usage_record" in rpc.detail
    if sys.platform == "linux":
        assert ["rpc://127.0.0.1:5555" in one.remedy for one in suggested] == [True]
        assert {one.verdict for one in suggested} == {"note"}
    assert list(sources.sources(facts, tmp_path / "none")) == []


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
def test_an_agent_host_is_told_with_what_it_sees_and_others_are_suggested(facts: Facts, tmp_path: Path) -> None:
    process = tmp_path / "proc/12"
    process.mkdir(parents=True)
    (process / "cmdline").write_bytes(b"node\0/x/out/bootstrap-fork.js\0--type=agentHost\0")
    (process / "environ").write_bytes(b"SECRET=s3cret\0VSCODE_AGENT_HOST_PORT=4747\0VSCODE_TOKEN=s3cret\0")
    url = "ahp+ws://127.0.0.1:4321/"
    refused = {"name": url, "state": "following", "problems": [{"kind": "the host denies access", "session": "s"}]}
    away = {"name": url, "state": "the host refused the token (HTTP 403)", "problems": []}

    [well, found] = sources.sources(replace(facts, sources=(told(url),)), tmp_path / "proc")
    [denied, _] = sources.sources(
        replace(facts, sources=(told(url),), status={"sources": [refused]}), tmp_path / "proc"
    )
    [wrong, _] = sources.sources(replace(facts, sources=(told(url),), status={"sources": [away]}), tmp_path / "proc")
    observed = [*sources.sources(replace(facts, sources=(told("ahp+wss://h:4747/"),)), tmp_path / "proc")]

    assert (well.verdict, "tool calls" in well.detail, "hooks" in well.detail) == ("ok", True, True)
    assert (found.verdict, "port 4747" in found.detail, "ahp+ws://127.0.0.1:4747/" in found.remedy) == (
        "note",
        True,
        True,
    )
    assert (denied.verdict, "denies access" in denied.detail) == ("warning", True)
    assert (wrong.verdict, "HTTP 403" in wrong.detail) == ("warning", True)
    assert [one.name for one in observed] == ["source ahp+wss://h:4747/"]
    assert "s3cret" not in repr((well, found))


def test_an_agent_host_without_the_package_that_it_needs_fails(facts: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)

    [check] = sources.sources(replace(facts, sources=(told("ahp+ws://127.0.0.1:1/"),)), Path("/none"))

    assert (check.verdict, check.remedy) == ("failed", "pip install 'session-exporter[ahp]'")


# ---- archives -----------------------------------------------------------------------------------------------


def test_an_archive_that_is_not_there_yet_is_well_and_stays_away(tmp_path: Path) -> None:
    [check] = asyncio.run(ArchiveProbe("archive", tmp_path / "a" / "b").probe()).checks

    assert (check.verdict, "made when it is needed" in check.detail, "free" in check.detail) == ("ok", True, True)
    assert list(tmp_path.iterdir()) == []


def test_an_archive_is_looked_at_without_a_trace(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    [private] = asyncio.run(ArchiveProbe("archive", tmp_path).probe()).checks
    tmp_path.chmod(0o755)
    [opened] = asyncio.run(ArchiveProbe("archive", tmp_path).probe()).checks

    assert (private.verdict, opened.verdict, "mode 755" in opened.detail) == ("ok", "note", True)
    assert list(tmp_path.iterdir()) == []


def test_an_archive_that_cannot_be_written_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    (tmp_path / "file").write_text("")
    [no_directory] = asyncio.run(ArchiveProbe("archive", tmp_path / "file").probe()).checks
    monkeypatch.setattr(os, "open", refuse)
    [read_only] = asyncio.run(ArchiveProbe("archive", tmp_path).probe()).checks

    assert (no_directory.verdict, read_only.verdict) == ("failed", "failed")
    assert "Read-only file system" in read_only.detail


def test_an_archive_with_little_room_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1 << 20))

    [check] = asyncio.run(ArchiveProbe("archive", tmp_path).probe()).checks

    assert (check.verdict, "1.0 MiB free" in check.detail) == ("warning", True)
