"""The sub-agents of a session at the side of its page: a tree of links that scope the timeline."""

from collections.abc import Iterator
from typing import Any, Final

from exporter.missioncontrol.pages.timeline.windows import TimelineScope

_SHOWN_MAX: Final = 200
_DEPTH_MAX: Final = 32
_SCOPED_MAX: Final = 500
Node = dict[str, Any]


def everyone(tree: Node) -> Iterator[Node]:
    """Yield every sub-agent of a tree, parents first."""
    waiting: list[Node] = list(tree["agents"])[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node["agents"][::-1]


def names_of(tree: Node) -> dict[str, str]:
    """Return what each sub-agent is called, with those above it, the outermost first."""
    names: dict[str, str] = {}
    for node in everyone(tree):
        above = names.get(node["parent"]) if node["parent"] else None
        names[node["id"]] = f"{above} → {agent_name(node)}" if above else agent_name(node)
    return names


def agent_name(node: Node) -> str:
    """Return what a sub-agent is called."""
    return str(node["display_name"] or node["name"] or node["id"][:12])


def scope_of(tree: Node, agent: str | None, *, is_main: bool) -> TimelineScope:
    """Return whose events belong to a choice: an agent's own, and those of the agents below it."""
    hints = tuple(tree["hints"])
    if is_main or not agent:
        return TimelineScope(is_main=is_main, hints=hints)
    below = next((everyone(node) for node in everyone(tree) if node["id"] == agent), iter(()))
    return TimelineScope((agent, *[str(one["id"]) for one in below][:_SCOPED_MAX]))


def branches_of(nodes: list[Node]) -> list[Node]:
    """Return the sub-agents that are shown of these, each with its `agents`."""
    return _branches(nodes, iter(range(_SHOWN_MAX)), 0)


def _branches(nodes: list[Node], left: Iterator[int], depth: int) -> list[Node]:
    return [
        {**node, "agents": _branches(node["agents"], left, depth + 1)}
        for node in nodes
        if next(left, None) is not None and depth <= _DEPTH_MAX
    ]


def steps_to(tree: Node, agent: str | None) -> list[Node]:
    """Return the agent to which the timeline is scoped and those above it, the outermost first."""
    by_id = {node["id"]: node for node in everyone(tree)}
    return [by_id[id] for id in by_id[agent]["path"] if id in by_id] if agent in by_id else []
