"""The sub-agents of a session at the side of its page: a tree of links that scope the timeline."""

from collections.abc import Iterator
from typing import Any, Final

from exporter.missioncontrol.pages.entries import colour_of
from exporter.missioncontrol.pages.markup import address, counted, duration, escape, marked
from exporter.missioncontrol.pages.timeline.entry import one_line
from exporter.missioncontrol.pages.timeline.windows import TimelineScope
from exporter.missioncontrol.store.amounts import amount

_SHOWN_MAX: Final = 200
_DEPTH_MAX: Final = 32
_STATES: Final = {"unknown": "its start was not seen"}
_ARROW: Final = " → "
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
        names[node["id"]] = f"{above}{_ARROW}{_name(node)}" if above else _name(node)
    return names


def _name(node: Node) -> str:
    return str(node["display_name"] or node["name"] or node["id"][:12])


def scope_of(tree: Node, agent: str | None, *, is_main: bool) -> TimelineScope:
    """Return whose events belong to a choice: an agent's own, and those of the agents below it."""
    hints = tuple(tree["hints"])
    if is_main:
        return TimelineScope(is_main=True, hints=hints)
    if not agent:
        return TimelineScope(hints=hints)
    for node in everyone(tree):
        if node["id"] == agent:
            below = [str(one["id"]) for one in everyone(node) if one["id"] is not None]
            return TimelineScope((agent, *below[:500]))
    return TimelineScope((agent,))


def agent_tree(path: str, tree: Node, agent: str | None, *, is_main: bool) -> str:
    """Return the tree as nested lists; nothing when there are no sub-agents."""
    if not tree["agents"]:
        return ""
    shown = [0]
    everybody = _link(path, "Everybody", here=not agent and not is_main)
    main = _link(path, "Main agent", here=is_main, main=1)
    branches = "".join(_branch(path, node, agent, shown, 0) for node in tree["agents"])
    return (
        '<nav class="agents" aria-label="Agents"><h2>Agents</h2><ul>'
        f'<li>{everybody}</li><li>{main}<span class="quiet">{counted(tree["events"], "event")}</span>'
        f"<ul>{branches}</ul></li></ul></nav>"
    )


def _branch(path: str, node: Node, agent: str | None, shown: list[int], depth: int) -> str:
    shown[0] += 1
    if shown[0] > _SHOWN_MAX or depth > _DEPTH_MAX:
        return ""
    id = str(node["id"])
    name = _name(node)
    took = amount(node["duration_ms"])
    facts = [
        _STATES.get(node["state"], str(node["state"])),
        "in the background" if node["mode"] == "background" else "",
        counted(node["events"], "event"),
        duration(took / 1000) if took is not None else "",
        counted(node["tokens"], "token") if node["tokens"] else "",
    ]
    inside = "".join(_branch(path, one, agent, shown, depth + 1) for one in node["agents"])
    said = " · ".join(escape(fact) for fact in facts if fact)
    error = f'<span class="error">{marked(one_line(node["error"]))}</span>' if node["error"] else ""
    return (
        f'<li class="{colour_of(id)}">{_link(path, name, here=id == agent, agent=id)}'
        f'<span class="quiet {"error" if node["state"] == "failed" else ""}">{said}</span>{error}'
        f"{f'<ul>{inside}</ul>' if inside else ''}</li>"
    )


def agent_place(path: str, tree: Node, agent: str | None) -> str:
    """Return where the agent stands to which the timeline is scoped: those above it, each a link."""
    by_id = {node["id"]: node for node in everyone(tree)}
    if agent not in by_id:
        return ""
    steps = [_link(path, "Main agent", here=False, main=1)]
    steps += [_link(path, _name(by_id[id]), here=id == agent, agent=id) for id in by_id[agent]["path"] if id in by_id]
    return f'<nav class="filters small" aria-label="Agent">{_ARROW.join(steps)}</nav>'


def _link(path: str, name: str, *, here: bool, **query: object) -> str:
    return f'<a href="{address(path, **query)}"{" aria-current=true" if here else ""}>{escape(name)}</a>'
