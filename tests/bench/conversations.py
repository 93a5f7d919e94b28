"""Writes sessions that telemetry is measured with: whole conversations, in the mix of event types of the real captures.

`EventStream` has events of every size and no story; a trace needs one. A conversation here has interactions of five
turns, each with its usage record, its answer and mostly a tool call, and sizes near those of CLI 1.0.102.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

from tests.bench.generate import FIRST_TIMESTAMP, cache_directory, corpora

FORMAT = 1
"""Part of the cache key: raised whenever the bytes for the same parameters change."""

TURNS = 5
"""How many turns an interaction has."""
EVENTS_OF_AN_INTERACTION = 33
"""About how many events they are."""
_MODEL = "gpt-bench"
_TOOLS = ("bash", "view", "edit", "grep", "glob")


@dataclass(frozen=True, slots=True)
class Conversation:
    """One generated session and what a receiver of its telemetry must end with."""

    session_id: str
    path: str
    events: int
    spans: int
    size_bytes: int


class Teller:
    """Tells one session, event by event; `spans` counts what a trace of the lines told so far must have."""

    def __init__(self, seed: int, began: datetime = FIRST_TIMESTAMP, *, output_bytes: float = 300) -> None:
        self._random = random.Random(seed)
        self._now = began
        self._output_bytes = output_bytes
        self._parent = "null"
        self._calls = 0
        self.spans = 0
        self.session_id = self._uuid()

    def start(self) -> bytes:
        """The first event."""
        return self._line(
            "session.start",
            f'{{"sessionId":"{self.session_id}","version":1,"producer":"copilot-agent","copilotVersion":"1.0.102",'
            f'"startTime":"{self._timestamp()}","selectedModel":"{_MODEL}","contextTier":null,"context":{{"cwd":'
            '"/home/dev/work","gitRoot":"/home/dev/work","repository":"example/work","branch":"main","hostType":'
            '"github"},"alreadyInUse":false,"remoteSteerable":false}',
        )

    def interaction(self) -> Iterator[bytes]:
        """What follows a message of the user, until the last answer."""
        interaction, prose = self._uuid(), corpora()[0].text
        asked = prose(self._random, 150)
        yield self._line(
            "user.message",
            f'{{"content":"{asked}","transformedContent":"<current_datetime>{self._timestamp()}</current_datetime>\\n\\n'
            f'{asked}","messageId":"{self._uuid()}","supportedNativeDocumentMimeTypes":[],"delivery":"idle",'
            f'"interactionId":"{interaction}","turnId":"0","parentAgentTaskId":"{self._uuid()}"}}',
        )
        yield self._line(
            "system.message",
            f'{{"role":"system","content":"<removed 21567 chars>","metadata":{{"variables":{{}}}},'
            f'"interactionId":"{interaction}"}}',
        )
        if self._random.random() < 0.3:
            yield from self._hook()
        for turn in range(TURNS):
            yield from self._turn(turn, interaction, last=turn == TURNS - 1)
        self.spans += 1

    def answer(self, text: str) -> bytes:
        """One message of the assistant by itself."""
        return self._line(
            "assistant.message",
            f'{{"messageId":"{self._uuid()}","model":"{_MODEL}","content":"{text}","toolRequests":[],"outputTokens":50}}',
        )

    def _turn(self, turn: int, interaction: str, *, last: bool) -> Iterator[bytes]:
        self.spans += 1
        yield self._line("assistant.turn_start", f'{{"turnId":"{turn}","interactionId":"{interaction}"}}', 40)
        if turn and self._random.random() < 0.17:
            yield self._notification()
        call = f"chatcmpl-{self._random.getrandbits(48):012x}"
        tools = [] if last else [self._random.choice(_TOOLS)] * self._random.choice((1, 1, 1, 1, 0, 2))
        if not last and not tools:
            tools = ["view"]
        yield self._usage(call, tools)
        ids = [f"call_{self._random.getrandbits(64):016x}" for _ in tools]
        text = corpora()[0].text(self._random, 120)
        requests = ",".join(
            f'{{"toolCallId":"{one}","name":"{name}","arguments":{self._arguments(name)},"type":"function",'
            f'"toolTitle":"Run {name}","intentionSummary":"Doing it"}}'
            for one, name in zip(ids, tools, strict=True)
        )
        yield self._line(
            "assistant.message",
            f'{{"messageId":"{self._uuid()}","model":"{_MODEL}","content":"{text}","toolRequests":[{requests}],'
            f'"interactionId":"{interaction}","turnId":"{turn}","outputTokens":50,"apiCallId":"{call}"}}',
            5,
        )
        for one, name in zip(ids, tools, strict=True):
            yield from self._tool(one, name, turn, interaction)
        yield self._line("assistant.turn_end", f'{{"turnId":"{turn}"}}', 3)

    def _tool(self, call: str, name: str, turn: int, interaction: str) -> Iterator[bytes]:
        self.spans += 1
        yield self._line(
            "tool.execution_start",
            f'{{"toolCallId":"{call}","toolName":"{name}","arguments":{self._arguments(name)},"turnId":"{turn}",'
            f'"model":"{_MODEL}","toolTitle":"Run {name}","shellToolInfo":{{"possiblePaths":[],'
            '"hasWriteFileRedirection":false}}',
            10,
        )
        success = self._random.random() < 0.95
        result = corpora()[2].text(self._random, int(self._random.expovariate(1 / self._output_bytes)) + 10)
        ended = (
            f'"result":{{"content":"{result}"}}' if success else f'"error":{{"message":"{result}","code":"failure"}}'
        )
        yield self._line(
            "tool.execution_complete",
            f'{{"toolCallId":"{call}","model":"{_MODEL}","interactionId":"{interaction}","turnId":"{turn}","rte":false,'
            f'"shellExecution":{{"exitCode":{0 if success else 1}}},"success":{str(success).lower()},{ended},'
            '"toolTelemetry":{"properties":{"customTimeout":"true","executionMode":"sync","detached":"false"},'
            '"metrics":{"commandTimeout":60000.0,"context_token_limit":128000.0,"result_token_count":17}}}',
            800,
        )

    def _arguments(self, name: str) -> str:
        if name == "bash":
            return '{"command":"make test ARGS=tests/core","description":"Run the tests","initial_wait":60}'
        return '{"path":"/home/dev/work/src/reader.py","view_range":[1,200]}'

    def _usage(self, call: str, tools: list[str]) -> bytes:
        self._calls += 1
        reason = "tool_calls" if tools else "stop"
        took = self._random.randint(900, 5000)
        return self._line(
            "session.usage_record",
            f'{{"usage":{{"model":"{_MODEL}","modelDisplayName":"Bench","inputTokens":{1000 + self._calls * 7},'
            f'"outputTokens":{self._random.randint(20, 900)},"cacheReadTokens":{self._calls * 5},"cacheWriteTokens":0,'
            f'"reasoningTokens":7,"cost":1.0,"duration":{took},"timeToFirstTokenMs":{took / 4.1},"outputTtftMs":54.5,'
            '"interTokenLatencyMs":5.061894250000001,"initiator":"agent","interactionType":"conversation-agent",'
            '"isByok":false,"isAuto":false,"maxPromptTokens":128000,"transport":"http","requestBodyBytes":49106,'
            f'"requestBodyWireBytes":49106,"requestBodyEncoding":"identity","apiCallId":"{call}","rte":false,'
            f'"apiEndpoint":"/chat/completions","accounting":{{"sourceSessionId":"{self.session_id}",'
            f'"sequence":{self._calls},"usageId":"{call}"}},"aiCreditsStatus":"unavailable","availableToolCount":17,'
            '"toolTokenCount":5748,"customToolCallCount":0,"unmatchedToolResultCount":0,"orphanToolCallCount":0,'
            f'"frontierSource":"estimated","cacheDetailsReported":true,"numToolCalls":{len(tools)},"toolCounts":{{}},'
            f'"finishReason":"{reason}","contentFilterTriggered":false}}}}',
            took,
        )

    def _notification(self) -> bytes:
        return self._line(
            "system.notification",
            '{"content":"<system_notification>\\nShell \\"Tests\\" (shellId: bg1) has completed.\\n'
            '</system_notification>","kind":{"type":"shell_completed","shellId":"bg1","exitCode":0,'
            '"description":"Tests"}}',
        )

    def _hook(self) -> Iterator[bytes]:
        self.spans += 1
        invocation = self._uuid()
        same = f'{{"hookInvocationId":"{invocation}","hookType":"userPromptSubmitted"'
        yield self._line("hook.start", f'{same},"input":{{"cwd":"/home/dev/work","timestamp":1}}}}')
        yield self._line("hook.end", f'{same},"success":true,"output":{{}}}}', 20)

    def _line(self, kind: str, data: str, milliseconds: int = 2) -> bytes:
        self._now += timedelta(milliseconds=milliseconds)
        identity = self._uuid()
        line = (
            f'{{"type":"{kind}","data":{data},"id":"{identity}","timestamp":"{self._timestamp()}",'
            f'"parentId":{self._parent}}}\n'
        ).encode()
        self._parent = f'"{identity}"'
        return line

    def _timestamp(self) -> str:
        return self._now.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _uuid(self) -> str:
        digits = f"{self._random.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


@cache
def lines(events: int, seed: int = 1) -> tuple[str, list[bytes], int]:
    """The session, about so many lines without their newlines, and how many spans they are."""
    teller = Teller(seed)
    told = [teller.start()]
    while len(told) < events:
        told.extend(teller.interaction())
    return teller.session_id, [line.rstrip(b"\n") for line in told], teller.spans


def cached(sessions: int, events_each: int) -> list[Conversation]:
    """So many sessions of about so many events each, written on first use and reused by later runs.

    They begin an hour after each other, which is sooner than the one before has ended.
    """
    directory = cache_directory() / f"conversations-{FORMAT}-{sessions}-{events_each}"
    manifest = directory / "manifest.json"
    if manifest.exists():
        return [Conversation(**one) for one in json.loads(manifest.read_text())]
    directory.mkdir(exist_ok=True)
    written = [_write(directory, number, events_each) for number in range(sessions)]
    manifest.write_text(json.dumps([asdict(one) for one in written]))
    return written


def _write(directory: Path, number: int, events: int) -> Conversation:
    teller = Teller(number, FIRST_TIMESTAMP + timedelta(hours=number - 200))
    told = [teller.start()]
    while len(told) < events:
        told.extend(teller.interaction())
    content = b"".join(told)
    path = directory / f"{teller.session_id}.jsonl"
    path.write_bytes(content)
    return Conversation(teller.session_id, str(path), len(told), teller.spans, len(content))
