"""How a sink's requests travel, and how they do over HTTP."""

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from exporter.sinks.threads import CallThreads
from exporter.sinks.trust import distrusted, trust

if TYPE_CHECKING:
    import ssl
    from types import ModuleType


def _httpx() -> "ModuleType":
    """Import httpx when it is first needed: `exporter status` must not pay for it.

    httpx 0.28 imports its own command line, and rich and pygments with it, wherever click is installed; told that
    there is no such module it does without, as it does where click is missing.
    """
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None means: not there
    return importlib.import_module("httpx")


def _verify(url: str, certificate_file: str | None) -> "ssl.SSLContext | bool":
    if not url.lower().startswith("https:"):
        return False  # loading the certificates takes time that plain http need not spend
    return trust(certificate_file) or True


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A whole HTTP answer. Header names are in lower case."""

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
    """httpx's blocking client on a few threads, which costs half of what its asynchronous one does."""

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
