"""An archive: sessions stored as files."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from config.url import path_of
from exporter.core.names import sink_name
from exporter.wiring.sinks.kind import BuiltSink, SinkKind, SinkParts

if TYPE_CHECKING:
    from config.settings import Archive
    from exporter.doctor.sinks import ArchiveProbe

_SECTION: Final = "archive"


def _build(name: str, one: "Archive", parts: SinkParts) -> Iterator[BuiltSink]:
    from exporter.core.delivery.gathering import Gathering
    from exporter.pipeline.feed import EventFeed
    from exporter.sinks.archive.objects import ObjectFiles
    from exporter.sinks.archive.sink import LANES, ArchiveSink

    objects, gathering = ObjectFiles(path_of(one.url)), Gathering(one.seal_bytes, one.seal_seconds)
    sink = ArchiveSink(sink_name(_SECTION, name), one.url, objects, gathering)
    yield BuiltSink(sink, LANES, EventFeed(parts.reader))


def _probe(name: str, one: "Archive") -> "ArchiveProbe":
    from exporter.doctor.sinks import ArchiveProbe

    return ArchiveProbe(name, path_of(one.url))


KIND: Final = SinkKind(
    section=_SECTION,
    what="every durable event, to compressed files in a directory ([format](archive.md))",
    build=_build,
    probe=_probe,
)
