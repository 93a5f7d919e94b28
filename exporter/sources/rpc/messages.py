"""JSON-RPC messages of the CLI's server, read leniently, with the events in them kept as the bytes they came as."""

from typing import Final

import msgspec

from exporter.core.events.envelope import REFUSALS
from exporter.core.events.json_scanner import NotJsonError, members, skip_whitespace

_COMMA, _CLOSE = ord(","), ord("]")


class Message(msgspec.Struct, frozen=True, gc=False):
    """A request, a notification or an answer. A member that is not there is empty."""

    id: msgspec.Raw = msgspec.Raw()
    method: str = ""
    params: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


class Fault(msgspec.Struct, frozen=True, gc=False):
    """The error of an answer. Its message may hold anything, so only the code is ever shown."""

    code: int = 0
    message: str = ""


class EventPageAnswer(msgspec.Struct, frozen=True, gc=False):
    """What reading events gives."""

    events: list[msgspec.Raw] = []
    cursor: str = ""
    hasMore: bool = False  # noqa: N815  the wire's own name
    cursorStatus: str = "ok"  # noqa: N815  the wire's own name

    @property
    def expired(self) -> bool:
        """Tell whether the cursor that was given means nothing to the server."""
        return self.cursorStatus == "expired"


class Pushed(msgspec.Struct, frozen=True, gc=False):
    """The parameters of a `session.event` notification."""

    sessionId: str = ""  # noqa: N815  the wire's own name
    event: msgspec.Raw = msgspec.Raw()


class Listed(msgspec.Struct, frozen=True, gc=False):
    """A session in the response to `session.list`."""

    sessionId: str  # noqa: N815  the wire's own name
    modifiedTime: str = ""  # noqa: N815  the wire's own name


class Lifecycle(msgspec.Struct, frozen=True, gc=False):
    """The parameters of a `session.lifecycle` notification."""

    type: str = ""
    sessionId: str = ""  # noqa: N815  the wire's own name


class Connected(msgspec.Struct, frozen=True, gc=False):
    """The answer to `connect`, or of an old server to `ping`."""

    protocolVersion: int = 0  # noqa: N815  the wire's own name
    version: str = ""


class BadMessageError(Exception):
    """A message that is not what it should be. Says what, never its content."""


_message: Final = msgspec.json.Decoder(Message).decode
_page: Final = msgspec.json.Decoder(EventPageAnswer).decode
_pushed: Final = msgspec.json.Decoder(Pushed).decode


def read_message(body: bytes) -> Message:
    """Return a message; raises `BadMessageError` when it is none."""
    try:
        return _message(body)
    except REFUSALS:
        pass
    # Events may hold what msgspec does not read: lone surrogates, deep nesting.
    fields = _members(body, "a message is no JSON object")

    def part(name: bytes) -> msgspec.Raw:
        start, end = fields.get(name, (0, 0))
        return msgspec.Raw(body[start:end])

    try:
        method = msgspec.json.decode(part(b"method"), type=str) if b"method" in fields else ""
    except REFUSALS:
        raise BadMessageError("a method has no name") from None
    return Message(part(b"id"), method, part(b"params"), part(b"result"), part(b"error"))


def read_page(result: msgspec.Raw) -> EventPageAnswer:
    """Return a page of events; raises `BadMessageError` when it is none."""
    try:
        return _page(result)
    except REFUSALS:
        pass
    text = bytes(result)
    fields = _members(text, "an answer is no page of events")
    rest = b"".join(
        b',"%s":%s' % (name, text[slice(*fields[name])])
        for name in (b"cursor", b"hasMore", b"cursorStatus")
        if name in fields
    )
    try:
        page = _page(b'{"events":[]%s}' % rest)
    except REFUSALS:
        raise BadMessageError("an answer is no page of events") from None
    start, _ = fields.get(b"events", (len(text), 0))
    return msgspec.structs.replace(page, events=[msgspec.Raw(one) for one in _elements(text, start)])


def read_pushed(params: msgspec.Raw) -> Pushed:
    """Return what a notification of an event holds; raises `BadMessageError` when it holds none."""
    try:
        return _pushed(params)
    except REFUSALS:
        pass
    text = bytes(params)
    fields = _members(text, "a notification holds no event")
    session, event = fields.get(b"sessionId", (0, 0)), fields.get(b"event", (0, 0))
    try:
        name = msgspec.json.decode(text[slice(*session)], type=str)
    except REFUSALS:
        raise BadMessageError("a notification names no session") from None
    return Pushed(name, msgspec.Raw(text[slice(*event)]))


def read_sessions(result: msgspec.Raw) -> list[Listed]:
    """Return the sessions that a server lists; what cannot be read of them is left out."""
    try:
        listed = msgspec.json.decode(result, type=dict[str, msgspec.Raw])
        entries = msgspec.json.decode(listed["sessions"], type=list[msgspec.Raw])
    except (*REFUSALS, KeyError):
        return []
    sessions = []
    for entry in entries:
        try:
            sessions.append(msgspec.json.decode(entry, type=Listed))
        except REFUSALS:
            continue
    return sessions


def line_of(event: msgspec.Raw) -> bytes:
    """Return an event as one line. A newline in JSON can only stand between its parts, where a space does as well."""
    line = bytes(event)
    return line.replace(b"\n", b" ") if b"\n" in line else line


def _members(text: bytes, otherwise: str) -> dict[bytes, tuple[int, int]]:
    try:
        return members(text, skip_whitespace(text, 0))[0]
    except NotJsonError:
        raise BadMessageError(otherwise) from None


def _elements(text: bytes, position: int) -> list[bytes]:
    """Return the objects of the array at `position`."""
    elements: list[bytes] = []
    try:
        position = skip_whitespace(text, position + 1)
        while text[position] != _CLOSE:
            _, end = members(text, position)
            elements.append(text[position:end])
            position = skip_whitespace(text, end)
            if text[position] == _COMMA:
                position = skip_whitespace(text, position + 1)
    except (NotJsonError, IndexError):
        raise BadMessageError("an answer is no page of events") from None
    return elements
