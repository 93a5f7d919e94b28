"""The transport of a sink's requests: its interface, HTTP, and the certificates that are trusted."""

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from exporter.sinks.threads import CallThreads

if TYPE_CHECKING:
    import ssl
    from types import ModuleType

_NO_AUTHORITY: Final = (18, 19, 20, 21)
"""OpenSSL's codes for a chain without a trusted root: self-signed, or of an unknown issuer."""


def trust(certificate_file: str | None) -> "ssl.SSLContext | None":
    """Return a context that trusts only the certificates of this file, None without one. Raises OSError or SSLError."""
    if certificate_file is None:
        return None
    import ssl

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


def _httpx() -> "ModuleType":
    """Import httpx when it is first needed, because it would slow down `exporter status`.

    httpx 0.28 imports its own command line, and rich and pygments with it, if click is installed; if that module is
    marked as missing, httpx works without it, as it does without click.
    """
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None means: not there
    return importlib.import_module("httpx")


def _verify(url: str, certificate_file: str | None) -> "ssl.SSLContext | bool":
    if not url.lower().startswith("https:"):
        return False  # loading the certificates takes time and is not needed for plain http
    return trust(certificate_file) or True


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A complete HTTP answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NoAnswerError(Exception):
    """No answer came: refused, reset, timed out, not resolved. Whether the request was carried out is unknown."""


class Transport(Protocol):
    """Sends one request and returns its answer; raises `NoAnswerError`. Redirects are answers like any other."""

    async def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer: ...

    async def close(self) -> None: ...


class HttpTransport:
    """The blocking client of httpx on a few threads, which takes half the time of the asynchronous client."""

    def __init__(
        self, url: str, *, connections: int, timeout_seconds: float, certificate_file: str | None = None
    ) -> None:
        httpx = _httpx()
        self._url = url.rstrip("/")
        self._threads = CallThreads(connections, "sink")
        self._no_answer = httpx.HTTPError
        self._request = httpx.Request
        self._timeout = {"timeout": httpx.Timeout(timeout_seconds, connect=min(10.0, timeout_seconds)).as_dict()}
        # The transport itself: no redirects, cookies, proxies or netrc, all of which `httpx.Client` would look into.
        self._transport = httpx.HTTPTransport(
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            trust_env=False,
            verify=_verify(url, certificate_file),
        )

    async def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        return await self._threads.call(lambda: self._send(method, path, headers, body))

    def _send(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        try:
            request = self._request(
                method, self._url + path, headers=dict(headers), content=body or None, extensions=self._timeout
            )
            response = self._transport.handle_request(request)
            response.read()
            response.close()
        except self._no_answer as error:
            said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise NoAnswerError(distrusted(error) or said) from error
        return HttpAnswer(response.status_code, response.headers, response.content)

    async def close(self) -> None:
        self._threads.close()
