"""A session that a CLI would write: a file that grows, and a tap that shows what is in no file."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from exporter.sources.local_socket import socket_path
from exporter.sources.tap.source import SOCKET_NAME
from tests.browser.receiver import event

SESSION = "5f0c1f2e-6a53-4c0b-9a52-0d3c7a1b9e44"


class Cli:
    """A session whose file grows, and the tap in it that shows what is not in the file."""

    def __init__(self, home: Path) -> None:
        self._file = home / "copilot/session-state" / SESSION / "events.jsonl"
        self._file.parent.mkdir(parents=True)
        self._socket = socket_path(home / "state", SOCKET_NAME)
        self._tap: socket.socket | None = None
        self._number = 0

    def write(self, type: str, **data: Any) -> str:
        """Append an event to the file; return its id."""
        self._number += 1
        with self._file.open("a") as file:
            file.write(json.dumps(event(self._number, type, data)) + "\n")
        return f"event-{self._number}"

    def show(self, type: str, **data: Any) -> None:
        """Show an ephemeral event through the tap."""
        if self._tap is None:
            self._tap = socket.socket(socket.AF_UNIX)
            self._tap.connect(str(self._socket))
        self._number += 1
        shown = event(self._number, type, data, ephemeral=True)
        self._tap.sendall(json.dumps({"session": SESSION, "dropped": 0, "event": shown}).encode() + b"\n")

    def close(self) -> None:
        """Hang up."""
        if self._tap is not None:
            self._tap.close()
