"""What one event says about the agent it comes from: read leniently, and believed only by the registry in `agents`.

Two dialects say it. The one of seed 002 names a child in `data.remoteSessionId` of `subagent.started`; today's CLI
names it in the envelope's `agentId`, which in 1.0.48 is the id of the tool call that made it.
"""

from dataclasses import dataclass
from typing import Final

from exporter.core.events.data import read_object
from exporter.core.events.envelope import ID_LENGTH_MAX, Envelope, usable_id

STARTED: Final = "subagent.started"
ENDED: Final = frozenset(("subagent.completed", "subagent.failed"))
NAME_LENGTH_MAX: Final = 256
_HOOK_START: Final = "hook.start"
_HOOK_END: Final = "hook.end"
_TOOL_START: Final = "tool.execution_start"
_PARENT_TOOL_CALL: Final = b'"parentToolCallId"'


@dataclass(frozen=True, slots=True)
class Claim:
    """What an event says; everything is None where it says nothing, or nothing that could be an id."""

    agent: str | None = None  # the child it comes from, by its own word
    session: str | None = None  # a session id in its data: a child's, or the root's
    tool_call: str | None = None  # the tool call that made the child it is about
    own_tool_call: str | None = None  # the tool call that it starts
    hook: str | None = None  # what joins a hook's end to its start
    ends_hook: bool = False
    parent: str | None = None  # the agent that made this one
    name: str = ""
    display_name: str = ""
    kind: str = ""


NOTHING: Final = Claim()


def read_claim(envelope: Envelope) -> Claim:
    """Return what an event says about its agent. Never raises, whatever is in the event."""
    agent = usable(envelope.agentId)
    family = envelope.type.partition(".")[0]
    if family == "subagent":
        return _of_agent(envelope, agent)
    if family == "hook":
        data = read_object(envelope.data)
        inside = data.get("input")
        hook = usable(data.get("hookInvocationId"))
        is_end = envelope.type == _HOOK_END
        session = None if is_end or not isinstance(inside, dict) else usable(inside.get("sessionId"))
        return Claim(agent, session, _parent_call(data), hook=hook, ends_hook=is_end)
    if family == "external_tool":
        data = read_object(envelope.data)
        return Claim(agent, usable(data.get("sessionId")), _parent_call(data))
    if agent is not None:
        own = usable(read_object(envelope.data).get("toolCallId")) if envelope.type == _TOOL_START else None
        return Claim(agent, own_tool_call=own)
    # The word is looked for first: nearly no event of a root has it, and most of what flows are events of roots.
    if _PARENT_TOOL_CALL in bytes(envelope.data):
        return Claim(tool_call=_parent_call(read_object(envelope.data)))
    return NOTHING


def _of_agent(envelope: Envelope, agent: str | None) -> Claim:
    data = read_object(envelope.data)
    tool_call = usable(data.get("toolCallId"))
    if envelope.type != STARTED:
        return Claim(agent, tool_call=tool_call)
    return Claim(
        usable(data.get("remoteSessionId")) or agent or tool_call,
        tool_call=tool_call,
        parent=usable(data.get("parentId")),
        name=_name(data.get("agentName")),
        display_name=_name(data.get("agentDisplayName")),
        kind=_name(data.get("agentType")),
    )


def usable(value: object) -> str | None:
    """Return a value if it can be an id."""
    return value if isinstance(value, str) and len(value) <= ID_LENGTH_MAX and usable_id(value) else None


def _parent_call(data: dict[str, object]) -> str | None:
    return usable(data.get("parentToolCallId"))


def _name(value: object) -> str:
    return value[:NAME_LENGTH_MAX] if isinstance(value, str) else ""
