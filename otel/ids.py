"""Ids of traces and spans, derived only from the session's id and the id of the event that opened them.

So live following, a later backfill and restarts give the same ids. Ids of tool calls and turns are not used: they are
not unique within a session.
"""

from functools import lru_cache
from hashlib import blake2b

_VERSION = b"session-exporter/v1"


def trace_id(session: str, opened_by: str) -> bytes:
    """Return the 16 bytes of the trace of the interaction that an event opened."""
    return _hash(16, "trace", session, opened_by)


def span_id(kind: str, session: str, opened_by: str) -> bytes:
    """Return the 8 bytes of the span of an operation that an event opened."""
    return _hash(8, kind, session, opened_by)


def _hash(size: int, kind: str, session: str, opened_by: str) -> bytes:
    digest = blake2b(_begun(kind, session) + opened_by.encode("utf-8", "replace"), digest_size=size).digest()
    # All zeros mean "no id" in OTLP.
    return digest if digest.strip(b"\0") else bytes(size - 1) + b"\1"


@lru_cache(maxsize=256)
def _begun(kind: str, session: str) -> bytes:
    return b"\0".join((_VERSION, kind.encode("utf-8", "replace"), session.encode("utf-8", "replace"), b""))
