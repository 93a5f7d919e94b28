"""Events as entries: turns with what was said, tool calls with their ends, and what happened beside.

Also the stops: the errors and notifications that a person goes to one after the other. The page's keys and the address
that leads to what the page does not hold stop at the same events.
"""

from collections.abc import Iterable
from typing import Final

from exporter.core.events.envelope import Envelope
from exporter.core.events.projection import ProjectEvent
from exporter.missioncontrol.pages.formats import counted
from exporter.missioncontrol.pages.timeline import windows
from exporter.missioncontrol.pages.timeline.entry import (
    TEXT_MAX,
    Data,
    Entry,
    Large,
    begin,
    block,
    data_of,
    inner,
    text_of,
)
from exporter.missioncontrol.pages.timeline.windows import TOOL_END, TOOL_START, Rewind, TimelineRow
from exporter.missioncontrol.pages.timeline.wording import (
    NOTIFICATION,
    completed,
    fact,
    is_trouble,
    level_of,
    note,
    started,
    table,
    without_start,
)
from exporter.missioncontrol.store.port import Database

ENDS: Final = (TOOL_END, "assistant.turn_start", "assistant.turn_end", "session.usage_record")
"""What ends a call or a turn, or is shown with it; an agent's next turn ends the one before."""


def _rewound(rewind: Rewind) -> Entry:
    title = f"{counted(rewind.count, 'event')} {'were' if rewind.count != 1 else 'was'} rewound"
    return Entry("mark", f"rewind-{rewind.at}", rewind.at, None, rewind.place, "rewind", title, ids=[])


class Teller:
    """Makes entries of events one by one and keeps what is still open.

    With `everything` events for machines have entries too. With `project`, an event is for machines if it is not for a
    screen and there are no words for it here.
    """

    def __init__(self, everything: bool = False, project: ProjectEvent | None = None) -> None:
        self.entries: list[Entry] = []
        self._everything = everything
        self._project = project
        self._calls: dict[str, Entry] = {}
        self._turns: dict[str | None, Entry] = {}

    def tell(
        self, rows: Iterable[TimelineRow], taken_back: Iterable[Rewind] = (), ends: Iterable[TimelineRow] = ()
    ) -> list[Entry]:
        """Return the entries of these events, in file order, with marks where events were taken back.

        `ends` are those of calls, further on; of them are taken as many as there are calls without an end.
        """
        waiting = list(taken_back)
        for row in rows:
            while waiting and waiting[0].place <= row.place:
                self.entries.append(_rewound(waiting.pop(0)))
            if (entry := self._entry(row, data_of(row.envelope))) is not None:
                self.entries.append(entry)
        self.entries += (_rewound(rewind) for rewind in waiting)
        self.finish(ends, calls_only=True)
        return self.entries

    def finish(self, later: Iterable[TimelineRow], *, calls_only: bool = False) -> set[str]:
        """Give what is still open its end, if it is among later events; return the ids of the ends of calls.

        With `calls_only` no event is taken once no call is open.
        """
        joined: set[str] = set()
        rows = iter(later)
        while (self._calls or (self._turns and not calls_only)) and (row := next(rows, None)) is not None:
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

    def _entry(self, row: TimelineRow, data: Data) -> Entry | None:
        envelope = row.envelope
        if envelope.type == TOOL_START:
            entry = started(envelope, data, row.place)
            if entry.key:
                self._calls[entry.key] = entry
            return entry
        if envelope.type == TOOL_END:
            return self._tool_end(row, data)
        if envelope.type in ("user.message", "assistant.message"):
            return self._message(row, data)
        if envelope.type == "assistant.turn_start":
            entry = begin("turn", envelope, row.place, f"Turn {text_of(data, 'turnId')}".strip())
            self._turns[envelope.agentId] = entry
            return entry
        if envelope.type in table().quiet:
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

    def _tool_end(self, row: TimelineRow, data: Data) -> Entry | None:
        """Give a call its end; return the entry of an end whose call is not here."""
        call = self._calls.pop(text_of(data, "toolCallId"), None)
        if call is not None:
            completed(call, row.envelope, data)
        entry = call or without_start(row.envelope, data, row.place)
        entry.stops = stops_of(row.envelope.type, data)
        return None if call is not None else entry

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
            turn.facts.append(text_of(usage, "model"))
            counts = (fact("{inputTokens:#} in", usage), fact("{outputTokens:#} out", usage))
            turn.facts.append(" / ".join(count for count in counts if count))


def _speaker(is_user: bool, envelope: Envelope, source: str) -> str:
    if not is_user:
        return "Assistant" if envelope.agentId is None else "Sub-agent"
    if envelope.agentId is not None:
        return "Task for the sub-agent"
    return "User" if source in ("", "user") else f"User ({source})"


def _other(row: TimelineRow, data: Data) -> Entry:
    envelope = row.envelope
    entry = note(envelope, data, row.place)
    if entry is not None:
        entry.stops = stops_of(envelope.type, data)
        return entry
    entry = begin("other", envelope, row.place, envelope.type or "event without a type")
    if data.get("success") is False:
        entry.level = "error"
    return entry


def stops_of(event_type: str, data: Data) -> tuple[str, ...]:
    """Return what a person may look for who wants to see this event; each such event has an entry in the timeline."""
    if event_type == TOOL_END:
        is_error = is_trouble(data)
    else:
        level = level_of(event_type, data)
        is_error = level == "error" or (level == "warning" and event_type == NOTIFICATION)
    kinds = ("error",) if is_error else ()
    return (*kinds, "note") if event_type in table().stops["note"] else kinds


def next_stop(database: Database, session_id: str, kind: str, after: str | None, *, is_back: bool) -> str | None:
    """Return the event of the stop behind another event, or before it; going round at the end."""
    stops = [stop for stop in _stops(database, session_id, kind) if stop[1] != after]
    if after is None or not stops:
        return stops[-1 if is_back else 0][1] if stops else None
    here = windows.place_of(database, session_id, after)[1:]
    if is_back:
        return next((id for place, id in reversed(stops) if place < here), stops[-1][1])
    return next((id for place, id in stops if place > here), stops[0][1])


def _stops(database: Database, session_id: str, kind: str) -> list[tuple[tuple[int, int], str]]:
    """Return where the entries of a kind are and their events, in the order of the timeline.

    A call and its end are one entry, which stands where the call began.
    """
    stops: list[tuple[tuple[int, int], str]] = []
    for row in windows.all_of_types(database, session_id, table().stops[kind]):
        if kind in stops_of(row.envelope.type, data_of(row.envelope)):
            is_end = row.envelope.type == TOOL_END
            entry = (windows.beginning_of(database, session_id, row) if is_end else None) or row
            stops.append((entry.place, entry.envelope.id))
    return sorted(stops)
