"""Drive the real CLI's headless server over its JSON-RPC: create, turn, truncate, fork, compact, upload, resume."""

from __future__ import annotations

import json
import queue
import re
import socket
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.real import install
from tests.real.account import ACCOUNT_TOKEN
from tests.real.cage import kill, stop
from tests.real.cli import Copilot, wait_until
from tests.real.model import MODEL
from tests.real.scripts import prompt

START_SECONDS_MAX = 60
CALL_SECONDS_MAX = 60
TURN_SECONDS_MAX = 90


class RpcError(Exception):
    """The server refused a call, or ended."""


@dataclass(frozen=True, slots=True)
class Upload:
    """Where the CLI's own uploader sends, and the port of the account stand-in that lets it start."""

    url: str
    token: str
    account_port: int

    def environment(self) -> dict[str, str]:
        """What makes the uploader start: an account, and a repository that it would otherwise ask GitHub about."""
        account = f"http://127.0.0.1:{self.account_port}"
        return {
            "COPILOT_SDK_AUTH_TOKEN": ACCOUNT_TOKEN,
            "COPILOT_DEBUG_GITHUB_API_URL": account,
            "COPILOT_API_URL": account,
            "COPILOT_MC_BASE_URL": self.url,
            "COPILOT_MC_ACCESS_TOKEN": self.token,
            "COPILOT_MC_FRONTEND_URL": account,
            "COPILOT_MC_REPO": "made-up/repository",
            "COPILOT_MC_REPO_IDS": "31,32",
        }


class Server:
    """A headless CLI with one client. A context manager: leaving it stops the server with SIGTERM."""

    def __init__(
        self, copilot: Copilot, upload: Upload | None = None, wire_api: str = "completions", *, port: int = 0
    ) -> None:
        self.copilot = copilot
        self._wire_api = wire_api
        self.work = copilot.working_directory()
        (self.work / ".user").mkdir()
        subprocess.run(["git", "init", "--quiet", str(self.work)], check=True, timeout=20)
        environment = copilot.environment(self.work / ".user")
        arguments = ["--headless", "--no-auto-update", "--no-auto-login", "--port", str(port)]
        if upload:
            # The uploader does not start when the CLI is told to be offline, so it takes a cage that is isolated.
            assert copilot.cage.isolated, "the CLI's uploader runs only where nothing but loopback can be reached"
            del environment["COPILOT_OFFLINE"]
            environment |= upload.environment()
            arguments += ["--auth-token-env", "COPILOT_SDK_AUTH_TOKEN"]
        self._output = self.work.with_suffix(".output")
        with self._output.open("wb") as sink:
            self._program = copilot.cage.start(
                [*install.command(copilot.version), *arguments],
                environment=environment,
                directory=self.work,
                stdout=sink,
                stderr=subprocess.STDOUT,
            )
        self._client = Client(copilot.cage.connect(self._port()))
        self.call("connect")

    def create(self) -> str:
        """A new session; its log appears with its first turn."""
        session_id = str(self.call("session.create", **self._session_options())["sessionId"])
        self.call("session.permissions.setApproveAll", sessionId=session_id, enabled=True)
        return session_id

    def resume(self, session_id: str) -> None:
        """Go on with a session of an earlier server."""
        self.call("session.resume", sessionId=session_id, **self._session_options())
        self.call("session.permissions.setApproveAll", sessionId=session_id, enabled=True)

    def turn(self, session_id: str, scenario: str) -> None:
        """Play a scenario and wait until the session is idle."""
        before = self._client.idle_count(session_id)
        self.call("session.send", sessionId=session_id, prompt=prompt(scenario, self.work))
        self._client.wait_idle(session_id, before)

    def send(self, session_id: str, scenario: str) -> None:
        """Start to play a scenario."""
        self.call("session.send", sessionId=session_id, prompt=prompt(scenario, self.work))

    def truncate(self, session_id: str, event_id: str) -> int:
        """Remove this event and what follows it from the log; how many were removed."""
        return int(self.call("session.history.truncate", sessionId=session_id, eventId=event_id)["eventsRemoved"])

    def rewind(self, session_id: str, event_id: str) -> None:
        """Go back to before this user message, as a person does."""
        self.call("session.history.rewind", sessionId=session_id, eventId=event_id, mode="conversation")

    def fork(self, session_id: str) -> str:
        """A new session with a copy of this one's events."""
        return str(self.call("sessions.fork", sessionId=session_id)["sessionId"])

    def compact(self, session_id: str) -> None:
        """Have the conversation summarised."""
        self.call("session.history.compact", sessionId=session_id)

    def enable_upload(self, session_id: str) -> None:
        """Start the CLI's own uploader for this session."""
        self.call("session.remote.enable", sessionId=session_id, mode="export")

    def close(self, session_id: str) -> None:
        """End a session cleanly."""
        self.call("session.destroy", sessionId=session_id)
        wait_until(lambda: b'"session.shutdown"' in self.events(session_id).read_bytes(), "session.shutdown", 20)

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """One request; RpcError when the server refuses it."""
        return self._client.call(method, parameters)

    def events(self, session_id: str) -> Path:
        """The session's log."""
        return self.copilot.sessions() / session_id / "events.jsonl"

    def metadata(self, session_id: str) -> str:
        """The session's workspace.yaml."""
        return self.events(session_id).with_name("workspace.yaml").read_text()

    def stop(self) -> None:
        """SIGTERM, and wait until it has ended."""
        self._client.close()
        stop(self._program)

    def kill(self) -> None:
        """SIGKILL, to the server alone."""
        self._program.kill()
        self._program.wait()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _session_options(self) -> dict[str, object]:
        provider = {"type": "openai", "baseUrl": self.copilot.model_url, "wireApi": self._wire_api}
        permission = {"requestPermission": True, "streaming": True}
        return {"model": MODEL, "provider": provider, "workingDirectory": str(self.work), **permission}

    def _port(self) -> int:
        pattern = re.compile(rb"listening on port (\d+)")

        def said() -> bool:
            return bool(pattern.search(self._output.read_bytes())) or self._program.poll() is not None

        wait_until(said, "the headless server to listen", START_SECONDS_MAX)
        found = pattern.search(self._output.read_bytes())
        if not found:
            kill(self._program)
            raise RpcError(f"the headless server ended: {self._output.read_text(errors='replace')[-2000:]}")
        return int(found[1])


@dataclass
class Client:
    """JSON-RPC 2.0 in Content-Length frames: answers go to their callers, permissions are given, events counted."""

    connection: socket.socket
    _answers: dict[int, queue.Queue[dict[str, Any]]] = field(default_factory=dict)
    _idle: dict[str, int] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _last_call: int = 0

    def __post_init__(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()

    def call(self, method: str, parameters: dict[str, object]) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self._last_call += 1
        answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._answers[self._last_call] = answers
        self._send({"id": self._last_call, "method": method, "params": parameters})
        try:
            answer = answers.get(timeout=CALL_SECONDS_MAX)
        except queue.Empty:
            raise RpcError(f"{method}: no answer") from None
        if "error" in answer:
            raise RpcError(f"{method}: {answer['error']}")
        return answer["result"] or {}

    def idle_count(self, session_id: str) -> int:
        """How often the session has become idle."""
        with self._changed:
            return self._idle.get(session_id, 0)

    def wait_idle(self, session_id: str, before: int) -> None:
        """Wait until the session has become idle more than `before` times."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._idle.get(session_id, 0) > before, TURN_SECONDS_MAX):
                raise RpcError(f"{session_id} did not become idle")

    def close(self) -> None:
        """Hang up."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()

    def _send(self, message: dict[str, object]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.connection.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def _read(self) -> None:
        with suppress(OSError, ValueError), self.connection.makefile("rb") as stream:
            while header := stream.readline():
                name, _, value = header.partition(b":")
                if name.lower() != b"content-length":
                    continue
                while stream.readline().strip():
                    pass
                self._take(json.loads(stream.read(int(value))))
        for answers in list(self._answers.values()):
            answers.put({"error": "the server hung up"})

    def _take(self, message: dict[str, Any]) -> None:
        method = message.get("method", "")
        if not method:
            if answers := self._answers.pop(message["id"], None):
                answers.put(message)
        elif method == "session.event":
            if message["params"]["event"]["type"] == "session.idle":
                session_id = message["params"]["sessionId"]
                with self._changed:
                    self._idle[session_id] = self._idle.get(session_id, 0) + 1
                    self._changed.notify_all()
        elif "id" in message:
            allowed = {"result": {"kind": "approve-once"}} if "permission" in method else {}
            self._send({"id": message["id"], "result": allowed})
