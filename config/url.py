"""Addresses of sinks: which are valid, which stay on this machine, and how they are shown."""

import ipaddress
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

_NOT_IN_ADDRESS = re.compile(r"[\x00-\x20\x7f\\]")
_HOST = re.compile(r"[^\s/?#@<>^`{|}%]+")

MASK = "******"

_CREDENTIALS = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)?.*@", re.DOTALL)
_PARAMETERS = re.compile(r"[?#].*$", re.DOTALL)


def fault(url: str) -> str:
    """What is wrong with the address of a sink, or an empty text."""
    if _NOT_IN_ADDRESS.search(url):
        return "it has a space, a backslash or a control character"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "its host or port is malformed"
    faults = (
        (parts.scheme not in ("http", "https"), "it does not begin with http:// or https://"),
        (not _HOST.fullmatch(parts.hostname or ""), "it has no host"),
        (port == 0, "its port is 0"),
        ("?" in url or "#" in url, "it has parameters"),
    )
    return next((reason for applies, reason in faults if applies), "")


def file_fault(url: str) -> str:
    """What is wrong with the address of a directory, or an empty text."""
    parts = urlsplit(url)
    faults = (
        (parts.scheme != "file", "it does not begin with file://"),
        (parts.netloc not in ("", "localhost"), "it names a host; write three slashes before the path"),
        ("?" in url or "#" in url, "it has parameters; write %3F for a question mark and %23 for #"),
        (not path_of(url).is_absolute() or len(parts.path.strip("/")) == 0, "it has no absolute path of a directory"),
        (".." in path_of(url).parts or "\0" in str(path_of(url)), "its path cannot be a directory's"),
    )
    return next((reason for applies, reason in faults if applies), "")


def listen_fault(text: str) -> str:
    """What is wrong with an address to listen on, or an empty text."""
    host, separator, port = text.rpartition(":")
    if not separator or not host or not port.isdecimal() or int(port) > 65_535:
        return "it is not HOST:PORT"
    if host.startswith("[") != host.endswith("]") or (":" in host and not host.startswith("[")):
        return "an IPv6 address stands in brackets"
    return "" if _HOST.fullmatch(host.strip("[]")) else "its host is malformed"


def host_and_port(text: str) -> tuple[str, int]:
    """The host, without brackets, and the port of an address to listen on."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def path_of(url: str) -> Path:
    """The directory that a file:// address names."""
    path = unquote(urlsplit(url).path)
    return Path(path[1:] if path[2:3] == ":" else path)  # file:///C:/archive


def is_loopback(url: str) -> bool:
    """Whether requests to this address stay on this machine: 127.0.0.0/8, ::1 and localhost, no other name."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address == ipaddress.IPv6Address("::1") or (address.version == 4 and address.is_loopback)


def is_unencrypted(url: str) -> bool:
    """Whether requests to this address leave this machine without encryption."""
    return urlsplit(url).scheme == "http" and not is_loopback(url)


def has_credentials(url: str) -> bool:
    """Whether the address contains a user or password."""
    return "@" in urlsplit(url).netloc


def mask_url(url: str) -> str:
    """The address with its user, password and parameters masked; it may be malformed."""
    without = _CREDENTIALS.sub(lambda found: f"{found[1] or ''}{MASK}@", url)
    return _PARAMETERS.sub(lambda found: found[0][0] + MASK, without)
