"""The settings of an OTLP endpoint."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, field

from config.fields import Shown

Signal: TypeAlias = Literal["traces", "metrics", "logs"]


class Otel(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An OTLP endpoint that traces, metrics and logs are sent to."""

    endpoint: Annotated[
        str,
        Meta(
            description="Where it is; for http/protobuf, /v1/traces, /v1/metrics and /v1/logs are appended.",
            examples=["http://localhost:4318"],
            extra={"url": True},
        ),
    ]
    append_path: Annotated[
        bool, Meta(description="false: the endpoint is the whole address of its one signal; nothing is appended.")
    ] = True
    protocol: Annotated[Literal["http/protobuf", "grpc"], Meta(description="How OTLP is spoken there.")] = (
        "http/protobuf"
    )
    signals: Annotated[tuple[Signal, ...], Meta(description="What is sent.", min_length=1)] = (
        "traces",
        "metrics",
        "logs",
    )
    content: Annotated[
        Literal["none", "metadata", "redacted"],
        Meta(
            description="none: types, ids, times, numbers, tool names; metadata: also model, agent, repository and "
            "branch names; redacted: also texts, arguments and paths, with secrets masked."
        ),
    ] = "metadata"
    semconv: Annotated[
        Literal["latest", "legacy", "both"], Meta(description="Which spelling of the attribute and metric names.")
    ] = "latest"
    temporality: Annotated[
        Literal["cumulative", "delta"], Meta(description="How metric points count: since the start, or since the last.")
    ] = "cumulative"
    headers_file: Annotated[
        str | None,
        Meta(
            description="File that holds the headers, one name=value per line.",
            examples=["~/.config/exporter/otel.headers"],
            extra={"path": True, "instead_of": "headers"},
        ),
    ] = None
    headers: Annotated[
        dict[str, str],
        Meta(
            description="Headers of every request, such as authorization; sent to this endpoint and nowhere else.",
            examples=[{"authorization": "Bearer the-token"}],
            extra={"secret": True, "instead_of": "headers_file"},
        ),
    ] = field(default_factory=dict)
    allow_http: Annotated[
        bool, Meta(description="Send headers over http:// to an address that is not loopback, readable on the way.")
    ] = False
    timeout_seconds: Annotated[
        float, Meta(description="How long one request may take before it is sent again later.", ge=0.1, le=600)
    ] = 10.0
    compression: Annotated[Literal["gzip", "none"], Meta(description="How requests are compressed.")] = "gzip"
    certificate_file: Annotated[
        str | None,
        Meta(
            description="Certificates (PEM) to trust instead of the system's.",
            examples=["/etc/ssl/otel-ca.pem"],
            extra={"path": True},
        ),
    ] = None
    client_certificate_file: Annotated[
        str | None,
        Meta(description="Certificate (PEM) to identify with.", examples=["/etc/ssl/otel.pem"], extra={"path": True}),
    ] = None
    client_key_file: Annotated[
        str | None,
        Meta(
            description="Private key (PEM) of that certificate.", examples=["/etc/ssl/otel.key"], extra={"path": True}
        ),
    ] = None
    service_name: Annotated[
        str,
        Meta(
            description="service.name of everything that is sent; the CLI's own by default.",
            min_length=1,
            max_length=255,
        ),
    ] = "github-copilot"
    health: Annotated[
        bool,
        Meta(description="Also send there how the exporter itself is: lag, retries, rejected, masked, quarantined."),
    ] = False
    resource_attributes: Annotated[
        dict[str, str],
        Meta(
            description="Further attributes of the resource, such as deployment.environment.",
            examples=[{"deployment.environment": "laptop"}],
        ),
    ] = field(default_factory=dict)
