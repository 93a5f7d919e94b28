"""Which user is at the other end of a loopback connection; Linux says so in `/proc/net/tcp` and `/proc/net/tcp6`."""

import ipaddress
import os
import struct
import sys
from pathlib import Path
from typing import Final, Literal, TypeAlias

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
    try:
        if not ipaddress.ip_address(client[0]).is_loopback:
            return "remote"
    except ValueError:
        return "remote"
    if not tells_users():
        return "unknown"
    return "same" if _user_of(client, server) == (os.getuid() if own_uid is None else own_uid) else "other"


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
