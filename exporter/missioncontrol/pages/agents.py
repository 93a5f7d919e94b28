"""The sub-agents of a session at the side of its page: a tree of links that scope the timeline."""

from collections.abc import Iterator
from typing import Any, Final

from exporter.missioncontrol.pages.formats import address
from exporter.missioncontrol.pages.timeline.entry import one_line
from exporter.missioncontrol.pages.timeline.windows import TimelineScope
from exporter.missioncontrol.store.amounts import amount

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
        names[node["id"]] = f"{above} → {_name(node)}" if above else _name(node)
    return names


def _name(node: Node) -> str:
    return str(node["display_name"] or node["name"] or node["id"][:12])


def scope_of(tree: Node, agent: str | None, *, is_main: bool) -> TimelineScope:
    """Return whose events belong to a choice: an agent's own, and those of the agents below it."""
    hints = tuple(tree["hints"])
    if is_main or not agent:
        return TimelineScope(is_main=is_main, hints=hints)
    below = next((everyone(node) for node in everyone(tree) if node["id"] == agent), iter(()))
    return TimelineScope((agent, *[str(one["id"]) for one in below][:_SCOPED_MAX]))


def branches_of(tree: Node, agent: str | None) -> list[Node]:
    """Return the sub-agents that are shown, each with its `agents`; `agent` is the one that is looked at."""
    return _branches(tree["agents"], agent, iter(range(_SHOWN_MAX)), 0)


def _branches(nodes: list[Node], agent: str | None, left: Iterator[int], depth: int) -> list[Node]:
    shown = []
    for node in nodes:
        if next(left, None) is not None and depth <= _DEPTH_MAX:
            took = amount(node["duration_ms"])
            told = {
                "name": _name(node),
                "is_current": node["id"] == agent,
                "is_background": node["mode"] == "background",
                "seconds": None if took is None else took / 1000,
                "error": one_line(node["error"] or ""),
                "agents": _branches(node["agents"], agent, left, depth + 1),
            }
            shown.append({**node, **told})
    return shown


def steps_to(path: str, tree: Node, agent: str | None) -> list[Node]:
    """Return where the agent stands to which the timeline is scoped: those above it, each with its address."""
    by_id = {node["id"]: node for node in everyone(tree)}
    if agent not in by_id:
        return []
    above = [by_id[id] for id in by_id[agent]["path"] if id in by_id]
    return [
        {"name": "Main agent", "address": address(path, main=1), "is_current": False},
        *(
            {"name": _name(node), "address": address(path, agent=node["id"]), "is_current": node["id"] == agent}
            for node in above
        ),
    ]
