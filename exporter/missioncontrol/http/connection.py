"""One connection to the receiver: which user has it, how long it may be idle, and what is not HTTP.

Linux says in `/proc/net/tcp` and `/proc/net/tcp6` which user is at the other end of a loopback connection. Other users
must not be able to lock out the owner with open connections: their number is limited, and each one without a token is
closed after some time.
"""

import asyncio
import ipaddress
import os
import struct
import sys
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, h11  # type: ignore[attr-defined]  # the very h11 it uses
from uvicorn.server import ServerState

from exporter.missioncontrol.http.guard import ADMITTED, PEER
from exporter.missioncontrol.http.responses import ApiError, error_answer

Peer: TypeAlias = Literal["same", "other", "unknown", "remote"]
Address: TypeAlias = tuple[str, int | None]

_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_STATE_FIELD, _UID_FIELD, _INODE_FIELD = 3, 7, 9
_ESTABLISHED: Final = b"01"


def peer_of(client: Address | None, server: Address | None, *, own_uid: int | None = None) -> Peer:
    """Return whose connection it is: this user's, another one's, unknown, or from another machine.

    A loopback connection that the tables do not show, or that its client has closed, counts as another user's.
    """
    if client is None or server is None or client[1] is None or server[1] is None:
        return "remote"
    if not is_loopback(client[0]):
        return "remote"
    if not tells_users():
        return "unknown"
    return "same" if _user_of(client, server) == (os.getuid() if own_uid is None else own_uid) else "other"


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach the address."""
    ip = _ip(host)
    return host == "localhost" or (ip is not None and ip.is_loopback)


def is_any(host: str) -> bool:
    """Tell whether it stands for all addresses of this machine, as 0.0.0.0 does."""
    ip = _ip(host)
    return ip is not None and ip.is_unspecified


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def tells_users() -> bool:
    """Tell whether this system says whose a loopback connection is."""
    return sys.platform == "linux" and any(os.access(table, os.R_OK) for table in _TABLES)


def _user_of(client: Address, server: Address) -> int | None:
    # A table read in several pieces may miss a row that moves meanwhile, so a miss is looked up once more.
    for _ in range(2):
        for table, needle in zip(_TABLES, _needles(client, server), strict=True):
            try:
                rows = table.read_bytes()
            except OSError:
                continue
            position = rows.find(needle)
            if position >= 0:
                return _owner(rows[rows.rfind(b"\n", 0, position) + 1 : rows.find(b"\n", position)].split())
    return None


def _owner(fields: list[bytes]) -> int | None:
    """Return the user that a row names; None when no process holds that end any more, for then it says root."""
    # The kernel reads the state, the user and the inode one after the other: a close in between leaves no inode.
    is_held = fields[_STATE_FIELD] == _ESTABLISHED and fields[_INODE_FIELD] != b"0"
    return int(fields[_UID_FIELD]) if is_held else None


def _needles(client: Address, server: Address) -> tuple[bytes, bytes]:
    """Return how the client's end of the connection begins in each table; an impossible one is never found."""
    both = [ipaddress.ip_address(client[0]), ipaddress.ip_address(server[0])]
    ports = (client[1], server[1])
    four = " ".join(f"{_words(ip.packed)}:{port:04X}" for ip, port in zip(both, ports, strict=True))
    mapped = [ip.packed if ip.version == 6 else bytes(10) + b"\xff\xff" + ip.packed for ip in both]
    six = " ".join(f"{_words(packed)}:{port:04X}" for packed, port in zip(mapped, ports, strict=True))
    return f" {four} ".encode(), f" {six} ".encode()


def _words(packed: bytes) -> str:
    """Return an address as the kernel prints it: 32-bit words in the machine's own byte order."""
    count = len(packed) // 4
    return "".join(f"{word:08X}" for word in struct.unpack(f"={count}I", packed))


_HEAD_SECONDS: Final = 10.0
_REST_SECONDS: Final = 30.0
"""How long the rest of a body may take whose request has been answered; who is cut off does not read the answer."""
_STRANGER_SECONDS: Final = 5
_OTHERS_MAX: Final = 256
"""How many connections each of "other", "unknown" and "remote" may have; the same user has no limit."""
_REFUSAL: Final = bytes(
    error_answer(
        ApiError(
            400,
            "bad_http",
            "This is no valid HTTP request.",
            hint="Send one Host, one length or whole chunks, and a head below 16 KiB, as every HTTP library does.",
        )
    ).body
)
_BAD_REQUEST: Final = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nX-Content-Type-Options: nosniff\r\n"
    b"Cache-Control: no-store\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(_REFUSAL), _REFUSAL)
)


class _Parser(h11.Connection):
    """Refuses two lengths for one body: a proxy before us may believe the other one, and see two requests in it."""

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if {b"content-length", b"transfer-encoding"} <= names:
                raise h11.RemoteProtocolError("Content-Length with Transfer-Encoding")
        return event


class ClientConnection(H11Protocol):
    """Finds out once per connection which user has it, because the kernel takes milliseconds to say."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.conn = _Parser(h11.SERVER)
        self.peer: Peer = "remote"
        self._end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        super().connection_made(transport)
        self.peer = peer_of(self.client, self.server)
        self.app_state = {**self.app_state, PEER: self.peer}
        if self._is_one_too_many():
            transport.abort()
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        is_trusted = self.peer == "same" or ADMITTED in self.scope.get("state", {})
        self.timeout_keep_alive = self.config.timeout_keep_alive if is_trusted else _STRANGER_SECONDS
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP as everything else is answered, unless an answer is on its way already."""
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            self.transport.write(_BAD_REQUEST)
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    def _is_one_too_many(self) -> bool:
        if self.peer == "same":
            return False
        alike = [one for one in self.connections if isinstance(one, ClientConnection) and one.peer == self.peer]
        return len(alike) > _OTHERS_MAX

    def _watch(self) -> None:
        """Let the connection end some time after we began to wait for its client; what trickles in does not help."""
        is_head = self.conn.their_state is h11.IDLE and self.timeout_keep_alive_task is None
        is_rest = self.conn.their_state is h11.SEND_BODY and self.conn.our_state is h11.DONE
        if self._end is not None and (self.transport.is_closing() or not (is_head or is_rest)):
            self._end.cancel()
            self._end = None
        elif self._end is None and not self.transport.is_closing() and (is_head or is_rest):
            self._end = self.loop.call_later(_HEAD_SECONDS if is_head else _REST_SECONDS, self.transport.abort)
