"""Random histories of an agent host that restarts as the real ones do, and what an observer must make of them.

The host is written after recordings of VS Code's hosts (`tests/fixtures/ahp`): over a restart it gives turns and parts
other ids, gives parallel calls in the order in which they ended, loses the cancelled calls (classic) or calls them
completed (0.9), calls a turn that failed a cancelled one (classic), loses a turn that was cancelled at once (0.9), the
prompts of children, and the addresses of nested ones; it names the model of each turn and puts a notification between
the texts before and after it (0.9). `python -m tests.core.ahp.histories --count N` plays N of them.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from random import Random
from typing import Any

import msgspec

from tests.core.ahp.watching import Watching

Json = dict[str, Any]
SESSION_NAME = "5ec633bc-a325-43af-b5cb-96785ef1971c"
ENDS = {"complete": "turnComplete", "cancelled": "turnCancelled", "error": "error"}
ERROR = {"errorType": "query", "message": "made-up failure"}
REPLAYED_MAX = 1000
CHUNK = 250
AGAIN = "again"


class Host:
    """One session. Its turns are generators, so that anything may happen between two of their actions."""

    def __init__(self, version: str | int, random: Random) -> None:
        self.version, self.random = version, random
        self.is_classic = version == 1
        scheme = "copilot" if self.is_classic else "ahp-session"
        self.session = f"{scheme}:/{SESSION_NAME}"
        self.root = self.session if self.is_classic else f"ahp-chat://default/{_encoded(self.session)}"
        self.chats: dict[str, Json] = {self.root: {"turns": [], "active": None, "depth": 0}}
        self.listed: list[Json] = [{"resource": self.root, "origin": {"kind": "user"}}]
        self.places: dict[str, str] = {}  # conversations of nested children by the session that holds them
        self.seq = 0
        self.told: list[Json] = []
        self.replay: list[Json] = []
        self.is_connected = False
        self.play: Iterator[None] | None = None
        self.ended: list[str] = []  # tool calls in the order in which they ended
        self.failures: dict[str, str] = {}  # what became of a child, by its call
        self.lost: set[str] = set()  # prompts of turns in which something was done
        self.prompts: dict[str, str] = {}  # of children, by conversation
        self._subscribed: set[str] = set()
        self._clients: set[str] = set()
        self._count = 0

    # What happens on the host.

    def step(self) -> None:
        """Let one thing happen: the next action of the turn that runs, or a new turn."""
        if self.play is None:
            self.play = self._turn(self.root, self._prompt())
        if next(self.play, self) is self:
            self.play = None

    def cancel(self) -> None:
        """The user cancels what runs, which ends all turns that the host thinks are running."""
        root = self.chats[self.root]
        turn = root["active"]
        if turn is None or (turn["message"]["text"] == AGAIN and not turn["responseParts"]):
            return  # of several empty turns with one prompt nobody can say which is gone
        self.play = None
        for uri in self.chats:
            self._end(uri, "cancelled")

    def drop(self) -> None:
        self.is_connected = False
        self.told.clear()
        self._subscribed.clear()

    def restart(self) -> None:
        self.drop()
        self.play = None
        for chat in self.chats.values():
            if chat["active"] is not None:
                turn, chat["active"] = chat["active"], None
                is_done = chat["depth"] and self._is_done(turn)
                turn["state"] = "complete" if is_done else "cancelled" if self.is_classic else "error"
                if turn["state"] == "error":
                    error = {"errorType": "executionInterrupted", "message": "The agent was interrupted."}
                    turn["responseParts"].append({"kind": "error", "error": error, "resumable": True})
                chat["turns"].append(turn)
            restored = [self._restored(turn, chat) for turn in chat["turns"] if not self._is_lost(turn, chat)]
            chat["turns"] = [part for turn in restored for part in self._cut(turn)]
        if not self.is_classic:
            self._move_children()
        self.seq = 0
        self.replay.clear()
        self._clients.clear()

    def lose(self) -> None:
        """The host comes back without one of its turns."""
        turns = self.chats[self.root]["turns"]
        there = [n for n, turn in enumerate(turns) if turn["message"]["text"] != AGAIN and turn["responseParts"]]
        there = [
            n
            for n in there
            if turns[n]["message"]["text"] and not any(after["message"]["text"] == "" for after in turns[n + 1 : n + 2])
        ]
        if there:
            turn = turns.pop(self.random.choice(there))
            if {"markdown", "reasoning", "toolCall"} & {part["kind"] for part in turn["responseParts"]}:
                self.lost.add(turn["message"]["text"])
        self.restart()

    def _is_done(self, turn: Json) -> bool:
        return bool(turn.get("is_done"))

    def _is_lost(self, turn: Json, chat: Json) -> bool:
        return not self.is_classic and not turn["responseParts"] and turn["state"] == "cancelled" and not chat["depth"]

    def _restored(self, turn: Json, chat: Json) -> Json:
        parts: list[Json] = []
        calls: list[Json] = []
        for part in [*turn["responseParts"], {"kind": "end"}]:
            if part["kind"] == "toolCall":
                calls.append(part)
                continue
            parts += sorted(calls, key=lambda each: self._ended_at(each["toolCall"]["toolCallId"]))
            calls = []
            if part["kind"] in ("markdown", "reasoning"):
                cut = self.random.randrange(len(part["content"]) + 1)
                cuts = (part["content"][:cut], part["content"][cut:])
                parts += [{**part, "id": self._new("part"), "content": content} for content in cuts if content]
            elif part["kind"] != "end":
                parts.append(part)
        restored = {**turn, "id": self._new("turn"), "responseParts": []}
        if "noted" in turn:
            notes = [part for part in parts if part["kind"] == "systemNotification"]
            parts = [part for part in parts if part not in notes]
            noted = next(p for p in reversed(turn["responseParts"]) if p["kind"] == "markdown")["content"]
            noted = noted[turn["noted"] :]
            whole = "".join(part["content"] for part in parts[parts.index(self._last_text(parts)) :])
            del parts[parts.index(self._last_text(parts)) :]
            said = {"kind": "markdown", "id": self._new("part")}
            before, behind = whole[: -len(noted)], {**said, "content": noted, "id": self._new("part")}
            parts += [{**said, "content": before}, *notes, behind]
            restored["noted"] = 1 if self.is_classic else 0
        restored["responseParts"] = [part for part in map(self._restored_part, parts) if part]
        if self.is_classic and turn["state"] == "error":
            restored["state"] = "cancelled"
            restored.pop("error", None)
        if not self.is_classic and not chat["depth"]:
            restored["message"] = {**turn["message"], "model": {"id": "made-up-model"}}
        if chat["depth"]:
            restored["message"] = {"text": "", "origin": {"kind": "user"}}
            if restored["state"] == "cancelled" and turn.get("is_done"):
                restored["state"] = "complete"
        return restored

    def _restored_part(self, part: Json) -> Json:
        call = part.get("toolCall")
        if call is None:
            return part
        if call["status"] != "completed":
            if self.is_classic:
                return {}
            call = {**call, "status": "completed", "success": True, "content": []}
        content = [each for each in call.get("content", ()) if each["type"] != "subagent"]
        if call["toolName"] == "task" and call["toolCallId"] in self.failures:
            content.append(self._named(call["toolCallId"], is_restored=True))
        return {**part, "toolCall": {**call, "content": content}}

    def _cut(self, turn: Json) -> list[Json]:
        """What an agent says to a notification is restored as a turn without a prompt."""
        noted = turn.pop("noted", 0)
        if not noted:
            return [turn]
        parts = turn["responseParts"]
        rest = {"id": self._new("turn"), "message": {"text": ""}, "responseParts": parts[-noted:], "state": "complete"}
        return [{**turn, "responseParts": parts[:-noted]}, rest]

    @staticmethod
    def _last_text(parts: list[Json]) -> Json:
        """The first of the parts that the last text was cut into."""
        index = len(parts) - 1
        while index > 0 and parts[index - 1]["kind"] == "markdown":
            index -= 1
        return parts[index]

    def _ended_at(self, call: str) -> int:
        return self.ended.index(call) if call in self.ended else len(self.ended)

    def _move_children(self) -> None:
        self.listed = [each for each in self.listed if self.chats[each["resource"]]["depth"] < 2]
        for uri in [uri for uri, chat in self.chats.items() if chat["depth"] == 2]:
            call = self.chats[uri]["call"]
            place = f"{self.session}/subagent/{call}"
            moved = f"ahp-chat://default/{_encoded(place)}"
            self.places[place] = moved
            if moved != uri:
                self.chats[moved] = self.chats.pop(uri)

    # A turn.

    def _turn(self, uri: str, prompt: str) -> Iterator[None]:
        chat = self.chats[uri]
        turn = chat["active"] = {"id": self._new("turn"), "message": {"text": prompt}, "responseParts": []}
        if not chat["depth"]:
            turn["message"]["origin"] = {"kind": "user"}
        elif self.is_classic:
            turn["message"]["text"] = ""
        self._tell(uri, {"type": "chat/turnStarted", "turnId": turn["id"], "message": copy.deepcopy(turn["message"])})
        yield
        for _ in range(self.random.randint(1, 2 if chat["depth"] else 3)):
            yield from self._round(uri, turn)
        if chat["depth"]:
            return
        if self.random.random() < 0.2:
            yield from self._text(uri, turn, "markdown")
            part = turn["responseParts"][-1]
            said = len(part["content"])
            self.grow(uri, turn, part)
            if not self.is_classic:
                note = {"kind": "systemNotification", "content": self._new("a command has ended")}
                turn["responseParts"].append(note)
                self._tell(uri, {"type": "chat/responsePart", "turnId": turn["id"], "part": dict(note)})
                yield
            self._end(uri, "complete")
            self.chats[uri]["turns"][-1]["noted"] = said
        else:
            self._end(uri, "error" if self.random.random() < 0.2 else "complete")
        yield

    def _round(self, uri: str, turn: Json) -> Iterator[None]:
        for kind in ("reasoning", "markdown"):
            if self.random.random() < 0.5:
                yield from self._text(uri, turn, kind)
        depth = self.chats[uri]["depth"]
        calls = []
        for _ in range(self.random.choice((0, 1, 1, 2, 3))):
            is_agent = depth < 2 and self.random.random() < 0.3
            calls.append(self._call(uri, turn, "task" if is_agent else "bash"))
            yield
        self.random.shuffle(calls)
        for call in calls:
            yield from self._run(uri, turn, call)

    def _text(self, uri: str, turn: Json, kind: str) -> Iterator[None]:
        part = {"kind": kind, "id": self._new("part"), "content": self._new("text") + " "}
        turn["responseParts"].append(part)
        self._tell(uri, {"type": "chat/responsePart", "turnId": turn["id"], "part": dict(part)})
        yield
        for _ in range(self.random.choice((0, 1, 2))):
            self.grow(uri, turn, part)
            yield

    def grow(self, uri: str, turn: Json, part: Json) -> None:
        content = self._new("more") + " "
        part["content"] += content
        kind = "chat/delta" if part["kind"] == "markdown" else "chat/reasoning"
        self._tell(uri, {"type": kind, "turnId": turn["id"], "partId": part["id"], "content": content})

    def _call(self, uri: str, turn: Json, tool: str) -> Json:
        call: Json = {"toolCallId": self._new("call"), "toolName": tool, "displayName": tool}
        given: Json = {"invocationMessage": tool, "toolInput": '{"command": "true"}', "confirmed": "not-needed"}
        if tool == "task":
            call["_meta"] = {"toolKind": "subagent", "subagentAgentName": "made-up", "subagentDescription": "made up"}
            asked = {"mode": "sync", "agent_type": "made-up", "prompt": f"for {call['toolCallId']}"}
            given["toolInput"] = json.dumps(asked)
        about = {"turnId": turn["id"], "toolCallId": call["toolCallId"]}
        self._tell(uri, {"type": "chat/toolCallStart", "turnId": turn["id"], **copy.deepcopy(call)})
        call.update(given, status="running")
        turn["responseParts"].append({"kind": "toolCall", "toolCall": call})
        self._tell(uri, {"type": "chat/toolCallReady", **about, **given})
        return call

    def _run(self, uri: str, turn: Json, call: Json) -> Iterator[None]:
        about = {"turnId": turn["id"], "toolCallId": call["toolCallId"]}
        content: list[Json] = []
        child, is_success = "", self.random.random() < 0.8
        if call["toolName"] == "task":
            child = self._add_child(uri, turn, call)
            yield from self._turn(child, f"for {call['toolCallId']}")
            self.failures[call["toolCallId"]] = "" if is_success else "made-up failure"
            if self.chats[child]["depth"] == 1 or self.is_classic:
                content = [self._named(call["toolCallId"], is_restored=False)]
        self.ended.append(call["toolCallId"])
        result: Json = {"success": is_success, "content": [{"type": "text", "text": self._new("output")}, *content]}
        if not is_success:
            result["error"] = {"message": "made-up failure", "code": "failure"}
        call.update(copy.deepcopy(result), status="completed")
        if child:
            self.chats[child]["active"]["is_done"] = True
        self._tell(uri, {"type": "chat/toolCallComplete", **about, "result": result})
        yield
        if child and (not self.is_classic or self.chats[child]["depth"] == 1):  # the classic host forgets nested ones
            failed = not is_success and not self.is_classic
            self._end(child, "error" if failed else "complete")
            yield

    def _add_child(self, uri: str, turn: Json, call: Json) -> str:
        identity, depth = call["toolCallId"], self.chats[uri]["depth"] + 1
        named = self._named(identity, is_restored=False)
        child = str(named["resource"])
        self.failures[identity] = "ended early"
        self.chats[child] = {"turns": [], "active": None, "depth": depth, "call": identity}
        self.prompts[child] = f"for {identity}"
        call["content"] = [named]
        changed = {"type": "chat/toolCallContentChanged", "turnId": turn["id"], "toolCallId": identity}
        if self.is_classic:  # which tells it of the session, whichever conversation the call is in
            self._tell(self.root, {**changed, "content": [dict(named)]})
            return child
        origin = {"kind": "tool", "chat": self.root, "toolCallId": identity}
        self.listed.append({"resource": child, "title": "made up", "origin": origin})
        self._tell(self.session, {"type": "session/chatAdded", "summary": dict(self.listed[-1])})
        self._tell(uri, {**changed, "content": [dict(named)]})
        return child

    def _named(self, call: str, *, is_restored: bool) -> Json:
        resource = f"{self.session}/subagent/{call}"
        if not self.is_classic and not is_restored:
            resource = f"ahp-chat://subagent/{_encoded(self.session)}/{call}"
        elif self.is_classic and is_restored and self.chats[resource]["depth"] == 2:
            resource = f"{self.session}/subagent/nowhere/subagent/{call}"
        return {"type": "subagent", "resource": resource, "title": "made up", "agentName": "made-up"}

    def _end(self, uri: str, state: str) -> None:
        chat = self.chats[uri]
        turn, chat["active"] = chat["active"], None
        if turn is None:
            return
        for part in turn["responseParts"]:
            call = part.get("toolCall")
            if call and call["status"] != "completed":
                call.update(status="cancelled", reason="skipped", content=[])
        turn["state"] = state
        told: Json = {"type": f"chat/{ENDS[state]}", "turnId": turn["id"]}
        if state == "error":
            if self.is_classic:
                turn["error"] = told["error"] = dict(ERROR)
            else:
                told["part"] = {"kind": "error", "error": dict(ERROR)}
                turn["responseParts"].append(dict(told["part"]))
        chat["turns"].append(turn)
        self._tell(uri, told)

    # What is said about it.

    def answer(self, method: str, params: Json) -> Json:
        uri = params.get("channel") or params.get("resource") or params.get("session") or ""
        if method == "initialize":
            self._clients.add(params["clientId"])
            self.is_connected = True
            return {"result": {"protocolVersion": self.version, "serverSeq": self.seq}}
        if method == "reconnect":
            return self._reconnect(params)
        if method == "listSessions":
            return {"result": {"items": [{"resource": self.session, "status": 8, "provider": "made-up"}]}}
        if method == "subscribe":
            return self._subscribe(uri)
        if method == "fetchTurns":
            return {"result": {"turns": [], "hasMore": False}}
        return {"error": {"code": -32601, "message": "not here"}}

    def _reconnect(self, params: Json) -> Json:
        if params["clientId"] not in self._clients and not self.is_classic:
            return {"error": {"code": -32008, "message": "Reconnect client not found"}}
        self.is_connected = True
        self._subscribed = {uri for uri in params["subscriptions"] if uri in self.chats or uri == self.session}
        return {"result": {"type": "replay", "actions": []}}

    def _subscribe(self, uri: str) -> Json:
        state: Json
        if uri in self.places:
            state = {"chats": [{"resource": self.places[uri]}], "defaultChat": self.places[uri]}
        elif uri == self.session and not self.is_classic:
            state = {"chats": copy.deepcopy(self.listed), "defaultChat": self.root}
        elif uri in self.chats:
            state = {"turns": self.chats[uri]["turns"], "activeTurn": self.chats[uri]["active"]}
        elif uri == ("agenthost:/root" if self.is_classic else "ahp-root://"):
            state = {}
        else:
            return {"error": {"code": -32001, "message": f"Resource not found: {uri}"}}
        self._subscribed.add(uri)
        return {"result": {"snapshot": {"resource": uri, "state": state, "fromSeq": self.seq}}}

    def _tell(self, uri: str, action: Json) -> None:
        self.seq += 1
        params: Json = {"action": action, "serverSeq": self.seq}
        if self.is_classic:
            action["type"] = action["type"].replace("chat/", "session/")
            action["session"] = uri
            if "message" in action:
                action["userMessage"] = action.pop("message")
        else:
            params["channel"] = uri
        if self.is_connected and uri in self._subscribed:
            self.told.append({"jsonrpc": "2.0", "method": "action", "params": params})

    def _prompt(self) -> str:
        return AGAIN if self.random.random() < 0.15 else self._new("prompt")

    def _new(self, what: str) -> str:
        self._count += 1
        return f"{what}-{self._count}"


class History:
    """One host, one observer that is started again and again, and a receiver that knows events by their ids."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.host = Host(self.random.choice((1, "0.9.0")), self.random)
        self.received: dict[str, Json] = {}
        self.has_forgotten = False  # the observer, what its checkpoints were
        self.watching = self._watch()

    def play(self) -> None:
        for _ in range(self.random.randint(5, 60)):
            self._happen(self.random.random())
        if self.random.random() < 0.3:
            self.host.cancel()
        self._finish()
        self._hear()
        self._connect()
        self.check()

    def _happen(self, dice: float) -> None:
        if dice < 0.70:
            self.host.step()
            if dice < 0.6:
                self._hear()
        elif dice < 0.76:
            self.host.cancel()
            self._hear()
        elif dice < 0.82:
            self._hear(self.random.randrange(3))
            self._connect()
        elif dice < 0.88:
            self.host.restart()
            self._connect()
        elif dice < 0.93:
            self._restart_observer()
        elif dice < 0.96:
            self._lose_state()
        elif dice < 0.975:
            self.host.restart()
            self._restart_observer()
        elif dice < 0.985:
            self.host.lose()
            self._connect()
        else:
            self._miss(self.random.choice((20, 20, 20, 20, 20, 20, 20, REPLAYED_MAX + 50)))

    def _finish(self) -> None:
        while self.host.play is not None:
            self.host.step()

    def _miss(self, count: int) -> None:
        """More happens without a connection than the host keeps to replay."""
        self.host.drop()
        for _ in range(count):
            self.host.step()
            active = self.host.chats[self.host.root]["active"]
            parts = active["responseParts"] if active else []
            if count > REPLAYED_MAX and parts and parts[-1]["kind"] == "markdown":
                for _ in range(count):
                    self.host.grow(self.host.root, active, parts[-1])
                break
        self._connect()

    def _watching(self) -> Watching:
        made = Watching({}, version=self.host.version)
        made.answer = lambda method, params: self._answer(made, method, params)
        return made

    def _watch(self) -> Watching:
        made = self._watching()
        made.begin()
        self._hear(watching=made)
        return made

    def _answer(self, watching: Watching, method: str, params: Json) -> Json:
        """What was told before a question comes before its answer, as on any connection; turns go on meanwhile."""
        if method == "subscribe" and self.host.play is not None and self.random.random() < 0.2:
            self.host.step()
        while self.host.told:
            watching.observer.receive(msgspec.json.encode(self.host.told.pop(0)).decode(), watching.now)
        return self.host.answer(method, params)

    def _hear(self, count: int | None = None, watching: Watching | None = None) -> None:
        watching = watching or self.watching
        while self.host.told and count != 0:
            watching.hear(self.host.told.pop(0))
            count = None if count is None else count - 1
        self._receive(watching)

    def _connect(self) -> None:
        self.host.drop()
        self.watching.begin()
        self._hear()

    def _restart_observer(self) -> None:
        """End the process; a kill leaves the checkpoints behind what the journal holds."""
        self.host.drop()
        if self.random.random() < 0.3:
            self.watching.kept.clear()
            self.has_forgotten = True
        self.watching.begin_anew()
        self._hear()

    def _lose_state(self) -> None:
        self.host.drop()
        self.has_forgotten = True
        self.watching = self._watch()

    def _receive(self, watching: Watching) -> None:
        for event in watching.durable():
            self.received.setdefault(event["id"], event)
        watching.order.clear()

    # What must hold.

    def check(self) -> None:
        events = list(self.received.values())
        self._check_calls(events)
        self._check_turns(events)
        self._check_agents(events)
        gaps = [event["data"] for event in events if event["type"] == "exporter.gap"]
        assert bool(gaps) == bool(self._lost_prompts(events, has_content=True)), gaps
        others = [event for event in self._read_anew() if event["id"] not in self.received]
        assert not others, others

    def _read_anew(self) -> list[Json]:
        """What an observer without any state makes of the host as it is now: nothing of it may be new."""
        self.host.drop()
        found = self._watching()
        found.begin()
        return [event for event in found.durable() if event["type"] != "exporter.gap"]

    def _check_calls(self, events: list[Json]) -> None:
        for kind in ("tool.execution_start", "tool.execution_complete"):
            told = Counter(event["data"]["toolCallId"] for event in events if event["type"] == kind)
            assert not told or max(told.values()) == 1, (kind, told.most_common(1))
            assert self._named() <= told.keys(), (kind, self._named() - told.keys())

    def _named(self) -> set[str]:
        """Return the tool calls of all conversations that can be reached; classic hosts lose calls of sub-agents."""
        children = {chat["call"]: chat for chat in self.host.chats.values() if chat["depth"]}
        found: set[str] = set()
        reached = [self.host.chats[self.host.root]]
        for chat in reached:
            parts = [part for turn in chat["turns"] for part in turn["responseParts"]]
            calls = {part["toolCall"]["toolCallId"] for part in parts if part["kind"] == "toolCall"}
            reached += [children[call] for call in calls & children.keys()]
            found |= calls
        return found

    def _check_turns(self, events: list[Json]) -> None:
        turns: list[Json] = []
        for event in (event for event in events if not event.get("agentId")):
            if event["type"] == "user.message":
                turns.append({"prompt": event["data"]["content"], "markdown": "", "reasoning": "", "ends": 0})
            elif event["type"] in ("assistant.message", "assistant.reasoning"):
                kind = "markdown" if event["type"] == "assistant.message" else "reasoning"
                turns[-1][kind] += event["data"]["content"]
            elif event["type"] == "assistant.turn_end":
                turns[-1]["ends"] += 1
            elif event["type"] in ("abort", "session.error"):
                turns[-1]["trouble"] = turns[-1].get("trouble", 0) + 1
        lost, held = self._lost_prompts(events), self._held()
        kept = [turn for turn in turns if turn["prompt"] not in lost]
        assert [turn["prompt"] for turn in kept] == [turn["message"]["text"] for turn in held]
        for told, turn in zip(kept, held, strict=True):
            for kind in ("markdown", "reasoning"):
                whole = "".join(part["content"] for part in turn["responseParts"] if part["kind"] == kind)
                assert told[kind] == whole, (told, turn)
            assert told["ends"] == 1, told
            assert told.get("trouble", 0) == (turn["state"] != "complete"), (told, turn)

    def _held(self) -> list[Json]:
        """The turns that the host has, with those that it has cut in two in one."""
        held: list[Json] = []
        for turn in self.host.chats[self.host.root]["turns"]:
            if turn["message"]["text"] or not held:
                held.append(turn)
            else:
                parts = [*held[-1]["responseParts"], *turn["responseParts"]]
                held[-1] = {**held[-1], "responseParts": parts}
        return held

    def _lost_prompts(self, events: list[Json], *, has_content: bool = False) -> set[str]:
        """Return the prompts of turns that were told of, and that the host has lost."""
        held = {turn["message"]["text"] for turn in self._held()}
        asked, lost = "", set()
        for event in (event for event in events if not event.get("agentId")):
            if event["type"] == "user.message":
                asked = event["data"]["content"]
            is_content = event["type"] in ("assistant.message", "assistant.reasoning", "tool.execution_start")
            is_content = is_content or asked in self.host.lost  # also what was not told yet
            if asked and asked not in held and (is_content or not has_content):
                lost.add(asked)
        return lost

    def _check_agents(self, events: list[Json]) -> None:
        started = Counter(event["data"]["toolCallId"] for event in events if event["type"] == "subagent.started")
        ends = [event for event in events if event["type"] in ("subagent.completed", "subagent.failed")]
        ended = Counter(event["data"]["toolCallId"] for event in ends)
        assert all(count == 1 for count in (*started.values(), *ended.values())), (started, ended)
        there = {chat["call"] for chat in self.host.chats.values() if chat["depth"] and chat["turns"]}
        there &= self._named() | (set() if self.has_forgotten else started.keys())
        assert there <= started.keys(), there - started.keys()
        assert there <= ended.keys(), there - ended.keys()
        for event in ends:
            failure = self.host.failures[event["data"]["toolCallId"]]
            if failure != "ended early":
                assert event["data"].get("error", "") == failure, event
            if event["data"]["toolCallId"] in self._named():
                assert event["data"]["agentName"] == "made-up"
        errors = Counter(e["agentId"].rpartition("/")[2] for e in self._errors(events))
        for chat in self.host.chats.values():
            if chat["depth"] and chat["call"] in there and chat["turns"][0]["state"] == "error":
                assert errors[chat["call"]] == 1, (errors, chat)
        prompts = Counter(e["data"]["content"] for e in events if e["type"] == "user.message" and e.get("agentId"))
        assert all(count == 1 for count in prompts.values()), prompts
        assert {f"for {call}" for call in there} <= prompts.keys()

    @staticmethod
    def _errors(events: list[Json]) -> list[Json]:
        return [event for event in events if event["type"] == "session.error" and event.get("agentId")]


def _encoded(uri: str) -> str:
    return urlsafe_b64encode(uri.encode()).decode().rstrip("=")


def play(seeds: range) -> str:
    """Play the histories of some seeds; return what was wrong with the first bad one."""
    for seed in seeds:
        try:
            History(seed).play()
        except Exception as error:
            return f"history {seed}: {type(error).__name__}: {error}"
    return ""


def main() -> int:
    """Play many histories on two cores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    end = options.seed + options.count
    chunks = [range(start, min(start + CHUNK, end)) for start in range(options.seed, end, CHUNK)]
    with ProcessPoolExecutor(options.jobs) as pool:
        for number, problem in enumerate(pool.map(play, chunks), 1):
            if number % 40 == 0:
                print(f"{number * CHUNK} histories so far", flush=True)
            if problem:
                print(problem)
                pool.shutdown(cancel_futures=True)
                return 1
    print(f"{options.count} histories of agent hosts, none doubled, none missing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
