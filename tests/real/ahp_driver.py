"""The owner of sessions on a real agent host: makes them, runs prompts in them, and permits what the agent asks."""

from __future__ import annotations

import json
import time
import uuid
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

from websockets.sync.client import connect

from tests.real.account import ACCOUNT_TOKEN
from tests.real.ahp_host import TOKEN, AgentHost
from tests.real.scripts import prompt

TURN_SECONDS_MAX = 60
READY_SECONDS_MAX = 15
CANCEL_SECONDS = 2


class Driver:
    """One client of a host; a context manager."""

    def __init__(self, host: AgentHost) -> None:
        self.host = host
        self.session = self.chat = ""
        self.seen = self._number = self._dispatched = 0
        self._told: list[dict[str, Any]] = []
        url = f"ws://127.0.0.1:{host.port}/?tkn={TOKEN}"
        opened = connect(url, sock=host.connect(), proxy=None, compression=None, max_size=None)
        self._stack = ExitStack()
        self._socket = self._stack.enter_context(opened)
        versions = {"protocolVersion": 1, "protocolVersions": ["0.9.0"]}
        client = f"driver-{uuid.uuid4().hex[:6]}"
        self.call("initialize", channel="ahp-root://", **versions, clientId=client, initialSubscriptions=[])
        self.call("authenticate", **self._root, resource="https://api.github.com", token=ACCOUNT_TOKEN)
        time.sleep(1)  # the host says nothing when it has taken the token in

    @property
    def _root(self) -> dict[str, str]:
        return {} if self.host.is_classic else {"channel": "ahp-root://"}

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def call(self, method: str, **params: Any) -> Any:
        """Ask for something, and return the answer."""
        self._number += 1
        number = self._number
        self._socket.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
        while True:
            message = self._receive(30)
            if message.get("id") == number and "method" not in message:
                assert "error" not in message, (method, message["error"])
                return message.get("result")
            self._told.append(message)

    def create(self) -> str:
        """Make a session and return its address."""
        name = str(uuid.uuid4())
        if self.host.is_classic:
            self.session = self.chat = f"copilot:/{name}"
            self.call(
                "createSession", session=self.session, provider="copilot", workingDirectory=self.host.home.as_uri()
            )
            self.call("subscribe", resource=self.session)
            return self.session
        self.session = f"ahp-session:/{name}"
        directories, config = [self.host.home.as_uri()], {"autoApprove": "autoApprove"}
        self.call(
            "createSession", channel=self.session, provider="copilotcli", workingDirectories=directories, config=config
        )
        self.open(self.session)
        return self.session

    def open(self, session: str) -> None:
        """Go on in a session that there is."""
        self.session = self.chat = session
        if self.host.is_classic:
            self._subscribe(resource=session)
            return
        self.chat = self._subscribe(channel=session)["snapshot"]["state"]["defaultChat"]
        self.call("subscribe", channel=self.chat)

    def _subscribe(self, **where: str) -> Any:
        """Subscribe to a session; a host that was just started cannot restore one until it has taken the token in."""
        until = time.monotonic() + READY_SECONDS_MAX
        while True:
            try:
                return self.call("subscribe", **where)
            except AssertionError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)

    def turn(self, scenario: str, *, cancels: bool = False) -> str:
        """Run a prompt and return how its turn ended; a scenario that begins with `!` is a command for the shell.

        With `cancels` the turn is cancelled while a command sleeps.
        """
        text = scenario if scenario.startswith("!") else prompt(scenario, self.host.home)
        begun = {"turnId": str(uuid.uuid4())}
        if self.host.is_classic:
            self._dispatch({"type": "session/turnStarted", **begun, "userMessage": {"text": text}})
        else:
            message = {"text": text, "origin": {"kind": "user"}}
            now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            self._dispatch({"type": "chat/turnStarted", **begun, "startedAt": now, "message": message})
        return self._until_the_end(begun["turnId"], cancels)

    def _until_the_end(self, turn: str, cancels: bool) -> str:
        until = time.monotonic() + TURN_SECONDS_MAX
        while time.monotonic() < until:
            message = self._told.pop(0) if self._told else self._receive(TURN_SECONDS_MAX)
            action = (message.get("params") or {}).get("action") or {}
            kind = str(action.get("type", "")).partition("/")[2]
            is_running = kind == "toolCallConfirmed" or (kind == "toolCallReady" and action.get("confirmed"))
            if cancels and is_running and (kind == "toolCallConfirmed" or "sleep" in json.dumps(action)):
                cancels = False
                time.sleep(CANCEL_SECONDS)
                prefix, lasted = ("session", {}) if self.host.is_classic else ("chat", {"duration": 2000})
                self._dispatch({"type": f"{prefix}/turnCancelled", "turnId": turn, **lasted})
            if kind == "toolCallReady" and not action.get("confirmed"):
                permitted = {"turnId": action["turnId"], "toolCallId": action["toolCallId"], "approved": True}
                prefix = "session" if self.host.is_classic else "chat"
                channel = str(message["params"].get("channel") or action.get("session"))
                self._dispatch(
                    {"type": f"{prefix}/toolCallConfirmed", **permitted, "confirmed": "user-action"}, channel
                )
            elif kind == "chatAdded":
                child = action.get("summary") or action.get("chat") or {}
                self._socket.send(
                    json.dumps(
                        {"jsonrpc": "2.0", "id": 0, "method": "subscribe", "params": {"channel": child["resource"]}}
                    )
                )
            elif kind in ("turnComplete", "turnCancelled", "error") and action.get("turnId") == turn:
                return kind
        raise AssertionError("the turn did not end")

    def _dispatch(self, action: dict[str, Any], channel: str = "") -> None:
        self._dispatched += 1
        channel = channel or self.chat
        where = {} if self.host.is_classic else {"channel": channel}
        about = {"session": channel} if self.host.is_classic else {}
        params = {**where, "clientSeq": self._dispatched, "action": {**action, **about}}
        self._socket.send(json.dumps({"jsonrpc": "2.0", "method": "dispatchAction", "params": params}))

    def _receive(self, seconds: float) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._socket.recv(seconds))
        self.seen = max(self.seen, (message.get("params") or {}).get("serverSeq") or 0)
        if "method" in message and "id" in message:
            refusal = {"code": -32601, "message": "not supported"}
            self._socket.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": refusal}))
        return message
