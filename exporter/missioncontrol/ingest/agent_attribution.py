"""Which sub-agent every stored event belongs to, and how the sub-agents of a session hang together.

`core.agents` says it of events in file order. What it has learned is kept with the session, so that a batch that
follows on goes on from there; after events came late or were taken back, the whole session is gone through again. An
event's row names the agent it belongs to, and `AgentTree` says where that agent stands by all that its session tells,
so an event from before its agent's start has the same path as the others.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from exporter.core.agents.registry import STARTED, Agent, AgentRegistry, AgentSnapshot, path_of, read_claim
from exporter.core.events.envelope import Envelope, decode
from exporter.missioncontrol.ingest.batch import UploadedEvent
from exporter.missioncontrol.store.payloads import whole
from exporter.missioncontrol.store.session_row import number_of

KNOWN_MAX: Final = 10_000
"""How many agents of a session are remembered; those beyond stand alone."""

_FAMILIES: Final = ("subagent.", "hook.", "external_tool.")
_SHUTDOWN: Final = "session.shutdown"


@dataclass(slots=True)
class _State:
    """What is known of a session's agents: what the registry goes on from, and all that were ever seen."""

    open: AgentSnapshot = field(default_factory=AgentSnapshot)
    known: dict[str, Agent] = field(default_factory=dict)


_read_state: Final = msgspec.json.Decoder(_State).decode


@dataclass(frozen=True, slots=True)
class AgentTree:
    """The agents of a session as far as all its events tell."""

    agents: dict[str, Agent]

    def path(self, agent: str | None) -> tuple[str, ...]:
        """Return the agents from the outermost to this one; nothing for the main agent."""
        if agent is None:
            return ()
        return tuple(id for id in path_of(self.agents, agent) if not self.is_hint(id))

    def is_hint(self, agent: str) -> bool:
        """Tell whether this is only a name that a hook or a start gave, so that what has it is the main agent's."""
        known = self.agents.get(agent)
        return known is not None and known.hinted

    @property
    def hints(self) -> tuple[str, ...]:
        """Ids in rows that stand for the main agent."""
        return tuple(id for id, agent in self.agents.items() if agent.hinted)


def kin(database: sqlite3.Connection, session_id: str) -> AgentTree:
    """Return the agents of a session."""
    return AgentTree(_load(database, number_of(database, session_id))[0].known)


def attribute(
    database: sqlite3.Connection, session: int, session_id: str, events: Sequence[UploadedEvent]
) -> list[str | None]:
    """Return the agent of each event; they follow, in file order, on all that the session shows."""
    if not any(_may_tell(event) for event in events):
        return [None] * len(events)
    state, stored = _load(database, session)
    fold = _Fold(session_id, state)
    found = [fold.take(event.envelope) if _may_tell(event) else None for event in events]
    _move(database, session, fold.moved)
    _save(database, session, fold, stored)
    return [None if agent is None else fold.moved.get(agent, agent) for agent in found]


def named(event: UploadedEvent) -> str | None:
    """Return the agent that an event names by itself, for its row until `attribute_again` has looked at all."""
    if not _may_tell(event):
        return None
    claim = read_claim(event.envelope)
    return claim.agent or claim.tool_call


def attribute_again(database: sqlite3.Connection, session: int, session_id: str) -> None:
    """Find the agents of a session's events anew, from what is shown."""
    families = " OR ".join(f"type GLOB '{family}*'" for family in _FAMILIES)
    rows = database.execute(
        f"SELECT n, agent_id, body, cuts FROM events WHERE session = ? AND hidden = 0"  # noqa: S608  constants only
        f" AND (agent_id IS NOT NULL OR type = '{_SHUTDOWN}' OR {families}) ORDER BY place, n",
        (session,),
    )
    fold = _Fold(session_id, _State())
    found: list[tuple[str | None, str | None, int]] = []
    for n, before, body, cuts in rows:
        envelope = decode(whole(database, body, cuts))
        if isinstance(envelope, Envelope):
            found.append((fold.take(envelope), before, n))
    changed = (
        (now, n) for agent, before, n in found if (now := fold.moved.get(agent, agent) if agent else None) != before
    )
    database.executemany("UPDATE events SET agent_id = ? WHERE n = ?", list(changed))
    database.execute("DELETE FROM families WHERE session = ?", (session,))
    _save(database, session, fold, b"")


def fill(database: sqlite3.Connection) -> None:
    """Find the agents of what was stored before they were kept."""
    sessions: set[int] = set()
    rows = database.execute(
        "SELECT n, session, agent_id, body FROM events WHERE hidden = 0"
        " AND (agent_id IS NOT NULL OR type GLOB 'subagent.*' OR instr(body, CAST('\"parentToolCallId\"' AS BLOB)))"
    )
    provisional: list[tuple[str, int]] = []
    for n, session, agent, body in rows:
        sessions.add(session)
        if agent is None and isinstance(envelope := decode(body), Envelope):
            claim = read_claim(envelope)
            if claim.tool_call is not None:
                provisional.append((claim.tool_call, n))
    database.executemany("UPDATE events SET agent_id = ? WHERE n = ?", provisional)
    for session in sorted(sessions):
        (session_id,) = database.execute("SELECT id FROM sessions WHERE n = ?", (session,)).fetchone()
        attribute_again(database, session, session_id)


def as_of(envelope: Envelope, agent: str | None) -> Envelope:
    """Return the event as one of the agent that it belongs to."""
    return envelope if envelope.agentId == agent else msgspec.structs.replace(envelope, agentId=agent)


class _Fold:
    """Takes events in file order. `moved` are tool calls that were taken for agents, each with the agent it made."""

    def __init__(self, session_id: str, state: _State) -> None:
        self.state = state
        self.moved: dict[str, str] = {}
        self._root = session_id
        self._agents = AgentRegistry()
        self._agents.add(session_id)
        self._agents.restore(session_id, state.open)

    def take(self, envelope: Envelope) -> str | None:
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
        # The registry forgets at the end of a session; a placeholder of later does not replace what was known.
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

    def stored(self) -> bytes:
        return msgspec.json.encode(_State(self._agents.snapshot(self._root), self.state.known))


def _may_tell(event: UploadedEvent) -> bool:
    """Tell whether an event may be a sub-agent's or tell of one; most are not, and cost no more than this."""
    envelope = event.envelope
    return (
        envelope.agentId is not None
        or envelope.type.startswith(_FAMILIES)
        or envelope.type == _SHUTDOWN
        or event.names_call
    )


def _load(database: sqlite3.Connection, session: int) -> tuple[_State, bytes]:
    row = database.execute("SELECT state FROM families WHERE session = ?", (session,)).fetchone()
    return (_State(), b"") if row is None else (_read_state(row[0]), row[0])


def _save(database: sqlite3.Connection, session: int, fold: _Fold, before: bytes) -> None:
    if not fold.state.known:
        return
    state = fold.stored()
    if state != before:
        database.execute("INSERT OR REPLACE INTO families (session, state) VALUES (?, ?)", (session, state))


def _move(database: sqlite3.Connection, session: int, moved: dict[str, str]) -> None:
    changes: Iterable[tuple[str, int, str]] = [(child, session, call) for call, child in moved.items()]
    database.executemany("UPDATE events SET agent_id = ? WHERE session = ? AND agent_id = ?", changes)
    database.executemany("UPDATE notices SET agent = ? WHERE session = ? AND agent = ?", changes)
