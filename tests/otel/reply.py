"""What a test may tell the receiver to answer, and how OTLP writes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from google.rpc.status_pb2 import Status as RpcStatus  # type: ignore[import-untyped]  # comes without types
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

Signal = Literal["traces", "logs", "metrics"]
Act = Literal["answer", "hang", "reset", "lose"]

REQUESTS: Final[Mapping[str, Any]] = {
    "traces": ExportTraceServiceRequest,
    "logs": ExportLogsServiceRequest,
    "metrics": ExportMetricsServiceRequest,
}
RESPONSES: Final[Mapping[str, Any]] = {
    "traces": ExportTraceServiceResponse,
    "logs": ExportLogsServiceResponse,
    "metrics": ExportMetricsServiceResponse,
}


@dataclass(frozen=True, slots=True)
class Reply:
    """What to do with one request. It is kept when it is answered with 200, and when its answer is lost.

    `act`: answer; hang until the receiver is closed; reset the connection without reading on; lose the answer, which
    keeps the request and then closes the connection.
    """

    status: int = 200
    act: Act = "answer"
    rejected: int = 0
    message: str = ""
    retry_after: str | None = None
    unless: bytes | None = None
    """A request that holds these bytes gets this reply, any other `OK`."""
    signal: Signal | None = None
    """A request of this signal gets this reply, any other `OK`."""
    code: str | None = None
    """gRPC's name of the status, where it is not the one that belongs to the HTTP status."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """The body of the answer, when it is not the one that OTLP wants."""


OK: Final = Reply()
HANG: Final = Reply(act="hang")
RESET: Final = Reply(act="reset")
LOSE: Final = Reply(act="lose")


def partial(rejected: int, message: str = "") -> Reply:
    """Accepted, but for some records."""
    return Reply(rejected=rejected, message=message)


def refusing(needle: bytes, status: int = 400) -> Reply:
    """Refused when the request holds these bytes, such as the id of a span; accepted otherwise. For `then`."""
    return Reply(status, unless=needle, message="bad record")


def answer_of(signal: Signal, reply: Reply) -> bytes:
    """The body that OTLP wants: the signal's response when accepted, else google.rpc.Status."""
    if reply.body is not None:
        return reply.body
    if reply.status != 200:
        return bytes(RpcStatus(code=3, message=reply.message).SerializeToString())
    response = RESPONSES[signal]()
    if reply.rejected or reply.message:
        count = {"traces": "rejected_spans", "logs": "rejected_log_records", "metrics": "rejected_data_points"}[signal]
        setattr(response.partial_success, count, reply.rejected)
        response.partial_success.error_message = reply.message
    return bytes(response.SerializeToString())
