"""One session of a host: its conversations, the lines of its events, and whether another source delivers it."""

from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import msgspec

from exporter.core.ahp import drafts, ephemeral
from exporter.core.ahp.chat import GAP, Chat
from exporter.core.ahp.chat_state import COMPLETED, TEXT_ACTIONS, Applied
from exporter.core.ahp.checkpoint import Checkpoint, calls, digest_of
from exporter.core.ahp.drafts import Draft, id_of, moment, seconds_of
from exporter.core.ahp.turn import TurnOwner, about_child, announce
from exporter.core.ahp.values import Json, mapping, objects, strings, text
from exporter.core.names import SESSION_NAME

CHATS_MAX: Final = 512
HELD_MAX: Final = 2000
USAGES_MAX: Final = 512
HOLD_SECONDS: Final = 30.0
LOOK_SECONDS: Final = 1.0
QUIET_SECONDS: Final = 10.0
_URGENT: Final = ("assistant.turn_end", "session.snapshot_rewind", GAP)

Line: TypeAlias = tuple[bytes, bool]  # and whether it is ephemeral


class SavedSession(msgspec.Struct):
    """The state of a session on disk, from which the next process continues."""

    checkpoints: dict[str, Checkpoint] = msgspec.field(default_factory=dict, name="frontiers")
    announced: list[str] = []
    directory: str | None = None  # a digest: this file is not redacted


@dataclass(frozen=True, slots=True)
class Hooks:
    """What a session asks the journal."""

    known: Callable[[str, str], bool]
    mark: Callable[[str], str | None]
    is_elsewhere: Callable[[str], bool]  # whether another source has the durable events of this session of the CLI


@dataclass(slots=True)
class Session:
    """Processes snapshots and actions. `lines` has the resulting events of session `name` until `take`."""

    uri: str
    summary: Json
    hooks: Hooks
    saved: SavedSession
    is_live_only: bool
    since: float
    touched_at: float
    retries: int = 0
    retry_at: float | None = None  # when its state is requested again
    quiet_seconds: float = QUIET_SECONDS  # without an action in a turn, after which its state is requested again
    references: dict[str, str] = field(default_factory=dict)  # content types by the addresses that states refer to
    lines: list[Line] = field(default_factory=list)
    chats: dict[str, Chat] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)  # the conversations of sub-agents to subscribe to later
    default_chat: str = ""
    is_identified: bool = False
    alias: str = ""
    is_dirty: bool = False
    is_urgent: bool = False  # a checkpoint from before a turn's end or a gap would take another turn for this one
    _children: dict[str, Json] = field(default_factory=dict)
    _announced: set[str] = field(default_factory=set)
    _usages: OrderedDict[str, None] = field(default_factory=OrderedDict)
    _parent: str | None = None
    _text_batch: ephemeral.TextBatch | None = None
    _checked_at: float = 0.0

    def __post_init__(self) -> None:
        self._announced = set(self.saved.announced)
        self._parent = self.hooks.mark(self.id)
        if self.hooks.is_elsewhere(self.id):
            self.identify(self.id)
        self.is_identified = self.is_identified or self._parent is not None  # it was recorded under its own name before

    @property
    def id(self) -> str:
        """Return the name of the session on this host."""
        return name_of(self.uri)

    @property
    def name(self) -> str:
        """Return the session id of its events: that of the CLI's session if another source delivers it."""
        return self.alias or self.id

    def identify(self, cli_session: str) -> None:
        """Record which CLI session this is; with an empty id, its own name may be the CLI's."""
        if self.is_identified:
            return
        self.is_identified = True
        name = cli_session if SESSION_NAME.fullmatch(cli_session) else self.id
        if self.hooks.is_elsewhere(name):
            self.alias, self.is_live_only = name, True
            self.lines = [line for line in self.lines if line[1]]

    def replace(self, state: Json, now: float) -> list[str]:
        """Process the session's state and return the conversations to subscribe to, the default one first."""
        for key in ("provider", "title", "workingDirectories", "workingDirectory", "createdAt"):
            value = state.get(key) or mapping(state, "summary").get(key)
            if value:
                self.summary[key] = value
        self._start(now)
        if text(state, "lifecycle") in ("failed", "creation-failed", "creationFailed"):
            self._creation_failed(mapping(state, "creationError"), now)
        summaries = objects(state, "chats")
        self.default_chat = text(state, "defaultChat") or (
            text(summaries[0], "resource") if summaries else self.default_chat
        )
        for summary in [*summaries, *self._unfinished()]:
            self.add_chat(summary, now)
        return sorted(self.chats, key=lambda uri: uri != self.default_chat)

    def _unfinished(self) -> list[Json]:
        """Return the sub-agents that ran when the last process ended; a restarted host may name them nowhere."""
        found = []
        for uri, checkpoint in self.saved.checkpoints.items():
            if (checkpoint.open.begun or checkpoint.is_agent_open) and "/subagent/" in uri:
                origin = {"kind": "tool", "chat": self.default_chat, "toolCallId": uri.rpartition("/")[2]}
                found.append({"resource": uri, "origin": origin})
        return found

    def add_chat(self, summary: Json, now: float) -> str | None:
        """Add a conversation; return its address if it is new."""
        uri, origin = text(summary, "resource"), mapping(summary, "origin")
        if not uri or uri in self.chats or len(self.chats) >= CHATS_MAX:
            return None
        owner = TurnOwner(uri, session=self.id, children=self._children, announced=self._announced)
        if origin.get("kind") == "tool" and uri != self.default_chat:
            parent = text(origin, "chat")
            owner.agent, owner.call, owner.title = uri, text(origin, "toolCallId"), text(summary, "title")
            owner.parent = parent if parent and parent != self.default_chat else None
            if owner.title:  # it is certain that there is such a sub-agent
                self._children.setdefault(owner.call, {}).update(resource=uri, title=owner.title)
        self.chats[uri] = Chat(owner, self.saved.checkpoints.setdefault(uri, Checkpoint()))
        if owner.agent is not None:
            self.emit(self._parent_drafts(owner, now))
        return uri

    def children_in(self, chat: Chat, turns: list[Json]) -> list[Json]:
        """Return the new conversations of sub-agents that tool calls name.

        Older hosts name them only there, and a restarted host names those of nested sub-agents only there, by another
        address than before. So the address is made from the session and the tool call.
        """
        found: dict[str, Json] = {}
        for call in [call for turn in turns for call in calls(turn)]:
            identity = text(call, "toolCallId")
            origin = {"kind": "tool", "chat": chat.owner.chat, "toolCallId": identity}
            named = [each for each in objects(call, "content") if each.get("type") == "subagent"]
            if not named and self.default_chat == self.uri and about_child(call) and text(call, "status") == COMPLETED:
                named = [
                    {"resource": f"{self.uri}/subagent/{identity}"}
                ]  # classic hosts may name it too early to be seen
            for content in named:
                uri = text(content, "resource")
                if uri.startswith(f"{self.uri}/subagent/"):
                    uri = self.address_of(identity)
                elif not uri.startswith("ahp-chat:"):
                    continue
                if uri not in self.chats:
                    found[uri] = {"resource": uri, "title": text(content, "title"), "origin": origin}
        return list(found.values())

    def address_of(self, call: str) -> str:
        """Return the address that VS Code's hosts give to the conversation of a sub-agent when it begins."""
        if self.default_chat in ("", self.uri):
            return f"{self.uri}/subagent/{call}"
        return f"ahp-chat://subagent/{urlsafe_b64encode(self.uri.encode()).decode().rstrip('=')}/{call}"

    def forget(self, chat: Chat) -> None:
        """A conversation is not there. If nothing was told of it, it may still come to be."""
        if chat.owner.agent is not None and chat.checkpoint.ordinal == 0 and chat.owner.call not in self._announced:
            self.chats.pop(chat.owner.chat, None)

    def learn(self, chat: Chat, turns: list[Json]) -> None:
        """Record what the tool calls of a conversation say of the sub-agents that they start."""
        for call in [call for turn in turns for call in calls(turn)]:
            about = about_child(call)
            if about:
                about["chat"] = chat.owner.chat
                self._children.setdefault(text(call, "toolCallId"), {}).update(about)

    def _parent_drafts(self, owner: TurnOwner, now: float) -> list[Draft]:
        holder = text(owner.started_by, "chat")
        if holder:  # the host may name the session's own conversation instead
            owner.parent = holder if holder != self.default_chat else None
        parent = self.chats.get(owner.parent or self.default_chat)
        return parent.write_turns(now) if parent is not None else []

    def replace_chat(self, chat: Chat, state: Json, seq: int, now: float, *, has_cursors: bool) -> None:
        """Process the state of a conversation."""
        turns = [*objects(state, "turns"), mapping(state, "activeTurn")]
        for turn in turns:
            self._find_cli_session(turn)
        self.learn(chat, turns)
        if chat.owner.agent is not None:
            self.emit(self._parent_drafts(chat.owner, now))
        self.add_drafts(chat, chat.replace(state, seq, now, has_cursors=has_cursors), now)

    def add_drafts(self, chat: Chat, new: list[Draft], now: float) -> None:
        """Emit the events of a conversation; its agent's `subagent.started` comes first."""
        owner = chat.owner
        if new and owner.agent is not None and owner.call not in self._announced:
            self.emit(self._parent_drafts(owner, now))
            if owner.call not in self._announced:
                self._announced.add(owner.call)
                parent = self.chats.get(owner.parent or "")
                parent_owner = parent.owner if parent else TurnOwner("", session=self.id, children=self._children)
                child = {"resource": owner.chat, **owner.started_by}
                self.emit([announce(parent_owner, owner.call, child, {}, new[0].at)])
        self.emit(new)
        if any(draft.type == "assistant.turn_end" for draft in new):
            self.identify("")
        for other in list(self.chats.values()) if new and self._children else ():
            if text(other.owner.started_by, "chat") == owner.chat:
                self._conclude(other, now)
        if owner.agent is not None:
            self._conclude(chat, now)

    def _conclude(self, child: Chat, now: float) -> None:
        holder = self.chats.get(text(child.owner.started_by, "chat"))
        if child.is_known and holder is not None and holder.is_known:
            ended = child.conclude(now, has_holder_ended=holder.chat_state.active is None)
            if ended:
                self.add_drafts(child, ended, now)

    def apply(self, chat: Chat, action: Json, seq: int, now: float) -> Applied:
        """Apply an action to a conversation."""
        if not chat.is_known or seq <= chat.last_seq:
            return Applied.NOTHING
        chat.last_seq = seq
        kind = text(action, "type")
        applied, new = chat.apply(action, now)
        if kind in ("chat/toolCallReady", "chat/toolCallContentChanged", "chat/toolCallComplete"):
            self.learn(chat, [chat.chat_state.active or {}])
        elif kind == "chat/turnsLoaded":
            self.learn(chat, objects(action, "turns"))
        if new:
            self.add_drafts(chat, new, now)
        if kind == "chat/usage":
            self._find_cli_session(action)
            call = ephemeral.model_call(action)
            key = text(call, "eventId") or text(call, "apiCallId")
            is_childs = chat.owner.agent is None and text(call, "agentId") and len(self.chats) > 1
            if is_childs or key in self._usages:  # hosts send a report several times, and on parent and child
                return applied
            if key:
                self._usages[key] = None
                if len(self._usages) > USAGES_MAX:
                    self._usages.popitem(last=False)
        if chat.history is not None:
            return applied
        if kind in TEXT_ACTIONS:
            if applied is Applied.TEXT:
                self._add_text(chat, action, seq, now)
        else:
            self.emit(ephemeral.of_chat(chat, action, applied, seq, now))
        return applied

    def _add_text(self, chat: Chat, action: Json, seq: int, now: float) -> None:
        """Add a piece to the open text; pieces that arrive before the next `take` become one event."""
        if self._text_batch is None or not self._text_batch.add(chat, action):
            self.emit([])
            self._text_batch = ephemeral.TextBatch(chat, action, seq, now)

    def apply_to_session(self, action: Json, seq: int, now: float) -> str | None:
        """Apply an action to the session itself; return the address of a new conversation."""
        kind = text(action, "type")
        added = None
        if kind == "session/chatAdded":
            added = self.add_chat(mapping(action, "summary") or mapping(action, "chat"), now)
        elif kind == "session/creationFailed":
            self._creation_failed(mapping(action, "error"), now)
        elif kind.startswith("session/workingDirector"):
            self.summary.update(
                {key: action[key] for key in ("workingDirectories", "workingDirectory") if key in action}
            )
            self._start(now)
        self.emit(ephemeral.of_session(self.uri, action, self.default_chat or self.uri, seq, now))
        return added

    def _creation_failed(self, error: Json, now: float) -> None:
        self.identify("")  # no session of the CLI comes of it
        data = {"errorType": text(error, "errorType") or "creation", "message": text(error, "message")}
        self.emit([Draft(id_of(self.uri, "creation", data), "session.error", moment(now), data)])

    def mark_removed(self, now: float) -> None:
        """The host disposed of the session."""
        data = {"shutdownType": "disposed"}
        self.emit([Draft(id_of(self.uri, "removed"), "session.shutdown", moment(now), data)])
        self.identify("")

    def _find_cli_session(self, holder: Json) -> None:
        if mapping(holder, "usage"):  # where hosts name the CLI's session
            self.identify(text(ephemeral.model_call(holder), "sdkSessionId"))

    def _start(self, now: float) -> None:
        directories = strings(self.summary, "workingDirectories") or [text(self.summary, "workingDirectory")]
        directory = directories[0].removeprefix("file://")
        known = digest_of(directory)
        if known == self.saved.directory:
            return
        if self.saved.directory is not None:
            data: Json = {"cwd": directory}
            identity = id_of(self.uri, "directory", self.saved.directory, known, self._parent)
            self.emit([Draft(identity, "session.context_changed", moment(now), data)])
        else:
            created = seconds_of(self.summary.get("createdAt"))
            at = moment(now if created is None else created)
            data = {"sessionId": self.id, "version": 1, "producer": text(self.summary, "provider"), "startTime": at}
            if directory:
                data["context"] = {"cwd": directory}
            self.emit([Draft(id_of(self.uri, "start"), "session.start", at, data)])
        self.saved.directory = known

    def emit(self, new: list[Draft]) -> None:
        """Encode events as lines, except durable ones that are stored already or that another source delivers."""
        if self._text_batch is not None:
            new = [self._text_batch.draft(), *new]
            self._text_batch = None
        for draft in new:
            if not draft.is_ephemeral:
                self.is_dirty = True
                self.is_urgent = self.is_urgent or draft.type in _URGENT
                if self.is_live_only or self.hooks.known(self.id, draft.id):
                    continue
            self.lines.append((drafts.write(draft, self._parent), draft.is_ephemeral))
            if not draft.is_ephemeral:
                self._parent = draft.id
        if len(self.lines) > HELD_MAX and not self.is_identified:
            self.lines = [line for line in self.lines if not line[1]]
            if len(self.lines) > HELD_MAX // 2:
                self.identify("")

    def take(self, now: float) -> list[Line]:
        """Return the lines so far; none while another source may still turn out to deliver the session.

        The first turn of a Copilot session identifies it, however late that turn begins.
        """
        if not self.is_identified and not self.uri.startswith("ahp-") and now - self._checked_at >= LOOK_SECONDS:
            self._checked_at = now
            if self.hooks.is_elsewhere(self.id):
                self.identify("")
        is_copilots = "copilot" in text(self.summary, "provider").lower()
        if not self.is_identified and (is_copilots or now - self.since < HOLD_SECONDS):
            return []
        self.identify("")
        self.emit([])
        lines, self.lines = self.lines, []
        return lines

    def save(self) -> bytes:
        """Return the state to store on disk, once the lines that were taken are durable."""
        self.is_dirty = self.is_urgent = False
        self.saved.announced = sorted(self._announced)
        return msgspec.json.encode(self.saved)


def name_of(uri: str) -> str:
    """Return the session id for an address: its last segment if that is a valid id, else a derived id."""
    end: Any = uri.rstrip("/").rpartition("/")[2]
    return end if SESSION_NAME.fullmatch(end) else id_of("session", uri)
