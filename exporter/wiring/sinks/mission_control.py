"""A Mission Control over HTTP."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from config.proxy import password_of, proxy_for
from config.token import latest, read_token
from exporter.core.names import sink_name
from exporter.wiring.sinks.kind import BuiltSink, SinkKind, SinkParts, or_fault

if TYPE_CHECKING:
    from config.settings import MissionControl
    from exporter.doctor.sinks import MissionControlProbe

_SECTION: Final = "mission_control"


def _build(name: str, one: "MissionControl", parts: SinkParts) -> Iterator[BuiltSink]:
    from exporter.pipeline.feed import EventFeed
    from exporter.sinks.http_transport import HttpTransport
    from exporter.sinks.mission_control import MissionControlSink

    host = urlsplit(one.url).hostname or ""
    is_loopback = host in ("localhost", "::1") or host.startswith("127.")  # where there is no wire to save
    transport = HttpTransport(
        one.url,
        connections=one.connections,
        timeout_seconds=one.timeout_seconds,
        certificate_file=one.certificate_file,
        proxy=proxy.url if (proxy := proxy_for(one.proxy, one.url)) else None,
    )
    sink = MissionControlSink(
        sink_name(_SECTION, name),
        one.url,
        transport,
        token=latest(partial(read_token, one), or_fault(partial(read_token, one))[0]),
        compression=one.compression == "auto" and not is_loopback,
        event_bytes_max=one.max_event_bytes,
        owner_and_repo=(one.owner_id, one.repo_id) if one.owner_id and one.repo_id else None,
        installation=parts.installation,
    )
    yield BuiltSink(sink, one.connections, EventFeed(parts.reader, keep_live=one.live))


def _probe(name: str, one: "MissionControl") -> "MissionControlProbe":
    from exporter.doctor.sinks import MissionControlProbe
    from exporter.doctor.way import Way

    token, fault = or_fault(lambda: read_token(one))
    token_file = Path(one.token_file) if one.token_file else None
    proxy, way_fault = or_fault(lambda: proxy_for(one.proxy, one.url))
    way = Way(one.certificate_file, proxy=proxy)
    return MissionControlProbe(name, one.url, token, token_file, fault or way_fault, way)


KIND: Final = SinkKind(
    section=_SECTION,
    what="every durable event, to a Mission Control over HTTP; ephemeral ones with `live = true`",
    build=_build,
    probe=_probe,
    secrets=lambda one: [read_token(one) or "", *password_of(one.proxy, one.url)],
    secret_file=lambda one: one.token_file,
)
