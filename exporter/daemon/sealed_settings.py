"""Settings as a receiver is told of them: a keyed hash of each, so that it sees which differ and never a value."""

import hmac
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

_DIGITS: Final = 16


class SealedSettings:
    """The settings of this exporter, given as texts by their paths."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self._of: dict[str, dict[str, str]] = {}

    def told(self, salt: str, *, in_full: bool) -> dict[str, Any]:
        """Return the hash of all with the salt of a receiver's tenant; `in_full` also that of each."""
        if salt not in self._of:
            self._of = {salt: {path: _sealed(salt, f"{path}\0{text}") for path, text in self._values.items()}}
        keys = self._of[salt]
        whole = sha256("".join(f"{path}={keys[path]}\n" for path in sorted(keys)).encode()).hexdigest()[:_DIGITS]
        return {"hash": whole, **({"keys": keys} if in_full else {})}


def _sealed(salt: str, text: str) -> str:
    return hmac.digest(salt.encode(), text.encode("utf-8", "surrogatepass"), "sha256").hex()[:_DIGITS]
