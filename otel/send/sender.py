"""Sends OTLP requests and returns the responses: one request, one response, no retries."""

import gzip
import importlib
import sys
import time
from typing import TYPE_CHECKING, Final, Protocol

from otel.send.answer import Answer, NoAnswer, Signal, read_answer, readable
from otel.send.endpoint import Endpoint, EndpointError

if TYPE_CHECKING:
    from types import ModuleType

    import httpx

_ANSWER_BYTES_MAX: Final = 64 * 1024
_CONNECT_SECONDS_MAX: Final = 10.0


class Sender(Protocol):
    """Sends bodies to one endpoint. Blocks; may be called from several threads at a time."""

    def send(self, signal: Signal, body: bytes) -> Answer:
        """Send one request and return the response; raises NoAnswer if there is none."""

    def close(self) -> None:
        """Close the connections; requests in flight may fail."""


def sender_for(endpoint: Endpoint, connections: int = 2) -> Sender:
    """Return a sender for the endpoint's protocol that keeps so many idle connections.

    Raises EndpointError when its address or certificates cannot be used.
    """
    if endpoint.protocol == "grpc":
        from otel.send.grpc import GrpcSender

        return GrpcSender(endpoint)
    return HttpSender(endpoint, connections)


class HttpSender:
    """http/protobuf over persistent connections: no redirects, cookies or proxies, nothing of the environment."""

    def __init__(self, endpoint: Endpoint, connections: int = 2) -> None:
        httpx = _httpx()
        self._endpoint = endpoint
        self._httpx = httpx
        timeout = httpx.Timeout(endpoint.timeout_seconds, connect=min(_CONNECT_SECONDS_MAX, endpoint.timeout_seconds))
        self._extensions = {"timeout": timeout.as_dict()}
        try:
            self._urls = {signal: httpx.URL(endpoint.url(signal)) for signal in ("traces", "logs", "metrics")}
        except httpx.InvalidURL:
            self._urls = {}
        if not self._urls:
            raise EndpointError("the endpoint is no address that begins with http:// or https://")
        # The transport itself: no redirects, cookies, proxies or netrc, all of which `httpx.Client` would look into.
        self._transport = httpx.HTTPTransport(
            # As many as there are threads that send: waiting for one would look like an endpoint that does not answer.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=connections),
            trust_env=False,
            verify=endpoint.is_secure() and endpoint.ssl_context(lambda: httpx.create_ssl_context(trust_env=False)),
        )

    def send(self, signal: Signal, body: bytes) -> Answer:
        headers = self._endpoint.headers_now()
        secrets = tuple(headers.values())
        headers = {"user-agent": self._endpoint.user_agent} | headers | {"content-type": "application/x-protobuf"}
        if self._endpoint.gzip:
            headers["content-encoding"] = "gzip"
            body = gzip.compress(body, 1, mtime=0)
        deadline = time.monotonic() + self._endpoint.timeout_seconds
        try:
            request = self._httpx.Request(
                "POST", self._urls[signal], headers=headers, content=body, extensions=self._extensions
            )
            response = self._transport.handle_request(request)
            try:
                content = self._content(response, deadline)
            finally:
                response.close()
        except (self._httpx.HTTPError, OSError, RuntimeError) as error:
            failure = type(error).__name__
            if str(error) and not isinstance(error, self._httpx.LocalProtocolError):
                failure = f"{failure}: {readable(str(error), secrets)}"
        else:
            kind = response.headers.get("content-type", "")
            return read_answer(response.status_code, response.headers.get("retry-after"), content, kind, secrets)
        # Out here, so that no cause is attached: its text may hold a header that was refused.
        raise NoAnswer(failure)

    def close(self) -> None:
        self._transport.close()

    def _content(self, response: "httpx.Response", deadline: float) -> bytes:
        """Read as much of the answer as can matter; closing the response then ends the connection if there is more."""
        content = b""
        for part in response.iter_bytes():
            content += part
            if len(content) >= _ANSWER_BYTES_MAX:
                break
            if time.monotonic() > deadline:
                raise self._httpx.ReadTimeout("the answer did not end in time")
        return content


def _httpx() -> "ModuleType":
    """Import httpx when it is first needed.

    httpx 0.28 imports its own command line, and rich and pygments with it, wherever click is installed; if
    that module is marked as missing, httpx works without it, as it does where click is missing.
    """
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None means: not there
    return importlib.import_module("httpx")
