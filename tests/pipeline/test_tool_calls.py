"""Answers of printing commands in a session file: the same bytes whatever is remembered, from wherever one reads."""

import asyncio
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from exporter.core.delivery.position import START, Position, tail_hash
from exporter.core.events.envelope import Envelope, decode
from exporter.core.events.redaction import Masked, Redacted
from exporter.core.events.tool_calls import REACH_BYTES, ArrivingCalls, ToolCalls, nothing_before
from exporter.pipeline.segment_reader import SegmentReader
from exporter.sources.files.session_file import EVENTS_NAME, OpenFiles, SessionFile

MASKED = b"masked by "


class Printing:
    """Commands that say `print N` print a secret, by rule N."""

    def rule_of(self, data: bytes, /) -> str | None:
        command = (json.loads(data)["arguments"] or {}).get("command", "")
        return command.removeprefix("print ") if command.startswith("print ") else None

    def mask(self, line: bytes, redacted: Redacted, rule: str, /) -> Redacted:
        assert redacted is line
        return Masked(MASKED + rule.encode(), (rule,))


def started(n: int, call: str, command: str, agent: str | None = None, **more: Any) -> bytes:
    data = {"toolCallId": call, "toolName": "bash", "arguments": {"command": command}}
    return event(n, "tool.execution_start", data, agent, **more)


def in_shell(n: int, call: str, shell: str, command: str | None, agent: str | None = None) -> bytes:
    """A command in a shell with an id, or a call that reads what such a shell has printed."""
    arguments = {"shellId": shell, "delay": 0} if command is None else {"command": command, "shellId": shell}
    name = "read_bash" if command is None else "bash"
    return event(n, "tool.execution_start", {"toolCallId": call, "toolName": name, "arguments": arguments}, agent)


def answered(n: int, call: str, agent: str | None = None, size: int = 0) -> bytes:
    return event(n, "tool.execution_complete", {"toolCallId": call, "result": {"content": f"x{n}" + "y" * size}}, agent)


def event(n: int, kind: str, data: dict[str, Any], agent: str | None = None, **more: Any) -> bytes:
    made = {"type": kind, "data": data, "id": f"e{n}", "timestamp": "t", "parentId": None, **more}
    return json.dumps(made | ({"agentId": agent} if agent else {})).encode()


def file_of(directory: Path, *lines: bytes) -> SessionFile:
    (directory / EVENTS_NAME).write_bytes(b"".join(line + b"\n" for line in lines))
    return SessionFile("s", directory)


def read(file: SessionFile, position: Position = START, **options: Any) -> tuple[list[bytes], SegmentReader]:
    """All lines from a position on, each segment of its own size."""
    limits = options.pop("limits", (500, 1_000_000))
    files = OpenFiles(1)
    reader = SegmentReader(
        files, lambda line, /: line, line_bytes_max=1 << 20, cache_bytes=0, commands=Printing(), **options
    )

    async def all_lines() -> list[bytes]:
        nonlocal position
        file.refresh(files)
        found: list[bytes] = []
        while (segment := await reader.segment(file, position, limits=limits)) is not None:
            found += segment.lines
            position = segment.end
        return found

    try:
        return asyncio.run(all_lines()), reader
    finally:
        files.close_all()


def expected(lines: list[bytes]) -> list[bytes]:
    """What is to be read, told from the whole list."""
    latest: dict[tuple[str | None, str], str | None] = {}
    shells: dict[tuple[str | None, str], str | None] = {}
    reads: dict[tuple[str | None, str], str] = {}
    found = []
    for line in lines:
        made = json.loads(line)
        agent = made.get("agentId")
        key = agent, made["data"].get("toolCallId", "")
        if made["type"] == "tool.execution_start":
            reads.pop(key, None)
            latest[key] = Printing().rule_of(json.dumps(made["data"]).encode())
            shell = made["data"]["arguments"].get("shellId")
            if shell is not None and "command" in made["data"]["arguments"]:
                shells[agent, shell] = latest[key]
            elif shell is not None:
                reads[key] = shell
        rule = latest.get(key) if made["type"] == "tool.execution_complete" else None
        if made["type"] == "tool.execution_complete" and key in reads:
            rule = shells.get((agent, reads[key]))
        found.append(line if rule is None else MASKED + rule.encode())
    return found


def chosen(seed: int) -> list[bytes]:
    """Starts and answers of few calls, often of the same ones again, between other events of any size."""
    dice, lines = Random(seed), list[bytes]()
    for n in range(120):
        call, agent = f"c{dice.randrange(6)}", dice.choice((None, None, "a"))
        match dice.randrange(5):
            case 0:
                lines.append(started(n, call, dice.choice((f"print {n}", "list")), agent))
            case 4:
                command = dice.choice((f"print {n}", "list", None, None))
                lines.append(in_shell(n, call, f"s{dice.randrange(2)}", command, agent))
            case 1 | 2:
                lines.append(answered(n, call, agent, dice.choice((0, 50, 90_000))))
            case _:
                lines.append(event(n, "user.message", {"content": "tool.execution_start"}))
    return lines


@pytest.mark.parametrize("seed", range(6))
def test_a_file_gives_the_same_bytes_whatever_is_remembered(seed: int, tmp_path: Path) -> None:
    lines = chosen(seed)
    file, wanted = file_of(tmp_path, *lines), expected(lines)

    assert any(line.startswith(MASKED) for line in wanted)
    for calls_max in (1, 2, 1000):
        for events_max in (1, 7, 500):
            assert read(file, calls_max=calls_max, limits=(events_max, 1_000_000))[0] == wanted
    # From any place on, as after a restart.
    content = (tmp_path / EVENTS_NAME).read_bytes()
    for number in Random(seed).sample(range(len(lines)), 12):
        offset = sum(len(line) + 1 for line in lines[:number])
        position = Position(offset, tail_hash(content[:offset]))
        for calls_max in (1, 1000):
            assert read(file, position, calls_max=calls_max)[0] == wanted[number:]


def test_a_call_of_another_agent_or_an_ephemeral_start_is_not_the_answers(tmp_path: Path) -> None:
    lines = [started(1, "c", "print 1", "a"), started(2, "c", "print 2", ephemeral=True), answered(3, "c")]

    found, reader = read(file_of(tmp_path, *lines))

    assert found == [lines[0], lines[2]]
    assert reader.calls_unknown == 1


def hooked(n: int, given: object) -> bytes:
    return event(n, "hook.start", {"hookType": "postToolUse", "input": given})


def test_a_hook_after_a_tool_is_judged_by_the_command_that_it_holds(tmp_path: Path) -> None:
    result = {"textResultForLlm": "x", "sessionLog": "\ud800"}
    lines = [
        hooked(1, {"toolArgs": {"command": "print 7"}, "toolResult": result}),
        hooked(2, {"toolArgs": {"command": "list"}, "toolResult": result}),
        hooked(3, {"toolArgs": {"command": "print 8"}}),
        hooked(4, None),
        hooked(5, {"toolResult": result}),
    ]

    found, reader = read(file_of(tmp_path, *lines))

    assert found == [MASKED + b"7", *lines[1:]]
    assert reader.calls_unknown == 0


def test_a_hook_that_arrives_is_judged_too() -> None:
    calls = ArrivingCalls(lambda _: (ToolCalls(Printing(), 0, nothing_before), 0))
    envelope = decode(hooked(1, {"toolArgs": {"command": "print 7"}, "toolResult": {}}))

    assert isinstance(envelope, Envelope)
    assert calls.rule_at("s", envelope) == "7"


def test_events_that_stand_on_one_line_are_read_in_their_order(tmp_path: Path) -> None:
    glued = started(1, "c", "print 1") + answered(2, "c")

    assert read(file_of(tmp_path, glued, answered(3, "c")))[0] == [
        started(1, "c", "print 1"),
        MASKED + b"1",
        MASKED + b"1",
    ]


def test_a_start_too_far_before_is_unknown_whatever_is_remembered(tmp_path: Path) -> None:
    far = [event(n, "user.message", {"content": "z" * 1_000_000}) for n in range(REACH_BYTES // 1_000_000 + 1)]
    lines = [started(1, "c", "print 1"), answered(2, "c"), *far, answered(3, "c")]
    file = file_of(tmp_path, *lines)

    for calls_max in (1, 1000):
        found, reader = read(file, calls_max=calls_max)

        assert found[1] == MASKED + b"1"
        assert found[-1] == lines[-1]
        assert reader.calls_unknown == 1


def test_what_a_sink_has_already_still_tells_the_command(tmp_path: Path) -> None:
    file = file_of(tmp_path, started(1, "c", "print 1"), answered(2, "c"))
    files = OpenFiles(1)
    file.refresh(files)
    reader = SegmentReader(files, lambda line, /: line, line_bytes_max=1 << 20, cache_bytes=0, commands=Printing())

    segment = asyncio.run(reader.segment(file, START, skip={"e1"}))

    assert segment is not None
    assert segment.lines == [MASKED + b"1"]
    files.close_all()


def test_a_single_event_is_redacted_as_in_its_place(tmp_path: Path) -> None:
    lines = [started(1, "c", "print 1"), answered(2, "c"), started(3, "c", "list"), answered(4, "c")]
    file, files = file_of(tmp_path, *lines), OpenFiles(1)
    file.refresh(files)
    reader = SegmentReader(files, lambda line, /: line, line_bytes_max=1 << 20, cache_bytes=0, commands=Printing())

    first = reader.redacted(file, len(lines[0]) + 1, lines[1])
    last = reader.redacted(file, sum(len(line) + 1 for line in lines[:3]), lines[3])
    without_file = reader.redacted(None, 0, lines[1])

    assert isinstance(first, Masked) and first.line == MASKED + b"1"
    assert last == lines[3]
    assert without_file == lines[1]
    assert reader.calls_unknown == 1
    files.close_all()


def test_what_a_later_call_reads_of_a_shell_is_masked_by_the_command_that_runs_there(tmp_path: Path) -> None:
    lines = [
        in_shell(0, "c1", "bg1", "print 7"),
        in_shell(1, "c2", "bg2", "list"),
        answered(2, "c1"),
        answered(3, "c2"),
        in_shell(4, "c3", "bg1", None),
        in_shell(5, "c4", "bg2", None),
        in_shell(6, "c5", "bg1", None, "another"),
        answered(7, "c3"),
        answered(8, "c4"),
        answered(9, "c5", "another"),
    ]

    found, reader = read(file_of(tmp_path, *lines), calls_max=1)

    assert [n for n, line in enumerate(found) if line.startswith(MASKED)] == [2, 7]
    assert reader.calls_unknown == 1
