"""Redacts text that ephemeral events carry in pieces, so that a secret spread over several events is found.

No single event holds such a secret. So every open text goes through a stream of the redactor, which holds back text
that may begin a secret; the durable event that follows has the rest. The rules:

- Types with pieces of text are in the table below. An unknown type whose name ends in `_delta` is not shown.
- Of a text whose beginning may have been missed, only lines are shown that cannot be the rest of a secret.
- A text is complete from its beginning if the start of its message, its agent's turn or its tool call was observed.
- Events that cannot be read or are too long are not shown.
"""

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from exporter.core.events.envelope import REFUSALS, Envelope, read_object

TEXTS_MAX: Final = 2048
BEGINNINGS_MAX: Final = 8192
PIECE_LENGTH_MAX: Final = 1 << 20
LINE_LENGTH_MAX: Final = 1 << 16
_HEAD_LENGTH: Final = 1024
_SHELL_OUTPUT: Final = "shell.output"
_MATERIAL: Final = re.compile(r"[A-Za-z0-9+/=]+\s*")
_MATERIAL_LENGTH: Final = 16


class TextStream(Protocol):
    """One text in pieces; what is returned is, joined, the text with its secrets masked."""

    def feed(self, text: str) -> str:
        """Return the part of the text so far that is safe to show now."""

    def flush(self) -> str:
        """Return the rest."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """Where the events of a type have their piece, and the fields of their data that tell one text from another."""

    field: str
    of: tuple[str, ...]
    is_tools: bool = False
    is_snapshot: bool = False  # each event has the whole text so far


_KINDS: Final = {
    "assistant.message_delta": _Kind("deltaContent", ("messageId",)),
    "assistant.reasoning_delta": _Kind("deltaContent", ("reasoningId",)),
    "assistant.tool_call_delta": _Kind("inputDelta", ("toolCallId",)),
    "tool.execution_partial_result": _Kind("partialOutput", ("toolCallId",), is_tools=True, is_snapshot=True),
    "tool.shell_output": _Kind("text", ("toolCallId", "stream"), is_tools=True),
    _SHELL_OUTPUT: _Kind("data", ("processId", "stream"), is_tools=True),
}
_WITHOUT_TEXT: Final = frozenset(("assistant.streaming_delta",))
# After one of these, what its agent writes is new.
_TURNS: Final = frozenset(
    (
        *("assistant.idle", "assistant.message", "assistant.message_start", "assistant.turn_start"),
        *("model.call_start", "model.turn_started", "session.idle", "user.message"),
    )
)
_CALL_BEGINS: Final = "tool.execution_start"
_read: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_read_text: Final = msgspec.json.Decoder(str).decode
_write: Final = msgspec.json.Encoder().encode


def is_piece(type: str) -> bool:
    """Tell whether an event of this type may hold a piece of a text."""
    return type in _KINDS or (type.endswith("_delta") and type not in _WITHOUT_TEXT)


@dataclass(slots=True)
class _Text:
    """One text in progress; `_partial` unless it is whole from its beginning."""

    _stream: TextStream
    _partial: "_PartialText | None"
    _head: str = ""

    def piece(self, text: str) -> str:
        """Return what may be shown after a further piece."""
        return self._stream.feed(text if self._partial is None else self._partial.lines(text))

    def snapshot(self, text: str, begin: Callable[[], TextStream]) -> str:
        """Return what may be shown of the whole text so far; one that was cut at its front is no whole one."""
        begins_as_before = text.startswith(self._head)
        self._stream, self._partial = begin(), None if begins_as_before else _PartialText()
        if begins_as_before:
            self._head = text[:_HEAD_LENGTH]
        return self.piece(text)

    def rest(self) -> str:
        """Return what was held back, at the end of the text."""
        return (self.piece("\n") if self._partial is not None else "") + self._stream.flush()


@dataclass(slots=True)
class _PartialText:
    """A text whose beginning was missed: shows whole lines that cannot be the rest of a secret.

    Anything up to the end of the first line with a blank may be such a rest, and any line of a key.
    """

    _begun: str = ""
    _is_too_long: bool = False
    _past_first: bool = False
    _was_left_out: bool = True

    def lines(self, text: str) -> str:
        """Return the lines that a further piece completes, as far as they may be shown."""
        *whole, self._begun = (self._begun + text).split("\n")
        shown = [f"{line}\n" for line in whole if not self._leaves_out(line)]
        if len(self._begun) > LINE_LENGTH_MAX:
            self._begun, self._is_too_long = "", True
        return "".join(shown)

    def _leaves_out(self, line: str) -> bool:
        is_too_long, self._is_too_long = self._is_too_long, False
        past_first, has_blank = self._past_first, " " in line or "\t" in line
        self._past_first = past_first or has_blank
        is_material = _MATERIAL.fullmatch(line) is not None and (len(line) >= _MATERIAL_LENGTH or self._was_left_out)
        self._was_left_out = is_too_long or not past_first or is_material
        return self._was_left_out


class LiveText:
    """The texts in progress of all sessions. `begin` makes a stream; without it no text is shown."""

    def __init__(self, begin: Callable[[str], TextStream] | None) -> None:
        self._begin = begin
        self._texts: OrderedDict[tuple[str, ...], _Text] = OrderedDict()
        self._beginnings: OrderedDict[tuple[str, str], None] = OrderedDict()

    def observe(self, session: str, envelope: Envelope) -> None:
        """Note that a new text may begin after an event, durable or ephemeral."""
        if envelope.type in _TURNS:
            self._note(session, f"agent {envelope.agentId or ''}")
        elif envelope.type == _CALL_BEGINS:
            self._note(session, f"call {read_object(envelope.data).get('toolCallId')}")

    def missed(self, session: str) -> None:
        """Note that events of a session may have been missed: the next piece may be from the middle of a text."""
        for beginning in [one for one in self._beginnings if one[0] == session]:
            del self._beginnings[beginning]
        for key in [one for one in self._texts if one[0] == session]:
            del self._texts[key]

    def shown(self, session: str, envelope: Envelope, line: bytes) -> bytes | None:
        """Return an event with as much of its text as may be shown by now, None when there is nothing to show."""
        kind = _KINDS.get(envelope.type)
        if kind is None:
            return None if is_piece(envelope.type) else line
        if self._begin is None:
            return None
        try:
            data = _read(envelope.data)
            piece = _read_text(data.get(kind.field, msgspec.Raw(b'""')))
            if len(piece) > PIECE_LENGTH_MAX:
                self.missed(session)
                return None
            text = self._text(session, envelope, kind, data)
            shown = text.snapshot(piece, lambda: self._stream(session)) if kind.is_snapshot else text.piece(piece)
            return _with_text(line, data, kind.field, shown) if shown else None
        except REFUSALS:
            self.missed(session)
            return None

    def rest(self, session: str, exit: bytes) -> list[bytes]:
        """Return what was held back of a shell whose exit this is, each as the data of a last output."""
        process = read_object(exit).get("processId")
        keys = [key for key in self._texts if key[:3] == (session, _SHELL_OUTPUT, str(process))]
        rests = [(key[3], self._texts.pop(key).rest()) for key in keys]
        output = {"sessionId": session, "processId": process}
        return [_write({**output, "stream": stream, "data": rest}) for stream, rest in rests if rest]

    def _text(self, session: str, envelope: Envelope, kind: _Kind, data: dict[str, msgspec.Raw]) -> _Text:
        names = [_plain(data.get(name)) for name in kind.of]
        key = (session, envelope.type, *names)
        text = self._texts.get(key)
        if text is None:
            while len(self._texts) >= TEXTS_MAX:  # should it go on, it must not be taken for a new one
                self.missed(next(iter(self._texts))[0])
            if kind.is_tools:
                if _plain(data.get("sequence")) == "0":
                    self._note(session, f"call {names[0]}")
                is_whole = kind.is_snapshot or (session, f"call {names[0]}") in self._beginnings
            else:
                is_whole = (session, f"agent {envelope.agentId or ''}") in self._beginnings
            text = self._texts[key] = _Text(self._stream(session), None if is_whole else _PartialText())
        self._texts.move_to_end(key)
        return text

    def _stream(self, session: str) -> TextStream:
        assert self._begin is not None
        return self._begin(session)

    def _note(self, session: str, what: str) -> None:
        self._beginnings[session, what] = None
        self._beginnings.move_to_end((session, what))
        if len(self._beginnings) > BEGINNINGS_MAX:
            self._beginnings.popitem(last=False)


def _plain(value: msgspec.Raw | None) -> str:
    return "" if value is None else bytes(value).strip(b'"').decode(errors="replace")


def _with_text(line: bytes, data: dict[str, msgspec.Raw], field: str, text: str) -> bytes:
    event = _read(line)
    event["data"] = msgspec.Raw(_write({**data, field: text}))
    return _write(event)
