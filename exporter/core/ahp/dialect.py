"""The three dialects of the protocol, chosen by the version that the host answers with.

Classic (1, 0.1 to 0.3) has one conversation per session, in the session's own state; from 0.2 on every message names
its `channel`. Chat (0.4 to 0.9) has several per session, each with a channel of its own. 1.x is read like chat: what
it adds is opt-in, and unknown parts are ignored.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from exporter.core.ahp.values import Json, mapping, text

VERSIONS: Final = ("1.0.0", "0.9.0", "0.8.0", "0.7.0", "0.6.0", "0.5.1", "0.5.0", "0.4.0", "0.3.0", "0.2.0", "0.1.0")
CLASSIC_VERSION: Final = 1
ROOT: Final = "ahp-root://"
CLASSIC_ROOT: Final = "agenthost:/root"
_VERSION: Final = re.compile(r"(\d{1,4})\.(\d{1,4})(?:\.(\d{1,6}))?(?:[-+].*)?")
_CONVERSATION: Final = frozenset(
    (
        "turnStarted", "delta", "responsePart", "reasoning", "usage", "turnComplete", "turnCancelled", "turnResume",
        "error", "toolCallStart", "toolCallDelta", "toolCallReady", "toolCallConfirmed", "toolCallComplete",
        "toolCallResultConfirmed", "toolCallContentChanged", "toolCallAuthRequired", "toolCallAuthResolved",
        "truncated", "turnsLoaded", "pendingMessageSet", "pendingMessageRemoved", "queuedMessagesReordered",
        "inputRequested", "inputAnswerChanged", "inputCompleted",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Dialect:
    """The properties of a dialect: messages name channels, chats have channels, history is paged by cursor."""

    name: str
    has_channels: bool
    has_chats: bool
    has_cursors: bool

    @property
    def root(self) -> str:
        """Return the address of the host's own state."""
        return ROOT if self.has_channels else CLASSIC_ROOT

    def about(self, uri: str) -> Json:
        """Return the parameter that names a resource."""
        return {"channel": uri} if self.has_channels else {"resource": uri}

    def to_host(self) -> Json:
        """Return the parameter of a request that is about no resource."""
        return {"channel": ROOT} if self.has_channels else {}

    def action(self, params: Json) -> tuple[str, Json]:
        """Return an action and the address it is about, in the words of the chat dialect."""
        action = mapping(params, "action")
        channel = text(params, "channel") or text(action, "session") or text(action, "resource")
        kind = text(action, "type")
        if not self.has_chats and kind.startswith("session/") and kind[8:] in _CONVERSATION:
            action["type"] = "chat/" + kind[8:]
            if "userMessage" in action:
                action["message"] = action.pop("userMessage")
        return channel or (self.root if kind.startswith("root/") else ""), action

    def notice(self, method: str, params: Json) -> tuple[str, Json]:
        """Return a notification in the words of the chat dialect."""
        if method != "notification":
            return method, params
        inner = mapping(params, "notification")
        kind = text(inner, "type")
        return ("root/" + kind[7:] if kind.startswith("notify/") else kind), inner


CLASSIC: Final = Dialect("classic", has_channels=False, has_chats=False, has_cursors=False)
CLASSIC_WITH_CHANNELS: Final = Dialect("classic with channels", has_channels=True, has_chats=False, has_cursors=False)
CHAT: Final = Dialect("chat", has_channels=True, has_chats=True, has_cursors=False)
CHAT_WITH_CURSORS: Final = Dialect("chat with cursors", has_channels=True, has_chats=True, has_cursors=True)
ONE: Final = Dialect("1.x", has_channels=True, has_chats=True, has_cursors=True)


def dialect_of(version: Any) -> Dialect | None:
    """Return the dialect of a protocol version, None if it is not supported."""
    if version == CLASSIC_VERSION and not isinstance(version, bool):
        return CLASSIC
    match = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if match is None:
        return CLASSIC if version == "1" else None
    major, minor, patch = (int(part or 0) for part in match.groups())
    if major >= 1:
        return ONE if major == 1 else None
    if minor >= 4:
        return CHAT_WITH_CURSORS if (minor, patch) >= (5, 1) else CHAT
    return CLASSIC if minor < 2 else CLASSIC_WITH_CHANNELS
