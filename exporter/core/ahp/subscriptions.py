"""Which sessions of a host are watched, and what is asked about each of them.

Subscribing may wake a session, so only those that were active of late, or that the user has named, are subscribed to,
and those that rest are let go of. What is to be asked is put into `asks`, for the observer to send.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import msgspec

from exporter.core.ahp import errors
from exporter.core.ahp.chat import Chat
from exporter.core.ahp.chat_state import Applied
from exporter.core.ahp.dialect import Dialect
from exporter.core.ahp.drafts import seconds_of
from exporter.core.ahp.fetching import Ask, Fetching, Resources, turns_in
from exporter.core.ahp.messages import ErrorResponse
from exporter.core.ahp.session import Hooks, Line, SavedSession, Session, name_of
from exporter.core.ahp.values import Json, mapping, number, objects, text
from exporter.core.events.envelope import REFUSALS

SESSIONS_MAX: Final = 1000
SUMMARIES_MAX: Final = 10_000
ACTIVE_SECONDS: Final = 3600.0
RETRIES_MAX: Final = 4
RETRY_SECONDS_MAX: Final = 60.0
_RUNS: Final = 8

Wanted: TypeAlias = Literal["nothing", "live", "all"]


@dataclass(slots=True)
class _Subscription:
    session: Session
    resources: Resources = field(default_factory=Resources)
    touched_at: float = 0.0


@dataclass(slots=True)
class Subscriptions:
    """The sessions that are watched. `wants` says what is wanted of one, `load` gives what was written down of it."""

    hooks: Hooks
    wants: Callable[[str, str], Wanted] = lambda session, changed: "all"
    load: Callable[[str], bytes | None] = lambda session: None
    named: frozenset[str] = frozenset()
    gone: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    on_snapshot: Callable[[int], None] = lambda seq: None
    reads_resources: bool = True
    _fetching: Fetching = field(init=False)
    _rooms: dict[str, _Subscription] = field(default_factory=dict)
    _chats: dict[str, tuple[_Subscription, Chat]] = field(default_factory=dict)
    _summaries: OrderedDict[str, Json] = field(default_factory=OrderedDict)
    _retries: dict[str, tuple[int, float]] = field(default_factory=dict)
    _touched: dict[str, _Subscription] = field(default_factory=dict)
    _leaving: list[tuple[str, list[Line]]] = field(default_factory=list)
    _left: list[tuple[str, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._fetching = Fetching(self._told, reads_resources=self.reads_resources)

    @property
    def asks(self) -> list[Ask]:
        """Return what is to be asked; the caller takes it out."""
        return self._fetching.asks

    def speak(self, dialect: Dialect) -> None:
        """Take note of how the host speaks."""
        self._fetching.dialect = dialect

    @property
    def sessions(self) -> list[Session]:
        """Return the sessions that are watched."""
        return [room.session for room in self._rooms.values()]

    def subscriptions(self) -> list[str]:
        """Return every address that was subscribed to."""
        return [*self._rooms, *(uri for uri in self._chats if uri not in self._rooms)]

    def disconnected(self) -> None:
        """Apply nothing until the state has been asked for again."""
        self._fetching.stop()
        self._retries.clear()
        for _, chat in self._chats.values():
            chat.is_known = False

    def again(self) -> None:
        """Ask for the state of every session again."""
        for uri in self._rooms:
            self._enter(uri)

    def consider(self, summary: Json, now: float) -> None:
        """Take note of a session, and watch it if it is active or named, and wanted."""
        uri = text(summary, "resource")
        if not uri or "/subagent/" in uri:  # older hosts tell of these as of sessions
            return
        known = {**self._summaries.get(uri, {}), **summary}
        self._summaries[uri] = known
        self._summaries.move_to_end(uri)
        if len(self._summaries) > SUMMARIES_MAX:
            self._summaries.popitem(last=False)
        if uri in self._rooms:
            self._rooms[uri].touched_at = now
            return
        name = name_of(uri)
        changed = seconds_of(known.get("modifiedAt"))
        is_active = (changed is not None and now - changed <= ACTIVE_SECONDS) or (number(known, "status") or 0) & _RUNS
        if not is_active and not self._is_named(uri):
            return
        wanted = self.wants(name, str(known.get("modifiedAt") or ""))
        if wanted == "nothing" or len(self._rooms) >= SESSIONS_MAX:
            return
        session = Session(uri, dict(known), self.hooks, self._kept(name), wanted == "live", now)
        self._rooms[uri] = _Subscription(session, touched_at=now)
        self._enter(uri)

    def act(self, uri: str, action: Json, seq: int, now: float) -> None:
        """Take an action about a session or a conversation; about anything else it is passed over."""
        if text(action, "type").startswith("chat/"):
            room, chat = self._chats.get(uri, (None, None))
            if room is None or chat is None:
                return
            self._touch(room, now)
            if room.session.act(chat, action, seq, now) is Applied.LOST:
                self._look_into(uri)
            self._follow_up(room, chat, turns_in(action), now)
        elif uri in self._rooms:
            room = self._rooms[uri]
            self._touch(room, now)
            added = room.session.act_on_session(action, seq, now)
            if added:
                self._chats[added] = room, room.session.chats[added]
                self._look_into(added)

    def missing(self, uri: str, now: float) -> None:
        """The host has no such thing any more; what is running in it will not be told to its end."""
        if uri in self._chats and uri not in self._rooms:
            room, chat = self._chats.pop(uri)
            room.session.told(chat, chat.lost("the host has no such conversation any more", now), now)
            self._touch(room, now)
        if uri in self._rooms:
            self._leave(uri, now, "the host has no such session any more")

    def removed(self, uri: str, now: float) -> None:
        """The session was disposed of."""
        self._summaries.pop(uri, None)
        if uri in self._rooms:
            session = self._rooms[uri].session
            session.removed(now)
            if not session.is_live_only:
                self.gone.append(session.name)
            self._leave(uri, now)

    def tick(self, now: float) -> None:
        """Give up on pages that do not come, and let go of sessions that rest."""
        for uri, (room, chat) in self._chats.items():
            if self._fetching.is_late(uri, now):
                room.session.told(chat, chat.broke("the host does not give older turns", now), now)
                self._touch(room, now)
        for uri, (tries, due) in self._retries.items():
            if now >= due and uri in self._rooms:
                self._retries[uri] = tries, now + RETRY_SECONDS_MAX
                self._enter(uri)
        for uri, room in list(self._rooms.items()):
            chats = room.session.chats.values()
            rests = now - room.touched_at > ACTIVE_SECONDS and not any(chat.mirror.active for chat in chats)
            if rests and not self._is_named(uri):
                for each in {uri, *room.session.chats}:
                    self._fetching.leave(each)
                self._leave(uri, now)

    def take(self, now: float) -> list[tuple[str, list[Line]]]:
        """Return the events so far, by session."""
        taken, self._leaving = self._leaving, []
        for uri, room in list(self._touched.items()):
            lines = room.session.take(now)
            if lines:
                taken.append((room.session.name, lines))
            if room.session.is_settled:
                del self._touched[uri]
        return taken

    def written(self) -> list[tuple[str, bytes]]:
        """Return what is to be written down of sessions that were told more of, after their events were stored."""
        dirty = [
            room.session for uri, room in self._rooms.items() if room.session.is_dirty and uri not in self._touched
        ]
        left, self._left = self._left, []
        return left + [(session.id, session.written()) for session in dirty]

    def _is_named(self, uri: str) -> bool:
        return uri in self.named or name_of(uri) in self.named

    def _kept(self, name: str) -> SavedSession:
        written = self.load(name)
        try:
            return msgspec.json.decode(written, type=SavedSession) if written else SavedSession()
        except REFUSALS:
            return SavedSession()

    def _touch(self, room: _Subscription, now: float) -> None:
        room.touched_at = now
        self._touched[room.session.uri] = room

    def _told(self, session: Session, now: float) -> None:
        if session.uri in self._rooms:
            self._touch(self._rooms[session.uri], now)

    def _leave(self, uri: str, now: float, lost: str = "") -> None:
        room = self._rooms.pop(uri)
        self._retries.pop(uri, None)
        for each, chat in room.session.chats.items():
            self._chats.pop(each, None)
            if lost:
                room.session.told(chat, chat.lost(lost, now), now)
        self._touched.pop(uri, None)
        room.session.settle("")
        self._leaving.append((room.session.name, room.session.take(now)))
        self._left.append((room.session.id, room.session.written()))

    def _enter(self, uri: str) -> None:
        def refused(failure: ErrorResponse, now: float) -> None:
            self.problems[name_of(uri)] = errors.explain(failure.code)
            while len(self.problems) > SESSIONS_MAX:
                self.problems.pop(next(iter(self.problems)))
            tries = self._retries.get(uri, (0, 0.0))[0] + 1
            if uri not in self._rooms:
                return
            if failure.code in (errors.SESSION_NOT_FOUND, errors.NOT_FOUND) and tries > RETRIES_MAX:
                self._leave(uri, now, "the host has no such session any more")
            else:  # a host that was just started does not know its sessions yet, or waits for its owner's sign-in
                self._retries[uri] = tries, now + min(RETRY_SECONDS_MAX, 2.0 ** min(tries, 16))

        def known(result: Any, now: float) -> None:
            snapshot = mapping(result if isinstance(result, dict) else {}, "snapshot")
            if uri in self._rooms:
                self.problems.pop(name_of(uri), None)
                self._retries.pop(uri, None)
                self._entered(self._rooms[uri], mapping(snapshot, "state"), number(snapshot, "fromSeq") or 0, now)

        self._fetching.subscribe(uri, known, refused)

    def _entered(self, room: _Subscription, state: Json, seq: int, now: float) -> None:
        session = room.session
        self.on_snapshot(seq)
        self._touch(room, now)
        if not self._fetching.dialect.has_chats:
            session.add_chat({"resource": session.uri}, now)
            session.default_chat = session.uri
        for uri in session.replace(state, seq, now):
            self._chats[uri] = room, session.chats[uri]
            if uri != session.uri:
                self._look_into(uri)
        if session.uri in session.chats:
            self._seen(room, session.chats[session.uri], state, seq, now)

    def _look_into(self, uri: str) -> None:
        def known(result: Any, now: float) -> None:
            snapshot = mapping(result if isinstance(result, dict) else {}, "snapshot")
            if uri in self._chats:
                room, chat = self._chats[uri]
                self._seen(room, chat, mapping(snapshot, "state"), number(snapshot, "fromSeq") or 0, now)

        def refused(failure: ErrorResponse, now: float) -> None:
            if uri in self._chats and failure.code in (errors.SESSION_NOT_FOUND, errors.NOT_FOUND):
                self.missing(uri, now)
            elif uri in self._chats and not failure.code:
                self._look_into(uri)

        self._fetching.subscribe(uri, known, refused)

    def _seen(self, room: _Subscription, chat: Chat, state: Json, seq: int, now: float) -> None:
        self.on_snapshot(seq)
        room.session.chat_replaced(chat, state, seq, now, has_cursors=self._fetching.dialect.has_cursors)
        self._touch(room, now)
        self._follow_up(room, chat, [*objects(state, "turns"), mapping(state, "activeTurn")], now)

    def _follow_up(self, room: _Subscription, chat: Chat, turns: list[Json], now: float) -> None:
        """Ask for what turns refer to, and for the turns before them."""
        self._fetching.page(room.session, chat, now)
        if turns:
            self._fetching.refer(room.session, room.resources, turns)
        if turns and not self._fetching.dialect.has_chats:
            for summary in room.session.children_in(chat, turns):
                uri = room.session.add_chat(summary, now)
                if uri:
                    self._chats[uri] = room, room.session.chats[uri]
                    self._look_into(uri)
