"""How a sink is reached: through which proxy, and whose certificates are trusted."""

import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from exporter.doctor.check import shown_url
from exporter.files import open_regular
from exporter.sinks.transport import trust

if TYPE_CHECKING:
    from exporter.sinks.http_transport import HttpClient


@dataclass(frozen=True, slots=True)
class Way:
    """The settings of a sink that say how it is reached. `proxy` is an address and what named it."""

    certificate_file: str | None = None
    client_certificate_file: str | None = None
    client_key_file: str | None = None
    proxy: tuple[str, str] | None = field(default=None, repr=False)

    def client(self, url: str, timeout_seconds: float) -> "HttpClient":
        """Return a client that reaches an address as delivery does; raises OSError for an unusable certificate."""
        from exporter.sinks.http_transport import HttpClient

        secure = url.lower().startswith("https:")
        proxy = self.proxy[0] if self.proxy else None
        trusted = self._trust() if secure else None
        return HttpClient(url, connections=1, kept=0, timeout_seconds=timeout_seconds, trust=trusted, proxy=proxy)

    def told(self, url: str) -> str:
        """Return what to add to the report of an address: its proxy, and what its certificate is judged by."""
        told = f" through the proxy {shown_url(self.proxy[0])} ({self.proxy[1]})" if self.proxy else ""
        return told + (f", trusting {self._roots()}" if url.lower().startswith("https:") else "")

    def _trust(self) -> ssl.SSLContext:
        from exporter.sinks.roots import system_roots

        context = trust(self.certificate_file) or system_roots().context()
        if self.client_certificate_file:
            for file in (self.client_certificate_file, self.client_key_file or self.client_certificate_file):
                open_regular(file).close()
            context.load_cert_chain(self.client_certificate_file, self.client_key_file, password="")
        return context

    def _roots(self) -> str:
        from exporter.sinks.roots import system_roots

        return self.certificate_file or str(system_roots())


DIRECT: Final = Way()
"""Without a proxy, trusting the system's certificates."""
