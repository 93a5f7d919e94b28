"""Which proxy the requests to a sink go through: that of the environment, none, or one that the settings name."""

import ipaddress
import os
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from config.errors import ConfigError
from config.url import fault, is_loopback, mask_url

FROM_ENVIRONMENT = "env"
NONE = "none"
_HINT = 'name an http:// or https:// proxy, or set proxy = "none" for this sink'


class Proxy(NamedTuple):
    """The address of a proxy, which may hold a user and a password, and what named it."""

    url: str
    origin: str


def proxy_fault(value: str) -> str:
    """What is wrong with the setting `proxy`, or an empty text."""
    return "" if value in (FROM_ENVIRONMENT, NONE) else fault(value)


def proxy_for(setting: str, url: str, environ: Mapping[str, str] = os.environ) -> Proxy | None:
    """The proxy for requests to this address; none for one on loopback, whatever is set.

    The variables are those of curl: HTTPS_PROXY or HTTP_PROXY for the scheme of the address, then ALL_PROXY, unless
    NO_PROXY names the host; each also in small letters, which win. Raises ConfigError for one that cannot be used.
    """
    if setting == NONE or is_loopback(url):
        return None
    if setting != FROM_ENVIRONMENT:
        return Proxy(setting, "the settings")
    for name in (f"{urlsplit(url).scheme}_proxy", "all_proxy"):
        for variable in (name, name.upper()):
            if value := environ.get(variable, "").strip():
                return None if _is_excepted(url, environ) else Proxy(_usable(value, variable), variable)
    return None


def password_of(setting: str, url: str) -> tuple[str, ...]:
    """The password of the proxy for this address, in both spellings, if it has one."""
    try:
        proxy = proxy_for(setting, url)
    except ConfigError:
        return ()
    password = urlsplit(proxy.url).password if proxy else None
    return (password, unquote(password)) if password else ()


def _usable(value: str, variable: str) -> str:
    named = value if "://" in value else f"http://{value}"
    if reason := fault(named):
        message = f"expected {variable} to name a proxy, given {mask_url(value)}: {reason}"
        raise ConfigError(message, hint=_HINT, where=f"environment {variable}", key=variable)
    return named.rstrip("/")


def _is_excepted(url: str, environ: Mapping[str, str]) -> bool:
    parts = urlsplit(url)
    host, port = (parts.hostname or "").rstrip("."), parts.port or (443 if parts.scheme == "https" else 80)
    listed = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    return any(one == "*" or _covers(one.lower(), host, port) for one in re.split(r"[\s,]+", listed) if one)


def _covers(entry: str, host: str, port: int) -> bool:
    """Whether an entry of NO_PROXY is this host: its name, a domain above it, its address, or a network with it."""
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        pass  # a name on one side
    name, _, of_port = entry.rpartition(":")
    if name and of_port.isdigit() and (":" not in name or name.endswith("]")):
        return int(of_port) == port and _covers(name, host, port)
    name = entry.lstrip("*").strip(".")
    return bool(name) and (host == name or host.endswith(f".{name}"))
