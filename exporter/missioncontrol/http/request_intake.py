"""Reads requests: bodies within the limits, and batches decoded and redacted off the event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from starlette.requests import Request

from exporter.core.events.json_scanner import TooManyError
from exporter.core.events.redaction import Masked, RedactEvent, Refused
from exporter.missioncontrol.http.request_body import MemoryBudget, read_body
from exporter.missioncontrol.http.responses import ApiError
from exporter.missioncontrol.ingest.batch import EVENTS_MAX, BadBodyError, Batch, Elements, read_elements, sort_out

DECLARATION: Final = "session-exporter"
"""The request header that says: this client redacts before it sends."""

_INLINE_BYTES_MAX: Final = 64 * 1024
_NAMELESS: Final = "unknown"


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """How large one request may be, and all bodies together."""

    body_bytes: int = 32 << 20
    bodies_bytes: int = 128 << 20
    events: int = EVENTS_MAX
    event_bytes: int = 16 << 20


@dataclass(slots=True)
class Counters:
    """Counts since the start, for `/metrics`."""

    requests: dict[str, int] = field(default_factory=dict)
    stored: int = 0
    duplicates: int = 0
    rejected: int = 0
    ephemeral: int = 0
    masked: int = 0
    refused: int = 0
    bytes_stored: int = 0


class RequestIntake:
    """Reads requests. All unpacked bodies together stay within `RequestLimits.bodies_bytes`."""

    def __init__(self, limits: RequestLimits, counters: Counters, redact: RedactEvent | None) -> None:
        self._limits = limits
        self._counters = counters
        self._memory = MemoryBudget(limits.bodies_bytes)
        self._redact = redact
        # A redactor belongs to one thread, so all redaction of undeclared clients happens on this one.
        self._redacting = ThreadPoolExecutor(1, thread_name_prefix="receiver-redact")
        # More threads would only slow the writer, which shares the interpreter; with one, a bad body would block all.
        self._sorting = ThreadPoolExecutor(2, thread_name_prefix="receiver-sort")

    def close(self) -> None:
        """End the threads."""
        self._redacting.shutdown(wait=False)
        self._sorting.shutdown(wait=False)

    async def read_body(self, request: Request, bytes_max: int) -> bytes:
        """Return the body of a request that is no batch, within the limits; raise `ApiError`."""
        with self._memory.reserve() as reservation:
            return await read_body(request, min(bytes_max, self._limits.body_bytes), reservation)

    @asynccontextmanager
    async def read_batch(self, request: Request) -> AsyncIterator[Batch]:
        """Give the events of a request, redacted unless the client declared that it has done so; raise `ApiError`.

        Their memory is reserved until the context ends, so it ends when they are stored.
        """
        declared = DECLARATION in request.headers
        if not declared and self._redact is None:
            raise ApiError(
                503,
                "no_redactor",
                "This client does not say that it redacts, and no redactor is configured here.",
                hint="Send the header Session-Exporter from a client that redacts, or run the receiver with one.",
            )
        with self._memory.reserve() as reservation:
            body = await read_body(request, self._limits.body_bytes, reservation)
            if declared and len(body) <= _INLINE_BYTES_MAX:
                batch = self._sort_out(body, None)
            else:
                thread, redact = (self._sorting, None) if declared else (self._redacting, self._redact)
                batch = await asyncio.get_running_loop().run_in_executor(thread, self._sort_out, body, redact)
            del body  # what of it is stored is in the batch
            yield self._counted(batch)

    async def sort_out(self, lines: Sequence[bytes], rewound: Sequence[str]) -> Batch:
        """Return redacted events of this process as a batch."""
        found = Elements(list(lines), list(rewound))
        sort = partial(sort_out, found, event_bytes_max=self._limits.event_bytes)
        return self._counted(await asyncio.get_running_loop().run_in_executor(self._sorting, sort))

    def _counted(self, batch: Batch) -> Batch:
        self._counters.rejected += len(batch.rejected)
        self._counters.ephemeral += len(batch.ephemeral)
        self._counters.masked += sum(bool(event.rules) for event in batch.durable)
        return batch

    def _sort_out(self, body: bytes, redact: RedactEvent | None) -> Batch:
        try:
            found = read_elements(body, self._limits.events)
        except BadBodyError as error:
            raise ApiError(
                400, "bad_body", f"The body cannot be read: {error}.", hint='Send {"events":[…]} as JSON.'
            ) from error
        except TooManyError as error:
            raise ApiError(
                413,
                "too_many_events",
                f"The body names more than {error.count_max} events; no more are taken at once.",
                hint="Send fewer events in one request.",
            ) from error
        made_safe = None if redact is None else _without_secrets(redact, self._counters)
        return sort_out(found, event_bytes_max=self._limits.event_bytes, redact=made_safe)


def _without_secrets(
    redact: RedactEvent, counters: Counters
) -> Callable[[bytes], tuple[bytes, tuple[str, ...]] | None]:
    def apply(raw: bytes) -> tuple[bytes, tuple[str, ...]] | None:
        outcome = redact(raw)
        if isinstance(outcome, Refused):
            counters.refused += 1
            return None
        return (outcome.line, outcome.rules or (_NAMELESS,)) if isinstance(outcome, Masked) else (outcome, ())

    return apply
