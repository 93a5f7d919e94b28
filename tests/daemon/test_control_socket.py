"""The control socket of a daemon that ends while it answers."""

import asyncio
from pathlib import Path
from typing import Any

from exporter.daemon.control_socket import control_socket, socket_path


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
            _, writer = await asyncio.open_unix_connection(str(socket_path(tmp_path)))
            writer.write(b'{"do":"verify"}\n')
            await under_way.wait()

    asyncio.run(daemon())

    assert said == []
