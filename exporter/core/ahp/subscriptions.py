"""The subscriptions to sessions of a host, and the requests about each of them.

A subscription may wake a session, so only sessions that were active recently or are named by the user are subscribed
to, and idle ones are unsubscribed from. Requests go into `pending`, which the observer sends.
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
from exporter.core.ahp.fetching import Fetcher, PendingRequest, Resources, turns_in
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
    """The subscribed sessions. `wants` says which events of a session are wanted, `load` returns its stored state."""

    hooks: Hooks
    wants: Callable[[str, str], Wanted] = lambda session, changed: "all"
    load: Callable[[str], bytes | None] = lambda session: None
    named: frozenset[str] = frozenset()
    gone: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    on_snapshot: Callable[[int], None] = lambda seq: None
    reads_resources: bool = True
    _fetcher: Fetcher = field(init=False)
    _by_uri: dict[str, _Subscription] = field(default_factory=dict)
    _chats: dict[str, tuple[_Subscription, Chat]] = field(default_factory=dict)
    _summaries: OrderedDict[str, Json] = field(default_factory=OrderedDict)
    _retries: dict[str, tuple[int, float]] = field(default_factory=dict)
    _changed: dict[str, _Subscription] = field(default_factory=dict)
    _final_lines: list[tuple[str, list[Line]]] = field(default_factory=list)
    _unsaved: list[tuple[str, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._fetcher = Fetcher(self._on_answer, reads_resources=self.reads_resources)

    @property
    def pending(self) -> list[PendingRequest]:
        """Return the requests to send; the caller removes them."""
        return self._fetcher.pending

    def set_dialect(self, dialect: Dialect) -> None:
        """Set the dialect of the host."""
        self._fetcher.dialect = dialect

    @property
    def sessions(self) -> list[Session]:
        """Return the subscribed sessions."""
        return [subscription.session for subscription in self._by_uri.values()]

    def addresses(self) -> list[str]:
        """Return every subscribed address."""
        return [*self._by_uri, *(uri for uri in self._chats if uri not in self._by_uri)]

    def disconnected(self) -> None:
        """Ignore actions until the state has been requested again."""
        self._fetcher.stop()
        self._retries.clear()
        for _, chat in self._chats.values():
            chat.is_known = False

    def resubscribe_all(self) -> None:
        """Request the state of every session again."""
        for uri in self._by_uri:
            self._subscribe_session(uri)

    def consider(self, summary: Json, now: float) -> None:
        """Record a session summary; subscribe if the session is active or named, and wanted."""
        uri = text(summary, "resource")
        if not uri or "/subagent/" in uri:  # older hosts list these as sessions
            return
        known = {**self._summaries.get(uri, {}), **summary}
        self._summaries[uri] = known
        self._summaries.move_to_end(uri)
        if len(self._summaries) > SUMMARIES_MAX:
            self._summaries.popitem(last=False)
        if uri in self._by_uri:
            self._by_uri[uri].touched_at = now
            return
        name = name_of(uri)
        changed = seconds_of(known.get("modifiedAt"))
        is_active = (changed is not None and now - changed <= ACTIVE_SECONDS) or (number(known, "status") or 0) & _RUNS
        if not is_active and not self._is_named(uri):
            return
        wanted = self.wants(name, str(known.get("modifiedAt") or ""))
        if wanted == "nothing" or len(self._by_uri) >= SESSIONS_MAX:
            return
        session = Session(uri, dict(known), self.hooks, self._load_saved(name), wanted == "live", now)
        self._by_uri[uri] = _Subscription(session, touched_at=now)
        self._subscribe_session(uri)

    def apply(self, uri: str, action: Json, seq: int, now: float) -> None:
        """Apply an action to a session or a conversation; ignore any other."""
        if text(action, "type").startswith("chat/"):
            subscription, chat = self._chats.get(uri, (None, None))
            if subscription is None or chat is None:
                return
            self._mark_active(subscription, now)
            if subscription.session.apply(chat, action, seq, now) is Applied.LOST:
                self._subscribe_chat(uri)
            self._fetch_referenced(subscription, chat, turns_in(action), now)
        elif uri in self._by_uri:
            subscription = self._by_uri[uri]
            self._mark_active(subscription, now)
            added = subscription.session.apply_to_session(action, seq, now)
            if added:
                self._chats[added] = subscription, subscription.session.chats[added]
                self._subscribe_chat(added)

    def mark_missing(self, uri: str, now: float) -> None:
        """The host no longer has this session or conversation."""
        if uri in self._chats and uri not in self._by_uri:
            subscription, chat = self._chats.pop(uri)
            subscription.session.add_drafts(
                chat, chat.mark_lost("the host has no such conversation any more", now), now
            )
            self._mark_active(subscription, now)
        if uri in self._by_uri:
            self._unsubscribe(uri, now, "the host has no such session any more")

    def mark_removed(self, uri: str, now: float) -> None:
        """The host disposed of the session."""
        self._summaries.pop(uri, None)
        if uri in self._by_uri:
            session = self._by_uri[uri].session
            session.mark_removed(now)
            if not session.is_live_only:
                self.gone.append(session.name)
            self._unsubscribe(uri, now)

    def tick(self, now: float) -> None:
        """Time out page requests, repeat refused subscriptions, and unsubscribe from idle sessions."""
        for uri, (subscription, chat) in self._chats.items():
            if self._fetcher.has_timed_out(uri, now):
                subscription.session.add_drafts(
                    chat, chat.abandon_history("the host does not give older turns", now), now
                )
                self._mark_active(subscription, now)
        for uri, (tries, due) in self._retries.items():
            if now >= due and uri in self._by_uri:
                self._retries[uri] = tries, now + RETRY_SECONDS_MAX
                self._subscribe_session(uri)
        for uri, subscription in list(self._by_uri.items()):
            chats = subscription.session.chats.values()
            rests = now - subscription.touched_at > ACTIVE_SECONDS and not any(chat.chat_state.active for chat in chats)
            if rests and not self._is_named(uri):
                for each in {uri, *subscription.session.chats}:
                    self._fetcher.unsubscribe(each)
                self._unsubscribe(uri, now)

    def take(self, now: float) -> list[tuple[str, list[Line]]]:
        """Return the events so far, by session."""
        taken, self._final_lines = self._final_lines, []
        for uri, subscription in list(self._changed.items()):
            lines = subscription.session.take(now)
            if lines:
                taken.append((subscription.session.name, lines))
            if subscription.session.is_identified:
                del self._changed[uri]
        return taken

    def save(self) -> list[tuple[str, bytes]]:
        """Return the state to store of changed sessions whose events are durable."""
        dirty = [
            subscription.session
            for uri, subscription in self._by_uri.items()
            if subscription.session.is_dirty and uri not in self._changed
        ]
        left, self._unsaved = self._unsaved, []
        return left + [(session.id, session.save()) for session in dirty]

    def _is_named(self, uri: str) -> bool:
        return uri in self.named or name_of(uri) in self.named

    def _load_saved(self, name: str) -> SavedSession:
        written = self.load(name)
        try:
            return msgspec.json.decode(written, type=SavedSession) if written else SavedSession()
        except REFUSALS:
            return SavedSession()

    def _mark_active(self, subscription: _Subscription, now: float) -> None:
        subscription.touched_at = now
        self._changed[subscription.session.uri] = subscription

    def _on_answer(self, session: Session, now: float) -> None:
        if session.uri in self._by_uri:
            self._mark_active(self._by_uri[session.uri], now)

    def _unsubscribe(self, uri: str, now: float, lost: str = "") -> None:
        subscription = self._by_uri.pop(uri)
        self._retries.pop(uri, None)
        for each, chat in subscription.session.chats.items():
            self._chats.pop(each, None)
            if lost:
                subscription.session.add_drafts(chat, chat.mark_lost(lost, now), now)
        self._changed.pop(uri, None)
        subscription.session.identify("")
        self._final_lines.append((subscription.session.name, subscription.session.take(now)))
        self._unsaved.append((subscription.session.id, subscription.session.save()))

    def _subscribe_session(self, uri: str) -> None:
        def refused(failure: ErrorResponse, now: float) -> None:
            self.problems[name_of(uri)] = errors.explain(failure.code)
            while len(self.problems) > SESSIONS_MAX:
                self.problems.pop(next(iter(self.problems)))
            tries = self._retries.get(uri, (0, 0.0))[0] + 1
            if uri not in self._by_uri:
                return
            if failure.code in (errors.SESSION_NOT_FOUND, errors.NOT_FOUND) and tries > RETRIES_MAX:
                self._unsubscribe(uri, now, "the host has no such session any more")
            else:  # a host that was just started does not know its sessions yet, or waits for its owner's sign-in
                self._retries[uri] = tries, now + min(RETRY_SECONDS_MAX, 2.0 ** min(tries, 16))

        def known(result: Any, now: float) -> None:
            snapshot = mapping(result if isinstance(result, dict) else {}, "snapshot")
            if uri in self._by_uri:
                self.problems.pop(name_of(uri), None)
                self._retries.pop(uri, None)
                self._session_snapshot(
                    self._by_uri[uri], mapping(snapshot, "state"), number(snapshot, "fromSeq") or 0, now
                )

        self._fetcher.subscribe(uri, known, refused)

    def _session_snapshot(self, subscription: _Subscription, state: Json, seq: int, now: float) -> None:
        session = subscription.session
        self.on_snapshot(seq)
        self._mark_active(subscription, now)
        if not self._fetcher.dialect.has_chats:
            session.add_chat({"resource": session.uri}, now)
            session.default_chat = session.uri
        for uri in session.replace(state, seq, now):
            self._chats[uri] = subscription, session.chats[uri]
            if uri != session.uri:
                self._subscribe_chat(uri)
        if session.uri in session.chats:
            self._chat_snapshot(subscription, session.chats[session.uri], state, seq, now)

    def _subscribe_chat(self, uri: str) -> None:
        def known(result: Any, now: float) -> None:
            snapshot = mapping(result if isinstance(result, dict) else {}, "snapshot")
            if uri in self._chats:
                subscription, chat = self._chats[uri]
                self._chat_snapshot(
                    subscription, chat, mapping(snapshot, "state"), number(snapshot, "fromSeq") or 0, now
                )

        def refused(failure: ErrorResponse, now: float) -> None:
            if uri in self._chats and failure.code in (errors.SESSION_NOT_FOUND, errors.NOT_FOUND):
                self.mark_missing(uri, now)
            elif uri in self._chats and not failure.code:
                self._subscribe_chat(uri)

        self._fetcher.subscribe(uri, known, refused)

    def _chat_snapshot(self, subscription: _Subscription, chat: Chat, state: Json, seq: int, now: float) -> None:
        self.on_snapshot(seq)
        subscription.session.replace_chat(chat, state, seq, now, has_cursors=self._fetcher.dialect.has_cursors)
        self._mark_active(subscription, now)
        self._fetch_referenced(subscription, chat, [*objects(state, "turns"), mapping(state, "activeTurn")], now)

    def _fetch_referenced(self, subscription: _Subscription, chat: Chat, turns: list[Json], now: float) -> None:
        """Request the content that turns refer to, and the turns before them."""
        self._fetcher.fetch_page(subscription.session, chat, now)
        if turns:
            self._fetcher.fetch_references(subscription.session, subscription.resources, turns)
        if turns and not self._fetcher.dialect.has_chats:
            for summary in subscription.session.children_in(chat, turns):
                uri = subscription.session.add_chat(summary, now)
                if uri:
                    self._chats[uri] = subscription, subscription.session.chats[uri]
                    self._subscribe_chat(uri)
