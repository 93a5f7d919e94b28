"""Reads requests: bodies within limits on their size before and after unpacking, and batches of events.

Batches are decoded and redacted off the event loop.
"""

import asyncio
import threading
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol, TypeAlias

import zstandard
from starlette.requests import ClientDisconnect, Request

from exporter.core.events.json_scanner import TooManyError
from exporter.core.events.redaction import Masked, RedactEvent, Refused
from exporter.core.events.tool_calls import Commands
from exporter.missioncontrol.http.responses import ApiError
from exporter.missioncontrol.ingest.batch import EVENTS_MAX, BadBodyError, Batch, Elements, read_elements, sort_out

ENCODINGS: Final = ("zstd", "gzip")
_CHUNK_SECONDS: Final = 30.0
_UNPACKED_INLINE_BYTES_MAX: Final = 256 * 1024
_WINDOW_BYTES_MAX: Final = 8 << 20
# What one step is given can at most become 8 and 4 MiB: four bytes of zstd are up to 128 KiB, one of gzip up to 1032.
_ZSTD_STEP_BYTES, _GZIP_STEP_BYTES = 256, 4096
_FRAMES_MAX: Final = 1000
_HINT: Final = "Nothing was stored; send it again, or without Content-Encoding."


class MemoryBudget:
    """Limits the memory of all bodies together, from their first byte until their events are stored."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_left = bytes_max
        self.lock = threading.Lock()
        self.unpacking = asyncio.Lock()
        """Only one body is unpacked in a thread at a time, so that several bombs cost the memory of one."""

    @contextmanager
    def reserve(self) -> "Iterator[Reservation]":
        """Give one request its reservation, which is returned at the end."""
        reservation = Reservation(self)
        try:
            yield reservation
        finally:
            reservation.take(-reservation.size_bytes)


class Reservation:
    """The memory that one request has reserved; to be used from one thread at a time."""

    def __init__(self, budget: MemoryBudget) -> None:
        self.budget = budget
        self.size_bytes = 0

    def take(self, size: int) -> None:
        """Reserve memory, or return it where `size` is negative; raise `ApiError` 503 when there is not enough."""
        with self.budget.lock:
            if size > self.budget.bytes_left:
                headers = {"Retry-After": "1"}
                raise ApiError(503, "busy", "Too much arrives at once.", hint="Send it again later.", headers=headers)
            self.budget.bytes_left -= size
        self.size_bytes += size


class _Unpacker(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: memoryview, /) -> bytes: ...


async def read_body(request: Request, size_max: int, reservation: Reservation) -> bytes:
    """Return the body as it was before Content-Encoding; raise `ApiError` 400, 408, 413, 415 or 503.

    Room for what is returned is taken and stays so.
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    received = await _receive(request, size_max, reservation)
    if encoding in ("", "identity"):
        return received
    unpack = {"zstd": _unpack_zstd, "gzip": _unpack_gzip, "x-gzip": _unpack_gzip}.get(encoding)
    if unpack is None:
        raise ApiError(
            415,
            "unknown_encoding",
            f"Content-Encoding {encoding[:40]!r} is not understood.",
            hint="Send zstd, gzip or identity.",
            headers={"Accept-Encoding": ", ".join(ENCODINGS)},
        )
    body = None
    if encoding == "zstd":
        body = _unpack_whole(received, min(size_max, _UNPACKED_INLINE_BYTES_MAX), reservation)
    if body is None:
        async with reservation.budget.unpacking:
            body = await asyncio.to_thread(unpack, received, size_max, reservation)
    reservation.take(-len(received))
    return body


async def _receive(request: Request, size_max: int, reservation: Reservation) -> bytes:
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and (len(declared) > 18 or int(declared) > size_max):
        raise _too_large(size_max)
    chunks: list[bytes] = []
    size = 0
    stream = request.stream()
    try:
        while True:
            async with asyncio.timeout(_CHUNK_SECONDS):
                chunk = await anext(stream, None)
            if chunk is None:
                return b"".join(chunks)
            size += len(chunk)
            if size > size_max:
                raise _too_large(size_max)
            reservation.take(len(chunk))
            chunks.append(chunk)
    except ClientDisconnect as error:
        message = "The connection closed before the whole body was here."
        raise ApiError(400, "half_body", message, hint="Nothing was stored; send it again.") from error
    except TimeoutError as error:
        message = f"The body stood still for {_CHUNK_SECONDS:.0f} seconds."
        raise ApiError(408, "slow_body", message, hint="Nothing was stored; send it again.") from error


def _unpack_whole(packed: bytes, size_max: int, reservation: Reservation) -> bytes | None:
    """Return what one frame holds that says its size, at most so much; None for everything else."""
    size = 0
    try:
        size = zstandard.frame_content_size(packed)
        if not 0 < size <= size_max:
            return None
        reservation.take(size)
        unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES_MAX)
        return unpacker.decompress(packed, allow_extra_data=False)
    except zstandard.ZstdError:
        reservation.take(-max(0, size))
        return None


def _unpack_zstd(packed: bytes, size_max: int, reservation: Reservation) -> bytes:
    try:
        if zstandard.frame_content_size(packed) > size_max:
            raise _too_large(size_max)
        body = _unpack_whole(packed, size_max, reservation)
        if body is not None:
            return body
        unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES_MAX)
        return _unpack(packed, unpacker.decompressobj, _ZSTD_STEP_BYTES, size_max, reservation)
    except (zstandard.ZstdError, MemoryError) as error:
        raise _broken(f"is not valid zstd: {error}") from error


def _unpack_gzip(packed: bytes, size_max: int, reservation: Reservation) -> bytes:
    try:
        return _unpack(packed, lambda: zlib.decompressobj(wbits=31), _GZIP_STEP_BYTES, size_max, reservation)
    except zlib.error as error:
        raise _broken(f"is not valid gzip: {error}") from error


def _unpack(
    packed: bytes, begin: Callable[[], _Unpacker], step_bytes: int, size_max: int, reservation: Reservation
) -> bytes:
    """Return the content of all frames (gzip calls them members); each must be whole, and nothing may follow them."""
    view, position = memoryview(packed), 0
    parts: list[bytes] = []
    size = frames = 0
    while position < len(packed) or not frames:
        frames += 1
        if frames > _FRAMES_MAX:
            raise _broken(f"has more than {_FRAMES_MAX} compressed parts")
        unpacker = begin()
        while not unpacker.eof:
            if position >= len(packed):
                raise _broken("ends too early")
            piece = view[position : position + step_bytes]
            part = unpacker.decompress(piece)
            position += len(piece) - len(unpacker.unused_data)
            size += len(part)
            if size > size_max:
                raise _too_large(size_max)
            reservation.take(len(part))
            parts.append(part)
    return b"".join(parts)


def _broken(why: str) -> ApiError:
    return ApiError(400, "bad_encoding", f"The body {why}.", hint=_HINT)


def _too_large(size_max: int) -> ApiError:
    message = f"The body is larger than {size_max} bytes."
    return ApiError(413, "too_large", message, hint="Send fewer events in one request.")


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
    calls_unknown: int = 0
    bytes_stored: int = 0


@dataclass(frozen=True, slots=True)
class Floor:
    """What masks the events of clients that do not declare that they redact."""

    redact: RedactEvent
    commands: Commands | None = None


FloorOf: TypeAlias = Callable[[bytes], Floor]


class RequestIntake:
    """Reads requests. All unpacked bodies together stay within `RequestLimits.bodies_bytes`."""

    def __init__(
        self,
        limits: RequestLimits,
        counters: Counters,
        redact: RedactEvent | None,
        commands: Commands | None = None,
        floor: "Callable[[], Awaitable[Floor]] | None" = None,
    ) -> None:
        """`floor` gives the redactor for what undeclared clients send now; without it that is `redact`."""
        self.limits = limits
        self._counters = counters
        self._memory = MemoryBudget(limits.bodies_bytes)
        self._always = Floor(redact, commands) if redact is not None else None
        self._floor = floor
        # A redactor belongs to one thread, so all redaction of undeclared clients happens on this one.
        self._redacting = ThreadPoolExecutor(1, thread_name_prefix="receiver-redact")
        # More threads would only slow the writer, which shares the interpreter; with one, a bad body would block all.
        self._sorting = ThreadPoolExecutor(2, thread_name_prefix="receiver-sort")

    def beside(self, counters: Counters, floor: "Callable[[], Awaitable[Floor]] | None") -> "RequestIntake":
        """Return the same with other counters and another redactor; the two share memory and threads."""
        other = copy(self)
        other._counters, other._floor = counters, floor
        return other

    def close(self) -> None:
        """End the threads."""
        self._redacting.shutdown(wait=False)
        self._sorting.shutdown(wait=False)

    async def read_body(self, request: Request, bytes_max: int) -> bytes:
        """Return the body of a request that is no batch, within the limits; raise `ApiError`."""
        with self._memory.reserve() as reservation:
            return await read_body(request, min(bytes_max, self.limits.body_bytes), reservation)

    @asynccontextmanager
    async def read_batch(self, request: Request) -> AsyncIterator[Batch]:
        """Give the events of a request, redacted unless the client declared that it has done so; raise `ApiError`.

        Their memory is reserved until the context ends, so it ends when they are stored.
        """
        floor = None
        if DECLARATION not in request.headers:
            floor = self._always if self._floor is None else await self._floor()
        if floor is None and DECLARATION not in request.headers:
            raise ApiError(
                503,
                "no_redactor",
                "This client does not say that it redacts, and no redactor is configured here.",
                hint="Send the header Session-Exporter from a client that redacts, or run the receiver with one.",
            )
        with self._memory.reserve() as reservation:
            body = await read_body(request, self.limits.body_bytes, reservation)
            if floor is None and len(body) <= _INLINE_BYTES_MAX:
                batch = self._sort_out(body, None)
            else:
                thread = self._sorting if floor is None else self._redacting
                batch = await asyncio.get_running_loop().run_in_executor(thread, self._sort_out, body, floor)
            del body  # what of it is stored is in the batch
            yield self._counted(batch)

    async def floor(self) -> "Floor":
        """Return what redacts here; raise `ApiError` 503 when nothing does."""
        found = self._always if self._floor is None else await self._floor()
        if found is None:
            hint = "Run the receiver with a redactor."
            raise ApiError(503, "no_redactor", "No redactor is configured here.", hint=hint)
        return found

    def redact_again(self, floor: "Floor", line: bytes) -> bytes | None:
        """Return a stored line redacted once more, None for one that is refused; for any thread but the loop's."""
        outcome = self._redacting.submit(floor.redact, line).result()
        return outcome.line if isinstance(outcome, Masked) else None if isinstance(outcome, Refused) else outcome

    async def sort_out(self, lines: Sequence[bytes], rewound: Sequence[str]) -> Batch:
        """Return redacted events of this process as a batch."""
        found = Elements(list(lines), list(rewound))
        sort = partial(sort_out, found, event_bytes_max=self.limits.event_bytes)
        return self._counted(await asyncio.get_running_loop().run_in_executor(self._sorting, sort))

    def _counted(self, batch: Batch) -> Batch:
        self._counters.rejected += len(batch.rejected)
        self._counters.ephemeral += len(batch.ephemeral)
        self._counters.masked += sum(bool(event.rules) for event in batch.durable)
        return batch

    def _sort_out(self, body: bytes, floor: Floor | None) -> Batch:
        try:
            found = read_elements(body, self.limits.events)
        except BadBodyError as error:
            message = f"The body cannot be read: {error}."
            raise ApiError(400, "bad_body", message, hint='Send {"events":[…]} as JSON.') from error
        except TooManyError as error:
            message = f"The body names more than {error.count_max} events; no more are taken at once."
            raise ApiError(413, "too_many_events", message, hint="Send fewer events in one request.") from error
        masked = None if floor is None else partial(self._masked, floor.redact)
        batch = sort_out(found, event_bytes_max=self.limits.event_bytes, redact=masked)
        batch.commands = None if floor is None else floor.commands
        return batch

    def _masked(self, redact: RedactEvent, raw: bytes) -> tuple[bytes, tuple[str, ...]] | None:
        outcome = redact(raw)
        if isinstance(outcome, Refused):
            self._counters.refused += 1
            return None
        return (outcome.line, outcome.rules or (_NAMELESS,)) if isinstance(outcome, Masked) else (outcome, ())
