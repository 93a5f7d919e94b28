"""How far the events of a conversation have been recorded; the history is compared with it when it is read again.

A restarted host assigns new turn and part ids and may split texts differently. So a turn is recognised by its id, or
else by its position, prompt and tool calls. A recorded text is recognised by length and hash, not by its part. The
checkpoint is a plain value that is stored on disk.
"""

from hashlib import blake2b
from typing import Final

import msgspec

from exporter.core.ahp.chat_state import STARTED
from exporter.core.ahp.values import Json, mapping, objects, text

FINISHED_MAX: Final = 1024
TEXT_KINDS: Final = ("markdown", "reasoning")


class FinishedTurn(msgspec.Struct, array_like=True):
    """A turn that was recorded to its end."""

    id: str
    prompt: str
    tools: str
    text: str


class RecordedText(msgspec.Struct, array_like=True):
    """A recorded piece of text; pieces are in the order in which they were recorded."""

    kind: str
    length: int
    digest: str


class OpenTurn(msgspec.Struct):
    """A turn that was recorded in part. `parts` has the recorded length of each part, by its present index."""

    id: str = ""
    prompt: str = ""
    begun: bool = False
    tools: dict[str, int] = {}
    pieces: list[RecordedText] = []
    parts: dict[int, int] = {}
    notes: list[str] = []

    def count(self, kind: str) -> int:
        """Return how many pieces of a kind were recorded."""
        return sum(piece.kind == kind for piece in self.pieces)


class Checkpoint(msgspec.Struct):
    """How far one conversation is recorded. `count` turns are finished; `finished` describes the last of them."""

    count: int = 0
    finished: list[FinishedTurn] = []
    open: OpenTurn = msgspec.field(default_factory=OpenTurn)
    last: OpenTurn = msgspec.field(default_factory=OpenTurn)  # the last finished turn, which a host may resume
    rewinds: int = 0
    model: str = ""

    @property
    def first(self) -> int:
        """Return the position of the first turn in `finished`."""
        return self.count - len(self.finished)

    def finish(self, turn: Json) -> None:
        """Record the open turn as finished."""
        self.finished.append(summary(turn))
        self.count += 1
        self.last, self.open = self.open, OpenTurn()
        if len(self.finished) > FINISHED_MAX:
            del self.finished[: FINISHED_MAX // 2]

    def rewind(self, count: int) -> None:
        """Drop the recorded turns from a position on: they are no longer part of the history."""
        del self.finished[max(0, count - self.first) :]
        self.count = count
        self.open, self.last = OpenTurn(), OpenTurn()
        self.rewinds += 1

    def resume(self) -> None:
        """Reopen the last finished turn."""
        self.finished.pop()
        self.count -= 1
        self.open, self.last = self.last, OpenTurn()
        self.open.notes.append("resumed")


def prompt(turn: Json) -> str:
    """Return the prompt of a turn."""
    return text(mapping(turn, "message") or mapping(turn, "userMessage"), "text")


def calls(turn: Json) -> list[Json]:
    """Return the tool calls of a turn in order."""
    return [mapping(part, "toolCall") for part in objects(turn, "responseParts") if part.get("kind") == "toolCall"]


def summary(turn: Json) -> FinishedTurn:
    """Return what a finished turn is recognised by."""
    names = "\n".join(text(call, "toolCallId") for call in calls(turn))
    return FinishedTurn(
        text(turn, "id"), digest_of(prompt(turn)), digest_of(names), digest_of(joined(turn, "markdown").strip())
    )


def joined(turn: Json, kind: str) -> str:
    """Return all text of a kind in a turn."""
    return "".join(text(part, "content") for part in objects(turn, "responseParts") if part.get("kind") == kind)


def is_same(recorded: FinishedTurn, turn: Json) -> bool:
    """Tell whether a turn is the recorded one; an empty prompt does not count, because hosts lose prompts."""
    if recorded.id == text(turn, "id"):
        return True
    now = summary(turn)
    if now.prompt not in (recorded.prompt, "") or now.tools != recorded.tools:
        return False
    return bool(now.tools) or now.text == recorded.text


def continues(recorded: OpenTurn, turn: Json) -> bool:
    """Tell whether a turn is the one that was recorded in part."""
    if not recorded.begun or recorded.id == text(turn, "id"):
        return True
    names = {text(call, "toolCallId") for call in calls(turn) if text(call, "status") in STARTED}
    return digest_of(prompt(turn)) in (recorded.prompt, "") and recorded.tools.keys() <= names


def renumber(recorded: OpenTurn, turn: Json) -> bool:
    """Map the recorded text to the present parts; return False if the texts differ."""
    recorded.id = text(turn, "id")
    recorded.parts = {}
    for kind in TEXT_KINDS:
        whole, start = joined(turn, kind), 0
        for piece in recorded.pieces:
            if piece.kind == kind:
                if digest_of(whole[start : start + piece.length]) != piece.digest:
                    return False
                start += piece.length
        for index, part in enumerate(objects(turn, "responseParts")):
            if part.get("kind") == kind and start > 0:
                recorded.parts[index] = min(start, len(text(part, "content")))
                start -= recorded.parts[index]
    return True


def digest_of(content: str) -> str:
    """Return the hash that a text is recognised by, empty for an empty text."""
    return blake2b(content.encode("utf-8", "replace"), digest_size=12).hexdigest() if content else ""
