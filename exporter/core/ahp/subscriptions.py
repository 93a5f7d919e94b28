"""The subscriptions to sessions of a host, and every request about one of them.

A subscription may wake a session, so only sessions that were active recently or are named by the user are subscribed
to, and idle ones are unsubscribed from. A state only refers to older turns and to large content: these are requested
as well. Requests go into `pending`, which the observer sends.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import msgspec

from exporter.core.ahp import requests
from exporter.core.ahp.chat import Chat
from exporter.core.ahp.chat_state import Applied
from exporter.core.ahp.dialect import CLASSIC, Dialect
from exporter.core.ahp.drafts import Draft, id_of, moment, seconds_of
from exporter.core.ahp.messages import NOT_FOUND, SESSION_NOT_FOUND, ErrorResponse, explain
from exporter.core.ahp.session import QUIET_SECONDS, Hooks, Line, SavedSession, Session, name_of
from exporter.core.ahp.values import Json, mapping, number, objects, text
from exporter.core.events.envelope import REFUSALS

SESSIONS_MAX: Final = 1000
PENDING_MAX: Final = 20_000
SUMMARIES_MAX: Final = 10_000
ACTIVE_SECONDS: Final = 3600.0
RETRIES_MAX: Final = 4
RETRY_SECONDS_MAX: Final = 60.0
PAGE_SECONDS: Final = 30.0
CONTENT_BYTES_MAX: Final = 256 << 10
REFERENCES_MAX: Final = 256
_RUNS: Final = 8
_SESSION_GONE: Final = "the host has no such session any more"


def ignore(answer: Any, now: float) -> None:
    """Ignore a response."""


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A message to the host and the callbacks for its response, if it gets one."""

    message: Json
    on_result: Callable[[Json, float], None]
    on_error: Callable[[ErrorResponse, float], None]


@dataclass(slots=True)
class Subscriptions:
    """The subscribed sessions.

    `wants` says which events of a session are wanted (nothing, live or all), `load` returns its stored state.
    """

    hooks: Hooks
    wants: Callable[[str, str], str] = lambda session, changed: "all"
    load: Callable[[str], bytes | None] = lambda session: None
    named: frozenset[str] = frozenset()
    gone: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    on_snapshot: Callable[[int], None] = lambda seq: None
    dialect: Dialect = CLASSIC
    pending: deque[PendingRequest] = field(default_factory=deque)
    _by_uri: dict[str, Session] = field(default_factory=dict)
    _chats: dict[str, tuple[Session, Chat]] = field(default_factory=dict)
    _summaries: OrderedDict[str, Json] = field(default_factory=OrderedDict)
    _changed: dict[str, Session] = field(default_factory=dict)
    _final_lines: list[tuple[str, list[Line]]] = field(default_factory=list)
    _unsaved: list[tuple[str, bytes]] = field(default_factory=list)
    _subscribing: dict[str, Callable[[], None] | None] = field(
        default_factory=dict
    )  # and what is asked after the answer

    @property
    def sessions(self) -> list[Session]:
        """Return the subscribed sessions."""
        return list(self._by_uri.values())

    def addresses(self) -> list[str]:
        """Return every subscribed address."""
        return [*self._by_uri, *(uri for uri in self._chats if uri not in self._by_uri)]

    def request(
        self,
        message: Json,
        on_result: Callable[[Json, float], None] = ignore,
        on_error: Callable[[ErrorResponse, float], None] = ignore,
    ) -> bool:
        """Add a message to the pending ones, unless there are too many; return whether there was room."""
        has_room = len(self.pending) < PENDING_MAX
        if has_room:
            self.pending.append(PendingRequest(message, on_result, on_error))
        return has_room

    def disconnected(self) -> None:
        """Drop all requests, and ignore actions until the state has been requested again."""
        self.pending.clear()
        self._subscribing.clear()
        for session in self._by_uri.values():
            session.retries, session.retry_at = 0, None
            session.waiting.clear()
        for _, chat in self._chats.values():
            chat.is_known, chat.page_requested_at = False, None

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
        self._by_uri[uri] = Session(uri, dict(known), self.hooks, self._load_saved(name), wanted == "live", now, now)
        self._subscribe_session(uri)

    def apply(self, uri: str, action: Json, seq: int, now: float) -> None:
        """Apply an action to a session or a conversation; ignore any other."""
        if text(action, "type").startswith("chat/"):
            if uri in self._chats:
                session, chat = self._chats[uri]
                self._mark_active(session, now)
                session.quiet_seconds = QUIET_SECONDS
                if session.apply(chat, action, seq, now) is Applied.LOST:
                    self._subscribe_chat(uri)
                self._fetch_referenced(session, chat, _turns_in(action), now)
        elif uri in self._by_uri:
            session = self._by_uri[uri]
            self._mark_active(session, now)
            self._add_chat(session, session.apply_to_session(action, seq, now))

    def mark_missing(self, uri: str, now: float) -> None:
        """The host no longer has this session or conversation."""
        if uri in self._by_uri:
            self._unsubscribe(uri, now, _SESSION_GONE)
        elif uri in self._chats:
            session, chat = self._chats.pop(uri)
            session.add_drafts(chat, chat.mark_lost("the host has no such conversation any more", now), now)
            session.forget(chat)
            self._mark_active(session, now)

    def mark_removed(self, uri: str, now: float) -> None:
        """The host disposed of the session."""
        self._summaries.pop(uri, None)
        if uri in self._by_uri:
            session = self._by_uri[uri]
            session.mark_removed(now)
            if not session.is_live_only:
                self.gone.append(session.name)
            self._unsubscribe(uri, now)

    def tick(self, now: float) -> None:
        """Time out page requests, ask again for what was refused or is quiet, and unsubscribe from idle sessions."""
        for session, chat in self._chats.values():
            if chat.page_requested_at is not None and now - chat.page_requested_at > PAGE_SECONDS:
                chat.page_requested_at = None
                session.add_drafts(chat, chat.abandon_history("the host does not give older turns", now), now)
                self._mark_active(session, now)
        for uri, session in list(self._by_uri.items()):
            if session.retry_at is not None and now >= session.retry_at:
                session.retry_at = now + RETRY_SECONDS_MAX
                self._subscribe_session(uri)
            if session.waiting and not self._is_asked(session):
                self._release_one(session)
            is_running = any(chat.chat_state.active for chat in session.chats.values())
            if is_running and now - session.touched_at > session.quiet_seconds:
                session.quiet_seconds *= 2  # it may be a long command, or the end of the turn was not heard
                self._subscribe_session(uri)
            if now - session.touched_at > ACTIVE_SECONDS and not is_running and not self._is_named(uri):
                for each in {uri, *session.chats}:
                    self.request(requests.unsubscribe(self.dialect, each))
                self._unsubscribe(uri, now)

    def take(self, now: float) -> list[tuple[str, list[Line]]]:
        """Return the events so far, by session."""
        taken, self._final_lines = self._final_lines, []
        for uri, session in list(self._changed.items()):
            lines = session.take(now)
            if lines:
                taken.append((session.name, lines))
            if session.is_identified:
                del self._changed[uri]
        return taken

    @property
    def is_urgent(self) -> bool:
        """Return whether the state of a session must be stored without delay."""
        return any(session.is_urgent and uri not in self._changed for uri, session in self._by_uri.items())

    def save(self) -> list[tuple[str, bytes]]:
        """Return the state to store of changed sessions whose events are durable."""
        dirty = [one for uri, one in self._by_uri.items() if one.is_dirty and uri not in self._changed]
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

    def _mark_active(self, session: Session, now: float) -> None:
        session.touched_at = now
        self._changed[session.uri] = session
        if session.waiting and self._is_read(session.default_chat):
            for uri in [uri for uri in session.chats if uri in session.waiting]:
                session.waiting.discard(uri)
                self._subscribe_chat(uri)

    def _mark_changed(self, session: Session, now: float) -> None:
        """A response changed a session, which may have been unsubscribed from since the request."""
        if session.uri in self._by_uri:
            self._mark_active(self._by_uri[session.uri], now)

    def _unsubscribe(self, uri: str, now: float, lost: str = "") -> None:
        session = self._by_uri.pop(uri)
        for each, chat in session.chats.items():
            self._chats.pop(each, None)
            if lost:
                session.add_drafts(chat, chat.mark_lost(lost, now), now)
        self._changed.pop(uri, None)
        session.identify("")
        self._final_lines.append((session.name, session.take(now)))
        self._unsaved.append((session.id, session.save()))

    def _subscribe(
        self,
        uri: str,
        on_result: Callable[[Json, float], None],
        on_error: Callable[[ErrorResponse, float], None],
    ) -> None:
        """Request the state of an address. While one request is unanswered, another one waits for its answer.

        VS Code's host says "not found" to the first of two requests that it has at the same time.
        """
        if uri in self._subscribing:
            self._subscribing[uri] = partial(self._subscribe, uri, on_result, on_error)
            return

        def answered(answer: Any, now: float, process: Callable[[Any, float], None]) -> None:
            again = self._subscribing.pop(uri, None)
            process(answer, now)
            if again is not None:
                again()

        message = requests.subscribe(self.dialect, uri)
        if self.request(message, partial(answered, process=on_result), partial(answered, process=on_error)):
            self._subscribing[uri] = None

    # ---- the state of a session -----------------------------------------------------------------------------

    def _subscribe_session(self, uri: str) -> None:
        self._subscribe(uri, partial(self._on_session_snapshot, uri), partial(self._on_session_refused, uri))

    def _on_session_refused(self, uri: str, failure: ErrorResponse, now: float) -> None:
        self.problems[name_of(uri)] = explain(failure.code)
        while len(self.problems) > SESSIONS_MAX:
            self.problems.pop(next(iter(self.problems)))
        session = self._by_uri.get(uri)
        if session is None:
            return
        session.retries += 1
        if failure.code in (SESSION_NOT_FOUND, NOT_FOUND) and session.retries > RETRIES_MAX:
            self._unsubscribe(uri, now, _SESSION_GONE)
        else:  # a host that was just started does not know its sessions yet, or waits for its owner's sign-in
            session.retry_at = now + min(RETRY_SECONDS_MAX, 2.0 ** min(session.retries, 16))

    def _on_session_snapshot(self, uri: str, result: Json, now: float) -> None:
        if uri not in self._by_uri:
            return
        self.problems.pop(name_of(uri), None)
        session, (state, seq) = self._by_uri[uri], _snapshot(result)
        session.retries, session.retry_at = 0, None
        self.on_snapshot(seq)
        self._mark_active(session, now)
        if not self.dialect.has_chats:
            session.add_chat({"resource": uri}, now)
            session.default_chat = uri
        for chat in session.replace(state, now):
            self._chats[chat] = session, session.chats[chat]
            if chat != uri:
                self._subscribe_chat(chat)
        if uri in session.chats:
            self._replace_chat(session, session.chats[uri], state, seq, now)

    # ---- the state of a conversation ------------------------------------------------------------------------

    def _add_chat(self, session: Session, uri: str | None) -> None:
        if uri:
            self._chats[uri] = session, session.chats[uri]
            self._subscribe_chat(uri)

    def _is_read(self, uri: str | None) -> bool:
        """Tell whether a conversation is read, or cannot be."""
        _, chat = self._chats.get(uri or "", (None, None))
        return chat is None or (chat.is_known and chat.history is None)

    def _is_told(self, session: Session, chat: Chat) -> bool:
        """Tell whether all that may say what a sub-agent is has been read.

        That is the conversation in which it was called. Hosts name the session's own for those that are nested, so one
        whose call was not seen waits for every other sub-agent that it did not start itself.
        """
        if not (self._is_read(session.default_chat) and self._is_read(chat.owner.parent)):
            return False
        if chat.owner.is_called:
            return True
        others = [one for one in session.chats.values() if one.owner.is_called and not self._is_below(one, chat)]
        return all(self._is_read(one.owner.chat) for one in others)

    def _is_below(self, chat: Chat, above: Chat) -> bool:
        seen = set[str]()
        while chat is not above and (parent := chat.owner.parent) in self._chats and parent not in seen:
            seen.add(parent)
            chat = self._chats[parent][1]
        return chat is above

    def _is_asked(self, session: Session) -> bool:
        """Tell whether an answer about one of its conversations is to come."""
        if any(chat.page_requested_at is not None for chat in session.chats.values()):
            return True
        below = f"{session.uri}/subagent/"
        own = (uri == session.uri or uri in session.chats or uri.startswith(below) for uri in self._subscribing)
        return any(own) or any(chat.address in self._subscribing for chat in session.chats.values())

    def _release_one(self, session: Session) -> None:
        """Request one of those that wait for what the host does not give, or for each other."""
        uri = min(session.waiting)
        session.waiting.discard(uri)
        if uri in self._chats:
            self._request_chat(uri)

    def _subscribe_chat(self, uri: str) -> None:
        """Request the state of a conversation; those of sub-agents after the ones that say what they are."""
        if uri in self._chats:
            session, chat = self._chats[uri]
            if chat.owner.agent is not None and not self._is_told(session, chat):
                session.waiting.add(chat.owner.chat)
                return
        self._request_chat(uri)

    def _request_chat(self, uri: str) -> None:
        self._subscribe(uri, partial(self._on_chat_snapshot, uri), partial(self._on_chat_refused, uri))

    def _on_chat_refused(self, uri: str, failure: ErrorResponse, now: float) -> None:
        if uri not in self._chats:
            return
        session, chat = self._chats[uri]
        if not failure.code:
            self._subscribe_chat(uri)
        elif chat.owner.agent is not None and self.dialect.has_chats and uri == chat.owner.chat:
            # A restarted host has a nested sub-agent only as a session of its own, which names its conversation.
            place = f"{session.uri}/subagent/{chat.owner.call}"
            self._subscribe(place, partial(self._on_child_found, uri), partial(self._on_child_refused, uri))
        elif failure.code in (SESSION_NOT_FOUND, NOT_FOUND):
            self.mark_missing(uri, now)

    def _on_child_found(self, uri: str, result: Json, now: float) -> None:
        if uri in self._chats:
            session, chat = self._chats[uri]
            chat.address = text(_snapshot(result)[0], "defaultChat") or uri
            if chat.address == uri:
                self.mark_missing(uri, now)
                return
            self._chats[chat.address] = session, chat
            self._subscribe_chat(chat.address)

    def _on_child_refused(self, uri: str, failure: ErrorResponse, now: float) -> None:
        if uri in self._chats:
            self.mark_missing(uri, now)

    def _on_chat_snapshot(self, uri: str, result: Json, now: float) -> None:
        if uri in self._chats:
            self._replace_chat(*self._chats[uri], *_snapshot(result), now)

    def _replace_chat(self, session: Session, chat: Chat, state: Json, seq: int, now: float) -> None:
        self.on_snapshot(seq)
        session.replace_chat(chat, state, seq, now, has_cursors=self.dialect.has_cursors)
        self._mark_active(session, now)
        self._fetch_referenced(session, chat, [*objects(state, "turns"), mapping(state, "activeTurn")], now)

    # ---- what a state refers to -----------------------------------------------------------------------------

    def _fetch_referenced(self, session: Session, chat: Chat, turns: list[Json], now: float) -> None:
        """Request the turns before the ones held, the content that `turns` refer to, and their sub-agents."""
        self._fetch_page(session, chat, now)
        if not session.is_live_only:
            for uri in _new_references(session.references, turns):
                self._fetch_content(session, uri)
        for summary in session.children_in(chat, turns):
            self._add_chat(session, session.add_chat(summary, now))

    def _fetch_page(self, session: Session, chat: Chat, now: float) -> None:
        """Request the next page of a conversation's history, if one is needed."""
        if chat.history is None:
            chat.page_requested_at = None
        if not chat.wants_page or chat.history is None:
            return
        chat.wants_page, chat.page_requested_at = False, now

        def on_result(result: Json, at: float) -> None:
            if chat.is_known:
                session.add_drafts(chat, chat.add_page(result, at), at)
                self._mark_changed(session, at)
                self._fetch_page(session, chat, at)

        def on_error(failure: ErrorResponse, at: float) -> None:
            if chat.is_known:
                reason = "the host does not give older turns: " + explain(failure.code)
                session.add_drafts(chat, chat.abandon_history(reason, at), at)
                self._mark_changed(session, at)

        self.request(requests.fetch_turns(self.dialect, chat.address, chat.history.position), on_result, on_error)

    def _fetch_content(self, session: Session, uri: str) -> None:
        """Request the content of an address that a state referred to; no other may be read."""

        def tell(data: Json, at: float) -> None:
            session.emit([Draft(id_of("resource", uri), "exporter.content", moment(at), data)])
            self._mark_changed(session, at)

        def on_result(result: Json, at: float) -> None:
            content = text(result, "data")
            data: Json = {
                "uri": uri,
                "contentType": text(result, "contentType") or session.references[uri],
                "encoding": text(result, "encoding"),
                "isTruncated": len(content) > CONTENT_BYTES_MAX,
                "data": content if len(content) <= CONTENT_BYTES_MAX else "",
            }
            tell(data, at)

        def on_error(failure: ErrorResponse, at: float) -> None:
            tell({"uri": uri, "error": explain(failure.code)}, at)

        self.request(requests.read_resource(self.dialect, session.uri, uri), on_result, on_error)


def _snapshot(result: Json) -> tuple[Json, int]:
    snapshot = mapping(result, "snapshot")
    return mapping(snapshot, "state"), number(snapshot, "fromSeq") or 0


def _turns_in(action: Json) -> list[Json]:
    """Return the parts of an action that may hold references, as turns."""
    kind = text(action, "type")
    if kind == "chat/turnsLoaded":
        return objects(action, "turns")
    if kind == "chat/responsePart":
        return [{"responseParts": [mapping(action, "part")]}]
    if kind in ("chat/toolCallContentChanged", "chat/toolCallComplete"):
        call = {**(mapping(action, "result") or action), "toolCallId": action.get("toolCallId")}
        return [{"responseParts": [{"kind": "toolCall", "toolCall": call}]}]
    return []


def _new_references(known: dict[str, str], turns: list[Json]) -> list[str]:
    """Return the references in turns that are new and not too large; `known` gets their content types."""
    found = []
    for part in [part for turn in turns for part in objects(turn, "responseParts")]:
        found += [part] if part.get("kind") == "contentRef" else []
        found += [each for each in objects(mapping(part, "toolCall"), "content") if each.get("type") == "resource"]
    new = []
    for reference in found:
        uri, size = text(reference, "uri"), number(reference, "sizeHint") or 0
        # A file: address could name any file of this machine.
        is_new = uri and uri not in known and len(known) < REFERENCES_MAX
        if is_new and not uri.lower().startswith("file:") and size <= CONTENT_BYTES_MAX:
            known[uri] = text(reference, "contentType")
            new.append(uri)
    return new
