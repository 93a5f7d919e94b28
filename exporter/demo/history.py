"""A made-up fortnight: finished sessions as the CLI leaves them, from the short stories of `history.toml`.

The same story always has the same ids and figures; only its times follow the present.
"""

import json
import os
import random
import tomllib
import uuid
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from exporter.demo.lock import let_go, take

HISTORY_DAYS: Final = 14
_NAMESPACE: Final = uuid.UUID("b2b0f1c4-7f5e-4d0e-9a5c-1d1f6c0a7e11")
_GONE: Final = 4_194_303  # the highest process id that Linux can give out; nobody has it
_CONTEXT: Final = 128_000


def write_history(copilot_home: Path, now: datetime) -> None:
    """Write the sessions below `session-state`, except those that are there."""
    stories = tomllib.loads(files("exporter.demo").joinpath("history.toml").read_text(encoding="utf-8"))["session"]
    for story in stories:
        told = _Story(story, now)
        directory = copilot_home / "session-state" / told.session_id
        if not directory.exists():
            told.write(directory)


def release(copilot_home: Path) -> None:
    """Take away the locks of this process, so that what waits in a session is over with it."""
    for lock in copilot_home.glob(f"session-state/*/inuse.{os.getpid()}.lock"):
        let_go(lock.parent)


class _Story:
    """One session. Each step appends its events, and moves the clock."""

    def __init__(self, story: dict[str, Any], now: datetime) -> None:
        self._story = story
        self._model: str = story["model"]
        self._chance = random.Random(story["title"])  # noqa: S311  figures of a demo
        self._ids = (str(uuid.uuid5(_NAMESPACE, f"{story['title']} {number}")) for number in range(1_000_000))
        self.session_id = next(self._ids)
        self._began = self._now = now - timedelta(days=story["days"])
        self._lines: list[str] = []
        self._parent: str | None = None
        self._turn, self._interaction = 0, ""
        self._usage = dict.fromkeys(("inputTokens", "outputTokens", "cacheReadTokens"), 0)
        self._requests, self._context = 0, 5_000
        self._files: list[str] = []
        self._prompts, self._charged = 0, False
        self.holder: int | None = None

    def write(self, directory: Path) -> None:
        """Write the files of the session with the times of its events."""
        self._tell()
        directory.mkdir(mode=0o700, parents=True)
        self._put(directory / "workspace.yaml", self._workspace())
        self._put(directory / "events.jsonl", "".join(f"{line}\n" for line in self._lines))
        if self.holder == os.getpid():
            take(directory)
        elif self.holder is not None:
            self._put(directory / f"inuse.{self.holder}.lock", str(self.holder))

    def _put(self, path: Path, text: str) -> None:
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(text, encoding="utf-8")
        os.utime(path, (self._now.timestamp(),) * 2)

    def _workspace(self) -> str:
        name = self._story["repository"].partition("/")[2]
        fields = {
            "id": self.session_id, "cwd": f"/home/dana/{name}", "git_root": f"/home/dana/{name}",
            "repository": self._story["repository"], "host_type": "github", "branch": self._story["branch"],
            "client_name": "github/cli", "name": self._story["title"], "user_named": "false",
            "created_at": _written(self._began), "updated_at": _written(self._now),
        }  # fmt: skip
        return "".join(f"{key}: {json.dumps(value) if key == 'name' else value}\n" for key, value in fields.items())

    # ── events ────────────────────────────────────────────────────────────────────────────────────────────────────
    def _tell(self) -> None:
        place = {"cwd": f"/home/dana/{self._story['repository'].partition('/')[2]}", "hostType": "github"}
        place |= {key: self._story[key] for key in ("repository", "branch")}
        start = {"sessionId": self.session_id, "version": 1, "producer": "copilot-agent", "copilotVersion": "1.0.102"}
        start |= {"startTime": _written(self._began), "selectedModel": self._model}
        self._event("session.start", {**start, "context": {**place, "gitRoot": place["cwd"]}})
        steps = self._story["steps"]
        for kind, group in groupby(steps, key=lambda step: step[0]):
            told = [[part.strip() for part in step[1:].split(" | ")] for step in group]
            if kind == "&":
                self._agents(told)
                continue
            for parts in told:
                self._step(kind, parts)
        if steps[-1][0] not in "*?":
            self._event("assistant.turn_end", {"turnId": str(self._turn)})
            self._pass(1, 30)
            self._shutdown()

    def _step(self, kind: str, parts: list[str]) -> None:
        match kind:
            case ">":
                self._prompt(parts[0])
            case "<":
                self._message(parts[0], [])
            case "$":
                self._tool("bash", {"command": parts[0]}, result=parts[1])
            case "!":
                self._tool("bash", {"command": parts[0]}, error=parts[1])
            case "=":
                self._files.append(parts[0])
                self._tool("edit", {"path": parts[0]}, result=f"File {parts[0]} updated")
            case "~":
                self._compaction()
            case "?":
                self.holder = os.getpid()
                command = {"kind": "shell", "fullCommandText": parts[0], "intention": "Delete merged branches"}
                call = self._call("bash", {"command": parts[0]})
                request = {"requestId": next(self._ids), "permissionRequest": {**command, "toolCallId": call}}
                self._event("permission.requested", request)
            case _:
                self.holder = _GONE
                self._call("bash", {"command": "python -m tides.import --watch records/"})

    def _event(self, kind: str, data: dict[str, Any], agent: str | None = None) -> None:
        event: dict[str, Any] = {"type": kind, "data": data, **({"agentId": agent} if agent else {})}
        event |= {"id": next(self._ids), "timestamp": _written(self._now), "parentId": self._parent}
        self._parent = event["id"]
        self._lines.append(json.dumps(event, separators=(",", ":"), ensure_ascii=False))

    def _pass(self, least: float, most: float) -> float:
        seconds = self._chance.uniform(least, most)
        self._now += timedelta(seconds=seconds)
        return seconds

    def _prompt(self, text: str) -> None:
        if self._prompts:
            self._event("assistant.turn_end", {"turnId": str(self._turn)})
            self._turn += 1
            self._pass(20, 240)
        self._prompts += 1
        self._charged = False  # a prompt costs one premium request, however many turns it takes
        self._interaction = next(self._ids)
        self._event("user.message", {"content": text, "messageId": next(self._ids), "interactionId": self._interaction})
        self._event("assistant.turn_start", {"turnId": str(self._turn), "interactionId": self._interaction})

    def _message(self, text: str, requests: list[dict[str, Any]], agent: str | None = None) -> None:
        milliseconds = self._pass(1, 9) * 1000
        fresh, output = self._chance.randint(200, 2_400), self._chance.randint(40, 900)
        self._context += fresh + output
        used = {"inputTokens": self._context, "outputTokens": output, "cacheReadTokens": self._context - fresh}
        self._requests += 1
        for name, amount in used.items():
            self._usage[name] += amount
        usage = {"model": self._model, "modelDisplayName": self._model.replace("-", " ").title(), **used}
        usage |= {"cost": 0.0 if self._charged else 1.0, "duration": round(milliseconds)}
        self._charged = True
        usage |= {"initiator": "sub-agent" if agent else "agent", "maxPromptTokens": _CONTEXT, "cacheWriteTokens": 0}
        self._event("session.usage_record", {"usage": usage}, agent)
        message = {"messageId": next(self._ids), "model": self._model, "content": text, "toolRequests": requests}
        self._event("assistant.message", {**message, "interactionId": self._interaction}, agent)

    def _call(self, tool: str, arguments: dict[str, str], agent: str | None = None) -> str:
        call = f"call_{next(self._ids).replace('-', '')[:16]}"
        request = {"toolCallId": call, "name": tool, "arguments": arguments, "type": "function"}
        self._message("", [request], agent)
        started = {"toolCallId": call, "toolName": tool, "arguments": arguments, "model": self._model}
        self._event("tool.execution_start", started, agent)
        return call

    def _tool(self, tool: str, arguments: dict[str, str], *, result: str = "", error: str = "") -> None:
        self._complete(self._call(tool, arguments), result, error)

    def _complete(self, call: str, result: str, error: str = "", agent: str | None = None) -> None:
        self._pass(0.1, 14)
        outcome: dict[str, Any] = {"success": not error}
        outcome |= {"error": {"message": error, "code": "failure"}} if error else {"result": {"content": result}}
        ended = {"toolCallId": call, "model": self._model, "interactionId": self._interaction, **outcome}
        self._event("tool.execution_complete", ended, agent)

    def _agents(self, told: list[list[str]]) -> None:
        """Sub-agents that run in parallel: all begin before the first of them ends."""
        running = []
        for name, task, answer in told:
            call, agent = self._call("task", {"agent_type": name, "prompt": task, "mode": "sync"}), next(self._ids)
            of = {"toolCallId": call, "agentName": name, "agentDisplayName": name}
            started = {**of, "agentDescription": task, "model": self._model, "agentType": name, "executionMode": "sync"}
            self._event("subagent.started", started, agent)
            running.append((of, agent, answer, self._now))
        for of, agent, answer, began in running:
            self._complete(self._call("grep", {"pattern": "TODO"}, agent), "12 matches", agent=agent)
            self._message(answer, [], agent)
            lasted = round((self._now - began).total_seconds() * 1000)
            ended = {**of, "model": self._model, "totalToolCalls": 1, "totalTokens": 5_200, "durationMs": lasted}
            self._event("subagent.completed", ended, agent)
            self._complete(of["toolCallId"], answer)

    def _compaction(self) -> None:
        before, after = 104_000 + self._context, 21_000
        attempt = {"compactionAttemptId": next(self._ids)}
        self._event("session.compaction_start", {**attempt, "currentTokens": before, "tokenLimit": _CONTEXT})
        self._pass(6, 20)
        done = {**attempt, "success": True, "preCompactionTokens": before, "postCompactionTokens": after}
        self._event("session.compaction_complete", {**done, "tokensRemoved": before - after, "messagesRemoved": 61})
        self._context = after

    def _shutdown(self) -> None:
        changed = {"linesAdded": 23 * len(self._files), "linesRemoved": 9 * len(self._files)}
        metrics = {
            "requests": {"count": self._requests, "cost": float(self._prompts)},
            "usage": {**self._usage, "cacheWriteTokens": 0},
        }
        end = {"shutdownType": "routine", "totalPremiumRequests": self._prompts, "currentModel": self._model}
        end |= {"codeChanges": {**changed, "filesModified": self._files}, "modelMetrics": {self._model: metrics}}
        self._event("session.shutdown", end)


def _written(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
