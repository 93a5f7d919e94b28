"""The certificates that are trusted where the settings name none: those of the system.

SSL_CERT_FILE and SSL_CERT_DIR name others. A system without any, such as a small container, has those of certifi.
"""

import ssl
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import certifi

_USUAL_FILES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Where Debian, Fedora, SUSE, Alpine and the BSDs keep them; a Python that was built elsewhere looks somewhere else."""


@dataclass(frozen=True, slots=True)
class Roots:
    """Trusted certificates. Without a file and a directory they are in the system's own store."""

    file: str | None = None
    directory: str | None = None

    @property
    def path(self) -> str | None:
        """The file or directory, for clients that read it themselves."""
        return self.file or self.directory

    def __str__(self) -> str:
        return self.path or "the store of the system"

    def context(self) -> ssl.SSLContext:
        """Return how TLS is spoken with servers that these certificates vouch for."""
        if self.path:
            return ssl.create_default_context(cafile=self.file, capath=self.directory)
        if sys.platform in ("darwin", "win32"):
            import truststore

            return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return ssl.create_default_context()


def system_roots() -> Roots:
    """Return the certificates of the system as they are now."""
    paths = ssl.get_default_verify_paths()
    file = paths.cafile if paths.cafile != paths.openssl_cafile else None
    directory = paths.capath if paths.capath != paths.openssl_capath else None
    if file or directory:
        return Roots(file, directory)  # a variable names them
    if sys.platform in ("darwin", "win32"):
        return Roots()
    found = next((one for one in (paths.openssl_cafile, *_USUAL_FILES) if Path(one).is_file()), None)
    return Roots(found or certifi.where())
