"""Which strings of an event are never changed: the envelope, the ids that link events, and opaque fields.

The rule is about places, not names: a user's own `{"id": …}` deep in a tool's arguments is text like any other. An id
is protected only while it looks like one; any other text at its place is text.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec


def _linkage(text: str) -> dict[str, frozenset[tuple[str, ...]]]:
    types: dict[str, set[tuple[str, ...]]] = {}
    paths: set[tuple[str, ...]] = set()
    for word in "\n".join(line for line in text.splitlines() if not line.startswith("#")).split():
        if word.endswith(":"):
            paths = types[word[:-1]] = set()
        else:
            paths.add(("data", *word.split(".")))
    return {name: frozenset(paths) for name, paths in types.items()}


LINKAGE: Final[Mapping[str, frozenset[tuple[str, ...]]]] = _linkage(
    Path(__file__).with_name("linkage.txt").read_text("utf-8")
)
"""The paths of ids that link events, by type of event; `*` is any index of an array."""
ENVELOPE: Final = frozenset({"id", "timestamp", "parentId", "type", "ephemeral"})
# Part of the envelope too, but it may be a name that somebody chose.
AGENT_ID: Final = "agentId"
DATA: Final = "data"
OPAQUE: Final[Mapping[str, frozenset[tuple[str, ...]]]] = {
    "assistant.message": frozenset({(DATA, "encryptedContent"), (DATA, "reasoningOpaque")})
}
_OPAQUE_NAMES: Final = frozenset(path[-1] for path in chain.from_iterable(OPAQUE.values()))
_NAMES: Final = frozenset(path[-1] for path in chain.from_iterable(LINKAGE.values()))
_ANY_NAME: Final = ENVELOPE | _OPAQUE_NAMES | _NAMES
_ID_ENDINGS: Final = ("Id", "ID")
_UUID: Final = re.compile(rb"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
# The last three: a request id of GitHub, a traceparent, a number or a short word.
_ID: Final = re.compile(
    _UUID.pattern
    + rb"|(?:call|toolu|chatcmpl|chat|resp|msg|fc|rs|gen)[_-][A-Za-z0-9]{1,64}"
    + rb"|tooluse_[A-Za-z0-9_-]{22}"
    + rb"|(?:sha256:)?[0-9A-Fa-f]{1,64}"
    + rb"|[0-9A-F]{1,8}(?::[0-9A-F]{1,8}){2,6}"
    + rb"|[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"
    + rb"|[A-Za-z0-9_.:-]{1,16}"
)
# Ciphertext has no blanks and is longer than the text that it hides.
_OPAQUE_VALUE: Final = re.compile(rb"[A-Za-z0-9+/=_.:-]{64,}")


class _Event(msgspec.Struct):
    type: str = ""


_DECODER: Final = msgspec.json.Decoder(_Event)
# The CLI writes the type first.
_FIRST: Final = re.compile(rb'[ \t\r\n]*+\{[ \t\r\n]*+"type"[ \t\r\n]*+:[ \t\r\n]*+"([^"\\]*+)"')


def type_of(line: bytes) -> str:
    """The type of the event; empty if the line does not name one."""
    first = _FIRST.match(line)
    if first is not None:
        return first[1].decode("utf-8", "replace")
    try:
        return _DECODER.decode(line).type
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


def may_be_named(name: str) -> bool:
    """Whether some values of a member with this name are protected."""
    return name in _ANY_NAME or name.endswith(_ID_ENDINGS)


def may_be_protected(name: str | None, value: bytes) -> bool:
    """Whether this value is protected at some place: in a member with this name, or (None) in an array."""
    if name is None:
        return _ID.fullmatch(value) is not None
    if name in ENVELOPE or name in _OPAQUE_NAMES:
        return True
    return may_be_named(name) and _ID.fullmatch(value) is not None


def is_opaque(event_type: str, path: Sequence[str | int]) -> bool:
    """Whether the string at this path is an opaque field, which is of use only as a whole."""
    return tuple(path) in OPAQUE.get(event_type, ())


def is_protected(event_type: str, path: Sequence[str | int], value: bytes) -> bool:
    """Whether this string (as the line holds it) at this path must not be changed."""
    if len(path) == 1:
        return path[0] in ENVELOPE or (path[0] == AGENT_ID and _ID.fullmatch(value) is not None)
    if not path or path[0] != DATA:
        return False
    if is_opaque(event_type, path):
        return _OPAQUE_VALUE.fullmatch(value) is not None
    if len(path) == 2 and str(path[1]).endswith(_ID_ENDINGS):
        # A known type of event may have an id that other types have; in an unknown type only a UUID is certain.
        known = event_type in LINKAGE and path[1] in _NAMES
        if (_ID if known else _UUID).fullmatch(value):
            return True
    place = tuple("*" if isinstance(step, int) else step for step in path)
    return place in LINKAGE.get(event_type, ()) and _ID.fullmatch(value) is not None
