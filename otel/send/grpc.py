"""Sends encoded OTLP requests over gRPC; grpcio is imported with the first sender."""

import re
from typing import TYPE_CHECKING, Any, Final

from otel.send.answer import Answer, NoAnswer, Signal, read_answer, readable, retry_delay
from otel.send.endpoint import Endpoint, EndpointError

if TYPE_CHECKING:
    from collections.abc import Mapping

_METHODS: Final["Mapping[Signal, str]"] = {
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    "metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
}
_STATUSES: Final = {
    "CANCELLED": 503, "DEADLINE_EXCEEDED": 504, "ABORTED": 503, "OUT_OF_RANGE": 503, "UNAVAILABLE": 503,
    "DATA_LOSS": 503, "RESOURCE_EXHAUSTED": 429, "INVALID_ARGUMENT": 400, "FAILED_PRECONDITION": 400,
    "ALREADY_EXISTS": 400, "UNAUTHENTICATED": 401, "PERMISSION_DENIED": 403, "NOT_FOUND": 404, "UNIMPLEMENTED": 404,
    "INTERNAL": 500, "UNKNOWN": 500,
}  # fmt: skip
_LOCAL: Final = frozenset({"CANCELLED", "DEADLINE_EXCEEDED", "UNAVAILABLE"})
"""Codes that gRPC also produces without a response; only a response can have trailing metadata."""
_NO_CONNECTION: Final = re.compile(r"failed to connect to all addresses|DNS resolution failed", re.IGNORECASE)
"""What gRPC says of a call for which it had no connection; its codes do not tell."""
_TOO_LARGE: Final = re.compile(r"larger than max|exceeds maximum|too large", re.IGNORECASE)
_PORTS: Final = {"http": 4317, "https": 443}
OPTIONS: Final = (
    ("grpc.enable_retries", 0),  # the caller retries
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.max_receive_message_length", 1 << 20),
    ("grpc.initial_reconnect_backoff_ms", 250),
    ("grpc.min_reconnect_backoff_ms", 250),
    ("grpc.max_reconnect_backoff_ms", 5000),  # gRPC's default is two minutes, on top of the caller's own backoff
)


class GrpcSender:
    """One channel, which gRPC connects on demand and reconnects."""

    def __init__(self, endpoint: Endpoint) -> None:
        import grpc  # type: ignore[import-untyped]  # comes without types

        self._endpoint = endpoint
        self._error = grpc.RpcError
        options = (*OPTIONS, ("grpc.primary_user_agent", endpoint.user_agent), *proxied(endpoint))
        compression = grpc.Compression.Gzip if endpoint.gzip else grpc.Compression.NoCompression
        target = target_of(endpoint)
        if endpoint.is_secure():
            self._channel = grpc.secure_channel(target, credentials_of(grpc, endpoint), options, compression)
        else:
            self._channel = grpc.insecure_channel(target, options, compression)
        self._calls = {signal: self._channel.unary_unary(method) for signal, method in _METHODS.items()}

    def send(self, signal: Signal, body: bytes) -> Answer:
        """Send one request and return the response; raises NoAnswer if there is none."""
        headers = self._endpoint.headers_now()
        secrets = tuple(headers.values())
        try:
            response = self._calls[signal](body, timeout=self._endpoint.timeout_seconds, metadata=_metadata(headers))
        except self._error as error:
            answer = _answer(error, secrets)
        except ValueError:  # the channel was closed; what gRPC says of metadata that it refuses would hold the headers
            answer = "the request could not be made"
        else:
            return read_answer(200, None, response, "", secrets)
        # Out here, so that no cause is attached: what it prints may be anything.
        if isinstance(answer, str):
            raise NoAnswer(answer, unsent=_NO_CONNECTION.search(answer) is not None)
        return answer

    def close(self) -> None:
        """Close the connection; requests in flight fail."""
        self._channel.close()


def proxied(endpoint: Endpoint) -> tuple[tuple[str, int | str], ...]:
    """Return the options that name the proxy of the endpoint, and nothing of the environment."""
    if endpoint.proxy is None:
        return (("grpc.enable_http_proxy", 0),)
    if not endpoint.proxy.startswith("http://"):
        raise EndpointError("gRPC needs a proxy whose address begins with http://")
    return (("grpc.http_proxy", endpoint.proxy),)


def _metadata(headers: dict[str, str]) -> "tuple[tuple[str, str | bytes], ...]":
    return tuple(
        (name, value.encode() if name.endswith("-bin") else value)
        for name, value in headers.items()
        if not name.startswith("grpc-")
    )


def target_of(endpoint: Endpoint) -> str:
    """Return the host and port of an endpoint; the port that OTLP has when the address has none, 443 with TLS."""
    parts = endpoint.parts()
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{host}:{parts.port or _PORTS[parts.scheme]}"


def credentials_of(grpc: Any, endpoint: Endpoint) -> Any:
    """Return gRPC's credentials for the endpoint's certificates; raises EndpointError when they cannot be used."""
    # Python's TLS reads them first: gRPC accepts any bytes and later only reports that it cannot connect.
    endpoint.ssl_context()
    return grpc.ssl_channel_credentials(
        root_certificates=endpoint.trusted(),
        private_key=endpoint.read("client_key_file"),
        certificate_chain=endpoint.read("client_certificate_file"),
    )


def _answer(error: Any, secrets: tuple[str, ...]) -> Answer | str:
    """Return the answer that a failed call means, or the reason why there is none."""
    code = error.code().name
    message = readable(error.details() or "", secrets)
    trailing = dict(error.trailing_metadata() or ())
    if code in _LOCAL and not trailing:
        return f"{code}: {message}" if message else code
    details = trailing.get("grpc-status-details-bin", b"")
    retry_after = retry_delay(details) if isinstance(details, bytes) else None
    status = _STATUSES.get(code, 500)
    if status == 429 and retry_after is None and _TOO_LARGE.search(message):
        status = 413
    return Answer(status, retry_after, 0, message)
