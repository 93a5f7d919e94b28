"""Which sub-agent every stored event belongs to, and which sub-agent started which.

`core.agents` decides it for events in file order. Its state is stored with the session, so that the next batch
continues from there; after late or rewound events the whole session is processed again. An event's row names its
agent, and `AgentTree` has the agent's path by all events of the session, so an event from before its agent's start has
the same path as the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from exporter.core.agents.registry import STARTED, Agent, AgentRegistry, AgentSnapshot, path_of, read_claim
from exporter.core.events.envelope import Envelope, decode
from exporter.missioncontrol.ingest.batch import UploadedEvent
from exporter.missioncontrol.store.payloads import whole
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.session_row import number_of, shown_events

KNOWN_MAX: Final = 10_000
"""How many agents of a session are stored; further ones have no known parent."""

_AGENT_TYPES: Final = ("subagent.", "hook.", "external_tool.")
_SHUTDOWN: Final = "session.shutdown"


@dataclass(slots=True)
class _State:
    """The agents of a session: those the registry continues with, and all that were ever seen."""

    open: AgentSnapshot = field(default_factory=AgentSnapshot)
    known: dict[str, Agent] = field(default_factory=dict)


_read_state: Final = msgspec.json.Decoder(_State).decode


@dataclass(frozen=True, slots=True)
class AgentTree:
    """The agents of a session by all its events."""

    agents: dict[str, Agent]

    def path(self, agent: str | None) -> tuple[str, ...]:
        """Return the agents from the outermost to this one; nothing for the main agent."""
        if agent is None:
            return ()
        return tuple(id for id in path_of(self.agents, agent) if not self.is_hint(id))

    def is_hint(self, agent: str) -> bool:
        """Tell whether this is only a name from a hook or a start, so that its events are the main agent's."""
        known = self.agents.get(agent)
        return known is not None and known.hinted

    @property
    def hints(self) -> tuple[str, ...]:
        """Ids in rows that mean the main agent."""
        return tuple(id for id, agent in self.agents.items() if agent.hinted)


def kin(database: Database, session_id: str) -> AgentTree:
    """Return the agents of a session."""
    return AgentTree(_load(database, number_of(database, session_id))[0].known)


def attribute(database: Database, session: int, session_id: str, events: Sequence[UploadedEvent]) -> list[str | None]:
    """Return the agent of each event; the events follow, in file order, all that the session shows."""
    if not any(_may_name_agent(event) for event in events):
        return [None] * len(events)
    state, stored = _load(database, session)
    fold = _Fold(session_id, state)
    found = [fold.add(event.envelope) if _may_name_agent(event) else None for event in events]
    moved = [(child, session, call) for call, child in fold.moved.items()]
    database.executemany("UPDATE events SET agent_id = ? WHERE session = ? AND agent_id = ?", moved)
    database.executemany("UPDATE notices SET agent = ? WHERE session = ? AND agent = ?", moved)
    fold.save(database, session, stored)
    return [None if agent is None else fold.moved.get(agent, agent) for agent in found]


def named_agent(event: UploadedEvent) -> str | None:
    """Return the agent that an event names itself, for its row until `attribute_again` processes the session."""
    if not _may_name_agent(event):
        return None
    claim = read_claim(event.envelope)
    return claim.agent or claim.tool_call


def attribute_again(database: Database, session: int, session_id: str) -> None:
    """Attribute all events of a session again, from those shown."""
    types = " OR ".join(f"substr(type, 1, {len(prefix)}) = '{prefix}'" for prefix in _AGENT_TYPES)
    of_agents = f" AND (agent_id IS NOT NULL OR type = '{_SHUTDOWN}' OR {types})"
    rows = shown_events(database, session, "n, agent_id, body, cuts", of_agents)
    fold = _Fold(session_id, _State())
    found: list[tuple[str | None, str | None, int]] = []
    for n, before, body, cuts in rows:
        envelope = decode(whole(database, body, cuts))
        if isinstance(envelope, Envelope):
            found.append((fold.add(envelope), before, n))
    changed = (
        (now, session, n)
        for agent, before, n in found
        if (now := fold.moved.get(agent, agent) if agent else None) != before
    )
    database.executemany("UPDATE events SET agent_id = ? WHERE session = ? AND n = ?", list(changed))
    database.execute("DELETE FROM families WHERE session = ?", (session,))
    fold.save(database, session, b"")


def as_of(envelope: Envelope, agent: str | None) -> Envelope:
    """Return the event with the agent that it belongs to."""
    return envelope if envelope.agentId == agent else msgspec.structs.replace(envelope, agentId=agent)


class _Fold:
    """Attributes events in file order. `moved` are tool calls that were taken for agents, each with its real agent."""

    def __init__(self, session_id: str, state: _State) -> None:
        self.state = state
        self.moved: dict[str, str] = {}
        self._root = session_id
        self._agents = AgentRegistry()
        self._agents.add(session_id)
        self._agents.restore(session_id, state.open)

    def add(self, envelope: Envelope) -> str | None:
        place = self._agents.attribute(self._root, envelope)
        for id in place.path:
            self._know(self._agents.agent(self._root, id))
        if envelope.type == STARTED and place.path:
            self._merge(place.path[-1])
        return place.path[-1] if place.path else None

    def _know(self, agent: Agent | None) -> None:
        if agent is None:
            return
        before = self.state.known.get(agent.id)
        # The registry forgets at the end of a session; a later placeholder does not replace a known agent.
        if before is None:
            if len(self.state.known) < KNOWN_MAX:
                self.state.known[agent.id] = agent
        elif agent.started_at or (before.hinted and not agent.hinted):
            self.state.known[agent.id] = agent

    def _merge(self, child: str) -> None:
        agent = self.state.known.get(child)
        call = None if agent is None else agent.tool_call
        taken = None if call is None else self.state.known.get(call)
        if call is None or call == child or taken is None or taken.started_at:
            return
        del self.state.known[call]
        self.moved[call] = child
        for below in [one for one in self.state.known.values() if one.parent == call]:
            self.state.known[below.id] = replace(below, parent=child)

    def save(self, database: Database, session: int, before: bytes) -> None:
        if not self.state.known:
            return
        state = msgspec.json.encode(_State(self._agents.snapshot(self._root), self.state.known))
        if state != before:
            database.execute(
                "INSERT INTO families (session, state) VALUES (?, ?)"
                " ON CONFLICT (session) DO UPDATE SET state = excluded.state",
                (session, state),
            )


def _may_name_agent(event: UploadedEvent) -> bool:
    """Tell whether an event may be a sub-agent's or name one; most do not, and cost only this check."""
    envelope = event.envelope
    return (
        envelope.agentId is not None
        or envelope.type.startswith(_AGENT_TYPES)
        or envelope.type == _SHUTDOWN
        or event.names_call
    )


def _load(database: Database, session: int) -> tuple[_State, bytes]:
    row = database.execute("SELECT state FROM families WHERE session = ?", (session,)).fetchone()
    return (_State(), b"") if row is None else (_read_state(row[0]), row[0])
