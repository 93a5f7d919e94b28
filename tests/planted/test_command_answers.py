"""What a command printed is in nothing that leaves, is shown, is logged or is kept, by whatever road it came."""

import json
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from redaction.commands.table import built_in_table
from tests.planted.road import Road, words_of
from tests.planted.search import Search
from tests.planted.sessions import CANARY

_WORDS: Final = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "jetty", "kelp")
_FLOOR: Final = "0b0e7c1e-0000-4000-8000-00000000f100"


class AnswerSession:
    """A session in which every command of the table is run; its answers are words that no other rule knows."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.needles: list[str] = []
        self.events: list[dict[str, Any]] = []
        self._add("session.start", sessionId=id, copilotVersion="1.0.102", context={"cwd": "/srv"})
        self._add("user.message", content=CANARY)
        for number, row in enumerate(built_in_table().command):
            call = f"call_{number:024d}"
            arguments = {"command": row.example, "description": CANARY}
            self._add("tool.execution_start", toolCallId=call, toolName="bash", arguments=arguments)
            self._add("assistant.message", messageId=f"m{number}", content=CANARY)
            of_hook = {"textResultForLlm": f"{self._needle()}\n<exited>", "sessionLog": self._needle()}
            self._add("hook.start", hookType="postToolUse", input={"toolArgs": arguments, "toolResult": of_hook})
            result = {"content": f"{self._needle()}\n<exited>", "contents": [{"type": "text", "text": self._needle()}]}
            is_good = number % 3 != 0
            data = {"result": result} if is_good else {"error": {"code": "failure", "message": self._needle()}}
            self._add("tool.execution_complete", toolCallId=call, success=is_good, exit=number, **data)

    def _needle(self) -> str:
        number = len(self.needles)
        words = [_WORDS[number % 11], _WORDS[number // 11 % 11], f"tide{number:05d}x"]
        self.needles.append(" ".join(words))
        return self.needles[-1]

    def _add(self, kind: str, **data: Any) -> None:
        n = len(self.events)
        parent = self.events[-1]["id"] if self.events else None
        id, time = f"{self.id[:24]}{n:012d}", f"2026-11-18T09:{n // 60:02d}:{n % 60:02d}.000Z"
        self.events.append({"type": kind, "data": data, "id": id, "timestamp": time, "parentId": parent})

    def write(self, home: Path) -> None:
        """Write the session below the CLI's directory."""
        directory = home / "session-state" / self.id
        directory.mkdir(parents=True)
        (directory / "workspace.yaml").write_text(f"id: {self.id}\ncwd: /srv\n")
        (directory / "events.jsonl").write_text("".join(json.dumps(one) + "\n" for one in self.events))


def uploaded(road: Road, session: AnswerSession) -> None:
    """Send a session as the CLI's own uploader does: nothing declared, few events a request."""
    with httpx.Client(base_url=f"{road.page}/agents", timeout=120) as client:
        client.post("/sessions", json={"id": session.id}).raise_for_status()
        for first in range(0, len(session.events), 2):
            body = {"events": session.events[first : first + 2]}
            client.post(f"/sessions/{session.id}/events", json=body).raise_for_status()


def masked_lines(events: bytes, session: AnswerSession) -> dict[str, tuple[str, ...]]:
    """The markers' rules of each answer, by the id of the event."""
    found = {}
    for line in events.split(b"\n"):
        if not line.startswith(b"{"):
            continue
        made = json.loads(line)
        if made["type"] == "tool.execution_complete":
            texts = [text for text in strings(made["data"].get("result") or made["data"]["error"]) if text != "failure"]
            assert all(text.startswith("[REDACTED:printed.") and text.endswith("]") for text in texts), made
            found[made["id"]] = tuple(text.split(":")[1] for text in texts)
    return found


def strings(value: Any) -> list[str]:
    if isinstance(value, dict | list):
        return [text for one in (value.values() if isinstance(value, dict) else value) for text in strings(one)]
    return [value] if isinstance(value, str) else []


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_what_commands_print_is_found_nowhere_and_the_same_is_masked_on_every_road() -> None:
    session, floor = AnswerSession("0b0e7c1e-0000-4000-8000-0000000000a1"), AnswerSession(_FLOOR)
    search, found = Search(session.needles), list[str]()
    rules = {row.id for row in built_in_table().command}
    with Road([session]) as road:
        road.deliver()
        uploaded(road, floor)
        file = road.machine.home / "session-state" / session.id / "events.jsonl"
        tested = road.machine.exporter("redact", "test", str(file)).stdout.encode()
        tailed = road.machine.exporter("sessions", "tail", session.id, "--json").stdout.encode()
        stored = {one.id: httpx.get(f"{road.page}/sessions/{one.id}/export.jsonl").content for one in (session, floor)}
        seen = set()
        for place, data in road.places():
            if CANARY.encode() in data:
                seen.add(place)
            if place == "words":
                found += words_of(session.needles) & set(data.decode().split("\n"))
            else:
                found += search.found(place, data)
        for place, data in {"test": tested, "tail": tailed, **stored}.items():
            found += search.found(place, data)

    assert found == []
    assert {"floor", "otel traces", "page events", "archive .zst", "page /sessions/{}?all=1"} <= seen
    by_road = [masked_lines(lines, session) for lines in (tested, tailed, stored[session.id])]
    assert by_road[0] == by_road[1] == by_road[2]
    assert {rule for answer in by_road[0].values() for rule in answer} == rules
    at_floor = masked_lines(stored[_FLOOR], floor)
    assert list(at_floor.values()) == list(by_road[0].values())
