"""Where an agent host is, and the token that opens it, kept apart: the address may be shown, the token never."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from exporter.errors import SettingsError

SCHEMES: Final = {"ahp+ws": "ws", "ahp+wss": "wss", "ws": "ws", "wss": "wss"}
TOKEN_BYTES_MAX: Final = 8192
_TOKEN, _FILE = "tkn", "token_file"


@dataclass(frozen=True, slots=True)
class Address:
    """An agent host. `shown` is its address without anything secret; `repr` and `str` show nothing else."""

    shown: str
    token: Callable[[], str | None] = field(repr=False)
    _query: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        return self.shown

    def with_token(self) -> str:
        """Return the address to connect to. It is a secret; the token is read anew each time. Raises `OSError`."""
        token = self.token()
        query = [*self._query, *([(_TOKEN, token)] if token else [])]
        return f"{self.shown}?{urlencode(query)}" if query else self.shown


def read_address(url: str) -> Address:
    """Read `ahp+ws://HOST:PORT/?token_file=PATH` (or `tkn=TOKEN`). Raises `SettingsError`, which shows no token."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme not in SCHEMES or not host or parts.username is not None or parts.fragment:
        raise SettingsError(
            "a source of agent hosts has no usable address",
            hint="Write it as ahp+ws://HOST:PORT/?token_file=PATH.",
        )
    given = parse_qsl(parts.query, keep_blank_values=True)
    tokens = [value for name, value in given if name == _TOKEN]
    files = [value for name, value in given if name == _FILE]
    if len(tokens) + len(files) > 1:
        raise SettingsError(f"the source {host} has two tokens", hint="Name one of tkn and token_file, once.")
    name = f"[{host}]" if ":" in host else host
    shown = f"{SCHEMES[parts.scheme]}://{name}{f':{port}' if port else ''}{parts.path or '/'}"
    rest = tuple((name, value) for name, value in given if name not in (_TOKEN, _FILE))
    if files:
        path = Path(files[0]).expanduser()
        return Address(shown, lambda: _read_token(path), rest)
    token = tokens[0] if tokens else None
    return Address(shown, lambda: token, rest)


def _read_token(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(TOKEN_BYTES_MAX).decode("utf-8", "replace").strip()
