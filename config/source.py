"""The kinds of sources, by their addresses: files of the CLI, the extension tap, a CLI server, an agent host."""

import re
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from config.settings import Source
from config.url import is_loopback

FILE: Final = "file"
TAP: Final = "tap"
_EXPECTED: Final = "expected file, tap, rpc://HOST:PORT, ahp+ws://HOST:PORT or ahp+wss://HOST"
_HTTPS_PORT: Final = 443
_HOST: Final = re.compile(r"[A-Za-z0-9._:-]+")
_PATH: Final = re.compile(r"/[A-Za-z0-9._~%/+-]*")


@dataclass(frozen=True, slots=True)
class FileAddress:
    """The files of the CLI, which are always followed."""


@dataclass(frozen=True, slots=True)
class TapAddress:
    """What the extension of the CLI shows live."""


@dataclass(frozen=True, slots=True)
class RpcAddress:
    """A CLI server (`copilot --headless --port N`). `token_file` is as it was written."""

    host: str
    port: int
    token_file: str | None = None

    @property
    def name(self) -> str:
        """Its name in the status, without secrets."""
        return f"rpc://{_authority(self.host, self.port)}"


@dataclass(frozen=True, slots=True)
class AhpAddress:
    """An agent host, such as that of VS Code, over a WebSocket. `token_file` is as it was written."""

    host: str
    port: int
    path: str = "/"
    is_encrypted: bool = False
    token_file: str | None = None

    @property
    def name(self) -> str:
        """Its name in the status, without secrets."""
        return f"ahp+{self.socket}"

    @property
    def socket(self) -> str:
        """The address of its WebSocket, without the token."""
        return f"{'wss' if self.is_encrypted else 'ws'}://{_authority(self.host, self.port)}{self.path}"


Address: TypeAlias = FileAddress | TapAddress | RpcAddress | AhpAddress


def address_of(source: Source) -> Address:
    """Return the address of a source. Raises ValueError, which repeats nothing of the address, if it is invalid."""
    if source.url == FILE:
        return FileAddress()
    if source.url == TAP:
        return TapAddress()
    try:
        parts = urlsplit(source.url)
        host, port = parts.hostname or "", parts.port
        query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise ValueError(_EXPECTED) from None
    is_ahp = parts.scheme in ("ahp+ws", "ahp+wss")
    if parts.scheme == "ahp+wss" and port is None:
        port = _HTTPS_PORT
    if not _HOST.fullmatch(host) or not port or parts.fragment or not (is_ahp or parts.scheme == "rpc"):
        raise ValueError(_EXPECTED)
    if parts.path and not (is_ahp and _PATH.fullmatch(parts.path)):
        raise ValueError(_EXPECTED)
    if "@" in parts.netloc or any(name in ("tkn", "token") for name, _ in query):
        raise ValueError("the address must not contain a token; put it into a file and name that as token_file")
    if any(name != "token_file" or not value for name, value in query) or len(query) > 1:
        raise ValueError("only token_file=FILE may follow the question mark")
    if query and source.token_file:
        raise ValueError("token_file is given in the address and beside it; remove one")
    token_file = query[0][1] if query else source.token_file
    if is_ahp:
        return AhpAddress(host, port, parts.path or "/", parts.scheme == "ahp+wss", token_file)
    return RpcAddress(host, port, token_file)


def check_source(address: Address, source: Source) -> None:
    """Raise ValueError if the settings of a source contradict each other."""
    if source.push and not isinstance(address, RpcAddress):
        raise ValueError("push is for rpc:// only")
    if not isinstance(address, RpcAddress | AhpAddress):
        if source.token_file:
            raise ValueError("token_file is for rpc:// and ahp+ws:// only")
        return
    is_encrypted = isinstance(address, AhpAddress) and address.is_encrypted
    if address.token_file and not is_encrypted and not is_loopback(address.name):
        way = "use ahp+wss://, or " if isinstance(address, AhpAddress) else ""
        raise ValueError(
            "its token would be sent without encryption; "
            f"{way}reach the server through a tunnel to this machine (ssh -L)"
        )


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
