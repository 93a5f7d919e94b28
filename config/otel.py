"""The settings of an OTLP endpoint."""

from typing import Annotated, Literal, TypeAlias

from msgspec import field

from config.fields import Shown, setting

Signal: TypeAlias = Literal["traces", "metrics", "logs"]


class Otel(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An OTLP endpoint that traces, metrics and logs are sent to."""

    endpoint: Annotated[
        str,
        setting(
            "Address; for http/protobuf /v1/traces, /v1/metrics and /v1/logs are appended.",
            "http://localhost:4318",
            url=True,
        ),
    ]
    append_path: Annotated[
        bool, setting("false: the endpoint is the complete address of a single signal, and nothing is appended.")
    ] = True
    protocol: Annotated[Literal["http/protobuf", "grpc"], setting("Protocol of the endpoint.")] = "http/protobuf"
    signals: Annotated[tuple[Signal, ...], setting("Signals to send.", min_length=1)] = ("traces", "metrics", "logs")
    content: Annotated[
        Literal["none", "metadata", "redacted"],
        setting(
            "none: types, ids, times, numbers, tool names; metadata: also names of models, agents, repositories and "
            "branches; redacted: also texts, arguments and paths, with secrets masked."
        ),
    ] = "metadata"
    semconv: Annotated[
        Literal["latest", "legacy", "both"], setting("Version of the names of attributes and metrics.")
    ] = "latest"
    temporality: Annotated[
        Literal["cumulative", "delta"],
        setting("Temporality of metrics: cumulative: since the start; delta: since the last point."),
    ] = "cumulative"
    headers_file: Annotated[
        str | None,
        setting(
            "File with headers, one name=value per line.",
            "~/.config/exporter/otel.headers",
            path=True,
            instead_of="headers",
        ),
    ] = None
    headers: Annotated[
        dict[str, str],
        setting(
            "Headers of every request, such as authorization, sent to this endpoint only.",
            {"authorization": "Bearer the-token"},
            secret=True,
            instead_of="headers_file",
        ),
    ] = field(default_factory=dict)
    allow_http: Annotated[
        bool, setting("Send headers over http:// to an address that is not loopback; anybody on the way can read them.")
    ] = False
    timeout_seconds: Annotated[float, setting("Timeout of one request, after which it is retried.", ge=0.1, le=600)] = (
        10.0
    )
    compression: Annotated[Literal["gzip", "none"], setting("Compression of requests.")] = "gzip"
    certificate_file: Annotated[
        str | None,
        setting("CA certificates (PEM) to trust instead of those of the system.", "/etc/ssl/otel-ca.pem", path=True),
    ] = None
    client_certificate_file: Annotated[
        str | None, setting("Client certificate (PEM).", "/etc/ssl/otel.pem", path=True)
    ] = None
    client_key_file: Annotated[
        str | None, setting("Private key (PEM) of the client certificate.", "/etc/ssl/otel.key", path=True)
    ] = None
    service_name: Annotated[
        str,
        setting(
            "service.name of everything that is sent; the default is that of the CLI.", min_length=1, max_length=255
        ),
    ] = "github-copilot"
    health: Annotated[
        bool, setting("Also send the health of the exporter: lag, retries, rejected, masked and quarantined events.")
    ] = False
    resource_attributes: Annotated[
        dict[str, str],
        setting(
            "Additional attributes of the resource, such as deployment.environment.",
            {"deployment.environment": "laptop"},
        ),
    ] = field(default_factory=dict)
