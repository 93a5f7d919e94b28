"""The sub-agents of a session, as a tree: who started whom, with which tool call, and how it ended."""

from typing import Any, Final

from exporter.core.agents.registry import Agent
from exporter.core.events.envelope import Envelope, decode, read_object
from exporter.missioncontrol.ingest.agent_attribution import AgentTree, kin
from exporter.missioncontrol.store.amounts import amount
from exporter.missioncontrol.store.payloads import whole
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.session_row import number_of, shown_events

_AGENTS_MAX: Final = 10_000
_STATES: Final = {"subagent.started": "running", "subagent.completed": "completed", "subagent.failed": "failed"}
_NODE: Final = (
    *("id", "parent", "path", "tool_call_id", "name", "display_name", "kind", "mode", "model", "state", "error"),
    *("started", "last_activity", "duration_ms", "tokens", "events", "agents"),
)
"""What is shown of an agent, in this order."""
_AMOUNTS: Final = {"duration_ms": "durationMs", "tokens": "totalTokens"}
_TEXTS: Final = {"name": "agentName", "display_name": "agentDisplayName", "mode": "executionMode", "model": "model"}


def tree(database: Database, session_id: str) -> dict[str, Any]:
    """Return the main agent's figures and its sub-agents, each with its `agents`, in order of their start.

    An agent whose start is not known is described by its events alone. `path` are the agents from the outermost to the
    agent itself, as `agent_attribution` finds them; the parent is the one before it there, or the main agent.
    """
    session = number_of(database, session_id)
    agent_tree = kin(database, session_id)
    nodes, main_events = _counted(database, session, agent_tree)
    _described(database, session, nodes)
    main: list[dict[str, Any]] = []
    for agent, node in nodes.items():
        parent = node["path"][-2] if len(node["path"]) > 1 else None
        above = None if parent is None or _is_above(agent, parent, nodes) else nodes.get(parent)
        node["parent"] = None if above is None else parent
        (main if above is None else above["agents"]).append(node)
    return {"session": session_id, "events": main_events, "agents": main, "hints": list(agent_tree.hints)}


def _is_above(agent: str, parent: str | None, nodes: dict[str, dict[str, Any]]) -> bool:
    """Tell whether the agent is its own ancestor, so that hostile events make no cycle."""
    seen: set[str] = set()
    while parent is not None and parent not in seen:
        if parent == agent:
            return True
        seen.add(parent)
        parent = nodes[parent]["parent"] if parent in nodes else None
    return False


def _node(agent: str, agent_tree: AgentTree) -> dict[str, Any]:
    known = agent_tree.agents.get(agent) or Agent(agent)
    return dict.fromkeys(_NODE) | {
        "id": agent,
        "path": list(agent_tree.path(agent)),
        "tool_call_id": known.tool_call,
        "name": known.name or None,
        "display_name": known.display_name or None,
        "kind": known.kind or None,
        "state": "running" if known.started_at else "unknown",
        "agents": [],
    }


def _counted(database: Database, session: int, agent_tree: AgentTree) -> tuple[dict[str, dict[str, Any]], int]:
    nodes: dict[str, dict[str, Any]] = {}
    main = 0
    rows = database.execute(
        "SELECT agent_id, count(*), min(timestamp), max(timestamp), min(place) FROM events"
        " WHERE session = ? AND hidden = 0 GROUP BY agent_id ORDER BY min(place), min(n) LIMIT ?",
        (session, _AGENTS_MAX),
    )
    for agent, count, started, last, _ in rows:
        if agent is None or agent_tree.is_hint(agent):
            main += count
        else:
            nodes[agent] = {**_node(agent, agent_tree), "events": count, "started": started, "last_activity": last}
    return nodes, main


def _described(database: Database, session: int, nodes: dict[str, dict[str, Any]]) -> None:
    """Fill in what the agents' starts and ends say."""
    of_types = f" AND type IN ({','.join('?' * len(_STATES))})"
    for type, agent, body, cuts in shown_events(database, session, "type, agent_id, body, cuts", of_types, _STATES):
        node = nodes.get(agent)
        if node is None:
            continue
        data = _read(whole(database, body, cuts))
        node["state"] = _STATES[type]
        node |= {name: data[field] for name, field in _TEXTS.items() if isinstance(data.get(field), str)}
        for name, field in _AMOUNTS.items():
            if (value := amount(data.get(field))) is not None:
                node[name] = value
        error = data.get("error")
        node["error"] = error if type == "subagent.failed" and isinstance(error, str) else None


def _read(body: bytes) -> dict[str, Any]:
    envelope = decode(body)
    return read_object(envelope.data) if isinstance(envelope, Envelope) else {}
