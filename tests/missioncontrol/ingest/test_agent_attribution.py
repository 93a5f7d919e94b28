"""Every stored event belongs to the right agent: in every capture, and however the events came."""

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from exporter.missioncontrol.ingest import write_jobs
from exporter.missioncontrol.ingest.agent_attribution import kin
from exporter.missioncontrol.ingest.batch import read_elements, sort_out
from exporter.missioncontrol.store.agent_tree import tree
from exporter.missioncontrol.store.opening import open_store
from exporter.missioncontrol.store.port import Database, Store
from tests.shared import REAL

FIXTURES = Path(__file__).parents[2] / "fixtures"
NOW = "2026-11-18T10:00:00.000Z"
Paths = list[tuple[str, tuple[str, ...]]]


def post(store: Store, session: str, lines: list[bytes], rewound: tuple[str, ...] = ()) -> None:
    body = b'{"events":[' + b",".join(lines) + b'],"rewound":' + json.dumps(rewound).encode() + b"}"
    batch = sort_out(read_elements(body), event_bytes_max=1 << 20)
    store.do(lambda database: write_jobs.register(database, session, session, NOW))
    store.do(lambda database: write_jobs.store_batch(database, session, batch, NOW))


def paths(store: Store, session: str) -> Paths:
    """The id of every event, in order, and the path of agents it belongs to."""

    def read(database: Database) -> Paths:
        family = kin(database, session)
        rows = database.execute("SELECT id, agent_id FROM events WHERE hidden = 0 ORDER BY place, n")
        return [(id, family.path(agent)) for id, agent in rows]

    return store.do(read)


# How many events of each capture belong to whom, counted by hand: those with the agent's id, and the hooks about it.
EXPECTED = {
    "captures/sub_bg": {(): 24, ("9c122d20-f18a-4814-ae74-a7f7fdecf862",): 17},
    "captures/sub_sync": {(): 14, ("0c3628f7-1de3-45df-93c7-f85e3f02960a",): 16},
    "captures/live_rpc": {(): 58, ("88b9435b-7c56-43a3-be98-1649498abcb9",): 17},
    "captures-1.0.48/sub_bg": {(): 23, ("call_dd6b1cc09a5549b5",): 6},
    "ahp/captures/sub_fail": {(): 39, ("1d9922c3-423d-40e7-8cd0-f98ced9df076",): 15},
    "ahp/captures/sub_sync": {(): 32, ("358d546e-975e-4c4e-ae6a-adc394ca2d9e",): 24},
}
EXPECTED_FIXTURES = {
    "sessions/sub_bg": {(): 24, ("8e31ad9d-768a-4076-8e8d-e50517df4cb1",): 17},
    "sessions/sub_bg_1.0.48": {(): 23, ("call_738d807bd29a46ee8119",): 6},
    "parity/1.0.102/sub_bg": {(): 24, ("399f54ec-6dad-49df-a2ad-c4d3fd25a045",): 17},
    "parity/1.0.102/sub_sync": {(): 14, ("c83fc029-5399-4aa3-a259-8da5e74c00f4",): 16},
    "parity/1.0.48/sub_bg": {(): 23, ("call_b35e4688bddc479e91f5",): 6},
    "parity/1.0.48/sub_sync": {(): 15, ("call_bdc6d2a79b6545ee8b20",): 6},
}
LOGS = [(REAL / name / "events.jsonl", expected) for name, expected in EXPECTED.items()]
LOGS += [(FIXTURES / name / "events.jsonl", expected) for name, expected in EXPECTED_FIXTURES.items()]


@pytest.mark.parametrize(("log", "expected"), LOGS, ids=[*EXPECTED, *EXPECTED_FIXTURES])
@pytest.mark.parametrize(
    ("address", "at_once"), [("file", 1), ("file", 7), ("file", 1000), ("postgresql", 1000)], indirect=["address"]
)
def test_every_event_of_a_capture_resolves(
    address: str, log: Path, expected: dict[tuple[str, ...], int], at_once: int
) -> None:
    if not log.exists():
        pytest.skip(f"there is no {log}")
    lines = log.read_bytes().splitlines()
    with open_store(address) as store:
        for start in range(0, len(lines), at_once):
            post(store, "s", lines[start : start + at_once])

        assert Counter(path for _, path in paths(store, "s")) == expected
        shown = store.do(lambda database: tree(database, "s"))
        assert shown["events"] == expected[()]
        assert [(agent["id"], agent["path"], agent["events"]) for agent in shown["agents"]] == [
            (path[-1], list(path), count) for path, count in expected.items() if path
        ]


def test_no_capture_with_sub_agents_is_left_out() -> None:
    logs = [*REAL.glob("captures*/*/events*.jsonl"), *REAL.glob("ahp/captures/*/events.jsonl")]
    logs += FIXTURES.glob("**/events.jsonl")

    assert {log for log in logs if b'"subagent.started"' in log.read_bytes()} <= {log for log, _ in LOGS}


class Story:
    """A session in lines that each name the one before, and the path that a person would give each of them."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.paths: Paths = []

    def add(self, type: str, path: tuple[str, ...], agent: str | None = None, **data: Any) -> None:
        number = len(self.lines)
        event: dict[str, Any] = {
            "type": type,
            "data": data,
            "id": f"e{number}",
            "timestamp": f"2026-11-18T10:00:{number:02}.000Z",
        }
        event["parentId"] = f"e{number - 1}" if number else None
        self.lines.append(json.dumps(event | ({"agentId": agent} if agent else {})).encode())
        self.paths.append((f"e{number}", path))


def told() -> Story:
    """Both dialects, nesting, a background agent, a failure, hooks, events before a start, a shutdown and a resume."""
    story = Story()
    story.add("session.start", ())
    story.add("hook.start", (), hookInvocationId="h0", input={"sessionId": "where-a-fork-came-from"})
    story.add("hook.end", (), hookInvocationId="h0")
    story.add("tool.execution_start", (), toolCallId="c1", toolName="task")
    story.add("assistant.message", ("outer",), "outer")  # before the start
    story.add("hook.start", ("outer",), hookInvocationId="h1", input={"sessionId": "outer"})
    story.add("hook.end", ("outer",), hookInvocationId="h1")
    story.add("subagent.started", ("outer",), "outer", toolCallId="c1", agentName="explore")
    story.add("tool.execution_complete", (), toolCallId="c1")  # the agent goes on in the background
    story.add("tool.execution_start", ("outer",), "outer", toolCallId="c2", toolName="task")
    story.add("tool.x", ("outer", "inner"), parentToolCallId="c2")  # before the start, by its tool call only
    story.add("hook.start", ("outer", "inner"), hookInvocationId="h2", parentToolCallId="c2")
    story.add("assistant.message", ("outer", "inner"), "inner")
    story.add("subagent.started", ("outer", "inner"), remoteSessionId="inner", toolCallId="c2", parentId="a-task")
    story.add("hook.end", ("outer", "inner"), hookInvocationId="h2")
    story.add("tool.x", ("outer", "inner"), parentToolCallId="c2")
    story.add("subagent.failed", ("outer", "inner"), toolCallId="c2", agentName="task", error="No")
    story.add("assistant.turn_end", ("outer", "inner"), "inner")  # after the end
    story.add("subagent.started", ("c3",), toolCallId="c3", agentName="old")  # as 1.0.48 names them
    story.add("assistant.message", ("c3",), "c3")
    story.add("session.shutdown", ())
    story.add("session.resume", ())
    story.add("assistant.message", ("outer", "inner"), "inner")  # a late word of before
    story.add("subagent.started", ("third",), "third", toolCallId="c1", agentName="again")  # an id that came again
    story.add("tool.x", ("third",), parentToolCallId="c1")
    story.add("external_tool.requested", ("third",), sessionId="third", toolName="t")
    story.add("external_tool.requested", (), sessionId="s", toolName="t")
    return story


STORY = told()
NUMBERS = range(len(STORY.lines))


@pytest.mark.parametrize("at_once", range(1, len(STORY.lines) + 1))
def test_a_story_in_its_order_is_told_alike_in_any_parts(store: Store, at_once: int) -> None:
    for start in range(0, len(STORY.lines), at_once):
        post(store, "s", STORY.lines[start : start + at_once])

    assert paths(store, "s") == STORY.paths


@settings(max_examples=60, deadline=None)
@given(
    order=st.permutations(NUMBERS),
    cuts=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    again=st.lists(st.sampled_from(NUMBERS), max_size=6),
    back=st.sets(st.sampled_from(NUMBERS), max_size=6),
)
@pytest.mark.slow
def test_order_duplicates_and_rewinds_change_nothing(
    order: list[int], cuts: list[int], again: list[int], back: set[int]
) -> None:
    """Parts of the file come in any order and some twice, some are taken back, and come again after a restart."""
    with tempfile.TemporaryDirectory(prefix="xp-belonging-") as directory:
        path = Path(directory) / "store.db"
        with open_store(path) as store:
            coming, turn = [*order, *again], 0
            while coming:
                size = cuts[turn % len(cuts)]
                post(store, "s", [STORY.lines[number] for number in sorted(coming[:size])])
                coming, turn = coming[size:], turn + 1
            post(store, "s", [], tuple(f"e{number}" for number in back))
        with open_store(path) as store:
            post(store, "s", [STORY.lines[number] for number in sorted(back)])

            assert paths(store, "s") == STORY.paths
            shown = store.do(lambda database: tree(database, "s"))
    (outer, third_last, third) = shown["agents"]
    assert [agent["path"] for agent in (outer, *outer["agents"], third_last, third)] == [
        ["outer"], ["outer", "inner"], ["c3"], ["third"],
    ]  # fmt: skip
    assert (outer["agents"][0]["state"], outer["agents"][0]["error"]) == ("failed", "No")


def test_what_was_taken_back_is_forgotten(address: str) -> None:
    story = Story()
    story.add("session.start", ())
    story.add("subagent.started", ("a",), "a", toolCallId="c1")
    story.add("tool.x", (), parentToolCallId="c1")
    with open_store(address) as store:
        post(store, "s", story.lines)
        before = paths(store, "s")
        post(store, "s", [], ("e1",))

        assert (before[2][1], paths(store, "s")) == (("a",), [("e0", ()), ("e2", ("c1",))])


def test_a_session_that_is_deleted_leaves_no_agents(address: str) -> None:
    with open_store(address) as store:
        post(store, "s", STORY.lines)
        store.do(lambda database: write_jobs.forget_session(database, "s", NOW))

        assert store.do(lambda database: database.execute("SELECT count(*) FROM families").fetchone()) == (0,)
