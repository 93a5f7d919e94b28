"""The transport of a sink's requests: its interface, its answers, and the certificates that are trusted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from exporter.files import open_regular

if TYPE_CHECKING:
    import ssl

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
    """No answer came: refused, reset, timed out, not resolved.

    `unsent` says that nothing of the request left, else nobody knows whether it was carried out. The text names what
    failed and holds nothing of the request.
    """

    def __init__(self, why: str, *, unsent: bool = False) -> None:
        super().__init__(why)
        self.unsent = unsent


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


_NO_AUTHORITY: Final = (18, 19, 20, 21)
"""OpenSSL's codes for a chain without a trusted root: self-signed, or of an unknown issuer."""


def trust(certificate_file: str | None) -> "ssl.SSLContext | None":
    """Return a context that trusts only the certificates of this file, None without one. Raises OSError or SSLError."""
    if certificate_file is None:
        return None
    import ssl

    open_regular(certificate_file).close()
    return ssl.create_default_context(cafile=certificate_file)


def distrusted(error: BaseException | None) -> str | None:
    """Return why a certificate was not trusted and what to do, None if that is not the cause of an error."""
    import ssl

    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    if error is None:
        return None
    said = f"its certificate is not trusted: {error.verify_message}"
    return f"{said}; set certificate_file to the CA's certificate" if error.verify_code in _NO_AUTHORITY else said
