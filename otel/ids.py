"""Ids of traces and spans: made from the session's id and the id of the event that opened it, and from nothing else.

So a session that is followed live, read a month later, or followed across ten crashes gives the same ids. Ids of tool
calls and turns are not unique within a session, and are no part of them.
"""

from hashlib import blake2b

_VERSION = b"session-exporter/v1"


def trace_id(session: str, opened_by: str) -> bytes:
    """Return the 16 bytes of the trace of the interaction that an event opened."""
    return _hash(16, b"trace", session, opened_by)


def span_id(kind: str, session: str, opened_by: str) -> bytes:
    """Return the 8 bytes of the span of an operation that an event opened."""
    return _hash(8, kind.encode("utf-8", "replace"), session, opened_by)


def _hash(size: int, kind: bytes, session: str, opened_by: str) -> bytes:
    parts = (_VERSION, kind, session.encode("utf-8", "replace"), opened_by.encode("utf-8", "replace"))
    digest = blake2b(b"\0".join(parts), digest_size=size).digest()
    # All zeros mean "no id" in OTLP.
    return digest if any(digest) else bytes(size - 1) + b"\1"
