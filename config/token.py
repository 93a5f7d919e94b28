"""Tokens and headers that are sent with requests; they are read when they are needed, so that a file may change."""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from config.errors import ConfigError
from config.given.environment import pairs
from config.reading import read_regular
from config.settings import Metrics, MissionControl, Otel, Source

_SIZE_BYTES_MAX = 64 * 1024
_TOKEN = re.compile(r"[\x21-\x7e]+")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")

T = TypeVar("T")


def latest(read: Callable[[], T], first: T) -> Callable[[], T]:
    """What reads a secret each time it is asked; one that cannot be read then stays what it was, at first `first`."""
    last = [first]

    def ask() -> T:
        with suppress(ConfigError):
            last[0] = read()
        return last[0]

    return ask


def read_token(of: MissionControl | Source | Metrics) -> str | None:
    """The token of this Mission Control, CLI server, agent host or of our own metrics as it is now, None without one.

    Raises ConfigError, which names the file, if that cannot be read or holds no token.
    """
    file = of.token_file
    if file is None:
        return of.token if isinstance(of, MissionControl) else None
    token = _content(file, "token_file").strip()
    fault = token_fault(token) if token else "given nothing: the file is empty"
    if fault:
        raise ConfigError(f"expected token_file to hold a token, {fault}", where=file, key="token_file")
    return token


def read_headers(otel: Otel) -> dict[str, str]:
    """The headers to send to this endpoint as they are now; raises ConfigError like `read_token`."""
    file = otel.headers_file
    if file is None:
        return dict(otel.headers)
    headers = pairs(_content(file, "headers_file"))
    fault = headers_fault(headers) if isinstance(headers, dict) else "given something else"
    if fault:
        raise ConfigError(f"expected headers_file to hold name=value lines, {fault}", where=file, key="headers_file")
    assert isinstance(headers, dict)
    return headers


def token_fault(token: str) -> str:
    """Why this cannot be sent as a token, or an empty text; never a part of the token."""
    if not token:
        return "given nothing"
    return "" if _TOKEN.fullmatch(token) else "given a text with spaces, line ends or characters other than ASCII"


def headers_fault(headers: dict[str, str]) -> str:
    """Why these cannot be sent as headers, or an empty text; never a value."""
    if not headers:
        return "given nothing"
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            return "given an invalid name of a header"
        if not _HEADER_VALUE.fullmatch(value):
            return f"given a value of {name} with line ends or characters other than ASCII"
    return ""


def _content(file: str, key: str) -> str:
    try:
        content, _ = read_regular(file, _SIZE_BYTES_MAX + 1, follow=False)
    except OSError as error:
        raise ConfigError(
            f"{key} cannot be read: {error.strerror}",
            hint="check that the file is there and that you may read it",
            where=file,
            key=key,
        ) from None
    if len(content) > _SIZE_BYTES_MAX:
        raise ConfigError(f"{key} is larger than {_SIZE_BYTES_MAX} bytes", where=file, key=key)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"expected {key} to hold text, given other bytes", where=file, key=key) from None
