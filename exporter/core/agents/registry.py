"""Which session and which agent an event belongs to, for events of every source.

The rules are those of SDKs for dispatching to sub-agents, as they apply to an observer:

- A child is known from its `subagent.started` on, as a child of the session on whose stream that came.
- An id is resolved directly if it is a session's, else as a child's, else there is an error with a fixed text.
- A child stays registered when it completes or fails, because more of its events may follow; only its running
  instance is removed. A session is removed with all its children.
- Every event has an owner: an event that names a child before its `started` makes a placeholder, and an event of no
  known session is attributed to `UNATTRIBUTED`, with an error.

Nothing here calls back, waits or locks.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from exporter.core.events.envelope import Envelope, read_object, usable_id

STARTED: Final = "subagent.started"
ENDED: Final = frozenset(("subagent.completed", "subagent.failed"))
NAME_LENGTH_MAX: Final = 256
_FAMILIES: Final = frozenset(("subagent", "hook", "external_tool"))
_HOOK_END: Final = "hook.end"
_TOOL_START: Final = "tool.execution_start"
_PARENT_TOOL_CALL: Final = b'"parentToolCallId"'


@dataclass(frozen=True, slots=True)
class Claim:
    """What an event says about its agent; a field is None if it is absent or no valid id."""

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
    """Return what an event says about its agent. Never raises."""
    agent = usable(envelope.agentId)
    family = envelope.type.partition(".")[0]
    data = read_object(envelope.data) if family in _FAMILIES else {}
    if family == "subagent":
        return _of_agent(envelope, agent, data)
    if family == "hook":
        inside = data.get("input")
        hook = usable(data.get("hookInvocationId"))
        is_end = envelope.type == _HOOK_END
        session = None if is_end or not isinstance(inside, dict) else usable(inside.get("sessionId"))
        return Claim(agent, session, _parent_call(data), hook=hook, ends_hook=is_end)
    if family == "external_tool":
        return Claim(agent, usable(data.get("sessionId")), _parent_call(data))
    if agent is not None:
        own = usable(read_object(envelope.data).get("toolCallId")) if envelope.type == _TOOL_START else None
        return Claim(agent, own_tool_call=own)
    # The word is looked for first: nearly no event of a root has it, and most of what flows are events of roots.
    if _PARENT_TOOL_CALL in bytes(envelope.data):
        return Claim(tool_call=_parent_call(read_object(envelope.data)))
    return NOTHING


def _of_agent(envelope: Envelope, agent: str | None, data: dict[str, object]) -> Claim:
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
    return value if isinstance(value, str) and usable_id(value) else None


def _parent_call(data: dict[str, object]) -> str | None:
    return usable(data.get("parentToolCallId"))


def _name(value: object) -> str:
    return value[:NAME_LENGTH_MAX] if isinstance(value, str) else ""


UNATTRIBUTED: Final = "unattributed"
AGENTS_MAX: Final = 4096
AGENTS_IN_ALL_MAX: Final = 65_536
HOOKS_MAX: Final = 1024
TOOL_CALLS_MAX: Final = 4096
DEPTH_MAX: Final = 32
_SHUTDOWN: Final = "session.shutdown"
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Agent:
    """A sub-agent; a placeholder, `started_at` empty, until its `subagent.started` has been seen.

    `hinted` while only others named it: a hook its session, or a start its parent. It may be no agent at all but the
    session that a fork came from, or the name of a task.
    """

    id: str
    parent: str | None = None
    name: str = ""
    display_name: str = ""
    kind: str = ""
    tool_call: str | None = None
    started_at: str = ""
    hinted: bool = False


@dataclass(frozen=True, slots=True)
class Instance:
    """A sub-agent that runs, by the tool call that started it."""

    agent_name: str
    tool_call_id: str
    child_session_id: str
    started_at: str


@dataclass(frozen=True, slots=True)
class EventOwner:
    """Whose an id or an event is: the root session, and the agents from the outermost to the one itself.

    `error` says, in the words that SDKs use, why it belongs to no known session. Such an event is exported all the
    same.
    """

    root: str
    path: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class AgentSnapshot:
    """What is known of a session's children between two runs: plain values, for `AgentRegistry.restore`."""

    agents: list[Agent] = field(default_factory=list)
    by_tool_call: dict[str, str] = field(default_factory=dict)
    callers: dict[str, str] = field(default_factory=dict)
    hooks: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Family:
    """The children of one root session. Each table is cut at its oldest entry."""

    agents: OrderedDict[str, Agent] = field(default_factory=OrderedDict)
    instances: OrderedDict[str, Instance] = field(default_factory=OrderedDict)
    by_tool_call: OrderedDict[str, str] = field(default_factory=OrderedDict)  # tool call -> the child it made
    callers: OrderedDict[str, str] = field(default_factory=OrderedDict)  # tool call -> the child that made the call
    hooks: OrderedDict[str, str] = field(default_factory=OrderedDict)


class AgentRegistry:
    """The registry. Every table is bounded: what is oldest goes when it is full."""

    def __init__(self) -> None:
        self._sessions: set[str] = set()
        self._families: dict[str, _Family] = {}
        self._child_to_parent: dict[str, str] = {}

    def add(self, session: str) -> None:
        """Make a session known, so that ids of it and of its children resolve."""
        self._sessions.add(session)

    def end(self, session: str) -> None:
        """Drop what is known of a session's children; the session itself may go on."""
        for child in self._families.pop(session, _Family()).agents:
            if self._child_to_parent.get(child) == session:
                del self._child_to_parent[child]

    def forget(self, session: str) -> None:
        """Drop a session with all its children: it was deleted, destroyed, or is not followed any more."""
        self._sessions.discard(session)
        self.end(session)

    def resolve(self, id: str) -> EventOwner:
        """Say whose an id is: a session's own, else a child's, else why not."""
        if id in self._sessions:
            return EventOwner(id)
        parent = self._child_to_parent.get(id)
        if parent is None:
            return EventOwner(UNATTRIBUTED, error=f"unknown session {id}")
        if parent not in self._sessions:
            return EventOwner(UNATTRIBUTED, error=f"parent session {parent} for child {id} not found")
        return EventOwner(parent, path_of(self._families[parent].agents, id))

    def agent(self, root: str, id: str) -> Agent | None:
        """Return what is known of a child of a session."""
        return self._family(root).agents.get(id)

    def snapshot(self, root: str) -> AgentSnapshot:
        """Return what is known of a session's children, for `restore`; running instances are left out."""
        family = self._family(root)
        return AgentSnapshot(
            list(family.agents.values()), dict(family.by_tool_call), dict(family.callers), dict(family.hooks)
        )

    def restore(self, root: str, snapshot: AgentSnapshot) -> None:
        """Register the children of a snapshot; nothing may be known of the session yet."""
        family = self._families.setdefault(root, _Family())
        for agent in snapshot.agents:
            self._set_agent(family, root, agent)
        family.by_tool_call.update(snapshot.by_tool_call)
        family.callers.update(snapshot.callers)
        family.hooks.update(snapshot.hooks)

    def instances(self, root: str) -> Mapping[str, Instance]:
        """Return the sub-agents of a session that run, by tool call."""
        return dict(self._family(root).instances)

    def attribute(self, session: str, envelope: Envelope) -> EventOwner:
        """Learn from an event of `session`'s stream and say where it belongs. Never raises.

        Events are given in their order, once each; a start given again changes nothing.
        """
        owner = self.resolve(session)
        root = owner.root if owner.error is None else session
        child = self._learn(root, envelope, read_claim(envelope))
        if owner.error is not None:
            return owner if child is None else replace(owner, path=(child,))
        path = owner.path if child is None else path_of(self._families[root].agents, child)
        if envelope.type == _SHUTDOWN and child is None and not owner.path:
            self.end(root)
        return EventOwner(root, path)

    def _family(self, root: str) -> _Family:
        """Return what is known of a session's children; an empty family is not remembered."""
        return self._families.get(root) or _Family()

    def _learn(self, root: str, envelope: Envelope, claim: Claim) -> str | None:
        family = self._family(root)
        child = self._child_of(family, root, claim)
        if claim.hook is not None and claim.ends_hook:
            family.hooks.pop(claim.hook, None)
        if child is None:
            return None
        self._families.setdefault(root, family)
        if envelope.type == STARTED:
            self._start(family, root, child, envelope, claim)
        else:
            self._update_placeholder(family, root, child, claim)
        if claim.hook is not None and not claim.ends_hook:
            _insert(family.hooks, claim.hook, child, HOOKS_MAX)
        if claim.own_tool_call is not None:
            _insert(family.callers, claim.own_tool_call, child, TOOL_CALLS_MAX)
        if envelope.type in ENDED:
            family.instances.pop(claim.tool_call or family.agents[child].tool_call or "", None)
        return child

    def _update_placeholder(self, family: _Family, root: str, child: str, claim: Claim) -> None:
        """Make a placeholder for a child that is not known, or sure that one is a child that was only hinted at."""
        known = family.agents.get(child)
        is_hint = claim.agent is None and claim.tool_call is None
        if known is None:
            self._set_agent(family, root, Agent(child, hinted=is_hint))
        elif known.hinted and not is_hint:
            self._set_agent(family, root, replace(known, hinted=False))

    def _child_of(self, family: _Family, root: str, claim: Claim) -> str | None:
        """Return the child that an event comes from, known or not; None when it comes from the root."""
        if claim.agent is not None:
            return None if claim.agent == root else claim.agent
        if claim.session is not None and claim.session != root:
            # A forked session repeats events that name the session it was forked from: that is no child of it.
            return None if claim.session in self._sessions else claim.session
        if claim.tool_call is not None:
            return family.by_tool_call.get(claim.tool_call, claim.tool_call)
        return family.hooks.get(claim.hook) if claim.ends_hook and claim.hook is not None else None

    def _start(self, family: _Family, root: str, child: str, envelope: Envelope, claim: Claim) -> None:
        call, started_at = claim.tool_call, envelope.timestamp
        known = family.agents.get(child)
        if known is not None and known.started_at and (known.started_at, known.tool_call) == (started_at, call):
            return
        # Who made the call is certain; `parentId` is the name of a task, which only happens to be the agent's.
        parent = (None if call is None else family.callers.get(call)) or claim.parent
        if parent in (child, root):
            parent = None
        if parent is not None and parent not in family.agents:
            self._set_agent(family, root, Agent(parent, hinted=True))
        if call is not None:
            self._merge(family, root, call, child)
        self._set_agent(
            family, root, Agent(child, parent, claim.name, claim.display_name, claim.kind, call, started_at)
        )
        if call is not None:
            _insert(family.by_tool_call, call, child, AGENTS_MAX)
            _insert(family.instances, call, Instance(claim.name, call, child, started_at), AGENTS_MAX)

    def _merge(self, family: _Family, root: str, call: str, child: str) -> None:
        """Make the child of what was taken for a child of its own while only the tool call was known."""
        taken = family.agents.get(call)
        if call == child or taken is None or taken.started_at:
            return
        del family.agents[call]
        if self._child_to_parent.get(call) == root:
            del self._child_to_parent[call]
        for table in (family.callers, family.hooks):
            table.update([(key, child) for key, value in table.items() if value == call])
        for agent in [agent for agent in family.agents.values() if agent.parent == call]:
            family.agents[agent.id] = replace(agent, parent=child)

    def _set_agent(self, family: _Family, root: str, agent: Agent) -> None:
        if len(family.agents) >= AGENTS_MAX and agent.id not in family.agents:
            oldest, _ = family.agents.popitem(last=False)
            if self._child_to_parent.get(oldest) == root:
                del self._child_to_parent[oldest]
        family.agents[agent.id] = agent
        # A fork repeats the children of another session: the one that had them first keeps them.
        self._child_to_parent.setdefault(agent.id, root)
        if len(self._child_to_parent) > AGENTS_IN_ALL_MAX:
            self.end(next(one for one in self._families if one != root))


def _insert(table: OrderedDict[str, _Value], key: str, value: _Value, count_max: int) -> None:
    table[key] = value
    if len(table) > count_max:
        table.popitem(last=False)


def path_of(agents: Mapping[str, Agent], child: str) -> tuple[str, ...]:
    """Return the ids from the outermost agent to the one itself."""
    path: list[str] = []
    step: str | None = child
    # What others send may name parents in a circle.
    while step is not None and step not in path and len(path) < DEPTH_MAX:
        path.append(step)
        agent = agents.get(step)
        step = None if agent is None else agent.parent
    return tuple(reversed(path))
