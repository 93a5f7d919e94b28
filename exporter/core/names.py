"""Names that files and sinks have, in one place because several parts must agree on them."""

from typing import Final

MARKS: Final = "marks.db"
QUARANTINE: Final = "quarantine.db"
RECEIVER: Final = "mission_control.db"
LOCAL: Final = "local"
"""The sink that is the embedded Mission Control."""


def sink_name(configured: str) -> str:
    """Return the name as a sink of a Mission Control that the settings call `configured`."""
    return "mission_control" if configured == "default" else f"mission_control.{configured}"


def otlp_name(configured: str, signal: str = "") -> str:
    """Return the name of an OTLP endpoint that the settings call `configured`, or of the sink that is its signal."""
    name = "otel" if configured == "default" else f"otel.{configured}"
    return f"{name}:{signal}" if signal else name


def endpoint_of(sink: str) -> str:
    """Return the name of the endpoint that a sink is a signal of, or the sink's own."""
    return sink.partition(":")[0]


def host_of(url: str) -> str:
    """Return the host of an address, without what may be secret in it."""
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2]
