"""Reading a request's body with a ceiling on what is received and on what it unpacks to."""

import asyncio
import io
import zlib
from collections.abc import Callable
from typing import Final

import zstandard
from starlette.requests import ClientDisconnect, Request

from exporter.missioncontrol.answers import ApiError

ENCODINGS: Final = ("zstd", "gzip")
_CHUNK_SECONDS: Final = 30.0
_STEP_BYTES: Final = 256 * 1024
_WINDOW_BYTES_MAX: Final = 8 << 20
_HINT: Final = "Nothing was stored; send it again, or without Content-Encoding."


class Room:
    """How much of all bodies together is held while they arrive; only to be used on the event loop."""

    def __init__(self, bytes_max: int) -> None:
        self._left = bytes_max

    def take(self, size: int) -> None:
        """Take room, or raise `ApiError` 503."""
        if size > self._left:
            raise ApiError(
                503, "busy", "Too much arrives at once.", hint="Send it again later.", headers={"Retry-After": "1"}
            )
        self._left -= size

    def give_back(self, size: int) -> None:
        """Give back what was taken."""
        self._left += size


async def read_body(request: Request, size_max: int, room: Room) -> bytes:
    """Return the body as it was before Content-Encoding; raise `ApiError` 400, 408, 413, 415 or 503."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    received = await _receive(request, size_max, room)
    match encoding:
        case "" | "identity":
            return received
        case "zstd":
            return _unpack_zstd(received, size_max)
        case "gzip" | "x-gzip":
            return _unpack_gzip(received, size_max)
        case _:
            raise ApiError(
                415,
                "unknown_encoding",
                f"Content-Encoding {encoding[:40]!r} is not understood.",
                hint="Send zstd, gzip or identity.",
                headers={"Accept-Encoding": ", ".join(ENCODINGS)},
            )


async def _receive(request: Request, size_max: int, room: Room) -> bytes:
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared) > size_max:
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
            if size + len(chunk) > size_max:
                raise _too_large(size_max)
            room.take(len(chunk))
            size += len(chunk)
            chunks.append(chunk)
    except ClientDisconnect as error:
        message = "The connection closed before the whole body was here."
        raise ApiError(400, "half_body", message, hint="Nothing was stored; send it again.") from error
    except TimeoutError as error:
        message = f"The body stood still for {_CHUNK_SECONDS:.0f} seconds."
        raise ApiError(408, "slow_body", message, hint="Nothing was stored; send it again.") from error
    finally:
        room.give_back(size)


def _unpack_zstd(packed: bytes, size_max: int) -> bytes:
    unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES_MAX)
    try:
        size = zstandard.frame_content_size(packed)
        if size > size_max:
            raise _too_large(size_max)
        if 0 < size <= _STEP_BYTES:
            return unpacker.decompress(packed, max_output_size=size_max)
        # The reader gives no more than it is asked for, so a bomb costs no more memory than the ceiling.
        reader = unpacker.stream_reader(io.BytesIO(packed), read_across_frames=True)
        return _drain(reader.read, size_max)
    except (zstandard.ZstdError, MemoryError) as error:
        raise ApiError(400, "bad_encoding", f"The body is not valid zstd: {error}.", hint=_HINT) from error


def _unpack_gzip(packed: bytes, size_max: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    rest = packed
    try:
        while rest:
            unpacker = zlib.decompressobj(wbits=31)
            while not unpacker.eof:
                part = unpacker.decompress(rest, _STEP_BYTES)
                rest = unpacker.unconsumed_tail
                size += len(part)
                if size > size_max:
                    raise _too_large(size_max)
                parts.append(part)
                if not part and not rest and not unpacker.eof:
                    raise ApiError(400, "bad_encoding", "The gzip body ends too early.", hint=_HINT)
            rest = unpacker.unused_data
    except zlib.error as error:
        raise ApiError(400, "bad_encoding", f"The body is not valid gzip: {error}.", hint=_HINT) from error
    return b"".join(parts)


def _drain(read: Callable[[int], bytes], size_max: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := read(_STEP_BYTES):
        size += len(part)
        if size > size_max:
            raise _too_large(size_max)
        parts.append(part)
    return b"".join(parts)


def _too_large(size_max: int) -> ApiError:
    return ApiError(
        413, "too_large", f"The body is larger than {size_max} bytes.", hint="Send fewer events in one request."
    )
