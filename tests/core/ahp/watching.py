"""The observer with a store in memory, and a host that answers with the states it was given."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import msgspec

from exporter.core.ahp.observer import HostObserver
from exporter.core.ahp.session import Hooks
from exporter.core.ahp.subscriptions import Subscriptions

NOW = 1_795_000_000.0
Json = dict[str, Any]


def _text(frame: Json) -> str:
    """Write a frame; half a character, which only a garbled one holds, is an escape."""
    try:
        return msgspec.json.encode(frame).decode()
    except UnicodeEncodeError:
        return json.dumps(frame)


class Watching:
    """What the observer gave for one host. `states` are what `subscribe` answers, by address."""

    def __init__(self, states: dict[str, Json], version: str | int = "0.9.0", seq: int = 0) -> None:
        self.answer: Callable[[str, Json], Json] = self._answer
        self.states = states
        self.version = version
        self.seq = seq
        self.now = NOW
        self.pace = 60.0  # seconds from one frame to the next: more than anything is held back
        self.lines: dict[str, list[Json]] = {}
        self.order: list[Json] = []
        self.kept: dict[str, bytes] = {}
        self.asked: list[Json] = []
        self.telemetry: list[tuple[str, bytes]] = []
        self.elsewhere: set[str] = set()
        self.withheld: set[str] = set()  # methods whose answers have not come yet
        self._known: set[tuple[str, str]] = set()
        self._unanswered: list[Json] = []
        self.observer = self._observer()

    def _observer(self) -> HostObserver:
        hooks = Hooks(
            lambda session, id: (session, id) in self._known,
            lambda session: next(
                (e["id"] for e in reversed(self.lines.get(session, [])) if not e.get("ephemeral")), None
            ),
            lambda session: session in self.elsewhere,
        )
        subscriptions = Subscriptions(hooks, load=self.kept.get)
        return HostObserver("test", subscriptions, lambda method, raw: self.telemetry.append((method, raw)))

    def begin(self) -> None:
        """Connect, and answer until nothing is asked any more."""
        self.observer.connected(self.now)
        self._pump()

    def begin_anew(self) -> None:
        """As a process that was started again, with what the last one had written down."""
        self.observer = self._observer()
        self.begin()

    def hear(self, frame: Json) -> None:
        """Let the host say something, and answer what is asked because of it."""
        self.seq = max(self.seq, frame.get("params", {}).get("serverSeq") or 0)
        self.observer.receive(_text(frame), self.now)
        self._pump()

    def answer_withheld(self) -> None:
        """Let the answers that were withheld come, and answer what is asked because of them."""
        self.withheld.clear()
        unanswered, self._unanswered = self._unanswered, []
        for asked in unanswered:
            self._say(asked["id"], self.answer(asked["method"], asked["params"]))
        self._pump()

    def durable(self, session: str | None = None) -> list[Json]:
        return [e for e in self._of(session) if not e.get("ephemeral")]

    def passing(self, session: str | None = None) -> list[Json]:
        return [e for e in self._of(session) if e.get("ephemeral")]

    def _of(self, session: str | None) -> list[Json]:
        return self.order if session is None else self.lines.get(session, [])

    def _pump(self) -> None:
        while self.observer.outgoing:
            together = [msgspec.json.decode(frame) for frame in self.observer.outgoing]
            self.observer.outgoing.clear()
            self.asked += together
            refused = self._overtaken(together)
            for asked in together:
                if asked.get("method") in self.withheld:
                    self._unanswered.append(asked)
                elif "method" in asked and "id" in asked and asked["id"] not in refused:
                    self._say(asked["id"], self.answer(asked["method"], asked["params"]))
            for id, uri in refused.items():
                self._say(id, {"error": {"code": -32001, "message": f"Resource not found: {uri}"}})
        self.now += self.pace
        for session, lines in self.observer.subscriptions.take(self.now):
            for line, is_ephemeral in lines:
                event = msgspec.json.decode(line)
                assert bool(event.get("ephemeral")) == is_ephemeral
                self.order.append(event)
                self.lines.setdefault(session, []).append(event)
                if not is_ephemeral:
                    assert (session, event["id"]) not in self._known
                    self._known.add((session, event["id"]))
        self.kept.update(self.observer.subscriptions.save())

    def _say(self, id: int, answer: Json) -> None:
        self.observer.receive(_text({"jsonrpc": "2.0", "id": id, **answer}), self.now)

    def _overtaken(self, together: list[Json]) -> dict[int, str]:
        """Return what VS Code's host 4.139.1 refuses: a subscription, when another one of its address came with it."""
        asked = [each for each in together if each.get("method") == "subscribe"]
        uris = {each["id"]: each["params"].get("channel") for each in asked}
        last = {uri: id for id, uri in uris.items() if uri}
        return {id: uri for id, uri in uris.items() if uri and last[uri] != id}

    def _answer(self, method: str, params: Json) -> Json:
        uri = params.get("channel") or params.get("resource") or ""
        if method == "initialize":
            return {"result": {"protocolVersion": self.version, "serverSeq": self.seq, "snapshots": []}}
        if method == "listSessions":
            return {"result": {"items": [{"resource": each, "modifiedAt": NOW * 1000} for each in self.sessions()]}}
        if method == "reconnect":
            return {"result": {"type": "replay", "actions": []}}
        if method == "subscribe" and uri in ("ahp-root://", "agenthost:/root"):
            return {"result": {"snapshot": {"resource": uri, "state": {}, "fromSeq": self.seq}}}
        if method == "subscribe" and uri in self.states:
            return {"result": {"snapshot": {"resource": uri, "state": self.states[uri], "fromSeq": self.seq}}}
        if method == "fetchTurns":
            return {"result": {"turns": [], "hasMore": False}}
        return {"error": {"code": -32001, "message": "secret-token-in-a-message"}}

    def sessions(self) -> list[str]:
        return [uri for uri in self.states if not uri.startswith("ahp-chat:")]


def sessions_of(chats: dict[str, Json]) -> dict[str, Json]:
    """These chats, with the sessions that they are of."""
    states: dict[str, Json] = {}
    for uri, state in chats.items():
        session = base64.b64decode(uri.split("/")[3] + "==").decode()
        of = states.setdefault(session, {"provider": "copilotcli", "chats": [], "defaultChat": ""})
        of["chats"].append({"resource": uri, "title": state.get("title"), "origin": state.get("origin")})
        if "://default/" in uri:
            of["defaultChat"] = uri
    return {**states, **chats}
