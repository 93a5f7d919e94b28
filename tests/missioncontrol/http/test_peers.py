"""Whose a connection is, by netlink and by the tables of `/proc/net`."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import pytest

from exporter.missioncontrol.http.peers import (
    Ends,
    Peer,
    PeerLookup,
    open_netlink,
    peer_or_ends,
    user_by_netlink,
    users_in_tables,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says whose a connection is")
UserOf: TypeAlias = Callable[[Ends], int | None]
LOOPBACK: Final = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]


@pytest.fixture(params=["netlink", "tables"])
def user_of(request: pytest.FixtureRequest) -> Iterator[UserOf]:
    if request.param == "tables":
        yield lambda ends: users_in_tables([ends])[0]
        return
    netlink = open_netlink()
    assert netlink is not None
    with netlink:
        yield lambda ends: user_by_netlink(netlink, ends)


@contextlib.contextmanager
def connected(family: socket.AddressFamily, host: str) -> Iterator[tuple[socket.socket, socket.socket, Ends]]:
    """A client, the listener that has not accepted it, and the two ends."""
    with socket.socket(family) as listener, socket.socket(family) as client:
        listener.bind((host, 0))
        listener.listen()
        client.connect(listener.getsockname())
        yield client, listener, (client.getsockname()[:2], listener.getsockname()[:2])


@pytest.mark.parametrize(("family", "host"), LOOPBACK)
def test_a_connection_is_known_by_its_user(user_of: UserOf, family: socket.AddressFamily, host: str) -> None:
    with connected(family, host) as (_, _, ends):
        assert user_of(ends) == os.getuid()


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs to become another user")
@pytest.mark.parametrize(("family", "host"), LOOPBACK)
def test_another_user_is_known_too(user_of: UserOf, family: socket.AddressFamily, host: str) -> None:
    script = (
        "import os, socket, sys; os.setuid(65534); s = socket.socket(int(sys.argv[3]));"
        "s.connect((sys.argv[1], int(sys.argv[2])));"
        "print(s.getsockname()[1], flush=True); sys.stdin.read()"
    )
    with socket.socket(family) as listener:
        listener.bind((host, 0))
        listener.listen()
        port = listener.getsockname()[1]
        command = [sys.executable, "-c", script, host, str(port), str(int(family))]
        with subprocess.Popen(command, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            ends = (host, int(other.stdout.readline())), (host, port)

            assert user_of(ends) == 65534

            other.communicate()


@pytest.mark.parametrize(("family", "host"), LOOPBACK)
@pytest.mark.parametrize("accepts", [True, False])
def test_a_connection_that_its_client_closed_is_nobodys(
    user_of: UserOf, family: socket.AddressFamily, host: str, accepts: bool
) -> None:
    with connected(family, host) as (client, listener, ends), contextlib.ExitStack() as accepted:
        if accepts:
            accepted.enter_context(listener.accept()[0])
        client.close()

        assert user_of(ends) is None


def test_a_connection_over_ipv4_to_a_listener_of_both_kinds_is_known(user_of: UserOf) -> None:
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            assert user_of((client.getsockname(), ("127.0.0.1", port))) == os.getuid()


def test_a_connection_that_does_not_exist_is_nobodys(user_of: UserOf) -> None:
    assert user_of((("127.0.0.1", 1), ("127.0.0.1", 2))) is None


def test_a_listener_is_no_connection(user_of: UserOf) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert user_of((listener.getsockname(), ("127.0.0.1", 2))) is None


@pytest.mark.parametrize(
    ("client", "found"),
    [(("127.0.0.1", 1), None), (("203.0.113.5", 1), "remote"), (None, "remote"), (("unix", 1), "remote")],
)
def test_a_connection_from_elsewhere_is_known_without_the_kernel(
    client: tuple[str, int] | None, found: str | None
) -> None:
    assert peer_or_ends(client, ("127.0.0.1", 2)) == (found or (client, ("127.0.0.1", 2)))


def test_beyond_a_number_of_waiting_questions_there_is_no_further_one() -> None:
    async def scenario() -> tuple[int, list[Peer]]:
        lookup, told = PeerLookup(), list[Peer]()
        ends = ("127.0.0.1", 1), ("127.0.0.1", 2)
        asked = sum(lookup.ask(ends, told.append) for _ in range(1000))
        while len(told) < asked:  # noqa: ASYNC110  nothing tells it
            await asyncio.sleep(0.001)
        assert lookup.ask(ends, told.append)
        lookup.close()
        return asked, told

    asked, told = asyncio.run(scenario())

    assert (asked, told) == (256, ["other"] * 256)


# Refuses netlink sockets as some containers do: a seccomp filter of the process itself.
_WITHOUT_NETLINK: Final = """
import asyncio, ctypes, platform, socket, struct
from exporter.missioncontrol.http.peers import PeerLookup
call = {"x86_64": 41, "aarch64": 198}[platform.machine()]
rows = [(0x20, 0, 0, 0), (0x15, 0, 3, call), (0x20, 0, 0, 16), (0x15, 0, 1, 16)]
rows += [(6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *row) for row in rows))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0
try:
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4)
except PermissionError:
    pass
else:
    raise SystemExit("netlink works")

async def main():
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        told = asyncio.get_running_loop().create_future()
        lookup = PeerLookup()
        assert lookup.ask((client.getsockname(), listener.getsockname()), told.set_result)
        print(await told)
        lookup.close()
asyncio.run(main())
"""


def test_without_netlink_the_tables_say_it() -> None:
    run = subprocess.run([sys.executable, "-c", _WITHOUT_NETLINK], capture_output=True, text=True, check=False)

    assert (run.stdout, run.stderr) == ("same\n", "")
