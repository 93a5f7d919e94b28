"""Mission Control sinks made from plain facts, as the settings hold them."""

from collections.abc import Callable
from urllib.parse import urlsplit

from exporter.sinks.mission_control import MissionControlSink
from exporter.sinks.transport import HttpTransport


def http_sink(
    name: str,
    url: str,
    *,
    token: Callable[[], str | None],
    connections: int,
    timeout_seconds: float,
    compression: bool,
    event_bytes_max: int,
    owner_and_repo: tuple[str, str] | None,
    certificate_file: str | None,
) -> MissionControlSink:
    """Make a sink over HTTP. To loopback nothing is compressed: there is no wire to save."""
    host = urlsplit(url).hostname or ""
    is_loopback = host in ("localhost", "::1") or host.startswith("127.")
    return MissionControlSink(
        name,
        url,
        HttpTransport(url, connections=connections, timeout_seconds=timeout_seconds, certificate_file=certificate_file),
        token=token,
        compression=compression and not is_loopback,
        event_bytes_max=event_bytes_max,
        owner_and_repo=owner_and_repo,
    )
