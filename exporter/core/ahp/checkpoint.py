"""How much of a conversation has been told: what the same history, read again, is compared with.

Turn and part ids are minted anew when a host restarts, and texts may be cut into other parts. So a turn is known
again by its id or else by its place, its prompt and its tool calls; and what was told of a text is known by its
length and hash, not by its part. The whole of it is a value that can be written down and read back.
"""

from hashlib import blake2b
from typing import Any, Final

import msgspec

from exporter.core.ahp.tools import STARTED
from exporter.core.ahp.values import Json, mapping, objects, text
from exporter.core.events.envelope import REFUSALS

FINISHED_MAX: Final = 1024
TEXT_KINDS: Final = ("markdown", "reasoning")


class Finished(msgspec.Struct, array_like=True):
    """A turn that was told to its end."""

    id: str
    prompt: str
    tools: str
    text: str


class ToldText(msgspec.Struct, array_like=True):
    """A stretch of text that was told, in the order of telling."""

    kind: str
    length: int
    digest: str


class Open(msgspec.Struct):
    """A turn that was told in part. `parts` says how much of each part, as they are numbered at present."""

    id: str = ""
    prompt: str = ""
    begun: bool = False
    tools: dict[str, int] = {}
    pieces: list[ToldText] = []
    parts: dict[int, int] = {}
    notes: list[str] = []

    def count(self, kind: str) -> int:
        """Return how many pieces of a kind were told."""
        return sum(piece.kind == kind for piece in self.pieces)


class Checkpoint(msgspec.Struct):
    """How far one conversation is told. `count` turns are finished; of the last ones of them it is known which."""

    count: int = 0
    finished: list[Finished] = []
    open: Open = msgspec.field(default_factory=Open)
    last: Open = msgspec.field(default_factory=Open)  # the last finished turn, which a host may resume
    rewinds: int = 0
    model: str = ""

    @property
    def first(self) -> int:
        """Return the place of the first finished turn that is known."""
        return self.count - len(self.finished)

    def finish(self, turn: Json) -> None:
        """Take the open turn as told to its end."""
        self.finished.append(summary(turn))
        self.count += 1
        self.last, self.open = self.open, Open()
        if len(self.finished) > FINISHED_MAX:
            del self.finished[: FINISHED_MAX // 2]

    def rewind(self, count: int) -> None:
        """Forget what was told from a place on: it is no longer part of the history."""
        del self.finished[max(0, count - self.first) :]
        self.count = count
        self.open, self.last = Open(), Open()
        self.rewinds += 1

    def resume(self) -> None:
        """Take the last finished turn as running again."""
        self.finished.pop()
        self.count -= 1
        self.open, self.last = self.last, Open()
        self.open.notes.append("resumed")


def prompt(turn: Json) -> str:
    """Return what a turn was asked."""
    return text(mapping(turn, "message") or mapping(turn, "userMessage"), "text")


def calls(turn: Json) -> list[Json]:
    """Return the tool calls of a turn in order."""
    return [mapping(part, "toolCall") for part in objects(turn, "responseParts") if part.get("kind") == "toolCall"]


def summary(turn: Json) -> Finished:
    """Return what a finished turn is known by."""
    names = "\n".join(text(call, "toolCallId") for call in calls(turn))
    return Finished(text(turn, "id"), _of(prompt(turn)), _of(names), _of(joined(turn, "markdown").strip()))


def joined(turn: Json, kind: str) -> str:
    """Return all text of a kind in a turn."""
    return "".join(text(part, "content") for part in objects(turn, "responseParts") if part.get("kind") == kind)


def is_same(told: Finished, turn: Json) -> bool:
    """Tell whether a turn is the one that was told; a prompt that a host has lost proves nothing against it."""
    if told.id == text(turn, "id"):
        return True
    now = summary(turn)
    if now.prompt not in (told.prompt, "") or now.tools != told.tools:
        return False
    return bool(now.tools) or now.text == told.text


def continues(told: Open, turn: Json) -> bool:
    """Tell whether a turn is the one that was told in part."""
    if not told.begun or told.id == text(turn, "id"):
        return True
    names = {text(call, "toolCallId") for call in calls(turn) if text(call, "status") in STARTED}
    return _of(prompt(turn)) in (told.prompt, "") and told.tools.keys() <= names


def renumber(told: Open, turn: Json) -> bool:
    """Find what was told in the parts as they are numbered now; False if the texts are others."""
    told.id = text(turn, "id")
    told.parts = {}
    for kind in TEXT_KINDS:
        whole, start = joined(turn, kind), 0
        for piece in told.pieces:
            if piece.kind == kind:
                if _of(whole[start : start + piece.length]) != piece.digest:
                    return False
                start += piece.length
        for index, part in enumerate(objects(turn, "responseParts")):
            if part.get("kind") == kind and start > 0:
                told.parts[index] = min(start, len(text(part, "content")))
                start -= told.parts[index]
    return True


def piece_of(kind: str, content: str) -> ToldText:
    """Return what a stretch of text is known by."""
    return ToldText(kind, len(content), _of(content))


def digest_of(content: str) -> str:
    """Return what a prompt is known by."""
    return _of(content)


def write(frontiers: dict[str, Any]) -> bytes:
    """Return what `read` reads."""
    return msgspec.json.encode(frontiers)


def read(written: bytes, type: Any) -> Any:
    """Return what was written, or None if that is not what it is."""
    try:
        return msgspec.json.decode(written, type=type)
    except REFUSALS:
        return None


def _of(content: str) -> str:
    return blake2b(content.encode("utf-8", "replace"), digest_size=12).hexdigest() if content else ""
