"""A machine in order for the doctor, and servers that answer as they are told."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from exporter.doctor.facts import Facts
from tests.doctor.machines import Responder


@pytest.fixture
def facts(tmp_path: Path) -> Facts:
    """A machine where everything is in order and nothing has run yet."""
    (tmp_path / "copilot" / "session-state").mkdir(parents=True)
    return Facts(
        copilot_home=tmp_path / "copilot",
        state_dir=tmp_path / "state",
        open_files=64,
        quarantine_bytes=1 << 20,
        line_bytes_max=1 << 20,
        home=tmp_path,
    )


@pytest.fixture
def serve() -> Iterator[Callable[[Responder], str]]:
    """Starts HTTP servers that answer as they are told, and returns their addresses."""
    servers: list[ThreadingHTTPServer] = []

    def start(respond: Responder) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("content-length") or 0))
                status, headers = respond(
                    f"{self.command} {self.path}", {k.lower(): v for k, v in self.headers.items()}
                )
                self.send_response_only(status)
                for name, value in {"Content-Length": "0", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(b"<html></html>"[: int(headers.get("Content-Length", 0))])

            do_POST = do_GET  # noqa: N815  the name that the base class looks for

            def log_message(self, format: str, *args: Any) -> None:
                """Keeps the test's output clean."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
