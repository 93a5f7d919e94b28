"""Forked sessions: each copied interaction refers to where it happened first."""

import json
from pathlib import Path
from typing import Any

import pytest

from otel import names
from otel.encode.trace_json import spans_of
from otel.model import Context, Span
from tests.otel.captures import captures

ORIGIN = "11111111-2222-3333-4444-555555555555"
FORK = "66666666-7777-8888-9999-000000000000"
_EVENTS = [
    ("session.start", None),
    ("user.message", "one"),
    ("assistant.turn_start", None),
    ("session.usage_record", None),
    ("assistant.message", None),
    ("assistant.turn_end", None),
    ("user.message", "two"),
    ("assistant.turn_start", None),
    ("session.usage_record", None),
    ("assistant.message", None),
    ("assistant.turn_end", None),
]


def _lines(session: str, *, first: int = 0, source: str | None = None) -> list[bytes]:
    """Two interactions; `first` numbers their ids and seconds, so that a second call goes on."""
    lines = []
    for number, (kind, said) in enumerate(_EVENTS, first):
        data: dict[str, Any] = {"turnId": "0"}
        if kind == "session.start":
            data = {"sessionId": session}
        elif kind == "user.message":
            data = {"content": said, "delivery": "idle"}
        elif kind == "session.usage_record":
            accounting = {"sourceSessionId": source or session}
            data = {"usage": {"model": "m", "outputTokens": 1, "apiCallId": f"call-{number}", "accounting": accounting}}
        elif kind == "assistant.message":
            data = {"model": "m", "apiCallId": f"call-{number - 1}"}
        event = {"type": kind, "id": f"e{number}", "timestamp": f"2026-11-18T10:00:{number:02}.000Z", "data": data}
        lines.append(json.dumps(event).encode())
    return lines


def _copied(lines: list[bytes], session: str) -> list[bytes]:
    """What the CLI writes when it forks: a start of now under the old id, and the other events as they are."""
    start = json.loads(lines[0])
    start["data"]["sessionId"] = session
    start["timestamp"] = "2026-11-18T10:00:30.000Z"
    told = {"infoType": "fork", "message": f'Forked from "a" ({ORIGIN}) as "b" ({session}).'}
    info = {"type": "session.info", "id": "fork", "timestamp": "2026-11-18T10:00:30.000Z", "data": told}
    return [json.dumps(start).encode(), *lines[1:], json.dumps(info).encode()]


def _roots(session: str, lines: list[bytes]) -> list[Span]:
    finished, still_open = spans_of(session, lines)
    return [one for one in (*finished, *still_open) if one.parent_id is None and one.operation == names.INVOKE_AGENT]


def _forks(span: Span) -> list[Context]:
    return [one.context for one in span.links if one.attributes[names.LINK_TYPE] == "fork"]


def test_a_copied_interaction_refers_to_the_original_one() -> None:
    lines = _lines(ORIGIN)
    originals = _roots(ORIGIN, lines)

    roots = _roots(FORK, _copied(lines, FORK) + _lines(FORK, first=31)[1:])

    assert [_forks(root) for root in originals] == [[], []]
    assert [root.opened_by for root in roots] == ["e1", "e6", "e32", "e37"]
    assert [_forks(root) for root in roots[:2]] == [[root.context] for root in originals]
    assert _forks(roots[2]) == [originals[1].context]
    assert _forks(roots[3]) == []
    assert not {root.context for root in roots} & {root.context for root in originals}


@pytest.mark.parametrize(("info", "is_fork"), [("fork", True), ("note", False)])
def test_a_fork_that_names_no_session_is_of_the_one_whose_calls_it_has(info: str, is_fork: bool) -> None:
    lines = _lines(ORIGIN)
    told = json.loads((copied := _copied(lines, FORK))[-1])
    told["data"] = {"infoType": info, "message": "Forked."}

    roots = _roots(FORK, [*copied[:-1], json.dumps(told).encode(), *_lines(FORK, first=31)[1:]])

    assert _forks(roots[2]) == ([_roots(ORIGIN, lines)[1].context] if is_fork else [])


def test_an_interaction_that_was_copied_unfinished_refers_to_the_original_one() -> None:
    lines = _lines(ORIGIN)
    cut = lines[:4]

    [root] = _roots(FORK, _copied(cut, FORK))

    assert _forks(root) == [_roots(ORIGIN, lines)[0].context]


def test_a_copy_of_a_copy_refers_to_where_it_happened() -> None:
    second = "99999999-7777-8888-9999-000000000000"
    lines = _lines(ORIGIN)

    roots = _roots(second, _copied(_copied(lines, FORK)[:-1], second))

    assert [_forks(root) for root in roots] == [[root.context] for root in _roots(ORIGIN, lines)]


def test_calls_that_a_sub_agent_made_in_a_session_of_its_own_are_no_fork() -> None:
    lines = _lines(ORIGIN)
    record = json.loads(_lines(ORIGIN, first=0, source="elsewhere")[3])
    record |= {"id": "other", "agentId": "agent-1"}
    lines.insert(4, json.dumps(record).encode())

    assert [_forks(root) for root in _roots(ORIGIN, lines)] == [[], []]


@pytest.mark.parametrize("directory", captures("events_fork.jsonl"))
def test_a_real_fork_refers_to_the_session_that_it_is_of(directory: Path) -> None:
    origin, fork = (
        (json.loads(lines[0])["data"]["sessionId"], lines)
        for lines in ((directory / name).read_bytes().splitlines() for name in ("events.jsonl", "events_fork.jsonl"))
    )
    originals = {root.opened_by: root.context for root in _roots(*origin)}

    roots = _roots(*fork)

    assert roots
    assert [_forks(root) for root in roots] == [[originals[root.opened_by]] for root in roots]
