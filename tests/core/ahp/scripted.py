"""A host of ours, for tests: it keeps its own state, tells of what changes it, and forgets as real hosts do.

It shares no code with the observer: every change is made to the state by hand, and the action is written beside it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import groupby
from typing import Any

Json = dict[str, Any]
SESSION_NAME = "5ec633bc-a325-43af-b5cb-96785ef1971c"


class ScriptedHost:
    """One session with one conversation, in the dialect of a version; snapshots hold the last `window` turns."""

    def __init__(
        self,
        version: str | int,
        *,
        window: int = 1000,
        buffer: int = 1000,
        page: int = 3,
        name: str = SESSION_NAME,
        provider: str = "made-up",
    ) -> None:
        self.version, self.window, self.buffer, self.page = version, window, buffer, page
        self.provider = provider
        self.is_classic = version == 1
        self.has_cursors = version not in (1, "0.4.0")
        self.session = f"copilot:/{name}" if self.is_classic else f"ahp-session:/{name}"
        self.chat = self.session if self.is_classic else "ahp-chat://default/one"
        self.turns: list[Json] = []
        self.active: Json | None = None
        self.seq = 0
        self.told: list[Json] = []  # not yet delivered
        self.is_connected = False
        self._replay: list[Json] = []
        self._subscribed: set[str] = set()
        self._clients: set[str] = set()
        self._completed: list[str] = []
        self._count = 0
        self._loaded: dict[str, list[Json]] = {}

    # What happens on the host.

    def start(self) -> None:
        if self.active is None:
            self.active = {"id": self._new("turn"), "message": {"text": self._new("prompt")}, "responseParts": []}
            self._tell({"type": "chat/turnStarted", "turnId": self.active["id"], "message": self.active["message"]})

    def write(self, kind: str) -> None:
        if self.active is None:
            return
        parts, content = self.active["responseParts"], self._new("text") + " "
        if parts and parts[-1]["kind"] == kind:
            parts[-1]["content"] += content
            action = "chat/delta" if kind == "markdown" else "chat/reasoning"
            self._tell({"type": action, "turnId": self.active["id"], "partId": parts[-1]["id"], "content": content})
        else:
            parts.append({"kind": kind, "id": self._new("part"), "content": content})
            part = copy.deepcopy(parts[-1])
            self._tell({"type": "chat/responsePart", "turnId": self.active["id"], "part": part})

    def call(self) -> None:
        if self.active is None:
            return
        call = {"toolCallId": self._new("call"), "toolName": "bash", "displayName": "Bash"}
        self.active["responseParts"].append({"kind": "toolCall", "toolCall": {**call, "status": "streaming"}})
        self._tell({"type": "chat/toolCallStart", "turnId": self.active["id"], **call})

    def ready(self, *, asks: bool) -> None:
        call = self._call("streaming", "running")
        if call is None or self.active is None:
            return
        call.pop("confirmed", None)
        given = {"invocationMessage": "Run", "toolInput": '{"command": "true"}'}
        call.update(given, status="pending-confirmation" if asks else "running")
        told = {"type": "chat/toolCallReady", "toolCallId": call["toolCallId"], **given}
        if not asks:
            call["confirmed"] = told["confirmed"] = "not-needed"
        self._tell({"turnId": self.active["id"], **told})

    def permit(self, *, approves: bool) -> None:
        call = self._call("pending-confirmation")
        if call is None or self.active is None:
            return
        told: Json = {"type": "chat/toolCallConfirmed", "toolCallId": call["toolCallId"], "approved": approves}
        if approves:
            call.update(status="running", confirmed="user-action")
            told["confirmed"] = "user-action"
        else:
            call.update(status="cancelled", reason="denied")
            told["reason"] = "denied"
        self._tell({"turnId": self.active["id"], **told})

    def complete(self) -> None:
        call = self._call("running")
        if call is None or self.active is None:
            return
        result = {"success": True, "content": [{"type": "text", "text": self._new("output")}]}
        call.update(copy.deepcopy(result), status="completed")
        self._completed.append(call["toolCallId"])
        told = {"type": "chat/toolCallComplete", "toolCallId": call["toolCallId"], "result": result}
        self._tell({"turnId": self.active["id"], **told})

    def use(self, cli_session: str = "") -> None:
        """Tell what a call of the model used, and in which of the CLI's sessions."""
        if self.active is None:
            return
        usage: Json = {"inputTokens": 1, "model": "made-up"}
        if cli_session:
            usage["_meta"] = {"vscode.modelCall": {"sdkSessionId": cli_session, "eventId": self._new("usage")}}
        self.active["usage"] = usage
        self._tell({"type": "chat/usage", "turnId": self.active["id"], "usage": usage})

    def nonsense(self) -> None:
        """Actions that do nothing: for another turn, for a tool call in another state, of a kind that nobody knows."""
        turn = self.active["id"] if self.active else "none"
        self._tell({"type": "chat/toolCallConfirmed", "turnId": turn, "toolCallId": "none", "approved": True})
        self._tell({"type": "chat/delta", "turnId": "another", "partId": "none", "content": "lost"})
        self._tell({"type": "chat/turnComplete", "turnId": "another"})
        self._tell({"type": "chat/fromTheFuture", "turnId": turn, "content": {"deep": [1]}})

    def end(self, how: str = "turnComplete") -> None:
        if self.active is None:
            return
        for part in self.active["responseParts"]:
            call = part.get("toolCall")
            if call and call["status"] not in ("completed", "cancelled"):
                call["status"], call["reason"] = "cancelled", "skipped"
        states = {"turnComplete": "complete", "turnCancelled": "cancelled", "error": "error"}
        turn, self.active = {**self.active, "state": states[how]}, None
        told = {"type": f"chat/{how}", "turnId": turn["id"]}
        if how == "error":
            error = {"errorType": "made-up", "message": self._new("error")}
            if self.version in (1, "0.4.0"):
                turn["error"] = told["error"] = error
            else:
                told["part"] = {"kind": "error", "error": error}
                turn["responseParts"].append(copy.deepcopy(told["part"]))
        self.turns.append(turn)
        self._tell(told)

    def truncate(self, count: int) -> None:
        if count < len(self.turns):
            del self.turns[count:]
            self.active = None
            told = {"turnId": self.turns[-1]["id"]} if self.turns else {}
            self._tell({"type": "chat/truncated", **told})

    def restart(self) -> None:
        """As a real host: ids are others, texts are cut elsewhere, numbers begin again, and nobody is known.

        Calls that were made together come in the order in which they ended. What else hosts lose is in `histories`.
        """
        self.end("turnCancelled")
        for turn in self.turns:
            turn["id"] = self._new("turn")
            parts: list[Json] = []
            for part in turn["responseParts"]:
                if part["kind"] in ("toolCall", "error") or len(part["content"]) < 8:
                    parts.append({**part, "id": self._new("part")} if "id" in part else part)
                    continue
                for content in (part["content"][:7], part["content"][7:]):
                    parts.append({**part, "id": self._new("part"), "content": content})
            turn["responseParts"] = self._by_end(parts)
        self.seq = 0
        self._replay.clear()
        self._clients.clear()
        self.drop()

    def _by_end(self, parts: list[Json]) -> list[Json]:
        ends = {call: number for number, call in enumerate(self._completed)}
        found: list[Json] = []
        for is_call, together in groupby(parts, key=lambda part: part["kind"] == "toolCall"):
            found += sorted(together, key=lambda p: ends.get(p["toolCall"]["toolCallId"], len(ends)) if is_call else 0)
        return found

    # What is said about it.

    def drop(self) -> None:
        self.is_connected = False
        self.told.clear()
        self._subscribed.clear()

    def state(self) -> Json:
        turns = copy.deepcopy(self.turns[-self.window :])
        state: Json = {"turns": turns, "activeTurn": copy.deepcopy(self.active)}
        if self.has_cursors and len(self.turns) > self.window:
            state["turnsNextCursor"] = str(len(self.turns) - self.window)
        if self.is_classic:
            state["summary"] = {"resource": self.session}
        return state

    def answer(self, method: str, params: Json) -> Json:
        uri = params.get("channel") or params.get("resource") or params.get("session") or ""
        methods: dict[str, Callable[[str, Json], Json]] = {
            "initialize": self._initialize,
            "reconnect": self._reconnect,
            "listSessions": lambda _, __: {
                "items": [{"resource": self.session, "status": 8, "provider": self.provider}]
            },
            "subscribe": self._subscribe,
            "fetchTurns": self._fetch,
        }
        if method not in methods:
            return {"error": {"code": -32601, "message": "not here"}}
        result = methods[method](uri, params)
        return result if "error" in result else {"result": result}

    def _initialize(self, _: str, params: Json) -> Json:
        self._clients.add(params["clientId"])
        self.is_connected = True
        return {"protocolVersion": self.version, "serverSeq": self.seq, "snapshots": []}

    def _reconnect(self, _: str, params: Json) -> Json:
        if params["clientId"] not in self._clients and not self.is_classic:
            return {"error": {"code": -32008, "message": "Reconnect client not found"}}
        self.is_connected = True
        self._subscribed = set(params["subscriptions"])
        seen = params["lastSeenServerSeq"]
        missed = [each for each in self._replay if each["params"]["serverSeq"] > seen]
        if self._replay and self._replay[0]["params"]["serverSeq"] > seen + 1:
            return {"type": "snapshot", "snapshots": []}
        return {"type": "replay", "actions": [each["params"] for each in missed]}

    def _subscribe(self, uri: str, params: Json) -> Json:
        self._subscribed.add(uri)
        states = {self.chat: self.state}
        if not self.is_classic:
            chats = [{"resource": self.chat, "origin": {"kind": "user"}}]
            states[self.session] = lambda: {"chats": chats, "defaultChat": self.chat}
        state = states[uri]() if uri in states else {}
        return {"snapshot": {"resource": uri, "state": state, "fromSeq": self.seq}}

    def _fetch(self, uri: str, params: Json) -> Json:
        if self.has_cursors:
            end = int(params["cursor"])
            start = max(0, end - self.page)
            action = {"type": "chat/turnsLoaded", "turns": copy.deepcopy(self.turns[start:end])}
            self._tell({**action, **({"turnsNextCursor": str(start)} if start else {})})
            return {"none": None}
        ids = [turn["id"] for turn in self.turns]
        end = ids.index(params["before"]) if params.get("before") in ids else len(ids)
        start = max(0, end - self.page)
        return {"turns": copy.deepcopy(self.turns[start:end]), "hasMore": start > 0}

    def _tell(self, action: Json) -> None:
        self.seq += 1
        params: Json = {"action": copy.deepcopy(action), "serverSeq": self.seq}
        if self.is_classic:
            told = params["action"]
            told["type"] = told["type"].replace("chat/", "session/")
            told["session"] = self.chat
            if "message" in told:
                told["userMessage"] = told.pop("message")
        else:
            params["channel"] = self.chat
        frame = {"jsonrpc": "2.0", "method": "action", "params": params}
        self._replay = [*self._replay, frame][-self.buffer :]
        if self.is_connected and self.chat in self._subscribed:
            self.told.append(frame)

    def _call(self, *statuses: str) -> Json | None:
        for part in self.active["responseParts"] if self.active else []:
            if part["kind"] == "toolCall" and part["toolCall"]["status"] in statuses:
                call: Json = part["toolCall"]
                return call
        return None

    def _new(self, what: str) -> str:
        self._count += 1
        return f"{what}-{self._count}"


STEPS: dict[str, Callable[[ScriptedHost], None]] = {
    "start": ScriptedHost.start,
    "write": lambda host: host.write("markdown"),
    "think": lambda host: host.write("reasoning"),
    "call": ScriptedHost.call,
    "ready": lambda host: host.ready(asks=False),
    "ask": lambda host: host.ready(asks=True),
    "permit": lambda host: host.permit(approves=True),
    "deny": lambda host: host.permit(approves=False),
    "complete": ScriptedHost.complete,
    "nonsense": ScriptedHost.nonsense,
    "end": ScriptedHost.end,
    "cancel": lambda host: host.end("turnCancelled"),
    "fail": lambda host: host.end("error"),
}
