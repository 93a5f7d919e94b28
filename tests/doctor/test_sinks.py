"""What the doctor says of sinks, on real servers on loopback."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path
from typing import Final, Literal
from urllib.request import Request, urlopen

import pytest

from config.settings import Otel
from exporter.doctor import sinks
from exporter.doctor.check import Probe
from exporter.doctor.sinks import MissionControlProbe, OtlpProbe
from exporter.doctor.way import Way
from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.http.server import serve_http
from exporter.missioncontrol.store.sqlite.store import SqliteStore as ReceiverStore
from exporter.wiring.sinks.otlp import KIND
from tests.doctor.machines import Responder, only
from tests.otel.receiver import Receiver
from tests.otel.reply import Reply


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
