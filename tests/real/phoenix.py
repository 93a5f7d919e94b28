"""Arize Phoenix, a real OpenTelemetry backend, installed from PyPI into an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

from tests.real.cli import wait_until
from tests.real.install import InstallError, directory, locked, part

VERSION = "20.26.1"
INSTALL_SECONDS_MAX = 900
START_SECONDS_MAX = 120


def interpreter() -> Path:
    """The interpreter that has it, installed first if it is missing."""
    root = directory()
    root.mkdir(parents=True, exist_ok=True)
    with locked(root):
        return part(root / f"phoenix-{VERSION}", _interpreter, _install)


def _interpreter(place: Path) -> Path | None:
    return place / "bin" / "python" if (place / ".whole").exists() else None


def _install(place: Path) -> None:
    python = str(place / "bin" / "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", f"arize-phoenix=={VERSION}"]
    for command in ([sys.executable, "-m", "venv", str(place)], pip):
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX, check=False)
        if done.returncode:
            raise InstallError(f"{command[2]} failed ({done.returncode}):\n{(done.stdout + done.stderr)[-2000:]}")
    (place / ".whole").touch()


@dataclass(frozen=True, slots=True)
class Stored:
    """A span as Phoenix gives it back."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    attributes: dict[str, Any]
    events: tuple[str, ...]


class Phoenix:
    """A server with an empty database; a context manager."""

    def __init__(self, working: Path, port: int, grpc_port: int) -> None:
        working.mkdir(parents=True, exist_ok=True)
        self.url = f"http://127.0.0.1:{port}"
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "PHOENIX_"))},
            "PHOENIX_WORKING_DIR": str(working),
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(port),
            "PHOENIX_GRPC_PORT": str(grpc_port),
            "PHOENIX_TELEMETRY_ENABLED": "false",
            "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
        }
        self._log = working / "log"
        with self._log.open("wb") as log:
            self._server = subprocess.Popen(
                [str(interpreter()), "-m", "phoenix.server.main", "serve"], env=environment, stdout=log, stderr=log
            )

    def __enter__(self) -> Phoenix:
        wait_until(self._answers, "phoenix answers", START_SECONDS_MAX)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.terminate()
        try:
            self._server.wait(10)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()

    def _answers(self) -> bool:
        assert self._server.poll() is None, self._log.read_text()[-2000:]
        try:
            return httpx.get(f"{self.url}/healthz", timeout=2).status_code == 200
        except httpx.HTTPError:
            return False

    def spans(self) -> list[Stored]:
        """Every span it holds."""
        found: list[Stored] = []
        cursor: str | None = None
        while True:
            query: dict[str, Any] = {"limit": 1000} | ({"cursor": cursor} if cursor else {})
            page = (
                httpx.get(f"{self.url}/v1/projects/default/spans", params=query, timeout=30).raise_for_status().json()
            )
            found.extend(map(_stored, page["data"]))
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    def sessions(self) -> list[dict[str, Any]]:
        """The sessions that it groups traces into."""
        return list(self._get("/v1/projects/default/sessions", {})["data"])

    def _get(self, path: str, query: dict[str, Any]) -> dict[str, Any]:
        return dict(httpx.get(self.url + path, params=query, timeout=30).raise_for_status().json())


def _stored(span: dict[str, Any]) -> Stored:
    return Stored(
        span["context"]["trace_id"],
        span["context"]["span_id"],
        span.get("parent_id"),
        span["name"],
        span["attributes"],
        tuple(event["name"] for event in span["events"]),
    )
