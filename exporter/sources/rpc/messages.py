"""JSON-RPC messages of the CLI's server, read leniently, with the events in them kept as the bytes they came as."""

from typing import Any, Final, TypeVar

import msgspec

from exporter.core.events.envelope import REFUSALS
from exporter.core.events.json_scanner import NotJsonError, members, skip_whitespace

_COMMA, _CLOSE = ord(","), ord("]")


class Message(msgspec.Struct, frozen=True, gc=False):
    """A request, a notification or an answer. An absent member is empty."""

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
    """The answer to a request for events."""

    events: list[msgspec.Raw] = []
    cursor: str = ""
    hasMore: bool = False  # noqa: N815  the wire's own name
    cursorStatus: str = "ok"  # noqa: N815  the wire's own name

    @property
    def expired(self) -> bool:
        """Tell whether the server no longer knows the given cursor."""
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
    """A message of another form than expected. Says what is wrong, never its content."""


_Read = TypeVar("_Read", Message, EventPageAnswer, Pushed)
_Decoded = TypeVar("_Decoded")
_Default = TypeVar("_Default")
_KINDS: Final[tuple[type[msgspec.Struct], ...]] = (Message, EventPageAnswer, Pushed)
_DECODERS: Final[dict[type, msgspec.json.Decoder[Any]]] = {kind: msgspec.json.Decoder(kind) for kind in _KINDS}
_FIELDS: Final[dict[type, Any]] = {kind: msgspec.structs.fields(kind) for kind in _KINDS}
_NO_PAGE: Final = "an answer is no page of events"


def read_message(body: bytes) -> Message:
    """Return a message. Raises `BadMessageError` if it cannot be read."""
    return _read(body, Message, "a message is no JSON object", "a method has no name")


def read_page(result: msgspec.Raw) -> EventPageAnswer:
    """Return a page of events. Raises `BadMessageError` if it cannot be read."""
    return _read(result, EventPageAnswer, _NO_PAGE, _NO_PAGE, required=b"events")


def read_pushed(params: msgspec.Raw) -> Pushed:
    """Return the session and the event of a notification. Raises `BadMessageError` if they cannot be read."""
    why = "a notification names no session"
    return _read(params, Pushed, "a notification holds no event", why, required=b"sessionId")


def _read(
    content: bytes | msgspec.Raw, kind: type[_Read], no_object: str, bad_member: str, *, required: bytes = b""
) -> _Read:
    try:
        read: _Read = _DECODERS[kind].decode(content)
        return read
    except REFUSALS:
        pass
    # Events may hold what msgspec does not read, lone surrogates and deep nesting: they are cut out without decoding.
    body, values = bytes(content), dict[str, Any]()
    try:
        found = members(body, skip_whitespace(body, 0))[0]
    except NotJsonError:
        raise BadMessageError(no_object) from None
    if required and required not in found:
        raise BadMessageError(bad_member)
    for field in _FIELDS[kind]:
        start, end = found.get(field.encode_name.encode(), (0, 0))
        part = body[start:end]
        if field.type is msgspec.Raw:
            values[field.name] = msgspec.Raw(part)
        elif field.name == "events":
            values["events"] = [msgspec.Raw(one) for one in _elements(part)]
        elif part:
            try:
                values[field.name] = msgspec.json.decode(part, type=field.type)
            except REFUSALS:
                raise BadMessageError(bad_member) from None
    return kind(**values)


def read_sessions(result: msgspec.Raw) -> list[Listed]:
    """Return the sessions that a server lists; what cannot be read of them is left out."""
    listed = decode_or({}, result, dict[str, msgspec.Raw])
    entries = decode_or([], listed.get("sessions", msgspec.Raw()), list[msgspec.Raw])
    sessions = (decode_or(None, entry, Listed) for entry in entries)
    return [session for session in sessions if session is not None]


def decode_or(otherwise: _Default, content: msgspec.Raw, kind: type[_Decoded]) -> _Decoded | _Default:
    """Return the decoded content, or `otherwise` when it is of another kind."""
    try:
        return msgspec.json.decode(content, type=kind)
    except REFUSALS:
        return otherwise


def line_of(event: msgspec.Raw) -> bytes:
    """Return an event as one line. A newline in JSON can only stand between its parts, where a space does as well."""
    line = bytes(event)
    return line.replace(b"\n", b" ") if b"\n" in line else line


def _elements(array: bytes) -> list[bytes]:
    """Return the objects of an array."""
    elements: list[bytes] = []
    try:
        position = skip_whitespace(array, 1)
        while array[position] != _CLOSE:
            _, end = members(array, position)
            elements.append(array[position:end])
            position = skip_whitespace(array, end)
            if array[position] == _COMMA:
                position = skip_whitespace(array, position + 1)
    except (NotJsonError, IndexError):
        raise BadMessageError(_NO_PAGE) from None
    return elements
