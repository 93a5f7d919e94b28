"""What a monitor is told of a running exporter over HTTP, by real requests to a real port."""

import http.client
import json
import shutil
import socket
import sqlite3
import subprocess
from contextlib import closing
from http import HTTPStatus

import pytest
from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain_text

from deploy.grafana import promql
from exporter.wiring.monitoring import stored_name
from otel import health
from otel.names import Instrument
from tests.program.driver import Machine
from tests.program.floor import Reply
from tests.program.waiting import until

pytestmark = pytest.mark.slow
OPENMETRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}
LABELS = {"session_exporter_sink", "session_exporter_rule", "session_exporter_event_type", "version"}


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        return int(taken.getsockname()[1])


@pytest.fixture
def port(machine: Machine) -> int:
    """The port at which the exporter of this machine answers monitors."""
    machine.with_floor()
    port = free_port()
    machine.plain_tables["metrics"] = {"listen": f"127.0.0.1:{port}"}
    return port


def ask(port: int, path: str, headers: dict[str, str] | None = None, host: str = "127.0.0.1") -> tuple[int, str]:
    """The status and the body of one answer."""
    with closing(http.client.HTTPConnection(host, port, timeout=60)) as connection:
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def is_up(port: int) -> bool:
    try:
        return ask(port, "/healthz")[0] == HTTPStatus.OK
    except OSError:
        return False


def figures(port: int) -> dict[str, float]:
    """The value of every sample, by its name with its labels."""
    status, text = ask(port, "/metrics", OPENMETRICS)
    assert status == HTTPStatus.OK
    found: list[Metric] = list(openmetrics(text))  # type: ignore[no-untyped-call]  # of the package
    assert {label for metric in found for sample in metric.samples for label in sample.labels} <= LABELS
    return {f"{sample.name}{json.dumps(sample.labels)}": sample.value for metric in found for sample in metric.samples}


def of_floor(name: str) -> str:
    return f'session_exporter_{name}{{"session_exporter_sink": "mission_control.floor"}}'


def test_metrics_tell_how_every_sink_is_and_nothing_of_sessions(machine: Machine, port: int) -> None:
    assert machine.floor is not None
    machine.floor.register = lambda: Reply(503)
    session = machine.session()
    session.append(session.events(5))
    machine.start()
    until(lambda: is_up(port), "the port")
    until(lambda: figures(port)[of_floor("sink_waiting")] == 1, "that the sink is away")
    assert figures(port)[of_floor("sink_lag_events")] == 5

    machine.floor.register = Reply
    until(lambda: figures(port)[of_floor("sink_accepted_total")] == 5, "that it has all")

    told = figures(port)
    assert (told[of_floor("sink_waiting")], told[of_floor("sink_lag_events")]) == (0, 0)
    assert told[of_floor("sink_retries_total")] >= 1 and told["session_exporter_sessions{}"] == 1
    text = ask(port, "/metrics")[1]
    assert session.id not in text and str(machine.root) not in text
    assert {metric.name for metric in plain_text(text)} >= {"session_exporter_problems", "session_exporter_build_info"}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not here: apt-get install prometheus")
def test_promtool_finds_no_fault_with_the_metrics(machine: Machine, port: int) -> None:
    machine.start()
    until(lambda: is_up(port), "the port")

    linted = subprocess.run(
        ["promtool", "check", "metrics"],
        input=ask(port, "/metrics")[1],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (linted.returncode, linted.stdout + linted.stderr) == (0, "")


def test_it_is_ready_while_it_can_remember_whatever_the_sinks_do(machine: Machine, port: int) -> None:
    assert machine.floor is not None
    machine.floor.register = lambda: Reply(503)
    session = machine.session()
    session.append(session.events(2))
    machine.start()
    until(lambda: is_up(port) and '"waiting"' in ask(port, "/readyz")[1], "that the sink is away")
    status, body = ask(port, "/readyz")
    assert status == HTTPStatus.OK
    assert json.loads(body) == {"status": "ready", "problems": [], "sinks": {"mission_control.floor": "waiting"}}

    with closing(sqlite3.connect(machine.state / "marks.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        until(lambda: ask(port, "/readyz")[0] == HTTPStatus.SERVICE_UNAVAILABLE, "that it cannot remember")
        assert json.loads(ask(port, "/readyz")[1])["problems"] == ["the state directory cannot be written"]
        other.execute("ROLLBACK")
    until(lambda: ask(port, "/readyz")[0] == HTTPStatus.OK, "that it can remember again")


def test_with_a_token_only_the_health_is_told_without_it(machine: Machine, port: int) -> None:
    token = machine.root / "metrics.token"
    token.write_text("the-token-of-the-monitor\n")
    token.chmod(0o600)
    machine.plain_tables["metrics"]["token_file"] = str(token)
    machine.start()
    until(lambda: is_up(port), "the port")

    assert ask(port, "/metrics")[0] == ask(port, "/metrics", {"Authorization": "Bearer x"})[0] == 401
    assert ask(port, "/metrics", {"Authorization": "bearer the-token-of-the-monitor"})[0] == 200
    assert json.loads(ask(port, "/readyz")[1]) == {"status": "ready", "problems": []}
    token.write_text("another\n")
    assert ask(port, "/metrics", {"Authorization": "Bearer another"})[0] == 200


def test_a_page_of_another_site_is_refused_and_so_is_what_is_no_question(machine: Machine, port: int) -> None:
    machine.start()
    until(lambda: is_up(port), "the port")

    assert ask(port, "/metrics", {"Host": "rebound.example.com"})[0] == HTTPStatus.FORBIDDEN
    assert ask(port, "/metrics", {"Host": f"localhost:{port}"})[0] == HTTPStatus.OK
    assert ask(port, "/")[0] == HTTPStatus.NOT_FOUND
    for nonsense in (b"\x16\x03\x01\r\n\r\n", b"POST /metrics HTTP/1.1\r\n\r\n", b"GET " + b"/" * 20_000):
        with closing(socket.create_connection(("127.0.0.1", port), 60)) as raw:
            raw.sendall(nonsense)
            assert b"200" not in raw.recv(100)
    assert is_up(port)


def test_connections_that_say_nothing_hold_up_nobody(machine: Machine, port: int) -> None:
    machine.start()
    until(lambda: is_up(port), "the port")

    silent = [socket.create_connection(("127.0.0.1", port), 60) for _ in range(100)]
    try:
        assert [is_up(port) for _ in range(5)] == [True] * 5
    finally:
        for one in silent:
            one.close()


def test_a_port_that_is_taken_ends_it_at_the_start(machine: Machine, port: int) -> None:
    with closing(socket.create_server(("127.0.0.1", port))):
        ended = machine.exporter("run")

    assert ended.returncode == 3
    assert f"[metrics] cannot listen: port {port} is in use" in ended.stderr


@pytest.mark.parametrize("address", ["0.0.0.0:9464", "[::]:9464", "monitored.example.com:9464"])
def test_beyond_loopback_it_needs_a_token_or_leave(machine: Machine, address: str) -> None:
    machine.plain_tables["metrics"] = {"listen": address}
    refused = machine.exporter("config", "check", str(machine.write_settings()))
    machine.plain_tables["metrics"]["allow_open"] = True
    allowed = machine.exporter("config", "check", str(machine.write_settings()))

    assert (refused.returncode, allowed.returncode) == (3, 0), refused.stderr + allowed.stderr
    assert "allow_open" in refused.stderr


def test_ipv6_is_listened_on(machine: Machine, port: int) -> None:
    machine.plain_tables["metrics"]["listen"] = f"[::1]:{port}"
    machine.start()

    until(lambda: _answers(port, "::1"), "the port")


def _answers(port: int, host: str) -> bool:
    try:
        return ask(port, "/healthz", host=host)[0] == HTTPStatus.OK
    except OSError:
        return False


@pytest.mark.parametrize("row", [*health.TABLE, *health.SCRAPED], ids=lambda row: row.name)
def test_a_metric_has_the_name_under_which_prometheus_stores_what_comes_by_otlp(row: Instrument) -> None:
    assert promql.stored_name(row) == stored_name(row) + ("_total" if row.kind == "counter" else "")
