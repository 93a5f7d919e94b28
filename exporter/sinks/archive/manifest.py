"""The manifest of one session in an archive: which events are in which object, and which of them are hidden.

Events have the order of the objects and of their lines. If an id occurs twice, the last event is valid; a hidden id has
no valid event.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

import msgspec

from exporter.core.events.digest import total
from exporter.core.events.envelope import Envelope, decode

FORMAT: Final = 1
_HASH_BYTES: Final = 32


class DamagedError(Exception):
    """Something in an archive is not what was written; the message says what it is."""


class SealedSegment(msgspec.Struct, frozen=True):
    """One object: its name, which is the SHA-256 of its bytes, its events, and the first and the last of them.

    `size` is the size of the lines before compression.
    """

    object: str
    first: str
    last: str
    events: int
    size: int
    ids: list[str]
    hashes: str
    """The SHA-256 of every line, one after the other, in base64."""

    def items(self) -> Iterator[tuple[str, bytes]]:
        """Return the ids with the SHA-256 of each line."""
        hashes = b64decode(self.hashes)
        parts = [hashes[first : first + _HASH_BYTES] for first in range(0, len(hashes), _HASH_BYTES)]
        return zip(self.ids, parts, strict=True)


class _Written(msgspec.Struct, frozen=True):
    format: int
    session: str
    count: int
    digest: str
    last: str | None
    segments: list[SealedSegment]
    hidden: list[str]


@dataclass(slots=True)
class Manifest:
    """See the module. Two manifests with the same `count` and `digest` are equal (`core/events/digest.py`)."""

    session: str
    segments: list[SealedSegment] = field(default_factory=list)
    hidden: set[str] = field(default_factory=set)

    def stored(self) -> dict[str, bytes]:
        """Return every id with its valid hash, hidden ids too, in the order of the events."""
        found: dict[str, bytes] = {}
        for segment in self.segments:
            for identity, line_hash in segment.items():
                found.pop(identity, None)
                found[identity] = line_hash
        return found

    def items(self) -> dict[str, bytes]:
        """Return the ids that are not hidden, with the hash of each."""
        return {identity: one for identity, one in self.stored().items() if identity not in self.hidden}

    def without(self, objects: set[str]) -> "Manifest":
        """Return a manifest that does not name these objects."""
        left = Manifest(self.session, [one for one in self.segments if one.object not in objects], self.hidden)
        left.hidden &= left.stored().keys()
        return left

    def write(self) -> bytes:
        """Return the manifest as it is stored."""
        items = self.items()
        last = next(reversed(items), None)
        written = _Written(
            FORMAT, self.session, len(items), total(items.items()), last, self.segments, sorted(self.hidden)
        )
        return msgspec.json.format(msgspec.json.encode(written), indent=1) + b"\n"


def read_manifest(data: bytes, session: str) -> Manifest:
    """Read a manifest; raises `DamagedError` if it is not what was written for this session."""
    try:
        written = msgspec.json.decode(data, type=_Written)
        manifest = Manifest(session, written.segments, set(written.hidden))
        items = manifest.items()
    except (msgspec.MsgspecError, ValueError) as error:  # ValueError: base64, or another number of hashes
        raise DamagedError("the manifest cannot be read") from error
    if written.format != FORMAT or written.session != session:
        raise DamagedError("the manifest is another session's, or of a later version")
    if written.count != len(items) or written.digest != total(items.items()):
        raise DamagedError("the manifest and its digest do not agree")
    return manifest


def seal(ids: Sequence[str], lines: Sequence[bytes]) -> tuple[SealedSegment, bytes]:
    """Return an object with these events, and its entry in the manifest."""
    import zstandard

    content = b"\n".join(lines) + b"\n"
    packed = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(content)
    hashes = b64encode(b"".join(sha256(line).digest() for line in lines)).decode()
    name = sha256(packed).hexdigest()
    return SealedSegment(name, ids[0], ids[-1], len(ids), len(content), list(ids), hashes), packed


def check_object(segment: SealedSegment, packed: bytes | None) -> None:
    """Raise `DamagedError` unless these bytes are the object and hold the events of the manifest."""
    import zstandard

    if packed is None:
        raise DamagedError("is missing")
    if sha256(packed).hexdigest() != segment.object:
        raise DamagedError("has other bytes than were written")
    try:
        content = zstandard.ZstdDecompressor().decompress(packed, max_output_size=segment.size)
    except zstandard.ZstdError:
        raise DamagedError("cannot be unpacked") from None
    lines = content.split(b"\n")[:-1]
    if len(content) != segment.size or len(lines) != segment.events or len(lines) != len(segment.ids):
        raise DamagedError("does not hold as many events as the manifest says")
    for line, (identity, line_hash) in zip(lines, segment.items(), strict=True):
        event = decode(line)
        if not isinstance(event, Envelope) or event.id != identity or sha256(line).digest() != line_hash:
            raise DamagedError(f"does not hold {identity} as the manifest says")
