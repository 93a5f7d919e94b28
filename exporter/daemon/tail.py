"""The events of one session to read: redacted; nothing is delivered or stored."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from exporter.core.delivery.position import START
from exporter.errors import UsageError
from exporter.pipeline.redactors import Redactors
from exporter.pipeline.segment_reader import SegmentReader
from exporter.sources.files.session_file import OpenFiles, SessionFile
from exporter.sources.journals import begins_of

_LOOK_SECONDS: Final = 0.2


async def tail(file: SessionFile, redaction: Redactors, *, follow: bool, line_bytes_max: int) -> AsyncIterator[bytes]:
    """Yield a session's durable events from its first; with `follow` until cancelled, through rewinds too."""
    files = OpenFiles(1)
    reader = SegmentReader(
        files, redaction.event, line_bytes_max=line_bytes_max, cache_bytes=0, commands=redaction.commands
    )
    position, generation = START, file.generation
    try:
        while True:
            file.refresh(files)
            if file.identity is None and not follow:
                raise UsageError(f"there is no session {file.session}", hint="see `exporter sessions list`")
            if generation != file.generation:
                position, generation = START, file.generation
                file.begins = begins_of(file.path) if file.is_journal else 0
            segment = await reader.segment(file, position) if file.identity is not None else None
            if segment is not None:
                for line in segment.lines:
                    yield line
                position = segment.end
            elif generation == file.generation:
                if not follow:
                    return
                await asyncio.sleep(_LOOK_SECONDS)
    finally:
        files.close_all()
