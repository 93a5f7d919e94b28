"""Sends OTLP requests and returns the responses. The only retry is without compression, where that is refused."""

import gzip
from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeAlias
from urllib.parse import urlsplit

from otel.send.answer import Answer, NoAnswer, Signal, read_answer, readable
from otel.send.endpoint import Endpoint

_ANSWER_BYTES_MAX: Final = 64 * 1024


class Sender(Protocol):
    """Sends bodies to one endpoint. Blocks; may be called from several threads at a time."""

    def send(self, signal: Signal, body: bytes) -> Answer:
        """Send one request and return the response; raises NoAnswer if there is none."""

    def close(self) -> None:
        """Close the connections; requests in flight may fail."""


class HttpResponse(Protocol):
    """A response over HTTP; header names are in lower case. `whole` is False when `body` is a part of what came."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def body(self) -> bytes: ...

    @property
    def whole(self) -> bool: ...


class OtlpHttpClient(Protocol):
    """Sends requests to one origin.

    Raises ConnectionError when no response came. Its text holds no header; its `unsent` is True if nothing was sent.
    """

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, *, answer_bytes_max: int
    ) -> HttpResponse: ...

    def close(self) -> None: ...


ClientOf: TypeAlias = Callable[[Endpoint], OtlpHttpClient]
"""Makes the HTTP client of an endpoint; raises EndpointError when its address or certificates are no use."""


def sender_for(endpoint: Endpoint, client_of: ClientOf) -> Sender:
    """Return a sender for the endpoint's protocol.

    Raises EndpointError when its address or certificates cannot be used.
    """
    if endpoint.protocol == "grpc":
        from otel.send.grpc import GrpcSender

        return GrpcSender(endpoint)
    return HttpSender(endpoint, client_of(endpoint))


class HttpSender:
    """http/protobuf over a client's connections."""

    def __init__(self, endpoint: Endpoint, client: OtlpHttpClient) -> None:
        self._endpoint = endpoint
        self._client = client
        self._plain: set[Signal] = set()

    def send(self, signal: Signal, body: bytes) -> Answer:
        compress = self._endpoint.gzip and signal not in self._plain
        answer = self._post(signal, body, compress=compress)
        if compress and answer.status == 415:
            answer = self._post(signal, body, compress=False)
            if answer.status != 415:
                self._plain.add(signal)
        return answer

    def _post(self, signal: Signal, body: bytes, *, compress: bool) -> Answer:
        headers = self._endpoint.headers_now()
        secrets = tuple(headers.values())
        headers = {"user-agent": self._endpoint.user_agent} | headers | {"content-type": "application/x-protobuf"}
        if compress:
            headers["content-encoding"] = "gzip"
            body = gzip.compress(body, 1, mtime=0)
        parts = urlsplit(self._endpoint.url(signal))
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        try:
            found = self._client.request("POST", path, headers, body, answer_bytes_max=_ANSWER_BYTES_MAX)
        except ConnectionError as error:
            failure, unsent = readable(str(error), secrets), getattr(error, "unsent", False)
        else:
            kind, retry_after = found.headers.get("content-type", ""), found.headers.get("retry-after")
            return read_answer(found.status, retry_after, found.body, kind, secrets, whole=found.whole)
        # Out here, so that no cause is attached: its text may hold a header that was refused.
        raise NoAnswer(failure, unsent=unsent)

    def close(self) -> None:
        self._client.close()
