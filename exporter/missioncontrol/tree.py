"""The sub-agents of a session, as a tree: who started whom, with which tool call, and how it ended."""

import sqlite3
from typing import Any, Final

import msgspec

from exporter.core.envelope import REFUSALS
from exporter.missioncontrol.payloads import whole
from exporter.missioncontrol.session_row import number_of

_AGENTS_MAX: Final = 10_000
_STATES: Final = {
    "subagent.started": "running",
    "subagent.completed": "completed",
    "subagent.failed": "failed",
}


class _Data(msgspec.Struct):
    toolCallId: str = ""  # noqa: N815  the wire's own names
    agentName: str | None = None  # noqa: N815
    agentDisplayName: str | None = None  # noqa: N815
    toolName: str | None = None  # noqa: N815
    model: str | None = None
    durationMs: float | None = None  # noqa: N815
    totalTokens: int | None = None  # noqa: N815


class _Line(msgspec.Struct):
    data: _Data = msgspec.field(default_factory=_Data)


_decode: Final = msgspec.json.Decoder(_Line).decode


def tree(database: sqlite3.Connection, session_id: str) -> dict[str, Any]:
    """Return the main agent's figures and its sub-agents, each with its `agents`, in order of their start.

    An agent whose start is not known is there with what its events say. Its parent is whoever made the tool call
    that started it; the main agent when that is not known.
    """
    session = number_of(database, session_id)
    nodes = _counted(database, session)
    main = nodes.pop(None, None) or _node(None)
    calls = _described(database, session, nodes)
    callers = _callers(database, session, set(calls))
    main["agents"] = []
    for agent, node in nodes.items():
        parent = callers.get(str(node["tool_call_id"])) if node["tool_call_id"] else None
        above = main if parent is None or _is_above(agent, parent, nodes) else nodes.get(parent, main)
        node["parent"] = above["id"]
        above["agents"].append(node)
    return {"session": session_id, "events": main["events"], "agents": main["agents"]}


def _is_above(agent: str | None, parent: str | None, nodes: dict[str | None, dict[str, Any]]) -> bool:
    """Tell whether the agent is its own ancestor, so that hostile events make no circle."""
    seen: set[str | None] = set()
    while parent is not None and parent not in seen:
        if parent == agent:
            return True
        seen.add(parent)
        parent = nodes[parent]["parent"] if parent in nodes else None
    return False


def _node(agent: str | None) -> dict[str, Any]:
    return {
        "id": agent,
        "parent": None,
        "tool_call_id": None,
        "name": None,
        "display_name": None,
        "model": None,
        "state": "running",
        "started": None,
        "last_activity": None,
        "duration_ms": None,
        "tokens": None,
        "events": 0,
        "agents": [],
    }


def _counted(database: sqlite3.Connection, session: int) -> dict[str | None, dict[str, Any]]:
    nodes: dict[str | None, dict[str, Any]] = {}
    rows = database.execute(
        "SELECT agent_id, count(*), min(timestamp), max(timestamp), min(place) FROM events"
        " WHERE session = ? AND hidden = 0 GROUP BY agent_id ORDER BY min(place), min(n) LIMIT ?",
        (session, _AGENTS_MAX),
    )
    for agent, count, started, last, _ in rows:
        nodes[agent] = {**_node(agent), "events": count, "started": started, "last_activity": last}
    return nodes


def _described(
    database: sqlite3.Connection, session: int, nodes: dict[str | None, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Fill in what the agents' own events say; return the nodes by the tool call that started each."""
    calls: dict[str, dict[str, Any]] = {}
    marks = ",".join("?" * len(_STATES))
    rows = database.execute(
        f"SELECT type, agent_id, body, cuts FROM events WHERE session = ? AND hidden = 0 AND type IN ({marks})"  # noqa: S608
        " ORDER BY place, n",
        (session, *_STATES),
    )
    for type, agent, body, cuts in rows:
        data = _read(whole(database, body, cuts))
        # Events of some versions lack the agent; their tool call is told by the event of the start.
        node = nodes.get(agent) if agent is not None else calls.get(data.toolCallId)
        if node is None:
            continue
        node["state"] = _STATES[type]
        for name, value in (
            ("tool_call_id", data.toolCallId or None),
            ("name", data.agentName),
            ("display_name", data.agentDisplayName),
            ("model", data.model),
            ("duration_ms", data.durationMs),
            ("tokens", data.totalTokens),
        ):
            node[name] = value if value is not None else node[name]
        if data.toolCallId:
            calls[data.toolCallId] = node
    return calls


def _callers(database: sqlite3.Connection, session: int, calls: set[str]) -> dict[str, str | None]:
    """Return who made each of the tool calls."""
    callers: dict[str, str | None] = {}
    if not calls:
        return callers
    rows = database.execute(
        "SELECT agent_id, body FROM events"
        " WHERE session = ? AND hidden = 0 AND type = 'tool.execution_start' ORDER BY place, n",
        (session,),
    )
    for agent, body in rows:
        call = _read(body).toolCallId
        if call in calls:
            callers.setdefault(call, agent)
    return callers


def _read(body: bytes) -> _Data:
    try:
        return _decode(body).data
    except REFUSALS:
        return _Data()
