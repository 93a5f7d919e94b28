"""Which certificates a sink is trusted by, and what to say of one that is not."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ssl

_NO_AUTHORITY: Final = (18, 19, 20, 21)
"""OpenSSL's codes for a chain that ends at nobody who is trusted: self-signed, or its issuer is not known."""


def trust(certificate_file: str | None) -> "ssl.SSLContext | None":
    """Return what trusts the certificates of this file alone, None without one. Raises OSError, also as SSLError."""
    if certificate_file is None:
        return None
    import ssl

    return ssl.create_default_context(cafile=certificate_file)


def distrusted(error: BaseException | None) -> str | None:
    """Say why a certificate was not trusted and what to do, None where that is not what an error came from."""
    import ssl

    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    if error is None:
        return None
    said = f"its certificate is not trusted: {error.verify_message}"
    return f"{said}; set certificate_file to the CA's certificate" if error.verify_code in _NO_AUTHORITY else said
