"""What is sent over gRPC, and what its codes become."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from exporter.wiring.otlp_endpoint import http_client
from otel.send.answer import Answer, NoAnswer, Signal
from otel.send.endpoint import Endpoint
from otel.send.grpc import GrpcSender
from otel.send.sender import sender_for
from tests.otel.bodies import body_of
from tests.otel.certificates import Certificates, make_certificates
from tests.otel.receiver import Receiver
from tests.otel.reply import HANG, Reply, partial

TOKEN = "Bearer s3cr3t-t0ken-of-mine"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver(with_grpc=True) as receiver:
        yield receiver


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def send(receiver: Receiver, signal: Signal = "traces", **settings: Any) -> Answer:
    settings.setdefault("timeout_seconds", 5)
    sender = sender_for(Endpoint(receiver.grpc_url, protocol="grpc", **settings), lambda one: http_client(1, one))
    try:
        return sender.send(signal, body_of(signal))
    finally:
        sender.close()


@pytest.mark.parametrize("signal", ["traces", "logs", "metrics"])
@pytest.mark.parametrize("gzip", [False, True])
def test_each_signal_arrives_at_its_service(receiver: Receiver, signal: Signal, gzip: bool) -> None:
    answer = send(receiver, signal, gzip=gzip, user_agent="session-exporter/1")

    assert answer == Answer(200)
    (request,) = receiver.requests
    assert (request.signal, request.body) == (signal, body_of(signal))
    assert request.headers["user-agent"].startswith("session-exporter/1 ")


def test_a_connection_is_kept_and_threads_share_it(receiver: Receiver) -> None:
    sender = GrpcSender(Endpoint(receiver.grpc_url))

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: sender.send("traces", body_of("traces")), range(40)))

    assert answers == [Answer(200)] * 40
    assert len(receiver.spans()) == 40
    assert len({request.connection for request in receiver.requests}) == 1
    sender.close()


def test_headers_are_read_for_each_request_and_written_in_lower_case(receiver: Receiver) -> None:
    turns = iter(["one", "two"])
    headers = lambda: {"Authorization": next(turns), "X-Team": "a", "grpc-timeout": "1n", "Content-Type": "x"}  # noqa: E731
    sender = GrpcSender(Endpoint(receiver.grpc_url, headers=headers))

    sender.send("traces", b"")
    sender.send("traces", b"")

    assert [request.headers["authorization"] for request in receiver.requests] == ["one", "two"]
    assert receiver.requests[0].headers["x-team"] == "a"
    sender.close()


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("CANCELLED", 503), ("UNKNOWN", 500), ("INVALID_ARGUMENT", 400), ("DEADLINE_EXCEEDED", 504),
        ("NOT_FOUND", 404), ("ALREADY_EXISTS", 400), ("PERMISSION_DENIED", 403), ("RESOURCE_EXHAUSTED", 429),
        ("FAILED_PRECONDITION", 400), ("ABORTED", 503), ("OUT_OF_RANGE", 503), ("UNIMPLEMENTED", 404),
        ("INTERNAL", 500), ("UNAVAILABLE", 503), ("DATA_LOSS", 503), ("UNAUTHENTICATED", 401),
    ],
)  # fmt: skip
def test_a_code_becomes_the_status_that_means_the_same(receiver: Receiver, code: str, status: int) -> None:
    receiver.plan(Reply(status, code=code, message="because\nof that"))

    assert send(receiver) == Answer(status, None, 0, "because of that")
    assert receiver.spans() == []


@pytest.mark.parametrize("code", ["UNAVAILABLE", "RESOURCE_EXHAUSTED"])
def test_the_time_to_wait_is_read(receiver: Receiver, code: str) -> None:
    receiver.plan(Reply(503, code=code, retry_after="7"))

    assert send(receiver).retry_after == "7"


def test_a_request_that_is_too_large_is_told_as_such(receiver: Receiver) -> None:
    sender = GrpcSender(Endpoint(receiver.grpc_url, gzip=False))

    answer = sender.send("traces", b"\0" * 5_000_000)  # gRPC servers take 4 MiB unless told otherwise

    assert answer.status == 413
    sender.close()


@pytest.mark.parametrize("signal", ["traces", "logs", "metrics"])
def test_partial_success_tells_how_many_were_rejected(receiver: Receiver, signal: Signal) -> None:
    receiver.plan(partial(3, "too old"))

    assert send(receiver, signal) == Answer(200, None, 3, "too old")


def test_a_hang_and_a_closed_port_are_no_answer(receiver: Receiver) -> None:
    receiver.plan(HANG)

    with pytest.raises(NoAnswer, match="DEADLINE_EXCEEDED"):
        send(receiver, timeout_seconds=0.3)
    assert send(receiver) == Answer(200)
    receiver.close()
    with pytest.raises(NoAnswer, match=r"UNAVAILABLE|DEADLINE"):
        send(receiver, timeout_seconds=1)


def test_a_port_that_speaks_something_else_is_no_answer(receiver: Receiver) -> None:
    sender = GrpcSender(Endpoint(receiver.url, timeout_seconds=1))

    with pytest.raises(NoAnswer):
        sender.send("traces", b"")
    sender.close()


def test_a_sender_that_was_closed_gives_no_answer(receiver: Receiver) -> None:
    sender = GrpcSender(Endpoint(receiver.grpc_url))
    sender.close()

    with pytest.raises(NoAnswer):
        sender.send("traces", b"")


def test_no_proxy_of_the_environment_is_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    assert send(receiver) == Answer(200)


def test_secrets_are_in_no_text(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    receiver.plan(Reply(401, message=f"who is {TOKEN}?"), HANG)
    endpoint = Endpoint(receiver.grpc_url, headers=lambda: {"authorization": TOKEN}, timeout_seconds=1)
    sender = GrpcSender(endpoint)

    answer = sender.send("traces", b"")
    with pytest.raises(NoAnswer) as caught:
        sender.send("traces", b"")

    assert "who is [hidden]" in answer.message
    for text in (repr(answer), repr(sender), repr(caught.value), str(caught.value), *caplog.messages):
        assert "s3cr3t" not in text
    assert caught.value.__context__ is None
    sender.close()


@pytest.mark.parametrize("value", [TOKEN + "\n", TOKEN + "\x7f", TOKEN + "é"])
def test_a_header_that_cannot_be_sent_is_not_told(receiver: Receiver, value: str) -> None:
    with pytest.raises(NoAnswer) as caught:
        send(receiver, headers=lambda: {"authorization": value})

    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__context__ is None
    assert receiver.requests == []


def test_tls_trusts_the_given_authority_and_shows_the_certificate(certificates: Certificates) -> None:
    with Receiver(
        certificate=certificates.server, key=certificates.server_key, client_ca=certificates.authority, with_grpc=True
    ) as receiver:
        trust: dict[str, Any] = {"certificate_file": str(certificates.authority)}
        shown: dict[str, Any] = {
            "client_certificate_file": str(certificates.client), "client_key_file": str(certificates.client_key)
        }  # fmt: skip

        assert send(receiver, **trust, **shown) == Answer(200)
        with pytest.raises(NoAnswer):
            send(receiver, **trust, timeout_seconds=1)
        with pytest.raises(NoAnswer):
            send(receiver, certificate_file=str(certificates.other), **shown, timeout_seconds=1)


def test_a_directory_of_hashed_names_is_trusted(certificates: Certificates, tmp_path: Path) -> None:
    (tmp_path / "5ed36f99.0").symlink_to(certificates.authority)

    with Receiver(certificate=certificates.server, key=certificates.server_key, with_grpc=True) as receiver:
        assert send(receiver, roots=str(tmp_path)) == Answer(200)
