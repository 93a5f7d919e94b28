"""The gRPC side of the receiver."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import grpc  # type: ignore[import-untyped]  # comes without types
from google.protobuf.duration_pb2 import Duration  # type: ignore[import-untyped]  # comes without types
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]  # comes without types
from google.rpc.status_pb2 import Status as RpcStatus  # type: ignore[import-untyped]  # comes without types

from tests.otel.over_http import Took
from tests.otel.reply import Signal, answer_of

SERVICES: Final[Mapping[str, Signal]] = {
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export": "traces",
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export": "logs",
    "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export": "metrics",
}
GRPC_CODES: Final = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "UNIMPLEMENTED",
    413: "RESOURCE_EXHAUSTED", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE",
}  # fmt: skip


def grpc_server(
    took: Took, certificate: Path | None, key: Path | None, client_ca: Path | None, port: int
) -> tuple[Any, int]:
    """Start a server and return it and its port."""

    class Export(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
        def service(self, call: Any) -> Any:
            signal = SERVICES.get(call.method)
            return signal and grpc.unary_unary_rpc_method_handler(_export(took, signal, call.method))

    server = grpc.server(ThreadPoolExecutor(8), handlers=(Export(),), options=[("grpc.so_reuseport", 0)])
    if certificate is None or key is None:
        port = server.add_insecure_port(f"127.0.0.1:{port}")
    else:
        credentials = grpc.ssl_server_credentials(
            [(key.read_bytes(), certificate.read_bytes())],
            client_ca.read_bytes() if client_ca else None,
            require_client_auth=client_ca is not None,
        )
        port = server.add_secure_port(f"127.0.0.1:{port}", credentials)
    server.start()
    return server, port


def _export(took: Took, signal: Signal, path: str) -> Callable[[bytes, Any], bytes]:
    def export(body: bytes, context: Any) -> bytes:
        headers = {name: str(value) for name, value in context.invocation_metadata()}
        reply = took(signal, path, headers, body, context.peer())
        if reply.act != "answer":
            context.abort(grpc.StatusCode.UNAVAILABLE, "connection lost")
        if reply.status != 200 or reply.code is not None:
            details = RpcStatus(code=8, message=reply.message)
            if reply.retry_after is not None:
                details.details.add().Pack(RetryInfo(retry_delay=Duration(seconds=int(reply.retry_after))))
            context.set_trailing_metadata((("grpc-status-details-bin", details.SerializeToString()),))
            context.abort(grpc.StatusCode[reply.code or GRPC_CODES[reply.status]], reply.message)
        return answer_of(signal, reply)

    return export
