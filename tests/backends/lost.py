"""A way to a store on which the first answers to each path are lost after the store has taken the request."""

import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Final
from urllib.parse import urlsplit

import httpx

_LOST_PER_PATH: Final = 3
_SECONDS_MAX: Final = 60


class LosesAnswers:
    """Passes requests on; `endpoint` stands for the store's, `lost` counts the answers. A context manager."""

    def __init__(self, endpoint: str) -> None:
        parts = urlsplit(endpoint)
        self._store = f"{parts.scheme}://{parts.netloc}"
        self._asked: Counter[str] = Counter()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}{parts.path}"

    def __enter__(self) -> "LosesAnswers":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def lost(self) -> int:
        """How many answers were lost so far."""
        return sum(min(count, _LOST_PER_PATH) for count in self._asked.values())

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        ours = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                """Pass it on; an answer that is not lost comes back."""
                body = self.rfile.read(int(self.headers["Content-Length"]))
                kept = {
                    name: self.headers[name] for name in ("Content-Type", "Content-Encoding") if name in self.headers
                }
                answer = httpx.post(ours._store + self.path, content=body, headers=kept, timeout=_SECONDS_MAX)
                ours._asked[self.path] += bool(body)
                if body and ours._asked[self.path] <= _LOST_PER_PATH:
                    self.close_connection = True
                    return
                self._answer(answer)

            def do_GET(self) -> None:
                """Pass on what the exporter asks a store about itself."""
                self._answer(httpx.get(ours._store + self.path, timeout=_SECONDS_MAX))

            def _answer(self, answer: httpx.Response) -> None:
                self.send_response(answer.status_code)
                self.send_header("Content-Type", answer.headers.get("Content-Type", "application/json"))
                self.send_header("Content-Length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        return Handler
