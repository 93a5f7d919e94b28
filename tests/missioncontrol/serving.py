"""A receiver in a process of its own, as a program for `python -c`: it takes the store's path and says where it is."""

from typing import Final

SERVE: Final = """
import asyncio, sys
from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.http.server import serve_http
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store

async def serve():
    with Store(sys.argv[1]) as store:
        server = await serve_http(create_app(store), "127.0.0.1", 0, explicit_port=True)
        print(server.url, flush=True)
        await server.wait()

asyncio.run(serve())
"""
