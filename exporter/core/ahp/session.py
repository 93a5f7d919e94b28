"""One session of a host: its conversations, how its events become lines, and whether another source has it."""

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import msgspec

from exporter.core.ahp import drafts, ephemeral
from exporter.core.ahp.chat import Chat
from exporter.core.ahp.chat_state import PIECES, Applied
from exporter.core.ahp.checkpoint import Checkpoint, calls, digest_of
from exporter.core.ahp.drafts import Draft, id_of, moment, seconds_of
from exporter.core.ahp.turn import TurnOwner, announce
from exporter.core.ahp.values import Json, mapping, objects, strings, text

CHATS_MAX: Final = 512
HELD_MAX: Final = 2000
USAGES_MAX: Final = 512
HOLD_SECONDS: Final = 30.0
LOOK_SECONDS: Final = 1.0
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")

Line: TypeAlias = tuple[bytes, bool]  # and whether it is ephemeral


class SavedSession(msgspec.Struct):
    """What is written down of a session, so that the next process goes on where this one was."""

    frontiers: dict[str, Checkpoint] = {}
    announced: list[str] = []
    directory: str | None = None  # its digest, because a path is not for a file that is not redacted


@dataclass(frozen=True, slots=True)
class Hooks:
    """What a session asks of whoever stores its events."""

    known: Callable[[str, str], bool]
    mark: Callable[[str], str | None]
    is_elsewhere: Callable[[str], bool]  # whether another source has the durable events of this session of the CLI


@dataclass(slots=True)
class Session:
    """Takes snapshots and actions; `lines` is what came of them, for the session named `name`, until it is taken."""

    uri: str
    summary: Json
    hooks: Hooks
    kept: SavedSession
    is_live_only: bool
    since: float
    lines: list[Line] = field(default_factory=list)
    chats: dict[str, Chat] = field(default_factory=dict)
    default_chat: str = ""
    is_settled: bool = False
    alias: str = ""
    is_dirty: bool = False
    _children: dict[str, Json] = field(default_factory=dict)
    _announced: set[str] = field(default_factory=set)
    _usages: OrderedDict[str, None] = field(default_factory=OrderedDict)
    _parent: str | None = None
    _writing: ephemeral.Writing | None = None
    _looked_at: float = 0.0

    def __post_init__(self) -> None:
        self._announced = set(self.kept.announced)
        self._parent = self.hooks.mark(self.id)
        if self.hooks.is_elsewhere(self.id):
            self.settle(self.id)
        self.is_settled = self.is_settled or self._parent is not None  # it was told under its own name before

    @property
    def id(self) -> str:
        """Return the name of the session on this host."""
        return name_of(self.uri)

    @property
    def name(self) -> str:
        """Return the name under which its events are given: that of the CLI's session if another source has it."""
        return self.alias or self.id

    def settle(self, cli_session: str) -> None:
        """Take note of which of the CLI's sessions this is; when that is not told, its own name may be the CLI's."""
        if self.is_settled:
            return
        self.is_settled = True
        name = cli_session if _NAME.fullmatch(cli_session) else self.id
        if self.hooks.is_elsewhere(name):
            self.alias, self.is_live_only = name, True
            self.lines = [line for line in self.lines if line[1]]

    def replace(self, state: Json, seen: int, now: float) -> list[str]:
        """Take the session's own state and return the conversations to subscribe to, the first one first."""
        for key in ("provider", "title", "workingDirectories", "workingDirectory", "createdAt"):
            value = state.get(key) or mapping(state, "summary").get(key)
            if value:
                self.summary[key] = value
        self._start(now)
        if text(state, "lifecycle") in ("failed", "creation-failed", "creationFailed"):
            error = mapping(state, "creationError")
            data = {"errorType": text(error, "errorType") or "creation", "message": text(error, "message")}
            self.emit([Draft(id_of(self.uri, "creation", data), "session.error", moment(now), data)])
        summaries = objects(state, "chats")
        self.default_chat = text(state, "defaultChat") or (
            text(summaries[0], "resource") if summaries else self.default_chat
        )
        for summary in summaries:
            self.add_chat(summary, now)
        return sorted(self.chats, key=lambda uri: uri != self.default_chat)

    def add_chat(self, summary: Json, now: float) -> str | None:
        """Take note of a conversation and return its address if it is new."""
        uri, origin = text(summary, "resource"), mapping(summary, "origin")
        if not uri or uri in self.chats or len(self.chats) >= CHATS_MAX:
            return None
        place = TurnOwner(uri, session=self.id, children=self._children, announced=self._announced)
        if origin.get("kind") == "tool" and uri != self.default_chat:
            parent = text(origin, "chat")
            place.agent, place.call, place.title = uri, text(origin, "toolCallId"), text(summary, "title")
            place.parent = parent if parent and parent != self.default_chat else None
            self._children.setdefault(place.call, {}).update(resource=uri, title=place.title)
        self.chats[uri] = Chat(place, self.kept.frontiers.setdefault(uri, Checkpoint()))
        if place.agent is not None:
            self.emit(self._of_parent(place, now))
        return uri

    def children_in(self, chat: Chat, turns: list[Json]) -> list[Json]:
        """Return the conversations of sub-agents that tool calls refer to, as older hosts tell of them."""
        found = []
        for call in [call for turn in turns for call in calls(turn)]:
            for content in objects(call, "content"):
                uri = text(content, "resource")
                if (
                    content.get("type") == "subagent"
                    and uri.startswith(f"{self.uri}/subagent/")
                    and uri not in self.chats
                ):
                    origin = {"kind": "tool", "chat": chat.place.chat, "toolCallId": text(call, "toolCallId")}
                    found.append({"resource": uri, "title": text(content, "title"), "origin": origin})
        return found

    def _of_parent(self, place: TurnOwner, now: float) -> list[Draft]:
        parent = self.chats.get(place.parent or self.default_chat)
        return parent.tell(now) if parent is not None else []

    def chat_replaced(self, chat: Chat, state: Json, seen: int, now: float, *, has_cursors: bool) -> None:
        """Take the state of a conversation."""
        for turn in [*objects(state, "turns"), mapping(state, "activeTurn")]:
            self._look_for_cli({"usage": turn.get("usage")})
        self.told(chat, chat.replace(state, seen, now, has_cursors=has_cursors), now)

    def told(self, chat: Chat, new: list[Draft], now: float) -> None:
        """Take what a conversation told, behind the event that its agent has started."""
        place = chat.place
        if new and place.agent is not None and place.call not in self._announced:
            self.emit(self._of_parent(place, now))
            if place.call not in self._announced:
                self._announced.add(place.call)
                parent = self.chats.get(place.parent or "")
                where = parent.place if parent else TurnOwner("", session=self.id, children=self._children)
                child = self._children.get(place.call) or {"resource": place.chat}
                self.emit([announce(where, place.call, child, {}, new[0].at)])
        self.emit(new)
        if any(draft.type == "assistant.turn_end" for draft in new):
            self.settle("")

    def act(self, chat: Chat, action: Json, seq: int, now: float) -> Applied:
        """Take an action on a conversation."""
        if not chat.is_known or seq <= chat.seen:
            return Applied.NOTHING
        chat.seen = seq
        kind = text(action, "type")
        applied, new = chat.apply(action, now)
        if new:
            self.told(chat, new, now)
        if kind == "chat/usage":
            self._look_for_cli(action)
            key = ephemeral.usage_key(action)
            is_childs = chat.place.agent is None and ephemeral.usage_agent(action) and len(self.chats) > 1
            if is_childs or key in self._usages:
                return applied
            if key:
                self._usages[key] = None
                if len(self._usages) > USAGES_MAX:
                    self._usages.popitem(last=False)
        if chat.history is not None:
            return applied
        if kind in PIECES:
            if applied is Applied.TEXT:
                self._write(chat, action, seq, now)
        else:
            self.emit(ephemeral.of_chat(chat, action, applied, seq, now))
        return applied

    def _write(self, chat: Chat, action: Json, seq: int, now: float) -> None:
        """Show more of a text that is being written: in one event what comes before the lines are taken."""
        if self._writing is None or not self._writing.add(chat, action):
            self.emit([])
            self._writing = ephemeral.Writing(chat, action, seq, now)

    def act_on_session(self, action: Json, seq: int, now: float) -> str | None:
        """Take an action on the session itself and return a conversation that is new."""
        kind = text(action, "type")
        added = None
        if kind == "session/chatAdded":
            added = self.add_chat(mapping(action, "summary") or mapping(action, "chat"), now)
        elif kind == "session/creationFailed":
            error = mapping(action, "error")
            data = {"errorType": text(error, "errorType") or "creation", "message": text(error, "message")}
            self.emit([Draft(id_of(self.uri, "creation", data), "session.error", moment(now), data)])
        elif kind.startswith("session/workingDirector"):
            self.summary.update(
                {key: action[key] for key in ("workingDirectories", "workingDirectory") if key in action}
            )
            self._start(now)
        self.emit(ephemeral.of_session(self.uri, action, self.default_chat or self.uri, seq, now))
        return added

    def removed(self, now: float) -> None:
        """The host has let the session go."""
        data = {"shutdownType": "disposed"}
        self.emit([Draft(id_of(self.uri, "removed"), "session.shutdown", moment(now), data)])
        self.settle("")

    def _look_for_cli(self, action: Json) -> None:
        usage = mapping(action, "usage")
        if usage:  # a host that names the CLI's session names it here
            self.settle(text(mapping(mapping(usage, "_meta"), "vscode.modelCall"), "sdkSessionId"))

    def _start(self, now: float) -> None:
        directories = strings(self.summary, "workingDirectories") or [text(self.summary, "workingDirectory")]
        directory = directories[0].removeprefix("file://")
        known = digest_of(directory)
        if known == self.kept.directory:
            return
        if self.kept.directory is not None:
            data: Json = {"cwd": directory}
            identity = id_of(self.uri, "directory", self.kept.directory, known, self._parent)
            self.emit([Draft(identity, "session.context_changed", moment(now), data)])
        else:
            created = seconds_of(self.summary.get("createdAt"))
            at = moment(now if created is None else created)
            data = {"sessionId": self.id, "version": 1, "producer": text(self.summary, "provider"), "startTime": at}
            if directory:
                data["context"] = {"cwd": directory}
            self.emit([Draft(id_of(self.uri, "start"), "session.start", at, data)])
        self.kept.directory = known

    def emit(self, new: list[Draft]) -> None:
        """Make lines of events, but for the durable ones that are known or that another source has."""
        if self._writing is not None:
            new = [self._writing.draft(), *new]
            self._writing = None
        for draft in new:
            if not draft.is_ephemeral:
                self.is_dirty = True
                if self.is_live_only or self.hooks.known(self.id, draft.id):
                    continue
            self.lines.append((drafts.write(draft, self._parent), draft.is_ephemeral))
            if not draft.is_ephemeral:
                self._parent = draft.id
        if len(self.lines) > HELD_MAX and not self.is_settled:
            self.lines = [line for line in self.lines if not line[1]]
            if len(self.lines) > HELD_MAX // 2:
                self.settle("")

    def take(self, now: float) -> list[Line]:
        """Return the lines so far, none while it may still turn out that another source has them.

        The first turn of one of Copilot's sessions tells whose it is, however late that begins.
        """
        if not self.is_settled and not self.uri.startswith("ahp-") and now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            if self.hooks.is_elsewhere(self.id):
                self.settle("")
        is_copilots = "copilot" in text(self.summary, "provider").lower()
        if not self.is_settled and (is_copilots or now - self.since < HOLD_SECONDS):
            return []
        self.settle("")
        self.emit([])
        lines, self.lines = self.lines, []
        return lines

    def written(self) -> bytes:
        """Return what is to be written down, once the lines that were taken are safe."""
        self.is_dirty = False
        self.kept.announced = sorted(self._announced)
        return msgspec.json.encode(self.kept)


def name_of(uri: str) -> str:
    """Return the name that a session has on our side: the end of its address if that can be one."""
    end: Any = uri.rstrip("/").rpartition("/")[2]
    return end if _NAME.fullmatch(end) else id_of("session", uri)
