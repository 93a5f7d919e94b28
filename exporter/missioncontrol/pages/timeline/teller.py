"""A run of events told as entries: turns with what was said, tool calls with their ends, and what happened beside."""

from collections.abc import Iterable
from typing import Final

from exporter.core.events.envelope import Envelope
from exporter.core.events.projection import ProjectEvent
from exporter.missioncontrol.pages.formats import counted, figure
from exporter.missioncontrol.pages.timeline import notes, tools
from exporter.missioncontrol.pages.timeline.entry import (
    TEXT_MAX,
    Data,
    Entry,
    Large,
    begin,
    block,
    data_of,
    inner,
    number_of,
    text_of,
)
from exporter.missioncontrol.pages.timeline.stops import stops_of
from exporter.missioncontrol.pages.timeline.windows import TOOL_END, TOOL_START, Rewind, TimelineRow

QUIET: Final = frozenset(
    (
        "assistant.turn_end",
        "assistant.usage",
        "hook.end",
        "hook.start",
        "session.compaction_start",
        "session.usage_info",
        "session.usage_record",
        "subagent.configured",
        "subagent.deselected",
        "subagent.selected",
        "system.message",
    )
)
"""Events for machines: they are taken in where they belong, and shown by themselves only when everything is wanted."""


ENDS: Final = (TOOL_END, "assistant.turn_start", "assistant.turn_end", "session.usage_record")
"""What ends a call or a turn, or is told with it; an agent's next turn ends the one before."""


def tell(
    rows: Iterable[TimelineRow],
    *,
    ends: Iterable[TimelineRow] = (),
    everything: bool = False,
    taken_back: Iterable[Rewind] = (),
    project: ProjectEvent | None = None,
) -> list[Entry]:
    """Return the entries of these events, in file order, with marks where events were taken back.

    `ends` are those, further on, of calls that began here.
    With `project`, what it says is not for a screen, and for which there are no words here, is for machines too.
    """
    teller = Teller(everything, project)
    teller.tell(rows, taken_back)
    teller.finish(ends)
    return teller.entries


def _rewound(rewind: Rewind) -> Entry:
    title = f"{counted(rewind.count, 'event')} {'were' if rewind.count != 1 else 'was'} rewound"
    return Entry("mark", f"rewind-{rewind.at}", rewind.at, None, rewind.place, "rewind", title, ids=[])


class Teller:
    """Takes events one by one and keeps what is still open."""

    def __init__(self, everything: bool = False, project: ProjectEvent | None = None) -> None:
        self.entries: list[Entry] = []
        self._everything = everything
        self._project = project
        self._calls: dict[str, Entry] = {}
        self._turns: dict[str | None, Entry] = {}

    def tell(self, rows: Iterable[TimelineRow], taken_back: Iterable[Rewind] = ()) -> None:
        """Take the events of a run, with marks where events were taken back."""
        waiting = list(taken_back)
        for row in rows:
            while waiting and waiting[0].place <= row.place:
                self.entries.append(_rewound(waiting.pop(0)))
            self.take(row)
        self.entries += (_rewound(rewind) for rewind in waiting)

    def finish(self, later: Iterable[TimelineRow]) -> set[str]:
        """Give what is still open its end, if it is among later events; return the ids of the ends of calls."""
        joined: set[str] = set()
        for row in later:
            if not self._calls and not self._turns:
                break
            envelope = row.envelope
            if envelope.type == TOOL_END:
                data = data_of(envelope)
                if text_of(data, "toolCallId") in self._calls:
                    self._tool_end(row, data)
                    joined.add(envelope.id)
            elif envelope.type == "assistant.turn_start":
                self._turns.pop(envelope.agentId, None)
            else:
                self._quietly(envelope, data_of(envelope))
        return joined

    def take(self, row: TimelineRow) -> None:
        envelope, data = row.envelope, data_of(row.envelope)
        if envelope.type == TOOL_END:
            self._tool_end(row, data)
        else:
            entry = self._entry(row, data)
            if entry is not None:
                self.entries.append(entry)

    def _entry(self, row: TimelineRow, data: Data) -> Entry | None:
        envelope = row.envelope
        if envelope.type == TOOL_START:
            entry = tools.started(envelope, data, row.place)
            if entry.key:
                self._calls[entry.key] = entry
            return entry
        if envelope.type in ("user.message", "assistant.message"):
            return self._message(row, data)
        if envelope.type == "assistant.turn_start":
            entry = begin("turn", envelope, row.place, f"Turn {text_of(data, 'turnId')}".strip())
            self._turns[envelope.agentId] = entry
            return entry
        if envelope.type in QUIET:
            self._quietly(envelope, data)
            if not self._everything and not (envelope.type == "hook.end" and data.get("success") is False):
                return None
        entry = _other(row, data)
        return None if entry.kind == "other" and self._is_for_machines(envelope) else entry

    def _is_for_machines(self, envelope: Envelope) -> bool:
        if self._everything or self._project is None:
            return False
        meant = self._project(envelope.type, b"", envelope.ephemeral)
        return meant.is_known and not meant.ui_visible

    def _message(self, row: TimelineRow, data: Data) -> Entry | None:
        envelope = row.envelope
        is_user = envelope.type == "user.message"
        content = text_of(data, "content")
        reasoning = text_of(data, "reasoningText")
        if not is_user and not content.strip() and not reasoning and not self._everything:
            return None
        entry = begin("user" if is_user else "assistant", envelope, row.place)
        entry.title = _speaker(is_user, envelope, text_of(data, "source"))
        entry.key = text_of(data, "messageId")
        entry.text = content[:TEXT_MAX]
        if len(content) > TEXT_MAX or isinstance(content, Large):
            entry.blocks.append(block("truncated", "", envelope.id))
        if reasoning:
            entry.blocks.append(block("reasoning", reasoning, envelope.id))
        attachments = data.get("attachments")
        if isinstance(attachments, list):
            names = (text_of(one, "displayName", "path", "type") for one in attachments[:20] if isinstance(one, dict))
            entry.facts = [name for name in names if name]
        return entry

    def _tool_end(self, row: TimelineRow, data: Data) -> None:
        entry = self._calls.pop(text_of(data, "toolCallId"), None)
        if entry is None:
            entry = tools.without_start(row.envelope, data, row.place)
            self.entries.append(entry)
        else:
            tools.completed(entry, row.envelope, data)
        entry.stops = stops_of(row.envelope.type, data)

    def _quietly(self, envelope: Envelope, data: Data) -> None:
        """Give a turn its end and its tokens."""
        turn = self._turns.get(envelope.agentId)
        if turn is None:
            return
        if envelope.type == "assistant.turn_end":
            turn.end = envelope.timestamp
            del self._turns[envelope.agentId]
        elif envelope.type == "session.usage_record":
            usage = inner(data, "usage")
            counts = (number_of(usage, "inputTokens"), number_of(usage, "outputTokens"))
            turn.facts.append(text_of(usage, "model"))
            turn.facts.append(
                " / ".join(
                    f"{figure(count)} {name}"
                    for count, name in zip(counts, ("in", "out"), strict=True)
                    if count is not None
                )
            )


def _speaker(is_user: bool, envelope: Envelope, source: str) -> str:
    if not is_user:
        return "Assistant" if envelope.agentId is None else "Sub-agent"
    if envelope.agentId is not None:
        return "Task for the sub-agent"
    return "User" if source in ("", "user") else f"User ({source})"


def _other(row: TimelineRow, data: Data) -> Entry:
    envelope = row.envelope
    told = notes.told(envelope.type, data)
    if told is None:
        entry = begin("other", envelope, row.place, envelope.type or "event without a type")
        if data.get("success") is False:
            entry.level = "error"
        return entry
    kind, level, title, text, facts = told
    entry = begin(kind, envelope, row.place, title)
    entry.level, entry.text, entry.facts = level, text[:TEXT_MAX], facts
    entry.stops = stops_of(envelope.type, data)
    return entry
