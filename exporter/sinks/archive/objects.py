"""What keeps an archive's bytes: four methods, so that another kind of store is one module more."""

from collections.abc import Sequence
from typing import Protocol


class ObjectError(Exception):
    """Something cannot be kept, read or deleted now. Whether it was kept is unknown, and nothing is half kept."""


class ObjectStore(Protocol):
    """Bytes by key, such as `sessions/ID/NAME`. All methods block, are for any thread, and raise `ObjectError`."""

    def put(self, key: str, data: bytes) -> None:
        """Keep the bytes for good before it returns, in place of others of this key; never a part of them."""

    def get(self, key: str) -> bytes | None:
        """Return the bytes, None where there are none."""

    def list(self, prefix: str) -> Sequence[str]:
        """Return the keys below a prefix that ends in a slash."""

    def delete(self, key: str) -> None:
        """Delete the bytes for good, if there are any."""
