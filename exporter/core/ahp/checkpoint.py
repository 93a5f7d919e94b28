"""How far the events of a conversation have been recorded; the history is compared with it when it is read again.

A restarted host assigns new turn and part ids, splits texts differently, gives parallel calls in the order in which
they ended, and loses cancelled calls and whole turns. So a turn is recognised by its id, or else by its prompt and the
set of its tool calls. A recorded text is recognised by length and hash, not by its part. The checkpoint is a plain
value that is stored on disk. `docs/decisions/agent-hosts.md` lists what a host keeps.
"""

from collections import Counter
from hashlib import blake2b
from typing import Final

import msgspec

from exporter.core.ahp.values import Json, mapping, objects, text

FINISHED_MAX: Final = 1024
PROMPTS_MAX: Final = 8192
TEXT_KINDS: Final = ("markdown", "reasoning")


class RecordedText(msgspec.Struct, array_like=True):
    """A recorded piece of text; pieces are in the order in which they were recorded."""

    kind: str
    length: int
    digest: str


class FinishedTurn(msgspec.Struct, array_like=True):
    """A turn that was recorded to its end. `calls` is None if an older version stored only `tools`, their hash."""

    id: str
    prompt: str
    tools: str
    text: str
    calls: list[str] | None = None
    pieces: list[RecordedText] = []
    key: str = ""


class OpenTurn(msgspec.Struct):
    """A turn that was recorded in part. `parts` has the recorded length of each part, by its present index.

    The ids of its events are made from `key`.
    """

    id: str = ""
    prompt: str = ""
    begun: bool = False
    tools: dict[str, int] = {}
    pieces: list[RecordedText] = []
    parts: dict[int, int] = {}
    notes: list[str] = []
    key: str = ""

    def count(self, kind: str) -> int:
        """Return how many pieces of a kind were recorded."""
        return sum(piece.kind == kind for piece in self.pieces)


class Checkpoint(msgspec.Struct):
    """How far one conversation is recorded. `count` turns are finished; `finished` describes the last of them.

    `lost` turns more were recorded that the host does not have any more. `prompts` counts the turns of each prompt.
    """

    count: int = 0
    finished: list[FinishedTurn] = []
    open: OpenTurn = msgspec.field(default_factory=OpenTurn)
    last: OpenTurn = msgspec.field(default_factory=OpenTurn)  # the last finished turn, which a host may resume
    rewinds: int = 0
    model: str = ""
    lost: int = 0
    prompts: dict[str, int] | None = None
    forgotten: int = 0  # the largest count that `prompts` had no room for
    is_agent_open: bool = False  # the turn of a sub-agent is finished, and how the sub-agent ended is not known

    def __post_init__(self) -> None:
        for turn, place in ((self.open, self.count), (self.last, self.count - 1)):
            if turn.begun and not turn.key:  # stored by an older version, which made ids from the place
                turn.key = f"{place}|{self.rewinds}"

    @property
    def first(self) -> int:
        """Return the position of the first turn in `finished`."""
        return self.count - len(self.finished)

    @property
    def ordinal(self) -> int:
        """Return how many turns were recorded to their end, whether the host still has them or not."""
        return self.count + self.lost

    def begin(self, turn: Json, *, is_child: bool) -> None:
        """Open a turn. Its key is its prompt, and how many turns had that prompt before: no host keeps more of a turn.

        Of a child's turn hosts do not keep even the prompt, so its key is its place.
        """
        if self.prompts is None:
            self.prompts = dict(Counter("" if is_child else each.prompt for each in self.finished))
        asked = digest_of(prompt(turn))
        name = "" if is_child else asked
        before = self.prompts.pop(name, self.forgotten)
        self.prompts[name] = before + 1
        if len(self.prompts) > PROMPTS_MAX:
            self.forgotten = max(self.forgotten, self.prompts.pop(next(iter(self.prompts))))
        self.open = OpenTurn(text(turn, "id"), asked, begun=True, key=f"{name}#{before}")

    def finish(self, turn: Json) -> None:
        """Record the open turn as finished."""
        self.finished.append(summary(turn, self.open))
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

    def drop(self, index: int, count: int) -> None:
        """Drop finished turns that the host has lost from between others."""
        del self.finished[index : index + count]
        self.count -= count
        self.lost += count
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


def call_digests(turn: Json) -> set[str]:
    """Return what the tool calls of a turn are recognised by."""
    return {call_digest(text(call, "toolCallId")) for call in calls(turn)}


def call_digest(identity: str) -> str:
    """Return what a tool call is recognised by."""
    return digest_of(identity)[:12]


def summary(turn: Json, opened: OpenTurn) -> FinishedTurn:
    """Return what a finished turn is recognised by."""
    recorded = sorted({call_digest(identity) for identity in opened.tools} | call_digests(turn))
    whole = digest_of(joined(turn, "markdown").strip())
    return FinishedTurn(text(turn, "id"), digest_of(prompt(turn)), "", whole, recorded, opened.pieces, opened.key)


def joined(turn: Json, kind: str) -> str:
    """Return all text of a kind in a turn."""
    return "".join(text(part, "content") for part in objects(turn, "responseParts") if part.get("kind") == kind)


def is_same(recorded: FinishedTurn, turn: Json) -> bool:
    """Tell whether a turn is the recorded one.

    What is absent on either side does not count, because hosts lose prompts of children, and texts and calls of
    cancelled turns.
    """
    if recorded.id == text(turn, "id"):
        return True
    asked = digest_of(prompt(turn))
    if recorded.prompt and asked and asked != recorded.prompt:
        return False
    told = digest_of(joined(turn, "markdown").strip())
    if recorded.calls is None:  # only a hash of the calls in the order in which they were started
        return bool(recorded.tools) or recorded.text in (told, "")
    now = call_digests(turn)
    if recorded.calls and now:
        return not now.isdisjoint(recorded.calls)
    return bool(recorded.calls or now) or told == recorded.text or not told or not recorded.text


def continues(recorded: OpenTurn, turn: Json) -> bool:
    """Tell whether a turn is the one that was recorded in part. Calls do not count: the recorded ones may be lost."""
    asked = digest_of(prompt(turn))
    return not recorded.begun or recorded.id == text(turn, "id") or recorded.prompt in (asked, "") or not asked


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
