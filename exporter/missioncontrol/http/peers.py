"""Whose a connection is: this user's, another one's, or another machine's.

Linux answers over netlink (`sock_diag`) about one socket in microseconds. Where it does not, `/proc/net/tcp` and
`/proc/net/tcp6` are read, once for all connections that wait: the kernel takes milliseconds to make them.
"""

import asyncio
import errno
import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias

Peer: TypeAlias = Literal["same", "other", "unknown", "remote"]
Address: TypeAlias = tuple[str, int]
Ends: TypeAlias = tuple[Address, Address]
"""The client's end of a connection and the server's."""

_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_STATE_FIELD, _UID_FIELD, _INODE_FIELD = 3, 7, 9
_ESTABLISHED: Final = 1
_WAITING_MAX: Final = 256
_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _ERROR, _REQUEST = 4, 20, 2, 1
_ALL: Final = 0xFFFFFFFF
_HEADER: Final = struct.Struct("=IHHII")  # struct nlmsghdr
_QUESTION: Final = struct.Struct("=BBBBI4s16s16sIII")  # struct inet_diag_req_v2
_OWNER: Final = struct.Struct("=xB62xII")  # of struct inet_diag_msg: state, user, inode
_ANSWER_BYTES_MAX: Final = 8192
_ANSWER_SECONDS: Final = 1.0


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


def peer_or_ends(client: tuple[str, int | None] | None, server: tuple[str, int | None] | None) -> Peer | Ends:
    """Return whose connection it is, or what to ask the kernel about to know it."""
    if client is None or server is None or client[1] is None or server[1] is None or not is_loopback(client[0]):
        return "remote"
    return ((client[0], client[1]), (server[0], server[1])) if tells_users() else "unknown"


class PeerLookup:
    """Finds out, in a thread of its own, which user has a connection; few questions wait at the same time."""

    def __init__(self) -> None:
        self._netlink = open_netlink()
        self._thread = ThreadPoolExecutor(1, "peers")
        self._waiting: list[tuple[Ends, Callable[[Peer], None]]] = []
        self._answering: asyncio.Task[None] | None = None

    def ask(self, ends: Ends, tell: Callable[[Peer], None]) -> bool:
        """Have `tell` called with "same" or "other" on the running loop; return False when too many wait already.

        A connection that the kernel does not know, or that its client has closed, counts as another user's.
        """
        if len(self._waiting) >= _WAITING_MAX:
            return False
        self._waiting.append((ends, tell))
        if self._answering is None or self._answering.done():
            self._answering = asyncio.get_running_loop().create_task(self._answer(), name="receiver-peers")
        return True

    async def _answer(self) -> None:
        while self._waiting:
            asked, self._waiting = self._waiting, []
            connections = [ends for ends, _ in asked]
            users = await asyncio.get_running_loop().run_in_executor(self._thread, self._users_of, connections)
            for (_, tell), user in zip(asked, users, strict=True):
                tell("same" if user == os.getuid() else "other")

    def _users_of(self, connections: Sequence[Ends]) -> list[int | None]:
        if self._netlink is not None:
            try:
                return [user_by_netlink(self._netlink, ends) for ends in connections]
            except OSError:
                self._close_netlink()
        return users_in_tables(connections)

    def close(self) -> None:
        """Answer no more."""
        if self._answering is not None:
            self._answering.cancel()
        self._thread.shutdown(cancel_futures=True)
        self._close_netlink()

    def _close_netlink(self) -> None:
        if self._netlink is not None:
            self._netlink.close()
            self._netlink = None


def open_netlink() -> socket.socket | None:
    """Return a socket for questions to the kernel; None where it does not answer about a socket that exists."""
    try:
        netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
    except (AttributeError, OSError):  # this system has no netlink, or forbids it
        return None
    netlink.settimeout(_ANSWER_SECONDS)
    with suppress(OSError), socket.create_server(("127.0.0.1", 0)) as probe:
        if _facts(netlink, (probe.getsockname(), ("127.0.0.1", 1))) is not None:
            return netlink
    netlink.close()
    return None


def user_by_netlink(netlink: socket.socket, ends: Ends) -> int | None:
    """Return which user holds the client's end of a connection, None when no process does.

    Raises `OSError` when the kernel does not answer; then nothing more may be asked there.
    """
    state, user, inode = _facts(netlink, ends) or (0, 0, 0)
    return user if state == _ESTABLISHED and inode else None


def _facts(netlink: socket.socket, ends: Ends) -> tuple[int, int, int] | None:
    """Return the state, the user and the inode of the socket with these two ends; None when there is none."""
    own, other = (ipaddress.ip_address(host) for host, _ in ends)
    family = socket.AF_INET if own.version == 4 else socket.AF_INET6
    ports = struct.pack("!HH", ends[0][1], ends[1][1])
    question = _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0, _ALL, ports, own.packed, other.packed, 0, _ALL, _ALL)
    netlink.sendto(_HEADER.pack(_HEADER.size + len(question), _SOCK_DIAG_BY_FAMILY, _REQUEST, 0, 0) + question, (0, 0))
    answer = netlink.recv(_ANSWER_BYTES_MAX)
    if _HEADER.unpack_from(answer)[1] != _ERROR:
        state, user, inode = _OWNER.unpack_from(answer, _HEADER.size)
        return state, user, inode
    number = -struct.unpack_from("=i", answer, _HEADER.size)[0]
    if number == errno.ENOENT:
        return None
    raise OSError(number, os.strerror(number))


def users_in_tables(connections: Sequence[Ends]) -> list[int | None]:
    """Return which user holds the client's end of each connection by `/proc/net`, None when no process does."""
    users: list[int | None] = [None] * len(connections)
    # A table read in several pieces may miss a row that moves meanwhile, so a miss is looked up once more.
    for _ in range(2):
        for which, table in enumerate(_TABLES):
            if None not in users:
                return users
            with suppress(OSError):
                rows = table.read_bytes()
                for number, ends in enumerate(connections):
                    if users[number] is None:
                        users[number] = _user_in(rows, _needles(*ends)[which])
    return users


def _user_in(rows: bytes, needle: bytes) -> int | None:
    """Return the user that a row names; None when no process holds that end any more, for then it says root."""
    position = rows.find(needle)
    if position < 0:
        return None
    fields = rows[rows.rfind(b"\n", 0, position) + 1 : rows.find(b"\n", position)].split()
    # The kernel reads the state, the user and the inode one after the other: a close in between leaves no inode.
    is_held = int(fields[_STATE_FIELD], 16) == _ESTABLISHED and fields[_INODE_FIELD] != b"0"
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
