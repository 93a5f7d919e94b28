"""What is sent over HTTP, and what every kind of answer becomes."""

import gzip
import os
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from exporter.wiring.otlp_endpoint import http_client
from otel.send.answer import MESSAGE_CHARACTERS_MAX, Answer, NoAnswer, Signal
from otel.send.endpoint import Endpoint, EndpointError
from otel.send.sender import Sender, sender_for
from tests.otel.bodies import SPAN_ID, body_of
from tests.otel.certificates import Certificates, make_certificates
from tests.otel.receiver import Receiver
from tests.otel.reply import HANG, LOSE, OK, RESET, Reply, partial, refusing

TOKEN = "Bearer s3cr3t-t0ken-of-mine"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def sender_of(endpoint: Endpoint) -> Sender:
    """Return what sends to an endpoint, with the HTTP client of the program."""
    return sender_for(endpoint, lambda one: http_client(2, one))


def send(receiver: Receiver, signal: Signal = "traces", **settings: Any) -> Answer:
    settings.setdefault("timeout_seconds", 5)
    sender = sender_of(Endpoint(receiver.url, **settings))
    try:
        return sender.send(signal, body_of(signal))
    finally:
        sender.close()


@pytest.mark.parametrize("signal", ["traces", "logs", "metrics"])
@pytest.mark.parametrize("gzip", [False, True])
def test_each_signal_arrives_on_its_path(receiver: Receiver, signal: Signal, gzip: bool) -> None:
    answer = send(receiver, signal, gzip=gzip)

    assert answer == Answer(200)
    (request,) = receiver.requests
    assert (request.signal, request.path, request.body) == (signal, f"/v1/{signal}", body_of(signal))
    assert request.headers["content-type"] == "application/x-protobuf"
    assert request.headers.get("content-encoding") == ("gzip" if gzip else None)
    assert (len(receiver.spans()), len(receiver.logs()), len(receiver.metrics())) == {
        "traces": (1, 0, 0), "logs": (0, 1, 0), "metrics": (0, 0, 1),
    }[signal]  # fmt: skip


def test_the_path_is_appended_to_the_endpoints_own_or_not_at_all() -> None:
    assert Endpoint("http://a/otlp/?x=1").url("logs") == "http://a/otlp/v1/logs?x=1"
    assert Endpoint("https://u:p@a:1/mine", append_path=False).url("logs") == "https://a:1/mine"
    assert Endpoint("http://a", append_path=False).url("logs") == "http://a/"


def test_a_connection_is_kept(receiver: Receiver) -> None:
    sender = sender_of(Endpoint(receiver.url))

    for _ in range(3):
        sender.send("traces", body_of("traces"))

    assert len({request.connection for request in receiver.requests}) == 1
    sender.close()


def test_threads_may_send_at_the_same_time(receiver: Receiver) -> None:
    sender = sender_of(Endpoint(receiver.url))

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: sender.send("traces", body_of("traces")), range(40)))

    assert answers == [Answer(200)] * 40
    assert len(receiver.spans()) == 40
    sender.close()


def test_headers_are_read_for_each_request_and_ours_win(receiver: Receiver) -> None:
    turns = iter(["one", "two"])
    headers = lambda: {"Authorization": next(turns), "Content-Type": "text/plain", "Host": "elsewhere"}  # noqa: E731
    sender = sender_of(Endpoint(receiver.url, headers=headers, user_agent="session-exporter/1"))

    sender.send("traces", b"")
    sender.send("traces", b"")

    assert [request.headers["authorization"] for request in receiver.requests] == ["one", "two"]
    assert {request.headers["content-type"] for request in receiver.requests} == {"application/x-protobuf"}
    assert {request.headers["user-agent"] for request in receiver.requests} == {"session-exporter/1"}
    sender.close()


def test_a_password_in_the_address_becomes_a_header(receiver: Receiver) -> None:
    sender = sender_of(Endpoint(receiver.url.replace("//", "//me:p%40ss@")))

    sender.send("traces", b"")

    assert receiver.requests[0].headers["authorization"] == "Basic bWU6cEBzcw=="
    sender.close()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 500, 503])
def test_a_refusal_is_told_with_its_status_and_message(receiver: Receiver, status: int) -> None:
    receiver.plan(Reply(status, message="because\nof  that", retry_after="7"))

    answer = send(receiver)

    assert answer == Answer(status, "7", 0, "because of that")
    assert receiver.spans() == []


def test_a_redirect_is_an_answer_and_is_not_followed(receiver: Receiver) -> None:
    receiver.plan(Reply(307, headers={"Location": f"{receiver.url}/v1/logs"}))

    assert send(receiver).status == 307
    assert len(receiver.requests) == 1


@pytest.mark.parametrize("signal", ["traces", "logs", "metrics"])
def test_partial_success_tells_how_many_were_rejected(receiver: Receiver, signal: Signal) -> None:
    receiver.plan(partial(3, "too old"), partial(0, "a warning"))

    assert send(receiver, signal) == Answer(200, None, 3, "too old")
    assert send(receiver, signal) == Answer(200, None, 0, "a warning")


@pytest.mark.parametrize(
    ("body", "rejected", "message"),
    [
        (b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"old"}}', 2, "old"),
        (b'{"partialSuccess":{"rejectedLogRecords":4}}', 4, ""),
        (b'{"partialSuccess":{"rejectedDataPoints":"many","errorMessage":5}}', 0, ""),
        (b'{"partialSuccess":[]}', 0, ""),
        (b"{}", 0, ""),
        (b"", 0, ""),
    ],
)
def test_partial_success_in_json_is_read_too(receiver: Receiver, body: bytes, rejected: int, message: str) -> None:
    receiver.plan(Reply(body=body, headers={"Content-Type": "application/json; charset=utf-8"}))

    assert send(receiver) == Answer(200, None, rejected, message)


NO_RESPONSES = [
    ("text/html", b"<html>welcome</html>"),
    ("text/html; charset=utf-8", b"Hi"),  # which are fields of protobuf, too
    ("application/json", b"[" * 60_000),
    ("application/json", b"[]"),
    ("application/json", b"<html>"),
    ("application/json", b"\xff"),
    *(
        ("application/x-protobuf", body)
        for body in (b"\x0a", b"\x0a\x7f", b"\xff" * 40, b"\x0a\x02\x08\xff", b"\x0f" * 9, b"\x00" * 9, b"ok")
    ),
]


@pytest.mark.parametrize(("kind", "body"), NO_RESPONSES)
def test_a_2xx_whose_body_is_no_response_is_no_acceptance(receiver: Receiver, kind: str, body: bytes) -> None:
    headers = {"Content-Type": kind}
    receiver.plan(Reply(body=body, headers=headers), Reply(400, body=body, headers=headers))

    assert send(receiver) == Answer(200, fault="answered 200 with a body that is no response of OTLP")
    refused = send(receiver)
    assert (refused.status, refused.rejected, refused.fault) == (400, 0, None)


def test_json_of_another_type_is_read_too(receiver: Receiver) -> None:
    body = b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"old"}}'
    receiver.plan(
        *(Reply(body=body, headers={"Content-Type": kind}) for kind in ("text/plain", "application/problem+json"))
    )

    assert [send(receiver), send(receiver)] == [Answer(200, None, 2, "old")] * 2


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("br", b"\x0b\x02\x80page\x03"),
        ("deflate", zlib.compress(b"page")),
        ("gzip", b"<html>welcome</html>"),
        ("gzip", gzip.compress(b"page", mtime=0)[:5]),
        ("identity", b"\x0a\x00" * 40_000),
    ],
)
def test_a_body_that_is_not_read_whole_is_no_acceptance(receiver: Receiver, encoding: str, body: bytes) -> None:
    receiver.plan(Reply(body=body, headers={"Content-Encoding": encoding}))

    assert send(receiver).fault is not None


def test_a_part_of_an_answer_is_no_acceptance(receiver: Receiver) -> None:
    receiver.plan(Reply(206), Reply(202, body=b""))

    assert send(receiver).fault is not None
    assert send(receiver).fault is None


def test_a_message_is_bounded_and_printable(receiver: Receiver) -> None:
    receiver.plan(partial(1, "\x1b[31m" + "é\u202e\0" * 2_000), Reply(400, message="x" * 1_000_000))

    for answer in (send(receiver), send(receiver)):
        assert answer.message.isprintable()
        assert len(answer.message) <= MESSAGE_CHARACTERS_MAX


def test_one_bad_record_can_be_found_by_what_is_sent(receiver: Receiver) -> None:
    receiver.plan(then=refusing(SPAN_ID))

    assert send(receiver).status == 400
    assert send(receiver, "metrics").status == 200


@pytest.mark.parametrize("reply", [HANG, RESET, LOSE], ids=lambda reply: reply.act)
def test_no_answer_is_told_as_such(receiver: Receiver, reply: Reply) -> None:
    receiver.plan(reply)

    with pytest.raises(NoAnswer, match=r"Timeout|Error"):
        send(receiver, timeout_seconds=0.3)

    assert len(receiver.spans()) == (1 if reply is LOSE else 0)
    assert send(receiver) == Answer(200)


def test_nobody_there_is_no_answer(receiver: Receiver) -> None:
    receiver.close()

    with pytest.raises(NoAnswer, match="ConnectError"):
        send(receiver)


def test_an_answer_that_never_ends_is_left() -> None:
    class Drip(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.end_headers()
            while not ended.wait(0.05):
                self.wfile.write(b"x")

        def log_message(self, *_: object) -> None:
            pass

    ended = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Drip)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sender = sender_of(Endpoint(f"http://127.0.0.1:{server.server_port}", timeout_seconds=0.3))
    began = time.monotonic()

    with pytest.raises(NoAnswer, match=r"did not end within 0\.3 s"):
        sender.send("traces", b"")

    assert time.monotonic() - began < 3
    ended.set()
    server.shutdown()
    server.server_close()
    sender.close()


def test_no_more_of_a_long_answer_is_read_than_can_matter(receiver: Receiver) -> None:
    receiver.plan(Reply(body=b"\0" * 50_000_000), then=OK)
    began = time.monotonic()

    assert send(receiver).status == 200
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("value", [TOKEN + "\n", TOKEN + "\r\nx: y", TOKEN + "\x7f", TOKEN + "é"])
def test_a_header_that_cannot_be_sent_is_not_told(receiver: Receiver, value: str) -> None:
    with pytest.raises(NoAnswer) as caught:
        send(receiver, headers=lambda: {"authorization": value})

    assert_hidden(caught.value)
    assert receiver.requests == []


def test_secrets_are_in_no_text(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    endpoint = Endpoint(
        receiver.url.replace("//", "//me:s3cr3t-t0ken-of-mine@"), headers=lambda: {"authorization": TOKEN}
    )
    receiver.plan(Reply(401, message=f"who is {TOKEN}?"), Reply(403, message=f"no {TOKEN[7:]}"), RESET)
    sender = sender_of(endpoint)

    answers = [sender.send("traces", b""), sender.send("traces", b"")]
    with pytest.raises(NoAnswer) as caught:
        sender.send("traces", b"")
    receiver.close()
    with pytest.raises(NoAnswer) as refused:
        sender.send("traces", b"")

    assert_hidden(caught.value)
    assert_hidden(refused.value)
    for text in (*map(repr, answers), repr(endpoint), repr(sender), *caplog.messages):
        assert "s3cr3t" not in text
    assert "who is [hidden]" in answers[0].message


def assert_hidden(error: BaseException) -> None:
    """Nothing secret in the error, nor in those it came from."""
    chain: BaseException | None = error
    while chain is not None:
        assert "s3cr3t" not in f"{chain!s} {chain!r}"
        chain = chain.__cause__ or chain.__context__


def tls(receiver: Receiver, certificates: Certificates, **settings: Any) -> Answer:
    settings.setdefault("certificate_file", str(certificates.authority))
    return send(receiver, **settings)


def test_tls_trusts_the_given_authority_and_no_other(certificates: Certificates) -> None:
    with Receiver(certificate=certificates.server, key=certificates.server_key) as receiver:
        assert tls(receiver, certificates) == Answer(200)
        with pytest.raises(NoAnswer, match="CERTIFICATE_VERIFY_FAILED"):
            tls(receiver, certificates, certificate_file=str(certificates.other))
        with pytest.raises(NoAnswer, match="CERTIFICATE_VERIFY_FAILED"):
            tls(receiver, certificates, certificate_file=None)


@pytest.mark.timeout(90)
@pytest.mark.parametrize("setting", ["certificate_file", "client_certificate_file", "client_key_file"])
def test_a_pipe_in_place_of_a_certificate_is_refused_at_once(tmp_path: Path, setting: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    given: dict[str, Any] = {setting: str(tmp_path / "pipe")}
    endpoint = Endpoint("https://127.0.0.1:1", **given)

    with pytest.raises(EndpointError, match=f"{setting} cannot be read: it is not a regular file"):
        endpoint.ssl_context()


def test_a_client_certificate_is_shown(certificates: Certificates) -> None:
    with Receiver(
        certificate=certificates.server, key=certificates.server_key, client_ca=certificates.authority
    ) as receiver:
        with pytest.raises(NoAnswer):
            tls(receiver, certificates)
        answer = tls(
            receiver,
            certificates,
            client_certificate_file=str(certificates.client),
            client_key_file=str(certificates.client_key),
        )

    assert answer == Answer(200)


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_an_endpoint_that_is_no_use_is_refused_with_its_reason(
    certificates: Certificates, tmp_path: Path, protocol: Any
) -> None:
    (tmp_path / "rubbish").write_text("rubbish")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"address": "ftp://me:s3cr3t@a"}, "the endpoint is no address"),
        ({"address": "http://[s3cr3t"}, "the endpoint is no address"),
        ({"address": "https://a:99999"}, "the endpoint is no address"),
        ({"certificate_file": str(tmp_path / "none")}, "certificate_file cannot be read: No such file"),
        ({"certificate_file": str(tmp_path / "rubbish")}, "certificate_file cannot be used"),
        (
            {"client_certificate_file": str(certificates.client), "client_key_file": str(certificates.locked_key)},
            "client_certificate_file cannot be used",
        ),
    ]
    for settings, said in cases:
        with pytest.raises(EndpointError, match=said) as caught:
            sender_of(Endpoint(**{"address": "https://127.0.0.1:1", "protocol": protocol} | settings))
        assert_hidden(caught.value)


def test_importing_costs_no_http_no_grpc_and_no_protobuf() -> None:
    code = (
        "import sys, otel.encode.records, otel.send.sender, otel.send.grpc, otel.health\n"
        "print([n for n in ('httpx', 'httpcore', 'grpc', 'google', 'opentelemetry', 'ssl') if n in sys.modules])\n"
        "from otel.send.endpoint import Endpoint\n"
        "from exporter.wiring.otlp_endpoint import http_client\n"
        "otel.send.sender.sender_for(Endpoint('http://127.0.0.1:1'), lambda endpoint: http_client(1, endpoint))\n"
        "print([n for n in ('grpc', 'google', 'opentelemetry', 'rich', 'click') if n in sys.modules])"
    )

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)

    assert printed.stdout.split("\n") == ["[]", "[]", ""]
