"""The digest by which two sides check that they hold the same events; order-independent and incremental.

A digest is the sum modulo 2^256 of SHA-256(id, 0, SHA-256(bytes as delivered)) over the distinct, not hidden ids.
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import Final

_MODULUS: Final = 1 << 256
EMPTY: Final = 0


def item(id: str, body_sha256: bytes) -> int:
    """Return what one event adds to the sum."""
    return int.from_bytes(sha256(id.encode() + b"\0" + body_sha256).digest(), "big")


def add(running: int, items: Iterable[int]) -> int:
    """Return the sum with these items in it."""
    return (running + sum(items)) % _MODULUS


def remove(running: int, items: Iterable[int]) -> int:
    """Return the sum without these items, which must be in it."""
    return (running - sum(items)) % _MODULUS


def to_hex(running: int) -> str:
    """Return the sum as it travels: 64 hexadecimal digits."""
    return f"{running:064x}"


def total(items: Iterable[tuple[str, bytes]]) -> str:
    """Return the digest of (id, SHA-256 of the bytes) pairs; every id must be there once only."""
    return to_hex(add(EMPTY, (item(id, body_sha256) for id, body_sha256 in items)))
