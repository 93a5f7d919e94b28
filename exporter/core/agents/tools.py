"""Which tools a sub-agent may call, as the SDK that owns a session would decide; we only report it.

A child may call every tool of its session when its agent's `tools` is unset, none when it is empty, else those named.
That holds for the two messages that ask for a tool, `tool.call` (protocol 2) and `external_tool.requested`
(protocol 3); permissions, hooks and questions are never refused for it.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from exporter.core.agents.registry import AgentRegistry

TOOL_REQUESTS: Final = frozenset(("tool.call", "external_tool.requested"))


@dataclass(frozen=True, slots=True)
class AgentTools:
    """What the configuration of a custom agent says of tools; `tools` None means every tool of its session."""

    name: str
    tools: frozenset[str] | None = None
    defined: frozenset[str] = frozenset()

    def allows(self, tool: str) -> bool:
        """Tell whether the agent may call a tool."""
        return self.tools is None or tool in self.tools


@dataclass(frozen=True, slots=True)
class ToolReport:
    """What the owner of the session would answer: `error` is the text of a refusal, None when it would go on."""

    root: str | None
    agent: str | None
    error: str | None

    @property
    def allowed(self) -> bool:
        """Tell whether the request would be passed to a handler."""
        return self.error is None


def refusal(tool: str) -> str:
    """Return the words in which a tool is refused, whether it is not allowed or not known."""
    return f"Tool '{tool}' is not supported by this client instance."


def read_agent_tools(configured: object) -> AgentTools | None:
    """Return what one entry of `customAgents`, or of `session.custom_agents_updated`, says; None when it names none.

    What is no list reads as unset, as it does for the SDK's own check; entries that are no text are left out.
    """
    if not isinstance(configured, dict) or not isinstance(configured.get("name"), str):
        return None
    tools, definitions = configured.get("tools"), configured.get("toolDefinitions")
    return AgentTools(
        configured["name"],
        frozenset(_texts(tools)) if isinstance(tools, list) else None,
        frozenset(_texts(one.get("name") for one in definitions if isinstance(one, dict)))
        if isinstance(definitions, list)
        else frozenset(),
    )


def undefined_tools(agent: AgentTools, custom: Collection[str] | None = None) -> list[str]:
    """Return the tools that an agent lists and its model will never hear of, because nothing defines them to it.

    `custom` are the tools that the session's owner registered, where they are known: others are the CLI's own and
    need no definition. Without it every listed tool without a definition is named. None are when `tools` is unset.
    """
    listed = agent.tools or frozenset()
    return sorted(tool for tool in listed - agent.defined if custom is None or tool in custom)


def report(
    agents: AgentRegistry,
    request: str,
    session: str,
    tool: str,
    configured: Mapping[str, AgentTools],
    registered: Collection[str] | None = None,
) -> ToolReport:
    """Say what becomes of a request that names a session, or a child of one, and a tool.

    `configured` is by agent name; an agent that is not in it is unrestricted. `registered` are the tools the owner
    has, where they are known. An id that cannot be resolved gives the error of resolving, never that of a tool.
    """
    resolved = agents.resolve(session)
    if resolved.error is not None:
        return ToolReport(None, None, resolved.error)
    if request not in TOOL_REQUESTS:
        return ToolReport(resolved.root, None, None)
    name = None
    if resolved.path:
        child = agents.agent(resolved.root, resolved.path[-1])
        name = child.name if child is not None else None
        restrictions = configured.get(name or "")
        if restrictions is not None and not restrictions.allows(tool):
            return ToolReport(resolved.root, name, refusal(tool))
    unknown = registered is not None and tool not in registered
    return ToolReport(resolved.root, name, refusal(tool) if unknown else None)


def _texts(values: Iterable[object]) -> list[str]:
    return [value for value in values if isinstance(value, str)]
