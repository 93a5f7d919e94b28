"""HTTP for every sink: no answer is larger, or takes longer, than the caller allows.

Import this module where a sink is built and not before: httpcore costs 40 ms.
"""

import socket
import ssl
import time
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

import httpcore

from exporter.sinks.roots import system_roots
from exporter.sinks.threads import CallThreads
from exporter.sinks.transport import ANSWER_BYTES_MAX, HttpAnswer, NoAnswerError, distrusted, trust

CONNECT_SECONDS_MAX: Final = 10.0
_KEEP_ALIVE_SECONDS: Final = 5.0
_REASON_CHARACTERS_MAX: Final = 300
_SECRET_CHARACTERS_MIN: Final = 6
_PROGRESS_BYTES: Final = 65_536
_NO_CONNECTION: Final = (httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.PoolTimeout)
_GZIP: Final = (b"gzip", b"x-gzip")
_GZIP_WINDOW: Final = 31


class HttpClient:
    """Requests below one address over persistent connections; may be called from several threads at a time.

    A request has `timeout_seconds` to connect (at most 10), the same for each 64 KiB that it sends, and the same for
    the whole answer from the last byte of the request on, however it arrives: informational answers, headers and body
    together. Redirects are answers. There are no cookies, and nothing comes from the environment.

    Behind a `proxy` the name is resolved there, and what goes to an https:// address passes it encrypted, in a tunnel:
    the proxy sees its own user and password, which its address may hold, and nothing of the request.
    """

    def __init__(
        self,
        url: str,
        *,
        connections: int | None,
        kept: int,
        timeout_seconds: float,
        trust: ssl.SSLContext | None,
        proxy: str | None = None,
    ) -> None:
        self._origin, self._host, self._path = _address(url)
        self._proxy = proxy
        connect = min(CONNECT_SECONDS_MAX, timeout_seconds)
        self._extensions = {"timeout": {"connect": connect, "pool": timeout_seconds}}
        self._pool = _pool(
            proxy,
            ssl_context=trust,
            max_connections=connections,
            max_keepalive_connections=kept,
            keepalive_expiry=_KEEP_ALIVE_SECONDS,
            network_backend=_TimedBackend(timeout_seconds),
        )

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, *, answer_bytes_max: int
    ) -> HttpAnswer:
        """Send one request to a path behind that of the address; raises NoAnswerError."""
        try:
            with self._pool.stream(
                method,
                httpcore.URL(**self._origin, target=self._path + _quoted(path)),
                headers=[self._host, *_sendable(headers)],
                content=None if method == "GET" else body,
                extensions=self._extensions,
            ) as response:
                found = {name.decode("ascii").lower(): value.decode("latin-1") for name, value in response.headers}
                encoding = found.get("content-encoding", "").strip().lower().encode()
                content, whole = _read(response.iter_stream(), encoding, answer_bytes_max)
                if _says_more(response):
                    response.extensions["network_stream"].close()
                return HttpAnswer(response.status, found, content, whole)
        except httpcore.LocalProtocolError:
            reason = "the request could not be made: a header cannot be sent"  # the error's text would hold it
        except httpcore.ProxyError as error:
            reason = f"the proxy {_shown(self._proxy or '')} refuses: {error}"  # a status and its phrase
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.RemoteProtocolError, OSError) as error:
            through = "" if self._proxy is None else f"through the proxy {_shown(self._proxy)}: "
            unsent = isinstance(error, _NO_CONNECTION)
            raise NoAnswerError(through + _described(error, headers), unsent=unsent) from error
        except (RuntimeError, ValueError) as error:
            raise NoAnswerError(f"the request could not be made: {type(error).__name__}") from None
        raise NoAnswerError(reason, unsent=True)

    def close(self) -> None:
        """Close the connections; requests in flight may fail."""
        self._pool.close()


class HttpTransport:
    """The blocking HTTP client on a few threads, which costs half of what an asynchronous client does."""

    def __init__(
        self,
        url: str,
        *,
        connections: int,
        timeout_seconds: float,
        certificate_file: str | None = None,
        proxy: str | None = None,
    ) -> None:
        self._threads = CallThreads(connections, "sink")
        self._client = HttpClient(
            url.rstrip("/"),
            connections=connections,
            kept=connections,
            timeout_seconds=timeout_seconds,
            trust=_trust(url, certificate_file),
            proxy=proxy,
        )

    async def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
    ) -> HttpAnswer:
        return await self._threads.call(lambda: self._send(method, path, headers, body, answer_bytes_max))

    def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, answer_bytes_max: int
    ) -> HttpAnswer:
        try:
            return self._client.request(method, path, headers, body, answer_bytes_max=answer_bytes_max)
        except NoAnswerError as error:
            if why := distrusted(error):
                raise NoAnswerError(why, unsent=error.unsent) from error
            raise

    async def close(self) -> None:
        self._threads.close()


def _pool(proxy: str | None, **options: Any) -> httpcore.ConnectionPool:
    if proxy is None:
        return httpcore.ConnectionPool(**options)
    parts = urlsplit(proxy)
    origin, _, _ = _address(proxy)
    user = (unquote(parts.username or "").encode(), unquote(parts.password or "").encode())
    return httpcore.HTTPProxy(
        httpcore.URL(**origin, target=b"/"),
        proxy_auth=user if any(user) else None,
        proxy_ssl_context=system_roots().context() if parts.scheme == "https" else None,
        **options,
    )


def _shown(url: str) -> str:
    return urlsplit(url)._replace(netloc=urlsplit(url).netloc.rpartition("@")[2]).geturl()


def _address(url: str) -> tuple[dict[str, Any], tuple[bytes, bytes], bytes]:
    """Return the origin of an address, its Host header, and its path, as they are sent."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        name = host.encode("idna")
    except UnicodeError:
        name = host.encode()  # no host has this name; every request fails
    name = b"[" + name + b"]" if b":" in name else name  # as a proxy needs it; connections are made without
    shown = name if parts.port is None else name + f":{parts.port}".encode()
    origin = {"scheme": parts.scheme.encode(), "host": name, "port": parts.port}
    return origin, (b"Host", shown), _quoted(parts.path)


def _quoted(path: str) -> bytes:
    """Return a path, with its query, in ASCII; what is quoted stays as it is."""
    return quote(path, safe="/?%:@!$&'()*+,;=~-._").encode("ascii")


def _sendable(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    try:
        return [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
    except UnicodeEncodeError:
        raise httpcore.LocalProtocolError from None


def _described(error: BaseException, headers: Mapping[str, str]) -> str:
    """Return what failed; an answer that is no HTTP is quoted in it, and may repeat the request."""
    text = str(error)
    for word in " ".join(headers.values()).split():
        if len(word) >= _SECRET_CHARACTERS_MIN:
            text = text.replace(word, "[hidden]")
    text = "".join(one if one.isprintable() else " " for one in text[:_REASON_CHARACTERS_MAX])
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _says_more(response: httpcore.Response) -> bool:
    """Tell whether bytes came behind the answer: they must not be taken for that to the next request."""
    connection = getattr(getattr(response.stream, "_stream", None), "_connection", None)  # httpcore does not tell
    state = getattr(connection, "_h11_state", None)
    return state is not None and bool(state.trailing_data[0])


def _read(parts: Iterable[bytes], encoding: bytes, most: int) -> tuple[bytes, bool]:
    """Return at most so many bytes of a decoded body, and whether that is all of it."""
    if encoding not in (b"", b"identity", *_GZIP):
        return b"", False
    inflater = zlib.decompressobj(_GZIP_WINDOW) if encoding in _GZIP else None
    content, is_empty = bytearray(), True
    try:
        for part in parts:
            is_empty = False
            content += part if inflater is None else inflater.decompress(part, most + 1 - len(content))
            # What comes behind the end of a gzip body is no part of it, and zlib would keep all of it.
            if len(content) > most or (inflater is not None and inflater.unused_data):
                return bytes(content[:most]), False
    except zlib.error:
        return bytes(content), False
    return bytes(content), inflater is None or inflater.eof or is_empty


class _TimedBackend(httpcore.NetworkBackend):
    def __init__(self, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        stream = self._inner.connect_tcp(host.strip("[]"), port, timeout, local_address, socket_options)
        return _TimedStream(stream, self._timeout_seconds)


class _TimedStream(httpcore.NetworkStream):
    """A connection whose reads share one deadline from the last write on, and whose writes must make progress."""

    def __init__(self, inner: httpcore.NetworkStream, timeout_seconds: float) -> None:
        self._inner = inner
        self._timeout_seconds = timeout_seconds
        self._answer_by: float | None = None

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        now = time.monotonic()
        if self._answer_by is None:
            self._answer_by = now + self._timeout_seconds
        try:
            if now < self._answer_by:
                return self._inner.read(max_bytes, self._answer_by - now)
        except httpcore.ReadTimeout:
            pass
        raise httpcore.ReadTimeout(f"the answer did not end within {self._timeout_seconds:g} s")

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._answer_by = None
        if isinstance(self._inner.get_extra_info("ssl_object"), ssl.SSLObject):  # TLS within the TLS of a proxy
            return self._inner.write(buffer, self._timeout_seconds)
        connection: socket.socket = self._inner.get_extra_info("socket")
        # TLS sends all of what it is given, however long that takes.
        piece = _PROGRESS_BYTES if isinstance(connection, ssl.SSLSocket) else len(buffer)
        rest = memoryview(buffer)
        send_by, sent = time.monotonic() + self._timeout_seconds, 0
        try:
            while rest:
                connection.settimeout(max(send_by - time.monotonic(), 0.001))
                count = connection.send(rest[:piece])
                rest, sent = rest[count:], sent + count
                if sent >= _PROGRESS_BYTES:
                    send_by, sent = time.monotonic() + self._timeout_seconds, 0
        except TimeoutError as error:
            raise httpcore.WriteTimeout("the request is not taken") from error
        except OSError as error:
            raise httpcore.WriteError(str(error)) from error

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        name = server_hostname and server_hostname.strip("[]")
        return _TimedStream(self._inner.start_tls(ssl_context, name, timeout), self._timeout_seconds)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _trust(url: str, certificate_file: str | None) -> ssl.SSLContext | None:
    if not url.lower().startswith("https:"):
        return None  # loading the certificates takes time that plain http need not spend
    return trust(certificate_file) or system_roots().context()
