"""The WebSocket to an agent host: text in both directions, no size without a limit, no address in any error or log.

The package `websockets` logs the address it connects to, which holds the token, and names it in some errors; so its
log is discarded, and only the kind of an error is used.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ssl import SSLCertVerificationError
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from exporter.sources.remote import LostError

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

FRAME_BYTES_MAX: Final = 32 << 20
OPEN_SECONDS: Final = 15.0
PING_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Address:
    """The WebSocket of an agent host. `token` is asked before every connection; `repr` and `str` do not show it."""

    shown: str
    token: Callable[[], str | None] = field(default=lambda: None, repr=False)

    def __str__(self) -> str:
        return self.shown

    def with_token(self) -> str:
        """Return the address to connect to. It is a secret."""
        token = self.token()
        return f"{self.shown}?{urlencode({'tkn': token})}" if token else self.shown


@asynccontextmanager
async def open_socket(address: Address, **options: Any) -> AsyncIterator["ClientConnection"]:
    """Be connected while in the block. Raises `OSError` or `LostError`, which tells how a connection ended."""
    connection = await _connect(address, options)
    from websockets.exceptions import ConnectionClosed

    try:
        yield connection
    except ConnectionClosed as closed:
        raise LostError(_why(closed.sent.code if closed.sent else None)) from None
    finally:
        await connection.close()


async def _connect(address: Address, options: dict[str, Any]) -> "ClientConnection":
    try:
        from websockets.asyncio.client import connect
        from websockets.exceptions import InvalidStatus, WebSocketException
    except ImportError:
        raise LostError(
            "agent hosts cannot be observed: the package websockets is not installed. "
            "Install it with: pip install 'session-exporter[ahp]'."
        ) from None

    class Direct(connect):
        """Follows no redirect: another address must not receive the token."""

        def process_redirect(self, exc: Exception) -> Exception | str:
            return exc

    settings: dict[str, Any] = {
        "compression": None,  # of no use on one machine
        "proxy": None,
        "user_agent_header": None,
        "open_timeout": OPEN_SECONDS,
        "ping_interval": PING_SECONDS,
        "ping_timeout": PING_SECONDS,
        "close_timeout": 1,
        "max_size": FRAME_BYTES_MAX,
        "logger": logging.Logger("nowhere", logging.CRITICAL + 1),
    }
    try:
        return await Direct(address.with_token(), **settings, **options)
    except InvalidStatus as error:
        raise LostError(_explain(error.response.status_code)) from None
    except SSLCertVerificationError as error:
        raise LostError(f"this machine does not trust the host's certificate: {error.verify_message}") from None
    except TimeoutError:
        raise LostError("the host did not answer in time: is the port an agent host's?") from None
    except (WebSocketException, EOFError, ValueError):
        raise LostError("the server does not speak WebSocket: check that the port is an agent host's") from None


def _why(sent: int | None) -> str:
    if sent == 1009:
        return "the host sent a message above the size limit: its state is read again"
    return "the host sent invalid text" if sent == 1007 else "the host has closed the connection"


def _explain(status: int) -> str:
    """Return what an HTTP status means that was received instead of a WebSocket."""
    if status in (401, 403):
        return f"the host refused the token (HTTP {status}): put the one it was started with into the token file"
    if status == 404:
        return "nothing speaks the Agent Host Protocol at this address (HTTP 404): check host, port and path"
    return f"the host did not open a WebSocket (HTTP {status}): check that the port is an agent host's"
