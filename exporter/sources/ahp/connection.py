"""The WebSocket to an agent host: text in both directions, no size without a limit, no address in any error or log.

The package `websockets` logs the address it connects to, which holds the token, and names it in some errors; so its
log is discarded, and only the kind of an error is used.
"""

import logging
from ssl import SSLCertVerificationError
from typing import TYPE_CHECKING, Any, Final

from exporter.errors import SettingsError
from exporter.sources.ahp.address import Address
from exporter.sources.remote import LostError

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

FRAME_BYTES_MAX: Final = 32 << 20
OPEN_SECONDS: Final = 15.0
PING_SECONDS: Final = 20.0


class HandshakeError(Exception):
    """Something answered, but did not open a WebSocket."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


class Socket:
    """An open connection. Every method raises `LostError` once it has ended."""

    def __init__(self, connection: "ClientConnection") -> None:
        self._connection = connection

    async def receive(self) -> str | bytes:
        """Return the next frame."""
        from websockets.exceptions import ConnectionClosed

        try:
            return await self._connection.recv()
        except ConnectionClosed as closed:
            raise LostError(_why(closed.sent.code if closed.sent else None)) from None

    async def send(self, frame: str) -> None:
        """Send a frame."""
        from websockets.exceptions import ConnectionClosed

        try:
            await self._connection.send(frame)
        except ConnectionClosed as closed:
            raise LostError(_why(closed.sent.code if closed.sent else None)) from None

    async def close(self) -> None:
        """Hang up."""
        await self._connection.close()


async def open_socket(address: Address, **options: Any) -> Socket:
    """Connect. Raises `OSError`, `HandshakeError`, `LostError`, or `SettingsError` where `websockets` is missing."""
    try:
        from websockets.asyncio.client import connect
        from websockets.exceptions import InvalidStatus, WebSocketException
    except ImportError:
        raise SettingsError(
            "agent hosts cannot be observed: the package websockets is not installed",
            hint="Install it with: pip install 'session-exporter[ahp]'.",
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
        "logger": _nowhere(),
    }
    try:
        return Socket(await Direct(address.with_token(), **settings, **options))
    except InvalidStatus as error:
        raise HandshakeError(error.response.status_code) from None
    except SSLCertVerificationError as error:
        raise LostError(f"this machine does not trust the host's certificate: {error.verify_message}") from None
    except TimeoutError:
        raise LostError("the host did not answer in time: is the port an agent host's?") from None
    except (WebSocketException, EOFError, ValueError):
        raise LostError("the server does not speak WebSocket: check that the port is an agent host's") from None


def _nowhere() -> logging.Logger:
    logger = logging.Logger("nowhere", logging.CRITICAL + 1)
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger


def _why(sent: int | None) -> str:
    if sent == 1009:
        return "the host sent a message above the size limit: its state is read again"
    if sent == 1007:
        return "the host sent invalid text"
    return "the host has closed the connection"
