"""The address and transport of an OTLP endpoint."""

import base64
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from otel.send.answer import NoAnswer, Signal

if TYPE_CHECKING:
    import ssl

_NONBLOCK: Final[int] = getattr(os, "O_NONBLOCK", 0)
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\x20-\x7e\t]*")
_OURS: Final = frozenset(
    {"connection", "content-encoding", "content-length", "content-type", "host", "te", "transfer-encoding"}
)


class EndpointError(Exception):
    """The address or the certificates of an endpoint are invalid; the message contains no secret."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OTLP endpoint. `headers` is called for every request, from several threads, and does not raise.

    Neither the address, which may hold a password, nor the headers are in its `repr`.
    """

    address: str = field(repr=False)
    protocol: Literal["http/protobuf", "grpc"] = "http/protobuf"
    append_path: bool = True
    timeout_seconds: float = 10.0
    gzip: bool = True
    certificate_file: str | None = None
    client_certificate_file: str | None = None
    client_key_file: str | None = None
    headers: Callable[[], Mapping[str, str]] = field(default=dict, repr=False)
    user_agent: str = "session-exporter"
    proxy: str | None = field(default=None, repr=False)
    """The address of a proxy, which may hold a password."""
    roots: str | None = None
    """The file or directory of the certificates that clients with no default of their own trust."""

    def parts(self) -> SplitResult:
        """Return the parts of the address; raises EndpointError when it is not one of http or https."""
        try:
            parts = urlsplit(self.address)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise EndpointError("the endpoint is no address that begins with http:// or https://")
        return parts

    def url(self, signal: Signal) -> str:
        """Return where a signal is posted to over HTTP, without a password that the address may hold."""
        parts = self.parts()
        path = f"{parts.path.rstrip('/')}/v1/{signal}" if self.append_path else parts.path or "/"
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, parts.query, ""))

    def place(self, signal: Signal) -> str:
        """Return where a signal is sent to, as people are told."""
        parts = self.parts()
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if self.protocol == "grpc" else self.url(signal)

    def is_secure(self) -> bool:
        """Whether TLS is spoken there."""
        return self.parts().scheme == "https"

    def headers_now(self) -> dict[str, str]:
        """Return the headers of one request in lower case, a password of the address among them.

        Raises NoAnswer, which does not tell the value, when one cannot be sent.
        """
        parts = self.parts()
        headers = {}
        if parts.password is not None or parts.username:
            user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
            headers["authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
        for name, value in self.headers().items():
            if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
                raise NoAnswer("a header cannot be sent: it has characters that no header may have", unsent=True)
            if name.lower() not in _OURS:
                headers[name.lower()] = value.strip()
        return headers

    def read(self, setting: Literal["certificate_file", "client_certificate_file", "client_key_file"]) -> bytes | None:
        """Return a PEM file's content, None without one; raises EndpointError when it cannot be read."""
        file: str | None = getattr(self, setting)
        if file is None:
            return None
        try:
            with open(file, "rb", opener=lambda name, flags: os.open(name, flags | _NONBLOCK)) as opened:
                if stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                    return opened.read()
            reason = "it is not a regular file"
        except OSError as error:
            reason = error.strerror or type(error).__name__
        raise EndpointError(f"{setting} cannot be read: {reason}")

    def trusted(self) -> bytes | None:
        """Return the certificates (PEM) that are trusted, None for those that the client brings."""
        if self.certificate_file is not None or self.roots is None:
            return self.read("certificate_file")
        path = Path(self.roots)
        held = path.iterdir() if path.is_dir() else ()
        # OpenSSL finds certificates by names that end in a number; the same may be there under its own name as well.
        named = (one for one in held if one.suffix in (".pem", ".crt") or one.suffix[1:].isdigit())
        files = sorted({one.resolve() for one in named}) if path.is_dir() else (path,)
        return b"\n".join(one.read_bytes() for one in files if one.is_file())

    def ssl_context(self, default: "Callable[[], ssl.SSLContext] | None" = None) -> "ssl.SSLContext":
        """Return how TLS is spoken; `default` makes what trusts the usual authorities. Raises EndpointError."""
        import ssl

        default = default or partial(ssl.SSLContext, ssl.PROTOCOL_TLS_CLIENT)
        for setting in ("certificate_file", "client_certificate_file", "client_key_file"):
            self.read(setting)
        reason = ""
        setting = "certificate_file"
        try:
            context = ssl.create_default_context(cafile=self.certificate_file) if self.certificate_file else default()
            setting = "client_certificate_file"
            if self.client_certificate_file is not None:
                # A key that wants a password fails here: a daemon must never ask for one on the terminal.
                context.load_cert_chain(self.client_certificate_file, self.client_key_file, password="")
        except (ssl.SSLError, OSError) as error:
            reason = getattr(error, "reason", None) or type(error).__name__
        if reason:
            raise EndpointError(f"{setting} cannot be used: {reason}")
        return context
