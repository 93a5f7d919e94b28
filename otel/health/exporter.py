"""OpenTelemetry's own OTLP exporter of metrics, held to our endpoint's settings and to nothing of the environment."""

from typing import TYPE_CHECKING, Any

from otel.model import Temporality
from otel.send.answer import NoAnswer
from otel.send.endpoint import Endpoint, EndpointError
from otel.send.grpc import OPTIONS, credentials_of, target_of

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricExporter


def exporter_for(endpoint: Endpoint, temporality: Temporality) -> "MetricExporter":
    """Return an exporter that speaks the endpoint's protocol; raises EndpointError when the endpoint is no use."""
    from opentelemetry.sdk.metrics import Counter, Histogram, ObservableCounter
    from opentelemetry.sdk.metrics.export import AggregationTemporality

    chosen = AggregationTemporality.DELTA if temporality == "delta" else AggregationTemporality.CUMULATIVE
    temporalities: dict[type, AggregationTemporality] = dict.fromkeys((Counter, ObservableCounter, Histogram), chosen)
    if endpoint.protocol == "grpc":
        return _over_grpc(endpoint, temporalities)
    return _over_http(endpoint, temporalities)


def _over_http(endpoint: Endpoint, temporalities: dict[type, Any]) -> "MetricExporter":
    import requests
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    if endpoint.is_secure():
        import ssl

        endpoint.ssl_context(lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def give_headers(request: requests.PreparedRequest) -> requests.PreparedRequest:
        # The exporter adds headers of OTEL_EXPORTER_OTLP_HEADERS, which may be the secret of another endpoint.
        kept = ("content-type", "content-encoding", "content-length")
        ours = {name: value for name, value in request.headers.items() if name.lower() in kept}
        request.headers.clear()
        request.headers.update({"user-agent": endpoint.user_agent} | endpoint.headers_now() | ours)
        return request

    session = requests.Session()
    session.trust_env = False
    session.auth = give_headers
    exporter = OTLPMetricExporter(
        endpoint.url("metrics"),
        timeout=endpoint.timeout_seconds,
        compression=Compression.Gzip if endpoint.gzip else Compression.NoCompression,
        session=session,
        preferred_temporality=temporalities,
    )
    session.verify = endpoint.certificate_file or True
    session.cert = None
    if endpoint.client_certificate_file is not None and endpoint.client_key_file is not None:
        session.cert = (endpoint.client_certificate_file, endpoint.client_key_file)
    return exporter


def _over_grpc(endpoint: Endpoint, temporalities: dict[type, Any]) -> "MetricExporter":
    import grpc  # type: ignore[import-untyped]  # comes without types
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter

    options: Any = (*OPTIONS, ("grpc.primary_user_agent", endpoint.user_agent))
    try:
        headers = endpoint.headers_now()
    except NoAnswer as error:
        reason = str(error)
    else:
        return OTLPMetricExporter(
            f"{endpoint.parts().scheme}://{target_of(endpoint)}",
            insecure=not endpoint.is_secure(),
            credentials=credentials_of(grpc, endpoint) if endpoint.is_secure() else None,
            headers=headers or ",",  # no headers, but not those of the environment either
            timeout=endpoint.timeout_seconds,
            compression=grpc.Compression.Gzip if endpoint.gzip else grpc.Compression.NoCompression,
            preferred_temporality=temporalities,
            channel_options=options,
        )
    raise EndpointError(reason)
