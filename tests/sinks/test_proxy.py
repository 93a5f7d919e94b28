"""Requests through a proxy, and the certificates that are trusted where the settings name none."""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData

from exporter.sinks.http_transport import HttpClient
from exporter.sinks.roots import Roots, system_roots
from exporter.sinks.transport import ANSWER_BYTES_MAX, HttpAnswer, NoAnswerError
from exporter.wiring.otlp_endpoint import http_client
from otel.health import exporter_for
from otel.send.endpoint import Endpoint
from otel.send.sender import sender_for
from tests.connect_proxy import ConnectProxy
from tests.otel.certificates import Certificates, make_certificates
from tests.otel.receiver import Receiver

TOKEN: Final = "token-of-the-sink"
PASSWORD: Final = "word-of-the-proxy"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def secure(certificates: Certificates) -> Iterator[Receiver]:
    with Receiver(certificate=certificates.server, key=certificates.server_key, with_grpc=True) as opened:
        yield opened


@contextmanager
def _client(url: str, authority: Path | None, proxy: str) -> Iterator[HttpClient]:
    trust = ssl.create_default_context(cafile=authority) if authority else None
    client = HttpClient(url, connections=1, kept=1, timeout_seconds=5.0, trust=trust, proxy=proxy)
    yield client
    client.close()


def _post(client: HttpClient, path: str = "/v1/traces") -> HttpAnswer:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Length": "0"}
    return client.request("POST", path, headers, b"", answer_bytes_max=ANSWER_BYTES_MAX)


@pytest.mark.parametrize("host", ["mc.test", "[2001:db8::1]"])
def test_what_goes_over_tls_passes_a_tunnel_that_sees_nothing_of_it(
    certificates: Certificates, secure: Receiver, host: str
) -> None:
    with (
        ConnectProxy({f"{host}:443": secure.port}, user=f"me:{PASSWORD}") as proxy,
        _client(f"https://{host}", certificates.authority, proxy.url.replace("//", f"//me:{PASSWORD}@")) as client,
    ):
        answers = [_post(client).status for _ in range(3)]

    assert answers == [200] * 3
    assert [one.partition("\r\n")[0] for one in proxy.heard] == [f"CONNECT {host}:443 HTTP/1.1"]
    assert TOKEN not in "".join(proxy.heard)
    assert TOKEN.encode() not in proxy.seen
    assert not any("proxy-authorization" in one.headers for one in secure.requests)
    assert {one.headers["authorization"] for one in secure.requests} == {f"Bearer {TOKEN}"}


def test_a_proxy_that_itself_speaks_tls_carries_large_requests(
    certificates: Certificates, secure: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    with (
        ConnectProxy({"mc.test:443": secure.port}, certificate=(certificates.server, certificates.server_key)) as proxy,
        _client("https://mc.test", certificates.authority, proxy.url) as client,
    ):
        body = bytes(1 << 20)
        headers = {"Content-Length": str(len(body)), "Content-Type": "application/json"}
        answer = client.request("POST", "/v1/unknown", headers, body, answer_bytes_max=ANSWER_BYTES_MAX)

    assert answer.status == 404  # its answer, after it had read all of the body


def test_a_plain_request_is_handed_to_the_proxy_with_its_whole_address() -> None:
    with (
        Receiver() as receiver,
        ConnectProxy({"mc.test": receiver.port}, user="me:x") as proxy,
        _client("http://mc.test", None, proxy.url.replace("//", "//me:x@")) as client,
    ):
        answer = _post(client)

    assert answer.status == 200
    assert [one.partition("\r\n")[0] for one in proxy.heard] == ["POST http://mc.test/v1/traces HTTP/1.1"]


@pytest.mark.parametrize(("user", "said"), [("me:other", "407"), ("me:" + PASSWORD, "502")])
def test_what_a_proxy_refuses_is_told_with_its_address_and_no_password(
    certificates: Certificates, user: str, said: str
) -> None:
    with (
        ConnectProxy({}, user=f"me:{PASSWORD}") as proxy,
        _client("https://mc.test", certificates.authority, proxy.url.replace("//", f"//{user}@")) as client,
        pytest.raises(NoAnswerError) as raised,
    ):
        _post(client)

    assert f"the proxy {proxy.url} refuses: {said}" in str(raised.value)
    assert user not in str(raised.value)


def test_a_proxy_that_is_away_is_told_by_its_address() -> None:
    with (
        _client("http://mc.test", None, "http://me:word-of-it@127.0.0.1:1") as client,
        pytest.raises(NoAnswerError) as raised,
    ):
        _post(client)

    assert str(raised.value).startswith("through the proxy http://127.0.0.1:1: ")


def test_a_server_behind_a_proxy_must_have_the_certificate_of_its_name(
    certificates: Certificates, secure: Receiver
) -> None:
    with (
        ConnectProxy({"other.test:443": secure.port}) as proxy,
        _client("https://other.test", certificates.authority, proxy.url) as client,
        pytest.raises(NoAnswerError, match="certificate"),
    ):
        _post(client)

    assert secure.requests == []


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_otlp_goes_through_the_proxy_of_its_endpoint(
    certificates: Certificates, secure: Receiver, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    port = secure.port if protocol != "grpc" else int(secure.grpc_url.rpartition(":")[2])
    with ConnectProxy({"mc.test:443": port}, user=f"me:{PASSWORD}") as proxy:
        endpoint = Endpoint(
            "https://mc.test:443",
            protocol="grpc" if protocol == "grpc" else "http/protobuf",
            timeout_seconds=5.0,
            roots=str(certificates.authority),
            certificate_file=None if protocol == "grpc" else str(certificates.authority),
            headers=lambda: {"authorization": f"Bearer {TOKEN}"},
            proxy=proxy.url.replace("//", f"//me:{PASSWORD}@"),
        )
        sender = sender_for(endpoint, partial(http_client, 1))
        answer = sender.send("traces", b"")
        sender.close()
        health = exporter_for(replace(endpoint, certificate_file=None), "cumulative")
        told = health.export(MetricsData(resource_metrics=[]))
        health.shutdown()

    assert answer.status == 200
    assert told is MetricExportResult.SUCCESS
    assert TOKEN not in "".join(proxy.heard)
    assert {one.split()[1] for one in proxy.heard} == {"mc.test:443"}
    assert [one.headers["authorization"] for one in secure.requests] == [f"Bearer {TOKEN}"] * 2
    assert [one.signal for one in secure.requests] == ["traces", "metrics"]


def test_the_variables_of_openssl_name_the_roots(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secure: Receiver
) -> None:
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    named = system_roots()
    monkeypatch.delenv("SSL_CERT_FILE")
    of_the_system = system_roots()

    assert named == Roots(file=str(certificates.authority))
    assert of_the_system.file
    assert Path(of_the_system.file).is_file()
    assert [one["subject"] for one in named.context().get_ca_certs()] == [((("commonName", "authority"),),)]
    assert len(of_the_system.context().get_ca_certs()) > 50


def test_a_name_with_several_addresses_is_tried_at_each() -> None:
    with Receiver() as receiver:  # on 127.0.0.1; localhost is ::1 as well, and may be that first
        client = HttpClient(f"http://localhost:{receiver.port}", connections=1, kept=0, timeout_seconds=5.0, trust=None)
        answer = asyncio.run(asyncio.to_thread(_post, client))
        client.close()

    assert answer.status == 200
