"""How a sink's requests travel: what is sent, and what comes back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

ANSWER_BYTES_MAX: Final = 1 << 20
"""The largest answer, decoded, that is read where the caller names no other limit."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP answer. Header names are in lower case.

    `body` is decoded. `whole` is False when it was longer than the caller allows, or cannot be decoded: then `body` is
    the part before that.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    whole: bool = True


class NoAnswerError(ConnectionError):
    """No answer came: refused, reset, timed out, not resolved. Whether the request was carried out is unknown.

    The text names what failed and holds nothing of the request.
    """


class Transport(Protocol):
    """Sends one request and returns its answer; raises `NoAnswerError`. Redirects are answers like any other."""

    async def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
    ) -> HttpAnswer: ...

    async def close(self) -> None: ...
