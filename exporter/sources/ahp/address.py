"""Where an agent host is, and the token that opens it, kept apart: the address may be shown, the token never."""

from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlencode


@dataclass(frozen=True, slots=True)
class Address:
    """The WebSocket of an agent host. `token` is asked before every connection; `repr` and `str` do not show it."""

    shown: str
    token: Callable[[], str | None] = field(default=lambda: None, repr=False)

    def __str__(self) -> str:
        return self.shown

    def with_token(self) -> str:
        """Return the address to connect to. It is a secret."""
        token = self.token()
        return f"{self.shown}?{urlencode({'tkn': token})}" if token else self.shown
