"""What a source is, from the address it is given as: the CLI's files, the extension tap, or a CLI server."""

import re
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from config.settings import Source
from config.url import is_loopback

FILE: Final = "file"
TAP: Final = "tap"
_EXPECTED: Final = "expected file, tap or rpc://HOST:PORT"
_HOST: Final = re.compile(r"[A-Za-z0-9._:-]+")


@dataclass(frozen=True, slots=True)
class FileAddress:
    """The CLI's own files, which are followed in any case."""


@dataclass(frozen=True, slots=True)
class TapAddress:
    """What extensions of the CLI show us."""


@dataclass(frozen=True, slots=True)
class RpcAddress:
    """A CLI server (`copilot --headless --port N`). `token_file` is as it was written."""

    host: str
    port: int
    token_file: str | None = None

    @property
    def name(self) -> str:
        """What it is called in the status; nothing of it is secret."""
        return f"rpc://[{self.host}]:{self.port}" if ":" in self.host else f"rpc://{self.host}:{self.port}"


Address: TypeAlias = FileAddress | TapAddress | RpcAddress


def address_of(source: Source) -> Address:
    """Return what a source is. Raises ValueError, which repeats nothing of the address, where it is none."""
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
    if parts.scheme != "rpc" or not _HOST.fullmatch(host) or not port or parts.path or parts.fragment:
        raise ValueError(_EXPECTED)
    if "@" in parts.netloc:
        raise ValueError("a token does not belong into the address; name the file that holds it as token_file")
    if any(name != "token_file" or not value for name, value in query) or len(query) > 1:
        raise ValueError("token_file=FILE is all that may stand behind the question mark")
    if query and source.token_file:
        raise ValueError("token_file is given in the address and beside it; remove one")
    return RpcAddress(host, port, query[0][1] if query else source.token_file)


def check_source(address: Address, source: Source) -> None:
    """Raise ValueError where the settings of a source do not go together."""
    if not isinstance(address, RpcAddress):
        if source.token_file or source.push:
            raise ValueError("token_file and push are for rpc:// only")
    elif address.token_file and not is_loopback(address.name):
        raise ValueError(
            "its token would cross the network readable, because this protocol is not encrypted; "
            "reach the server through a tunnel to this machine (ssh -L)"
        )
