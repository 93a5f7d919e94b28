"""Variables of the shell that act on an exporter that is started there, and that a service does not have."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

_OF_OTHERS: Final = frozenset(
    {"HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "XDG_CONFIG_HOME"}
)
"""Variables that no setting has for its origin: the proxy, the certificates, where the settings file is."""


def acting(environ: Mapping[str, str], origins: Iterable[str], masks: Callable[[str, str], bool]) -> list[str]:
    """Return the names of variables that change what an exporter does, sorted.

    `origins` say where each setting comes from; `masks` tells whether a variable's value is masked in events because
    the variable is there.
    """
    used = {origin.split()[-1] for origin in origins if origin.startswith(("environment ", "fallback "))}
    known = {name for name in environ if name.upper() in _OF_OTHERS or (environ[name] and masks(name, environ[name]))}
    return sorted((used | known) & environ.keys())
