"""The control socket of a daemon: at its end, and where another user listens in its place."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from exporter.daemon.control_socket import NAME, ask_daemon, control_socket, page_of_daemon
from exporter.errors import StateError
from exporter.sources.local_socket import socket_path


def test_a_request_that_is_under_way_at_the_end_leaves_no_traceback(tmp_path: Path) -> None:
    said: list[dict[str, Any]] = []

    async def daemon() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
        under_way = asyncio.Event()

        async def answer(*_: object) -> dict[str, Any]:
            under_way.set()
            await asyncio.sleep(60)
            return {}

        async with control_socket(tmp_path, answer):
            _, writer = await asyncio.open_unix_connection(str(socket_path(tmp_path, NAME)))
            writer.write(b'{"do":"verify"}\n')
            await under_way.wait()

    asyncio.run(daemon())

    assert said == []


_IMPOSTOR: Final = """
import os, socket, sys
os.setuid(65534)
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
listener.listen()
print(flush=True)
connection, _ = listener.accept()
connection.sendall(b'{"result":{"url":"http://127.0.0.1:1/"}}\\n')
connection.recv(1)
"""


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs to become another user")
def test_another_user_who_listens_in_the_daemons_place_is_not_believed(own_home: Path) -> None:
    state = own_home / "state"
    state.mkdir()
    state.chmod(0o777)
    own_home.chmod(0o711)
    command = [sys.executable, "-c", _IMPOSTOR, str(socket_path(state, NAME))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd="/") as impostor:
        assert impostor.stdout is not None
        impostor.stdout.readline()

        with pytest.raises(StateError, match="another user") as raised:
            asyncio.run(page_of_daemon(state))

        assert raised.value.hint


def test_our_own_daemon_is_believed(own_home: Path) -> None:
    async def scenario() -> dict[str, Any] | None:
        async def answer(*_: object) -> dict[str, Any]:
            return {"url": "here"}

        async with control_socket(own_home, answer):
            return await ask_daemon(own_home, {"do": "url"}, lambda _: None)

    assert asyncio.run(scenario()) == {"url": "here"}
